"""Runs a worker's file so that it ends with the process that started it: `worker.py FILE ARGUMENT …`.

Standard library only, so that it can run isolated (`python -I`). Its standard input is a pipe that is never written to
and closes when its owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
import threading


def end_with_parent() -> None:
    """End this process and what it started when its parent is gone: what it loaded may never return."""

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):  # whatever was loaded may have closed it
            while os.read(0, 1):
                pass
            os.killpg(0, signal.SIGKILL)

    if os.getpgrp() == os.getpid():
        threading.Thread(target=watch, daemon=True, name="end with parent").start()


if __name__ == "__main__":
    end_with_parent()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
