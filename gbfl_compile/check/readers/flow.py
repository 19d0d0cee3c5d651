"""What a branch leaves behind: its answer, and the locals of whichever side goes on. Shared by languages with `if`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

from gbfl_compile.check.readers.choices import FALL, Value, choice, falls, filled
from gbfl_compile.check.readers.limits import pay
from gbfl_compile.check.reading import Condition

Name = TypeVar("Name", bound=Hashable)
Known = TypeVar("Known")
After = tuple[Value, Mapping[Name, Known]]
"""What was returned (`FALL` where nothing was yet), and the locals."""


def branched(
    asked: Condition,
    then: After[Name, Known],
    otherwise: After[Name, Known],
    either: Callable[[Condition, Known | None, Known | None], Known],
) -> tuple[Value, dict[Name, Known]]:
    """Two sides as one. `either` joins what a local is on the one side and on the other."""
    part = choice(asked, then[0], otherwise[0])
    if not falls(then[0]):
        return part, dict(otherwise[1])
    if not falls(otherwise[0]):
        return part, dict(then[1])
    joined = {}
    pay(len(then[1]) + len(otherwise[1]))
    for name in {**then[1], **otherwise[1]}:
        a, b = then[1].get(name), otherwise[1].get(name)
        joined[name] = a if a is b and a is not None else either(asked, a, b)
    return part, joined


def one_after_another(parts: Sequence[Value]) -> Value:
    """The answer of statements in a row: each is asked where those before it gave none."""
    rest: Value = FALL
    for part in reversed(parts):
        rest = filled(part, rest)
    return rest
