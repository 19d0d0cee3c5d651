"""A compiler that is missing, fails, crashes or hangs: reported in time, and never mistaken for a wrong artifact."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from gbfl_compile.ir.json import save
from tests.faults.running import PROGRAM, gbfl, strays, surroundings

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

COMPILERS = {
    "says nothing and fails": ("exit 1", "printed nothing and ended with 1"),
    "fails with a message": ('echo "cc1: error: no room in the inn" >&2; exit 1', "no room in the inn"),
    "crashes": ("kill -SEGV $$", "ended by signal 11"),
    "hangs": ("sleep 1000", "did not finish within 3 seconds"),
    "hangs behind its own child": ("sleep 1000 & wait", "did not finish within 3 seconds"),
    "ends and leaves a child that hangs": ("sleep 1000 & exit 0", "did not finish within 3 seconds"),
}
"""What it does after printing its version, and the message expected."""


def fake(folder, script):
    path = folder / "mycc"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "mycc 1.0"; exit 0; fi\n{script}\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path):
    save(PROGRAM, tmp_path / "p.json")
    (tmp_path / "d.csv").write_text("age,income\n30,1\n")
    ran = gbfl(tmp_path, "compile", "p.json", "--to", "c", "-o", "build", "--no-check")
    assert ran.returncode == 0, ran.stderr
    return tmp_path


def running(name):
    """Processes of this name that we have started, as the system lists them."""
    entries = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name.encode() in entry.read_bytes():
                entries.append(entry)
        except OSError:
            continue
    return entries


@pytest.mark.parametrize("kind", COMPILERS)
def test_a_compiler_that_does_not_work_is_named_and_nothing_is_called_different(folder, kind):
    script, message = COMPILERS[kind]
    script = script.replace("sleep 1000", f"sleep 1000.{os.getpid()}")
    environment = surroundings(folder, CC=fake(folder, script), GBFL_COMPILER_SECONDS=3)
    began = time.monotonic()
    ran = gbfl(folder, "score", "build/c", "d.csv", "-o", "s.csv", environment=environment)
    assert ran.returncode == 3, ran.stderr
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not (folder / "s.csv").exists()
    ran = gbfl(folder, "check", "p.json", "build", "--json", "v.json", environment=environment)
    assert time.monotonic() - began < 100
    target = json.loads((folder / "v.json").read_text())["targets"]["c"]
    assert target["verdict"] == "not run"
    assert message in target["reason"]
    assert ran.returncode == 3
    assert running(f"sleep\0001000.{os.getpid()}") == []
    assert strays(folder) == []
    assert list((folder / "cache").iterdir()) == []


def test_a_compiler_that_hangs_when_asked_for_its_name_is_not_a_compiler(folder):
    path = folder / "mycc"
    path.write_text("#!/bin/sh\nsleep 1000 & wait\n")
    path.chmod(0o755)
    environment = surroundings(folder, CC=path, GBFL_COMPILER_SECONDS=2)
    ran = gbfl(folder, "score", "build/c", "d.csv", "-o", "s.csv", environment=environment)
    assert ran.returncode == 3
    assert "does not run" in ran.stderr


def test_a_missing_compiler_is_named_with_the_ways_out(folder):
    for environment in (surroundings(folder, CC="no-such-compiler"), surroundings(folder, PATH=folder / "tmp")):
        ran = gbfl(folder, "score", "build/c", "d.csv", "-o", "s.csv", environment=environment)
        assert ran.returncode == 3
        assert "install gcc or clang" in ran.stderr
        ran = gbfl(folder, "compile", "p.json", "--to", "c,python", "-o", "again", environment=environment)
        assert ran.returncode == 0
        assert (folder / "again/c/model.c").exists()
        assert "not run" in ran.stdout


def test_a_source_that_does_not_compile_is_still_the_sources_fault(folder):
    source = folder / "build/c/model.c"
    source.write_text(source.read_text().replace("return", "retrun", 1))
    ran = gbfl(folder, "score", "build/c", "d.csv", "-o", "s.csv")
    assert ran.returncode == 2
    assert "the scorer does not compile" in ran.stderr


def test_a_time_limit_that_is_not_a_number_is_refused(folder):
    environment = surroundings(folder, GBFL_COMPILER_SECONDS="soon")
    ran = gbfl(folder, "score", "build/c", "d.csv", "-o", "s.csv", environment=environment)
    assert ran.returncode == 2
    assert "GBFL_COMPILER_SECONDS='soon'" in ran.stderr
