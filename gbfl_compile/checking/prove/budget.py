"""A budget that is kept: a search asks it at every step, and it stops the search."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol


class OutOfTime(Exception):
    """The budget is used up. Never reaches a user: the prover answers UNDECIDED."""


class Budget(Protocol):
    """What a search asks at every step."""

    def check(self) -> None:
        """Stop the search where the budget is used up."""


@dataclass(frozen=True, slots=True)
class Clock:
    """When to stop, in seconds of `time.monotonic`."""

    deadline: float

    def check(self) -> None:
        """Stop the search where the time is over."""
        if time.monotonic() > self.deadline:
            raise OutOfTime


@dataclass(slots=True)
class Steps:
    """A number of steps: unlike a clock, it stops at the same place every time."""

    left: int

    def check(self) -> None:
        """Stop the search where no step is left."""
        self.left -= 1
        if self.left < 0:
            raise OutOfTime


@dataclass(slots=True)
class StepsWithin:
    """A number of steps, and no longer than a clock allows."""

    left: int
    clock: Clock

    def check(self) -> None:
        """Stop the search where no step or no time is left."""
        self.clock.check()
        self.left -= 1
        if self.left < 0:
            raise OutOfTime


def clock_of(seconds: float) -> Clock:
    """A clock that stops after this many seconds."""
    return Clock(time.monotonic() + seconds)
