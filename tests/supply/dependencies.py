"""Known vulnerabilities of what `make test` installed, by pip-audit: python -m tests.supply.dependencies

pip-audit says "no known vulnerabilities" of a library it could not ask about as well, so its findings are read one by one: what
was not looked up is said to be not looked up. Exit code 1 for a vulnerability, 0 otherwise.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

PLACE = Path(__file__).parent.parent.parent / ".versions/pip-audit"


def judged(report):
    """What a report of pip-audit says, in a line, and whether something vulnerable was found."""
    entries = report["dependencies"]
    asked = [entry for entry in entries if "vulns" in entry]
    vulnerable = [
        f"{entry['name']} {entry['version']}: {', '.join(one['id'] for one in entry['vulns'])}"
        for entry in asked
        if entry["vulns"]
    ]
    if vulnerable:
        return f"{len(vulnerable)} vulnerable: {'; '.join(vulnerable)}", True
    if not asked:
        return f"not run: the package index here knows nothing of vulnerabilities ({len(entries)} libraries)", False
    rest = f", {len(entries) - len(asked)} not looked up" if len(asked) < len(entries) else ""
    return f"no known vulnerability in {len(asked)} libraries{rest}", False


def report():
    """pip-audit's own report on this environment, or why there is none."""
    python = PLACE / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "pip-audit"],
        capture_output=True,
        text=True,
    )
    if installed.returncode:
        return "pip-audit cannot be installed here"
    command = [PLACE / "bin/pip-audit", "--path", sysconfig.get_paths()["purelib"], "--format", "json"]
    command += ["--progress-spinner", "off", "--timeout", "10"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=300)
        return json.loads(asked.stdout)
    except subprocess.TimeoutExpired:
        return "pip-audit did not answer within 300 s"
    except ValueError:
        return "pip-audit could not reach its service"


def main():
    found = report()
    said, vulnerable = (f"not run: {found}", False) if isinstance(found, str) else judged(found)
    print(f"dependency audit: {said}")  # noqa: T201 - what was asked for
    return int(vulnerable)


if __name__ == "__main__":
    sys.exit(main())
