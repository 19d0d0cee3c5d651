"""Known vulnerabilities of what `make test` installed, by pip-audit: python -m tests.supply.dependencies

pip-audit says "no known vulnerabilities" of a library it could not ask about as well, so its findings are read one by one: what
could not be looked up is reported as such. Exit code 1 for a vulnerability, 0 otherwise.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

PLACE = Path(__file__).parent.parent.parent / ".versions/pip-audit"


def judge(report):
    """A report of pip-audit in one line, and whether it lists a vulnerability."""
    entries = report["dependencies"]
    known = [entry for entry in entries if "vulns" in entry]
    vulnerable = [
        f"{entry['name']} {entry['version']}: {', '.join(one['id'] for one in entry['vulns'])}"
        for entry in known
        if entry["vulns"]
    ]
    if vulnerable:
        return f"{len(vulnerable)} vulnerable: {'; '.join(vulnerable)}", True
    if not known:
        return f"not run: the package index here knows nothing of vulnerabilities ({len(entries)} libraries)", False
    rest = f", {len(entries) - len(known)} not looked up" if len(known) < len(entries) else ""
    return f"no known vulnerability in {len(known)} libraries{rest}", False


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
        audit = subprocess.run(command, capture_output=True, text=True, timeout=300)
        return json.loads(audit.stdout)
    except subprocess.TimeoutExpired:
        return "pip-audit did not answer within 300 s"
    except ValueError:
        return "pip-audit could not reach its service"


def main():
    result = report()
    line, vulnerable = (f"not run: {result}", False) if isinstance(result, str) else judge(result)
    print(f"dependency audit: {line}")  # noqa: T201 - the output of this command
    return int(vulnerable)


if __name__ == "__main__":
    sys.exit(main())
