"""Runs what is not ours in a process of its own: it may crash, hang, print or exit, and each is only an answer.

The process leads a group of its own that is ended with it, has nothing to read, and whatever it prints is let go:
results come back through files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

How: TypeAlias = Literal["returned", "exited", "crashed", "hung"]

POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    how: How
    told: str
    """In words, for one that was not done: `it crashed (SIGSEGV)`."""


def run_apart(
    command: Sequence[str], seconds: float, environment: Mapping[str, str], folder: Path | None = None
) -> Ended:
    """Run a command for so many seconds at most. Code 0 is `returned`, any other `exited`."""
    process = subprocess.Popen(  # noqa: S603 - our own worker; what it loads is why it runs apart
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=dict(environment),
        cwd=folder,
    )
    try:
        in_time = _waited(process, time.monotonic() + seconds)
    finally:
        _end_group(process.pid)  # before it is reaped: until then its number is nobody else's
        code = process.wait()
    if not in_time:
        return Ended("hung", f"it hung: not done within {seconds:g} s")
    if code < 0:
        return Ended("crashed", f"it crashed ({_signal_name(-code)})")
    return Ended("returned" if code == 0 else "exited", f"it ended the process (code {code})")


def _waited(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Whether the process ended in time; it is not reaped, where the system can tell without (macOS cannot)."""
    while not _has_ended(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(pid: int) -> None:
    """The process and whatever it has started and left in its group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
