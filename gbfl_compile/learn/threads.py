"""Work that goes on in a thread of its own; its answer, or what it raised, is handed over when it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Started(Generic[T]):
    """A call that was started. It goes on until it ends, or the process does: Python ends no thread from outside."""

    def __init__(self, call: Callable[[], T], name: str) -> None:
        self._call = call
        self._told: dict[str, Any] = {}
        # a daemon: the process need not wait for an answer that nobody waits for
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._told["answer"] = self._call()
        except BaseException as trouble:  # whatever it is, who waits for the answer is to meet it
            self._told["trouble"] = trouble

    def ends_within(self, seconds: float) -> bool:
        """Wait, at most so long; whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def answer(self) -> T:
        """What the call answered or raised, waited for."""
        self._thread.join()
        if "trouble" in self._told:
            raise self._told["trouble"]
        found: T = self._told["answer"]
        return found
