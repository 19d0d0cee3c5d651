"""Runs a compiler: within a time limit, with its temporary files in a place of ours, and gone when we are.

A compiler is several processes. They get a group of their own, so that all of them can be ended; what they leave in
their folder for temporary files is removed with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gbfl_compile.errors import BadInput, CannotRun

SECONDS = 600.0
"""What a compiler may take for one file. GBFL_COMPILER_SECONDS sets another limit."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. A negative code is the signal that ended it."""

    code: int
    output: str
    errors: str

    def first_error(self) -> str:
        """The line of its complaints that says most."""
        named = next((line for line in self.errors.splitlines() if "error" in line), self.errors.strip()[:300])
        if self.code < 0:
            return f"it was ended by signal {-self.code} ({signal.strsignal(-self.code)})"
        return named or f"it said nothing and ended with {self.code}"


def time_limit() -> float:
    """Seconds a compiler has."""
    told = os.environ.get("GBFL_COMPILER_SECONDS")
    if told is None:
        return SECONDS
    try:
        seconds = float(told)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"GBFL_COMPILER_SECONDS={told!r}: give a number of seconds")
    return seconds


def run_compiler(command: Sequence[str], place: Path, seconds: float | None = None) -> Ran:
    """Run a command in the folder `place`, which takes its temporary files too."""
    limit = time_limit() if seconds is None else seconds
    name = Path(command[0]).name
    try:
        return run_within(command, limit, place, {**os.environ, "TMPDIR": str(place)})
    except TimeoutError:
        raise CannotRun(
            f"{name} was not done after {limit:g} seconds: name another compiler in CC, "
            "or a longer time in GBFL_COMPILER_SECONDS"
        ) from None
    except OSError as error:
        raise CannotRun(f"{name} cannot be run: {error.strerror or error}") from None


def run_within(
    command: Sequence[str], seconds: float, place: Path | None = None, environment: Mapping[str, str] | None = None
) -> Ran:
    """Run a command and all it starts; TimeoutError, and none of them left, where it takes longer."""
    process = subprocess.Popen(  # noqa: S603 - the user's own compiler
        list(command),
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    heard = None
    try:
        heard = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if heard is None:  # also where it has ended and something it started has not
            _end(process)
    return Ran(process.returncode, *heard)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()
