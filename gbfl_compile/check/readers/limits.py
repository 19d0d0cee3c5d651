"""How much work one artifact may cause: text of a few lines can stand for conditions without end.

`b = a and (a or c)`, once more for each letter, doubles what it stands for with every line. Whoever walks over
conditions or graphs pays for each step; an artifact that costs more than any of ours ever did is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gbfl_compile.check.reading import Unread

MOST_STEPS = 20_000_000

_left: ContextVar[list[int] | None] = ContextVar("steps left", default=None)


@contextmanager
def limited(steps: int = MOST_STEPS) -> Iterator[None]:
    """Within this, so many steps may be paid for."""
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
            raise Unread("it stands for more than can be followed")
