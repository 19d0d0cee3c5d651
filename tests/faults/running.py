"""The command line run as users run it, in a separate process, and what it leaves behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

GBFL = [sys.executable, "-m", "gbfl_compile"]

PROGRAM = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 0.1))),),
    split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)),
)
OTHER = Program(
    ("age", "income", "weight"),  # of another width, so that the header of its C artifact is another, too
    ("no", "yes"),
    (Clause((Interval(0, 21.0, 60.0), Interval(2, 0.5))),),
    split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)),
)


def surroundings(folder, **more):
    """An environment whose temporary files and cache are in the test's own folders."""
    for name in ("tmp", "cache"):
        (folder / name).mkdir(exist_ok=True)
    here = {**os.environ, "TMPDIR": str(folder / "tmp"), "GBFL_CACHE": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}
    return {**here, **{name: str(value) for name, value in more.items()}}


def start_command(folder, arguments):
    """A command that runs in `folder`, what it says caught."""
    return subprocess.Popen(
        [*GBFL, *arguments],
        cwd=folder,
        env=surroundings(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def gbfl(folder, *arguments, environment=None, **options):
    """Run a command to its end, in `folder`."""
    return subprocess.run(
        [*GBFL, *map(str, arguments)],
        cwd=folder,
        env=environment or surroundings(folder),
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def strays(*folders):
    """Files and folders left behind: unfinished ones, and anything still in the temporary folder."""
    unfinished = [path for folder in folders for path in Path(folder).rglob("*") if ".gbfl-" in path.name]
    return sorted(
        unfinished + [path for folder in folders for path in Path(folder, "tmp").glob("*") if path not in unfinished]
    )


def contents(folder):
    """Every file below a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
