"""A call that must answer in time: a black box behind a dead connection may never do so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from gbfl_compile.errors import CannotRun


def answer_within(seconds: float, call: Callable[[Any], Any], given: Any) -> Any:
    """What `call(given)` answers or raises; CannotRun when that takes longer than `seconds`.

    The call runs in a thread of its own. One that is given up goes on until it ends by itself, or the process does:
    Python ends no thread from outside.
    """
    told: dict[str, Any] = {}

    def run() -> None:
        try:
            told["answer"] = call(given)
        except BaseException as trouble:  # whatever it is, the caller is to meet it
            told["trouble"] = trouble

    thread = threading.Thread(target=run, daemon=True, name="black box")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise CannotRun(
            f"the black box has not answered a block of {len(given)} rows within {seconds:g} seconds: "
            "see whether it still runs, or give it more time"
        )
    if "trouble" in told:
        raise told["trouble"]
    return told["answer"]
