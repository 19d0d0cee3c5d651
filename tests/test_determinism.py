"""The same data, seed and version give the same program and the same bytes of every artifact, whatever else differs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gbfl_compile.cli.start import loans
from gbfl_compile.learning.classifier import FEW_ROWS
from tests.counts import FULL_ONLY

MINE = ("mine", "loans.csv", "--target", "default", "--seed", "5", "--clauses", "6", "--quiet")
TARGETS = "python,c,onnx,sql:duckdb,sql:sqlite"


def run(folder, *arguments, **environment):
    subprocess.run(
        [sys.executable, "-m", "gbfl_compile", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )


def contents(folder):
    """Every file below the folder, with its bytes."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder with the data, mined with a network: threads and blocks could change its matrix products."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "loans.csv").write_bytes(loans(1000, seed=3).encode())
    run(folder, *MINE, "--train", "mlp", "-o", "out/m.json", "--triplets", "out/t.npz")
    return folder


CHANGES = {
    "another process, another hash seed": ((), {"PYTHONHASHSEED": "12345"}),
    "one thread": ((), {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}),
    "four threads": ((), {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "PYTHONHASHSEED": "0"}),
    "two workers": (("--jobs", "2"), {}),
    "three workers with a memory limit": (("--jobs", "3", "--memory", "4GB"), {"OMP_NUM_THREADS": "3"}),
    "a time limit and a checkpoint folder": (("--black-box-timeout", "60", "--checkpoint", "checkpoints"), {}),
}


LONG = ("two workers", "one thread")
"""Another case makes the same promise: three workers, and four threads."""


@pytest.mark.parametrize("what", [pytest.param(what, marks=FULL_ONLY if what in LONG else ()) for what in CHANGES])
def test_a_mined_program_has_the_same_bytes(base, tmp_path, what):
    more, environment = CHANGES[what]
    (tmp_path / "loans.csv").write_bytes((base / "loans.csv").read_bytes())
    run(tmp_path, *MINE, "--train", "mlp", "-o", "out/m.json", "--triplets", "out/t.npz", *more, **environment)
    assert contents(tmp_path / "out") == contents(base / "out")


@pytest.mark.parametrize("ending", [b"\r\n", pytest.param(b"\n\n", marks=FULL_ONLY)])
def test_line_endings_of_the_table_change_nothing(base, tmp_path, ending):
    content = (base / "loans.csv").read_bytes()
    assert b"\r" not in content
    (tmp_path / "loans.csv").write_bytes(content.replace(b"\n", ending))
    run(tmp_path, *MINE, "--train", "mlp", "-o", "out/m.json", "--triplets", "out/t.npz")
    assert contents(tmp_path / "out") == contents(base / "out")


@pytest.mark.parametrize("kind", ["gbm", pytest.param("forest", marks=FULL_ONLY)])
def test_other_black_boxes_are_trained_the_same_every_time(base, tmp_path, kind):
    programs = set()
    for threads, jobs in (("1", "1"), ("4", "2")):
        folder = tmp_path / threads
        folder.mkdir()
        (folder / "loans.csv").write_bytes(loans(600, seed=4).encode())
        more = ("--head", "tree", "--train", kind, "--jobs", jobs)
        run(folder, "mine", "loans.csv", "--target", "default", "--quiet", *more, OMP_NUM_THREADS=threads)
        programs.add((folder / "model.gbfl.json").read_bytes())
    assert len(programs) == 1


def test_artifacts_have_the_same_bytes(base, tmp_path):
    builds = []
    for number, environment in enumerate(({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "99", "OMP_NUM_THREADS": "4"})):
        place = tmp_path / str(number) / "build"
        place.parent.mkdir()
        run(base, "compile", "out/m.json", "--to", TARGETS, "-o", str(place), "--no-check", **environment)
        builds.append(contents(place))
    assert builds[0] == builds[1]
    assert len(builds[0]) >= len(TARGETS.split(","))


def test_the_program_names_no_place_and_no_time(base):
    """Nothing that differs from one machine to the next is in the file."""
    program = json.loads((base / "out/m.json").read_text())
    text = json.dumps(program)
    assert str(base) not in text
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert not {"date", "time", "created", "host", "user"} & set(program.get("metadata", program))


@FULL_ONLY  # three workers, above, make the same promise for fewer rows
@pytest.mark.parametrize("head", ["rules", "tree", "list"])
def test_every_head_is_the_same_when_fitted_in_parallel(tmp_path, head):
    """With several jobs and this many rows, the head, the held-out rows and the baselines run at the same time."""
    assert FEW_ROWS <= 2700 * 3 // 4
    (tmp_path / "loans.csv").write_bytes(loans(2700, seed=3).encode())
    size = ("--depth", "4") if head == "tree" else ("--clauses", "5")
    programs = set()
    for jobs in ("1", "3"):
        more = ("--head", head, *size, "--train", "gbm", "--jobs", jobs, "--quiet", "-o", f"{jobs}.json")
        run(tmp_path, "mine", "loans.csv", "--target", "default", *more)
        programs.add((tmp_path / f"{jobs}.json").read_bytes())
    assert len(programs) == 1
