"""What a C expression can be on a row, what a branch makes of two such, and how large a number can become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gbfl_compile.check.readers.choices import Choice, Fall, Value, choice, mapped, span
from gbfl_compile.check.readers.conditions import FALSE, all_of, chosen, constant, negated
from gbfl_compile.check.reading import All, Any, Condition, Not, Test, Unread

CONDITIONS = (Test, All, Any, Not)


@dataclass(frozen=True, slots=True)
class Feature:
    """One value of the row."""

    index: int


@dataclass(frozen=True, slots=True)
class Real:
    """A floating-point constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Unsigned:
    """An unsigned constant: good for bits and places, not for sums."""

    value: int


@dataclass(frozen=True, slots=True)
class Row:
    """An array of a row's values: the feature at each place, None for a zero that was put there."""

    slots: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """An array of pointers to columns: the feature at each place, None where nothing was put."""

    slots: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A sum of loop counters and starting points."""

    counters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pointer:
    """Into the column of a feature, so many counters on."""

    feature: int
    counters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Xor:
    """Numbers that depend on the row, xored with one another and a constant."""

    parts: frozenset[Choice]
    constant: int


@dataclass(frozen=True, slots=True)
class Masked:
    """The value where the condition holds, 0 where it does not."""

    condition: Condition
    value: Choice | Xor


@dataclass(frozen=True, slots=True, eq=False)
class Plus:
    """A sum: what it was before, and `worth` more where the condition holds. A chain, for sums are long."""

    before: int | Plus
    condition: Condition
    worth: int


@dataclass(frozen=True, slots=True)
class Bits:
    """A word of bits: when each is set. Bits that are not named are 0."""

    set_when: Mapping[int, Condition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unclear:
    """Not the same kind of thing, or not set at all, on every way to here."""


Known: TypeAlias = (
    Feature
    | Real
    | Unsigned
    | Row
    | Columns
    | Place
    | Pointer
    | Xor
    | Masked
    | Plus
    | Bits
    | Unclear
    | int
    | Choice
    | Condition
)


class Puzzling(Unread):
    """Arithmetic that is not understood; whoever knows the place says it."""


def as_choice(value: Known) -> int | Choice:
    """A whole number; a truth value is 0 or 1."""
    if isinstance(value, CONDITIONS):
        return whole(choice(value, 1, 0))
    if isinstance(value, int | Choice):
        return value
    if isinstance(value, Xor | Masked):
        return resolved(value)
    raise Puzzling


def whole(value: Value) -> int | Choice:
    """A value that is there on every row."""
    if isinstance(value, Fall):
        raise AssertionError("an expression always has a value")
    return value


def truth(value: Known) -> Condition:
    """What `if` makes of it: anything but 0 is true, NaN too."""
    match value:
        case Test() | All() | Any() | Not():
            return value
        case int():
            return constant(value != 0)
        case Choice(condition, int() as then, int() as otherwise):
            return chosen(condition, constant(then != 0), constant(otherwise != 0))
        case _:
            raise Puzzling


def resolved(value: Known) -> int | Choice:
    """A value that is one number on every row, as a graph of choices."""
    match value:
        case Xor(parts, constant_part) if len(parts) == 1:
            (part,) = parts
            return whole(mapped(part, lambda end: end if isinstance(end, Fall) else end ^ constant_part))
        case Masked(condition, inner):
            return whole(choice(condition, resolved(inner), 0))
        case Xor():
            raise Puzzling
        case _:
            return as_choice(value)


def terms(total: int | Plus) -> tuple[int, list[tuple[Condition, int]]]:
    """What a sum starts with, and what is added to it when, the last first."""
    found = []
    while isinstance(total, Plus):
        found.append((total.condition, total.worth))
        total = total.before
    return total, found


def either(asked: Condition, then: Known | None, otherwise: Known | None) -> Known:
    """What a name means after a branch on one side of which it is `then`, on the other `otherwise`."""
    match then, otherwise:
        case Bits(one), Bits(other):
            bits = {**one, **other}
            return Bits({bit: chosen(asked, one.get(bit, FALSE), other.get(bit, FALSE)) for bit in bits})
        case (int() | Plus(), int() | Plus()) if isinstance(then, Plus) or isinstance(otherwise, Plus):
            return _either_sum(asked, then, otherwise)
        case Test() | All() | Any() | Not(), Test() | All() | Any() | Not():
            return chosen(asked, then, otherwise)
        case int() | Choice(), int() | Choice():
            return whole(choice(asked, then, otherwise))
        case _:
            return then if then is not None and then == otherwise else Unclear()


def _either_sum(asked: Condition, then: int | Plus, otherwise: int | Plus) -> Known:
    """One sum that went on in two ways: what each side added, where that side was taken."""
    common = {id(part) for part in _chain(then)} & {id(part) for part in _chain(otherwise)}
    sides = []
    for side in (then, otherwise):
        new: list[tuple[Condition, int]] = []
        while isinstance(side, Plus) and id(side) not in common:
            new.append((side.condition, side.worth))
            side = side.before
        sides.append((side, new))
    (base, more), (other_base, other_more) = sides
    total = base
    if isinstance(base, int) and isinstance(other_base, int):
        total = other_base if base == other_base else Plus(other_base, asked, base - other_base)
    elif base is not other_base:
        return Unclear()
    for side_taken, new in ((asked, more), (negated(asked), other_more)):
        for condition, worth in reversed(new):
            total = Plus(total, all_of((side_taken, condition)), worth)
    return total


def _chain(total: int | Plus) -> list[Plus]:
    found = []
    while isinstance(total, Plus):
        found.append(total)
        total = total.before
    return found


def bounds(value: Known) -> tuple[int, int]:
    """The least and the most a whole number can be."""
    match value:
        case Plus():
            start, more = terms(value)
            return start + sum(min(0, worth) for _, worth in more), start + sum(max(0, worth) for _, worth in more)
        case Bits(set_when):
            return 0, sum(1 << bit for bit in set_when)
        case Xor(parts, number):
            found = [bounds(part) for part in parts] + [(number, number)]
            width = max(max(most, ~least) for least, most in found).bit_length()
            return -(1 << width), (1 << width) - 1
        case Masked(_, inner):
            least, most = bounds(inner)
            return min(0, least), max(0, most)
        case _:
            lowest, highest = span(as_choice(value))
            if lowest is None or highest is None:
                raise Puzzling
            return lowest, highest
