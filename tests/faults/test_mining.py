"""Whatever fails while mining: the error says what, nothing is half-written, and the same command ends in the same program."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.learning.classifier import GBFLClassifier
from tests.faults import mining as faults
from tests.faults.mining import (
    COMMAND,
    PARTS,
    SLOW_FIT,
    assert_nothing_is_half_written,
    finish,
    gbfl,
    saved_parts,
    wait_for,
    wait_for_end,
)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and mounts are those of Linux")

KILLS = int(os.environ.get("GBFL_KILLS", "5"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The digest that every run must end in."""
    folder = tmp_path_factory.mktemp("whole")
    faults.prepare(folder)
    process = subprocess.run(
        [sys.executable, "-m", "gbfl_compile", *COMMAND, "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(process.stdout)["program"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    faults.prepare(tmp_path)
    yield tmp_path
    sys.modules.pop("a_black_box", None)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_black_box_that_raises_at_some_batch_loses_nothing(folder, capsys, whole, jobs):
    Path("raises").touch()
    code, errors = wait_for_end(gbfl(*COMMAND, "--jobs", jobs))
    assert code == 2
    assert "the black box failed on a block of" in errors
    assert "ConnectionError: line went dead" in errors
    assert "2250 rows are kept in model.gbfl.json.parts/training: the same call goes on from there" in errors
    assert not Path("model.gbfl.json").exists()
    assert_nothing_is_half_written(folder, whole)
    Path("raises").unlink()
    assert finish(capsys) == whole
    assert not PARTS.exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_black_box_that_stalls_is_abandoned(folder, capsys, whole, jobs):
    Path("stalls").touch()
    began = time.monotonic()
    code, errors = wait_for_end(gbfl(*COMMAND, "--jobs", jobs, "--black-box-timeout", "2"))
    assert code == 3
    assert "the black box has not answered a block of" in errors
    assert "within 2 seconds" in errors
    assert time.monotonic() - began < 100
    assert_nothing_is_half_written(folder, whole)
    Path("stalls").unlink()
    assert finish(capsys) == whole


@pytest.mark.parametrize(
    ("how", "code", "says"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_stopped_while_explaining_it_says_so_and_goes_on(folder, capsys, whole, how, code, says, jobs):
    Path("slow").touch()
    process = gbfl(*COMMAND, "--jobs", jobs)
    wait_for(saved_parts)
    workers = faults.children(process.pid)
    process.send_signal(how)
    got, errors = wait_for_end(process)
    assert got == code
    assert f"gbfl: {says}: " in errors
    assert "the same command continues from there" in errors
    assert "Traceback" not in errors
    assert_nothing_is_half_written(folder, whole)
    wait_for(lambda: not any(faults.is_running(worker) for worker in workers))
    assert not list(PARTS.rglob(".*"))
    Path("slow").unlink()
    assert finish(capsys) == whole
    assert not PARTS.exists()


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_at_any_moment_nothing_is_half_written(folder, capsys, whole, how, code, jobs):
    moment = random.Random(int(how))
    for _ in range(2):
        process = gbfl(*COMMAND, "--jobs", jobs)
        wait_for(PARTS.exists)
        time.sleep(moment.random() * 2)
        process.send_signal(how)
        got, errors = wait_for_end(process)
        assert got in (code, 0, -how), errors  # the last: before our first line was run, the system's own way
        assert_nothing_is_half_written(folder, whole)
        assert not [file for file in folder.rglob(".*") if file.is_file()]
    assert finish(capsys) == whole


def test_killed_at_any_moment_the_same_command_ends_in_the_same_program(folder, capsys, whole):
    """GBFL_KILLS=70 for the claim of 70."""
    began = time.monotonic()
    assert wait_for_end(gbfl(*COMMAND))[0] == 0
    longest = time.monotonic() - began
    Path("model.gbfl.json").unlink()
    moment = random.Random(7)
    for number in range(KILLS):
        process = gbfl(*COMMAND, "--jobs", str(1 + number % 2), unheard=True)
        time.sleep(moment.random() * longest)
        process.kill()
        process.wait()
        assert_nothing_is_half_written(folder, whole)
        assert finish(capsys) == whole
        assert not PARTS.exists()
        Path("model.gbfl.json").unlink()
        for orphan in faults.in_session(process.pid):  # workers that had no work yet wait for minutes
            os.kill(orphan, signal.SIGKILL)


def test_workers_do_not_outlive_a_killed_parent(folder):
    Path("slow").touch()
    process = gbfl(*COMMAND, "--jobs", "2", unheard=True)
    wait_for(saved_parts)
    assert len(faults.in_session(process.pid)) >= 3
    process.kill()
    process.wait()
    wait_for(lambda: not faults.in_session(process.pid), seconds=30)


def test_two_at_once_do_not_disturb_each_other(folder, capsys, whole):
    Path("held").touch()
    first = gbfl(*COMMAND)
    wait_for((PARTS / "training/about.json").exists)
    code, errors = wait_for_end(gbfl(*COMMAND))
    Path("held").unlink()
    assert code == 3
    assert f"another gbfl mine, process {first.pid}, keeps its explained rows there: wait for it" in errors
    other = gbfl(*COMMAND, "--checkpoint", "elsewhere")  # the same output, and both may write it
    assert wait_for_end(first)[0] == 0
    assert wait_for_end(other)[0] == 0
    assert faults.digest(faults.load(Path("model.gbfl.json"))) == whole
    assert not PARTS.exists()
    assert sorted(path.name for path in Path("elsewhere").iterdir()) == ["test", "training"]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from gbfl_compile.cli import run
run()
"""


def test_checkpoints_that_cannot_be_written_are_an_error_and_no_half_file(folder, capsys, whole):
    run = subprocess.run([sys.executable, "-c", LIMITED, *COMMAND], capture_output=True, text=True, check=False)
    assert run.returncode == 3
    assert "rows-000000000-000001000.npz: cannot be written: File too large (0 of 2250 rows are kept in" in run.stderr
    assert sorted(file.name for file in PARTS.rglob("*") if file.is_file()) == ["about.json"]
    assert finish(capsys) == whole


@pytest.fixture
def disk(tmp_path):
    """A disk of 300 kB, and a way to make it larger."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "gbfl-test", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only who may mount a file system can have a full one")
    try:
        yield lambda option: subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_keeps_what_is_there_and_goes_on_when_it_is_not(folder, capsys, whole, disk):
    code, errors = wait_for_end(gbfl(*COMMAND, "--checkpoint", "disk/kept"))
    assert code == 3
    assert "cannot be written: No space left on device (1000 of 2250 rows are kept in disk/kept/training" in errors
    assert [file.name for file in saved_parts(Path("disk/kept"))] == ["rows-000000000-000001000.npz"]
    assert not [file for file in Path("disk").rglob(".*") if file.is_file()]
    disk("size=30m")
    assert finish(capsys, "--checkpoint", "disk/kept") == whole


def test_a_full_disk_for_the_program_loses_no_explained_row(folder, capsys, whole, disk):
    Path("disk/filler").write_bytes(bytes(300 * 1024))
    code, errors = wait_for_end(gbfl(*COMMAND, "-o", "disk/model.json", "--checkpoint", "kept"))
    assert code == 3
    assert "disk/model.json: cannot be written: No space left on device" in errors
    assert [file.name for file in Path("disk").iterdir()] == ["filler"]
    assert len(saved_parts(Path("kept"))) == 4
    Path("disk/filler").unlink()
    assert finish(capsys, "-o", "disk/model.json", "--checkpoint", "kept") == whole


def test_a_read_only_folder_is_refused_before_the_work(folder, capsys, disk):
    disk("ro")
    for more in (["-o", "disk/model.json"], ["--checkpoint", "disk/kept"], ["-o", "disk/new/model.json"]):
        capsys.readouterr()
        assert main([*COMMAND, *more]) == 2
        assert "cannot be written: Read-only file system" in capsys.readouterr().err
    assert not PARTS.exists()
    assert not Path("model.gbfl.json").exists()


def test_what_does_not_fit_in_memory_is_refused_beforehand(folder, capsys):
    code, errors = wait_for_end(gbfl(*COMMAND, "--memory", "250MB"))
    assert code == 2
    assert "--memory 250 MB: " in errors
    assert "mining 3,000 rows takes about" in errors
    assert "fewer columns with --drop, or more memory" in errors
    assert wait_for_end(gbfl(*COMMAND, "--memory", "900MB", "--jobs", "2", "-o", "elsewhere.json"))[0] == 0
    Path("wide.csv").write_text("y," + ",".join(f"x{j}" for j in range(5000)) + "\n" * 20_000)
    assert main(["mine", "wide.csv", "--target", "y", "--train", "gbm", "--memory", "1 GB"]) == 2
    assert "20,000 rows of 5001 columns take about" in capsys.readouterr().err
    assert main([*COMMAND, "--memory", "much"]) == 2  # nothing is read before it is understood
    assert "--memory much: is not a size, such as 2GB or 500MB" in capsys.readouterr().err
    assert not PARTS.exists()


# With several jobs the head is fitted beside other work: its errors are reported, and stopping does not wait for it.


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_fit_that_fails_is_reported_and_keeps_the_explained_rows(folder, monkeypatch, capsys, jobs):
    def fails(*_, **__):
        raise BadInput("these rows cannot be fitted")

    monkeypatch.setattr(GBFLClassifier, "fit", fails)
    # trained here: workers that other tests have left behind know no module of this folder
    assert main([*COMMAND[:-2], "--train", "gbm", "--jobs", jobs]) == 2
    assert "these rows cannot be fitted" in capsys.readouterr().err
    assert not Path("model.gbfl.json").exists()
    assert len(list(PARTS.glob("training/rows-*.npz"))) == 3


def test_ctrl_c_does_not_wait_for_the_fit(folder):
    process = gbfl(*COMMAND, "--jobs", "2", "--no-baselines", before=SLOW_FIT)
    wait_for(lambda: list(PARTS.glob("test/rows-*.npz")))
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    code, errors = wait_for_end(process)
    assert code == 130, errors
    assert time.monotonic() - began < 30
    assert "the same command continues from there" in errors
    assert "Traceback" not in errors
