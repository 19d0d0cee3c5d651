"""Ends a private server and removes its folder when the process that started it is gone, for any reason.

Run as a program: `python guard.py PID SIGNAL FOLDER`, with a pipe as its standard input that is never written to. The
pipe closes when its owner exits, is killed, or closes it; then the server is ended.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 20.0
"""Seconds a server has to shut down before it is killed."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A watcher of one server."""

    process: subprocess.Popen[bytes]

    def release(self) -> None:
        """End the server now and wait until it is gone. Happens automatically at a normal exit."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


def guard(pid: int, how: signal.Signals, folder: Path) -> Guard:
    """Start watching: the server `pid` gets the signal `how` when this process is gone or releases the guard."""
    command = [sys.executable, "-I", str(Path(__file__)), str(pid), str(int(how)), str(folder)]
    # In its own session, so that a Ctrl-C meant for us does not end the watcher early.
    process = subprocess.Popen(  # noqa: S603 - our own file, a number, a number and a folder we made
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    watcher = Guard(process)
    atexit.register(watcher.release)
    return watcher


def is_running(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main(pid: int, how: int, folder: Path) -> None:
    """Wait for the pipe to close, then end the server."""
    sys.stdin.buffer.read()
    if is_running(pid):
        os.kill(pid, how)
    deadline = time.monotonic() + PATIENCE
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
