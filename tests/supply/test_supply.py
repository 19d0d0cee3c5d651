"""Builds are reproducible, and what is claimed about dependencies is true."""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.supply.dependencies import judge
from tests.supply.versions import lowest, version_of

ROOT = Path(__file__).parent.parent.parent
SHIPPED = ("gbfl_compile", "templates", "runtime_c", "tests", "examples", "docs")


def build_digests(place, umask, hash_seed):
    """The SHA-256 of the sdist and of the wheel built from a copy of the checkout, with other file times."""
    checkout = place / "checkout"
    checkout.mkdir(parents=True)
    for name in SHIPPED:
        shutil.copytree(
            ROOT / name, checkout / name, copy_function=shutil.copy, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, checkout)
    environment = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", place / "dist", checkout],
        check=True,
        capture_output=True,
        env={**environment, "PYTHONHASHSEED": hash_seed},
        preexec_fn=lambda: os.umask(umask),
    )
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (place / "dist").iterdir()}


def test_the_wheel_and_the_sdist_are_the_same_bytes_in_every_build(tmp_path):
    one = build_digests(tmp_path / "one", 0o022, "0")
    other = build_digests(tmp_path / "another place", 0o002, "1")
    assert sorted(Path(name).suffix for name in one) == [".gz", ".whl"]
    assert one == other


def test_the_lowest_versions_are_those_the_project_names():
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(pin.split("==") for pin in lowest(pyproject))
    assert len(pins) == len(pyproject["project"]["dependencies"])
    assert f"numpy>={pins['numpy']}" in pyproject["project"]["dependencies"]


def test_an_interpreter_is_known_by_what_it_says():
    assert version_of(sys.executable) == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert version_of("/no/such/python") == ""


UNKNOWN = {"name": "odd", "skip_reason": "Dependency not found"}
FINE = {"name": "fine", "version": "1.0", "vulns": []}
BAD = {"name": "bad", "version": "0.1", "vulns": [{"id": "PYSEC-1"}]}


@pytest.mark.parametrize(
    ("entries", "message", "vulnerable"),
    [
        ([UNKNOWN, UNKNOWN], "not run", False),
        ([FINE, UNKNOWN], "in 1 libraries, 1 not looked up", False),
        ([FINE], "no known vulnerability in 1 libraries", False),
        ([FINE, BAD, UNKNOWN], "bad 0.1: PYSEC-1", True),
    ],
)
def test_a_library_that_was_not_looked_up_is_never_called_clean(entries, message, vulnerable):
    line, result = judge({"dependencies": entries})
    assert message in line
    assert result is vulnerable
    assert ("no known" in line) is (not vulnerable and FINE in entries)
