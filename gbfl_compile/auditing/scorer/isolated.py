"""Runs foreign code in a separate process: it may crash, hang, print or exit, and each is only an answer.

The process leads its own process group, which ends with it; its input is empty and its output is discarded. Results
come back through files.
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
class ProcessEnd:
    """How a process ended."""

    how: How
    words: str
    """For a process that did not finish: `it crashed (SIGSEGV)`."""


def run_isolated(
    command: Sequence[str], seconds: float, environment: Mapping[str, str], folder: Path | None = None
) -> ProcessEnd:
    """Run a command for at most `seconds`. Exit code 0 is `returned`, any other `exited`."""
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
        in_time = _wait(process, time.monotonic() + seconds)
    finally:
        _end_group(process.pid)  # before it is reaped: until then its number is nobody else's
        code = process.wait()
    if not in_time:
        return ProcessEnd("hung", f"it hung: not done within {seconds:g} s")
    if code < 0:
        return ProcessEnd("crashed", f"it crashed ({_signal_name(-code)})")
    return ProcessEnd("returned" if code == 0 else "exited", f"it ended the process (code {code})")


def _wait(process: subprocess.Popen[bytes], deadline: float) -> bool:
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
