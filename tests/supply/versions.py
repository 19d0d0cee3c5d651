"""The tests on the oldest libraries that pyproject.toml allows, and on every newer Python that is on this machine.

    python -m tests.supply.versions              # all of them
    python -m tests.supply.versions oldest 3.13  # some

Each has its own environment in .versions/, rebuilt when pyproject.toml changes; in CI it is removed after its tests, since
each takes more than a gigabyte. One for which the disk has no room is not run, and its line says so. The newest libraries
are what `make test` installs anyway.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PLACE = ROOT / ".versions"
OLDEST = "oldest"
ROOM = 2.5e9
"""Bytes that an environment, what pip unpacks on the way and the tests' files need."""
NEWER = range(12, 30)
"""Minor versions of Python 3 to look for; `make test` itself runs on PYTHON."""

TESTS = (
    *("tests/ir", "tests/passes", "tests/lowering/test_lowering.py", "tests/lowering/test_sklearn_trees.py"),
    *("tests/backends/test_python.py", "tests/backends/c/test_c.py", "tests/backends/onnx/test_onnx.py"),
    *(
        "tests/learning/test_classifier.py",
        "tests/learning/test_baselines.py",
        "tests/learning/black_box/test_black_box.py",
    ),
    *(
        "tests/cli/test_cli.py",
        "tests/cli/test_mine.py",
        "tests/cli/test_demo.py",
        "tests/checking/prove/test_prove.py",
    ),
)
"""What a library or a Python can break: data in, learning, lowering, targets, the command line."""


def lowest(pyproject):
    """A constraint for each dependency of the core: just the lowest version it says it works with."""
    pins = []
    for requirement in pyproject["project"]["dependencies"]:
        name, at_least = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", requirement).groups()
        pins.append(f"{name}=={at_least}")
    return pins


def pythons():
    """Name -> interpreter, of every newer Python on the PATH or installed by pyenv."""
    interpreters = {}
    for minor in NEWER:
        name = f"3.{minor}"
        pyenv = sorted((Path.home() / ".pyenv/versions").glob(f"{name}.*/bin/python3"))
        for candidate in (shutil.which(f"python{name}"), *map(str, reversed(pyenv))):
            if candidate and version_of(candidate) == name:
                interpreters[name] = candidate
                break
    return interpreters


def version_of(python):
    """As the interpreter itself says: a name on the PATH may be a signpost to nowhere."""
    question = [python, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"]
    try:
        return subprocess.run(question, capture_output=True, text=True, timeout=60).stdout.strip()
    except OSError:
        return ""


def environment(name, python):
    """The interpreter of an environment with our tests' libraries; None where the disk has no room for it."""
    content = (ROOT / "pyproject.toml").read_bytes()
    folder, mark = PLACE / name, hashlib.sha256(content + str(python).encode()).hexdigest()
    stamp = folder / "installed"
    if not stamp.is_file() or stamp.read_text() != mark:
        shutil.rmtree(folder, ignore_errors=True)
        if shutil.disk_usage(PLACE).free < ROOM:
            return None
        subprocess.run([python, "-m", "venv", folder], check=True)
        pins = PLACE / f"{name}.txt"
        pins.write_text("".join(f"{pin}\n" for pin in lowest(tomllib.loads(content.decode())) if name == OLDEST))
        pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        installation = subprocess.run([*pip, "-c", pins, "-e", f"{ROOT}[test]"])
        if installation.returncode:
            full = shutil.disk_usage(PLACE).free < ROOM  # others may write to the same disk meanwhile
            shutil.rmtree(folder, ignore_errors=True)
            if full:
                return None
            installation.check_returncode()
        stamp.write_text(mark)
    return folder / "bin/python"


def run(name, python):
    """The tests in that environment; their exit code and closing line."""
    interpreter = environment(name, python)
    if interpreter is None:
        return 0, f"not run: less than {ROOM / 1e9} GB free for its environment"
    command = [interpreter, "-m", "pytest", "-n", "2", "-q", *TESTS]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tests:
        lines = []
        for line in tests.stdout:
            lines.append(line)
            if re.match(r"(FAILED|ERROR|E  )", line):
                sys.stdout.write(line)
    if tests.returncode:
        sys.stdout.writelines(lines[-200:])
    return tests.returncode, lines[-1].strip() if lines else "nothing was printed"


def main(names):
    every = {OLDEST: sys.executable, **pythons()}
    if absent := [name for name in names if name not in every]:
        sys.exit(f"not on this machine: {', '.join(absent)}; there is {', '.join(every)}")
    PLACE.mkdir(exist_ok=True)
    failed = False
    for name in names or every:
        code, summary = run(name, every[name])
        failed |= code != 0
        if os.environ.get("CI"):
            shutil.rmtree(PLACE / name, ignore_errors=True)
        label = (
            f"oldest libraries, Python {sys.version_info[0]}.{sys.version_info[1]}"
            if name == OLDEST
            else f"Python {name}"
        )
        print(f"{label}: {summary}", flush=True)  # noqa: T201 - the output of this command
    return int(failed)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    sys.exit(main(sys.argv[1:]))
