"""A folder to mine in, a black box that misbehaves on demand, and what must hold there after every stop."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from gbfl_compile.cli import main
from gbfl_compile.cli.start import loans
from gbfl_compile.ir.json import digest, load
from gbfl_compile.learning.explain import load_explanations

ROWS = 3000
"""2,250 to learn from, three units of them, and 750 held out."""

BLACK_BOX = """
import os, time
from pathlib import Path
import numpy as np

calls = 0

def risk(rows):
    global calls
    calls += 1
    if Path("slow").exists():
        time.sleep(0.01)
    while calls > 20 and Path("held").exists():
        time.sleep(0.01)
    if calls > 90 and Path("raises").exists():
        raise ConnectionError("line went dead")
    if calls > 90 and Path("stalls").exists():
        time.sleep(3600)
    return 1 / (1 + np.exp(np.tanh(rows) @ np.linspace(-1, 1, rows.shape[1]) + rows[:, 2] / rows[:, 1] * 4 - 2))
"""

COMMAND = (
    "mine",
    "many.csv",
    "--target",
    "default",
    "--head",
    "tree",
    "--depth",
    "3",
    "--explainer",
    "greedy",
    "--black-box",
    "a_black_box:risk",
)
"""One explanation method: each has a folder of its own, with these files in it."""
PARTS = Path("model.gbfl.json.parts")


def prepare(folder):
    (folder / "many.csv").write_text(loans(ROWS, seed=3))
    (folder / "a_black_box.py").write_text(BLACK_BOX)


SLOW_FIT = """
import time
from gbfl_compile import GBFLClassifier
own_fit = GBFLClassifier.fit
GBFLClassifier.fit = lambda *rows, **named: (time.sleep(60), own_fit(*rows, **named))[1]
"""
"""A fit that takes longer than anybody waits."""


def gbfl(*arguments, unheard=False, before=""):
    """The command in its own process and session. SIGINT reaches it even where the tests run in the background.

    `before` is Python that is run first.
    """
    restored = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gbfl_compile.cli import run; run()"
    into = subprocess.DEVNULL if unheard else subprocess.PIPE
    command = [sys.executable, "-c", f"{before}\n{restored}", *arguments]
    return subprocess.Popen(command, stdout=into, stderr=into, text=True, start_new_session=True)


def wait_for_end(process, seconds=120):
    """Exit code and standard error."""
    _, errors = process.communicate(timeout=seconds)
    return process.returncode, errors


def finish(capsys, *more):
    """The command, here and to its end: the digest it tells and the one of the file it wrote are the same."""
    capsys.readouterr()
    assert main([*COMMAND, "--json", *more]) == 0, capsys.readouterr().err
    summary = json.loads(capsys.readouterr().out)
    assert digest(load(Path(summary["out"]))) == summary["program"]
    return summary["program"]


def wait_for(condition, seconds=60):
    given_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < given_up, "it did not happen"
        time.sleep(0.005)


def saved_parts(parts=PARTS):
    return sorted(parts.glob("*/rows-*.npz"))


def assert_nothing_is_half_written(folder, program):
    """Every file that has its name is whole, whenever the process was stopped."""
    for file in saved_parts(folder / PARTS):
        part = load_explanations(file)
        begin, end = (int(part) for part in file.stem.split("-")[1:])
        assert len(part.x) == end - begin
        assert np.isfinite(part.pn).all()
    for file in (folder / PARTS).glob("*/about.json"):
        assert json.loads(file.read_text())["unit_rows"] == 1000
    if (folder / "model.gbfl.json").exists():
        assert digest(load(folder / "model.gbfl.json")) == program


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def in_session(session):
    """The processes of a session that run."""
    numbers = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                numbers.append(int(entry.name))
    return numbers
