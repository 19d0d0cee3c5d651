"""How much work one artifact may cause: a text of a few lines can mean a condition of any length.

`b = a and (a or c)`, once more for each letter, doubles in length with every line. Code that walks over
conditions or graphs pays for each step; an artifact that costs more than any of ours ever did is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gbfl_compile.checking.reading.nodes import Unread

MOST_STEPS = 20_000_000

_left: ContextVar[list[int] | None] = ContextVar("steps left", default=None)


@contextmanager
def limit_work(steps: int = MOST_STEPS) -> Iterator[None]:
    """Within this, at most `steps` steps may be paid for."""
    token = _left.set([steps])
    try:
        yield
    finally:
        _left.reset(token)


def pay(steps: int) -> None:
    """Count steps; past the limit the artifact is refused."""
    left = _left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise Unread("it means a condition too long to be followed")
