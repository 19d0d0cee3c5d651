"""docs/auditing.md is true: its commands are run, and print what stands below them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "docs" / "auditing.md").read_text(encoding="utf-8")


def commands():
    """Each command of the tutorial with the lines that stand below it, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def matches(said, expected):
    """`…` stands for what differs from machine to machine."""
    pattern = ".*".join(map(re.escape, expected.split("…")))
    return re.fullmatch(pattern, said) is not None


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.skipif(sys.platform != "linux", reason="the tutorial edits files with GNU sed")
def test_the_tutorial_prints_what_it_says(tmp_path):
    for name in ("loans.gbfl.json", "loans-candidate.gbfl.json", "applications.csv"):
        shutil.copy(ROOT / "examples" / "audit" / name, tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment["COLUMNS"] = "200"
    listed = commands()
    assert len(listed) >= 18
    for command, expected in listed:
        run = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        said = run.stdout.rstrip("\n").splitlines()
        assert run.stderr == "", command
        assert len(said) == len(expected), f"{command}\n{run.stdout}"
        for line, wanted in zip(said, expected, strict=True):
            assert matches(line.rstrip(), wanted.rstrip()), f"{command}\n{line}\n{wanted}"
