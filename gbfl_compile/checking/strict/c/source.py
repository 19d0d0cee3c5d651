"""What a matcher knows of the file it is in, and how it says that something does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field

from gbfl_compile.checking.reading.nodes import Condition
from gbfl_compile.checking.strict.c.literals import Real


class Misfit(Exception):
    """The tokens from here on are not what is known. Not an error yet: another part of a known file may fit."""

    def __init__(self, at: int, expected: str) -> None:
        super().__init__(expected)
        self.at = at
        self.expected = expected


@dataclass(frozen=True, slots=True)
class Source:
    """The type of the values, the number of features, and what has come up on the way."""

    real: Real
    features: int
    tests: dict[tuple[int, str, str, str], Condition] = field(default_factory=dict)
    """Comparisons made before: kernels repeat what the function of one row says."""
    misfits: list[Misfit] = field(default_factory=list)
    """Where each repeated part ended, to tell the user how far a file was understood."""
