"""Ctrl-C, SIGTERM, SIGHUP and kill -9 at any moment: whole files or none, the right exit code, the same bytes next time.

GBFL_SIGNALS and GBFL_KILLS set how many moments are tried, each command: few by default. GBFL_KILLS=33 kills each
of compile and score 66 times, half of them while the C scorer is still to be built.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.auditing.log import verify
from gbfl_compile.backends.score import reference_predictor, score_file
from gbfl_compile.cli.flags import PATIENCE, Termination, in_order
from gbfl_compile.ir.json import save
from tests.faults.running import GBFL, OTHER, PROGRAM, contents, gbfl, start_command, strays

SIGNALS = int(os.environ.get("GBFL_SIGNALS", "2"))
KILLS = int(os.environ.get("GBFL_KILLS", "2"))

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

COMMANDS = {
    "compile": ["compile", "other.json", "--to", "python,c,sql:sqlite", "-o", "build"],
    "check": ["check", "p.json", "made", "--json", "out/verdict.json"],
    "score": ["score", "made/c", "rows.parquet", "-o", "out/scored.parquet", "--key", "id"],
    "score to CSV": ["score", "p.json", "rows.parquet", "-o", "out/scored.csv.gz", "--key", "id"],
    "report": ["report", "p.json", "-o", "out/report.html"],
    "audit": ["audit", "p.json", "--scored", "right.csv", "--html", "out/audit.html", "--log", "out/log.jsonl"],
}
ROWS = 200_000


@pytest.fixture(scope="module")
def start_folder(tmp_path_factory):
    """A folder with all that the commands read, and an older artifact where they write."""
    folder = tmp_path_factory.mktemp("start")
    save(PROGRAM, folder / "p.json")
    save(OTHER, folder / "other.json")
    (folder / "out").mkdir()
    rows = np.random.default_rng(0).normal(40, 30, size=(ROWS, 2))
    table = pd.DataFrame({"id": range(ROWS), "age": rows[:, 0], "income": rows[:, 1]})
    table.to_parquet(folder / "rows.parquet")
    table.head(30_000).to_csv(folder / "few.csv", index=False)
    score_file(reference_predictor(PROGRAM), folder / "few.csv", folder / "right.csv", ("age", "income"))
    for arguments in (
        ["compile", "p.json", "--to", "python,c", "-o", "made"],
        ["compile", "p.json", "--to", "c,python", "-o", "build"],
    ):
        assert gbfl(folder, *arguments).returncode == 0
    return folder


@pytest.fixture
def folder(start_folder, tmp_path):
    shutil.copytree(start_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path


def outputs(folder):
    """What the commands write; the log and reports tell the time, so of them only that they are whole."""
    files = {**contents(folder / "out"), **{f"build/{k}": v for k, v in contents(folder / "build").items()}}
    return {
        name: content
        for name, content in files.items()
        if not name.endswith((".json", ".jsonl", ".jsonl.end", ".html"))
    }


def without_signals(folder, arguments):
    """What is there before and after the command, and how long it takes: the second time, as caches are warm then."""
    before = outputs(folder)
    for _ in range(2):
        began = time.monotonic()
        ran = gbfl(folder, *arguments)
        took = time.monotonic() - began
        assert ran.returncode == 0, ran.stderr
    return before, outputs(folder), took


def ended_by(folder, arguments, number, after):
    process = start_command(folder, arguments)
    time.sleep(after)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def is_one_or_the_other(now, before, after):
    """Each artifact folder, and each file elsewhere, is the old one or the new one, none a bit of both."""
    groups = {name.rpartition("/")[0] if name.startswith("build/") else name for name in (*before, *after, *now)}
    for group in groups:
        of = [
            {k: v for k, v in form.items() if k == group or k.startswith(f"{group}/")} for form in (now, before, after)
        ]
        assert of[0] in of[1:], f"{group} is neither the old nor the new one"


def reset(folder, start_folder):
    for name in ("out", "build"):
        shutil.rmtree(folder / name)
        shutil.copytree(start_folder / name, folder / name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_at_any_moment_leaves_whole_files_and_no_strays(start_folder, folder, command, number):
    arguments = COMMANDS[command]
    before, after, took = without_signals(folder, arguments)
    for moment in range(SIGNALS):
        reset(folder, start_folder)
        code, errors = ended_by(folder, arguments, number, took * (moment + random.random()) / SIGNALS)
        # Before our own code runs, and after it, Python ends as any program does: by the signal. While it starts or a
        # module is being imported it may make another error of it and end with 1.
        before_main = (
            code == 1 and "KeyboardInterrupt" in errors and not re.search(r'entry\.py", line \d+, in main', errors)
        )
        assert code in (0, 128 + number, -number) or before_main, errors
        if code == 128 + number:
            assert errors.strip().splitlines()[-1].startswith("gbfl: "), errors
            assert "Traceback" not in errors
        is_one_or_the_other(outputs(folder), before, after)
        if code == 0:
            assert outputs(folder) == after
        assert strays(folder) == []
        if (log := folder / "out/log.jsonl").exists():
            assert verify(log) is None
    ran = gbfl(folder, *arguments)
    assert ran.returncode == 0, ran.stderr
    assert outputs(folder) == after


@pytest.mark.parametrize("cold", [False, True], ids=["", "cold cache"])
@pytest.mark.parametrize("command", ["compile", "score"])
def test_after_kill_9_the_same_command_gives_the_same_bytes(start_folder, folder, command, cold):
    arguments = COMMANDS[command]
    before, after, took = without_signals(folder, arguments)
    for kill in range(KILLS):
        reset(folder, start_folder)
        if cold:
            shutil.rmtree(folder / "cache", ignore_errors=True)
        code, _ = ended_by(folder, arguments, signal.SIGKILL, took * random.random() * (2 if cold else 1))
        assert code in (-signal.SIGKILL, 0), kill
        now = {name: content for name, content in outputs(folder).items() if ".gbfl-" not in name}
        is_one_or_the_other(now, before, after)
        ran = gbfl(folder, *arguments)
        assert ran.returncode == 0, ran.stderr
        assert outputs(folder) == after
        assert strays(folder / "out", folder / "build") == []


def test_the_first_signal_raises_and_those_that_follow_do_not_disturb():
    cleaned = []

    def work():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            cleaned.append(True)

    before = signal.getsignal(signal.SIGTERM)
    with in_order() as interrupts:
        with pytest.raises(Termination):
            work()
        assert (interrupts.first, cleaned, PATIENCE > 0) == (signal.SIGTERM, [True], True)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_comes_where_python_ignores_errors_is_raised_again():
    class Late:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)

    def work():
        late = Late()
        del late
        time.sleep(20)

    began = time.monotonic()
    with in_order() as interrupts:
        with pytest.raises(Termination):
            work()
        assert interrupts.first == signal.SIGTERM
    assert time.monotonic() - began < 10


def test_a_signal_that_is_ignored_stays_ignored(start_folder):
    """As under nohup."""
    ignoring = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    running = "import os; os.kill(os.getpid(), signal.SIGHUP); from gbfl_compile.cli import main; sys.exit(main(['show', 'p.json']))"
    ran = subprocess.run([GBFL[0], "-c", ignoring + running], cwd=start_folder, capture_output=True, text=True)
    assert ran.returncode == 0
