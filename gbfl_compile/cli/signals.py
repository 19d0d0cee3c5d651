"""Ctrl-C, SIGTERM and SIGHUP end a command in order: an exception is raised once, cleaning up is not disturbed.

Python raises for Ctrl-C only; the others would end the process at once and leave unfinished files behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

from gbfl_compile.files.atomic import sweep

PATIENCE = 5.0
"""Seconds that cleaning up is left alone. A signal after that ends the process at once."""


AGAIN_SECONDS = 0.01


class Termination(KeyboardInterrupt):
    """The process was asked to end. Code that handles Ctrl-C handles this as well."""


def stop_name(stop: BaseException) -> str:
    """A stop in a word; click hides it behind an exception of its own."""
    return "terminated" if isinstance(stop, Termination) or isinstance(stop.__cause__, Termination) else "interrupted"


class Interrupts:
    """What has come in since the command began."""

    def __init__(self) -> None:
        self.first: int | None = None
        """The first signal's number; the exit code is then 128 more, as shells have it."""
        self._since = 0.0

    def take(self, number: int, _: FrameType | None) -> None:
        """The handler: the first signal raises, those that follow it closely are the same wish said again."""
        if self.first is None:
            self.first, self._since = number, time.monotonic()
            raise KeyboardInterrupt if number == signal.SIGINT else Termination
        if time.monotonic() - self._since > PATIENCE:
            sweep()
            os._exit(128 + self.first)

    def was_swallowed(self) -> None:
        """Raise it again in a moment: Python had no one to hand it to, as in a callback of its own."""
        number, self.first = self.first, None
        if number is not None:
            again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()


@contextlib.contextmanager
def in_order() -> Iterator[Interrupts]:
    """Handle the signals for as long as the block takes, then as before. A signal that is ignored stays ignored."""
    interrupts = Interrupts()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, interrupts.take)
    report_unraisable = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            interrupts.was_swallowed()
        else:
            report_unraisable(unraisable)

    sys.unraisablehook = hook
    try:
        yield interrupts
    finally:
        sys.unraisablehook = report_unraisable
        for number, handler in before.items():
            signal.signal(number, handler)
