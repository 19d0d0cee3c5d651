"""Full disks and folders that cannot be written to: one line, the right exit code, the old files untouched."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from gbfl_compile.ir.json import save
from tests.faults.running import GBFL, OTHER, PROGRAM, contents, gbfl, strays, surroundings

ENDINGS = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")


@contextlib.contextmanager
def mount(place, options):
    """A small separate file system, where mounting is allowed."""
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here to make a small file system with")
    place.mkdir()
    ran = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, text=True)
    if ran.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {ran.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def folder(tmp_path):
    save(PROGRAM, tmp_path / "p.json")
    save(OTHER, tmp_path / "other.json")
    rows = pd.DataFrame({"age": range(300_000), "income": [0.1 * n for n in range(300_000)]})
    rows.to_parquet(tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.parametrize("ending", ENDINGS)
def test_scoring_onto_a_full_disk_keeps_the_old_table(folder, ending):
    with mount(folder / "small", "size=256k") as small:
        out = small / f"scored{ending}"
        out.write_bytes(b"as before")
        ran = gbfl(folder, "score", "p.json", "rows.parquet", "-o", out, "--key", "income")
        assert (ran.returncode, ran.stdout) == (3, "")
        assert f"{out}: cannot be written: No space left on device" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
        assert contents(small) == {out.name: b"as before"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_limit_on_file_sizes_is_a_full_disk(folder, ending):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    out = folder / f"scored{ending}"
    ran = gbfl(folder, "score", "p.json", "rows.parquet", "-o", out, "--key", "income", preexec_fn=limit)
    assert ran.returncode == 3, ran.stderr
    assert "cannot be written: File too large" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert not out.exists()
    assert strays(folder) == []


def test_compiling_onto_a_full_disk_keeps_the_old_artifacts_of_every_target(folder):
    with mount(folder / "small", "size=128k") as small:
        assert gbfl(folder, "compile", "p.json", "--to", "python,c", "-o", small / "build").returncode == 0
        before = contents(small)
        room = os.statvfs(small)
        (small / "filler").write_bytes(b"x" * (room.f_bavail * room.f_bsize - 2 * 4096))
        ran = gbfl(folder, "compile", "other.json", "--to", "python,c", "-o", small / "build", "--no-check")
        assert ran.returncode == 3
        assert "No space left on device" in ran.stderr
        (small / "filler").unlink()
        assert contents(small) == before
        assert strays(small) == []
        assert gbfl(folder, "compile", "other.json", "--to", "python,c", "-o", small / "build").returncode == 0
        assert set(contents(small)) == set(before)
        assert contents(small) != before


def test_a_full_cache_is_named_and_nothing_is_called_different(folder):
    with mount(folder / "small", "size=64k") as small:
        room = os.statvfs(small)
        (small / "filler").write_bytes(b"x" * (room.f_bavail * room.f_bsize))
        environment = surroundings(folder, GBFL_CACHE=small)
        ran = gbfl(folder, "compile", "p.json", "--to", "c", "-o", "build", "--json", environment=environment)
        assert ran.returncode == 0, ran.stderr
        target = json.loads(ran.stdout)["check"]["targets"]["c"]
        assert target["verdict"] == "not run"
        assert "cannot be written: No space left on device, set GBFL_CACHE" in target["reason"]
        ran = gbfl(folder, "score", "build/c", "rows.parquet", "-o", "s.csv", environment=environment)
        assert ran.returncode == 3
        assert "cannot be written: No space left on device, set GBFL_CACHE" in ran.stderr
        (small / "filler").unlink()
        assert contents(small) == {}
    assert strays(folder) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "p.json", "rows.parquet", "-o", "closed/s.csv"],
        ["compile", "p.json", "--to", "python,c", "-o", "closed/build", "--no-check"],
        ["compile", "p.json", "--to", "python", "-o", "closed", "--no-check"],
        ["report", "p.json", "-o", "closed/r.html"],
        ["check", "p.json", "build", "--json", "closed/v.json"],
    ],
    ids=lambda arguments: " ".join(arguments[:2] + arguments[-2:]),
)
def test_a_read_only_folder_is_named(folder, arguments):
    assert gbfl(folder, "compile", "p.json", "--to", "python", "-o", "build", "--no-check").returncode == 0
    with mount(folder / "closed", "ro,size=64k"):
        ran = gbfl(folder, *arguments)
        assert ran.returncode == 2, ran.stderr
        assert "cannot be written: Read-only file system" in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
    assert strays(folder) == []


def test_what_cannot_be_printed_is_an_error(folder):
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([*GBFL, "show", "p.json"], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 3
    assert ran.stderr == "gbfl: the output: No space left on device\n"
