"""A call that must answer in time: a black box behind a dead connection may never do so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gbfl_compile.errors import CannotRun
from gbfl_compile.learn.threads import Started


def answer_within(seconds: float, call: Callable[[Any], Any], given: Any) -> Any:
    """What `call(given)` answers or raises; CannotRun when that takes longer than `seconds`, and it is left alone."""
    asked = Started(lambda: call(given), "black box")
    if not asked.ends_within(seconds):
        raise CannotRun(
            f"the black box has not answered a block of {len(given)} rows within {seconds:g} seconds: "
            "see whether it still runs, or give it more time"
        )
    return asked.answer()
