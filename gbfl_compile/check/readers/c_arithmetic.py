"""The arithmetic of emitted C on what depends on the row: selects by masks, sums of points, bits of rules.

Nothing wraps around here: a number that does not fit the type it is put into is refused, not reduced.
"""

from __future__ import annotations

from gbfl_compile.check.readers.c_values import (
    CONDITIONS,
    Bits,
    Known,
    Masked,
    Place,
    Plus,
    Pointer,
    Puzzling,
    Real,
    Unsigned,
    Xor,
    as_choice,
    resolved,
    terms,
    whole,
)
from gbfl_compile.check.readers.choices import Choice, Fall, Value, choice, mapped
from gbfl_compile.check.readers.conditions import FALSE, TRUE, all_of, any_of, negated
from gbfl_compile.check.reading import Condition

MOST_ENDS = 64
"""A number added to a sum may depend on the row in so many ways."""


def negative(value: Known) -> Known:
    """`-value`."""
    if isinstance(value, Real):
        return Real(-value.value)
    return whole(mapped(as_choice(value), lambda end: end if isinstance(end, Fall) else -end))


def xored(a: Known, b: Known) -> Known:
    """`a ^ b`; equal parts cancel, which is what a select by masks lives on."""
    if isinstance(a, Masked):
        a, b = b, a
    if isinstance(b, Masked):
        return whole(choice(b.condition, resolved(xored(a, b.value)), resolved(a)))
    left, right = _xor(a), _xor(b)
    parts, number = left.parts ^ right.parts, left.constant ^ right.constant
    if not parts:
        return number
    return next(iter(parts)) if len(parts) == 1 and number == 0 else Xor(parts, number)


def _xor(value: Known) -> Xor:
    if isinstance(value, Xor):
        return value
    number = as_choice(value)
    return Xor(frozenset(), number) if isinstance(number, int) else Xor(frozenset((number,)), 0)


def anded(a: Known, b: Known) -> Known:
    """`a & b`: of truth values, of numbers, of a number and a mask that is all ones or all zeros."""
    if isinstance(a, CONDITIONS) and isinstance(b, CONDITIONS):
        return all_of((a, b))
    if isinstance(a, int) and isinstance(b, int):
        return a & b
    for mask, value in ((b, a), (a, b)):
        if isinstance(mask, int) and mask in (0, -1):
            return value if mask else 0
        if isinstance(mask, Choice) and (mask.then, mask.otherwise) == (-1, 0):
            if isinstance(value, Choice) and (value.then, value.otherwise) == (-1, 0):
                return whole(choice(all_of((mask.condition, value.condition)), -1, 0))
            if isinstance(value, int):
                return whole(choice(mask.condition, value, 0))
            if isinstance(value, Choice | Xor):
                return Masked(mask.condition, value)
    raise Puzzling


def ored(a: Known, b: Known) -> Known:
    """`a | b`: of truth values, or more bits of a word."""
    if isinstance(a, CONDITIONS) and isinstance(b, CONDITIONS):
        return any_of((a, b))
    if isinstance(a, Bits):
        match b:
            case Unsigned(value) | (int() as value) if value >= 0:
                return Bits({**a.set_when, **_bits(value, TRUE)})
            case Choice(condition, int() as value, 0) if value >= 0:
                new = _bits(value, condition)
                return Bits({**a.set_when, **{bit: any_of((a.set_when.get(bit, FALSE), new[bit])) for bit in new}})
    raise Puzzling


def _bits(value: int, condition: Condition) -> dict[int, Condition]:
    return {bit: condition for bit in range(value.bit_length()) if value >> bit & 1}


def added(a: Known, b: Known) -> Known:
    """`a + b`: of counters and pointers, or of points."""
    match a, b:
        case int(), int():
            return a + b
        case Place(one), Place(other) if not one & other:
            return Place(one | other)
        case Pointer(feature, one), Place(other) if not one & other:
            return Pointer(feature, one | other)
        case (int() | Plus(), _):
            return _more(a, b)
        case (_, int() | Plus()):
            return _more(b, a)
        case _:
            return _more(_more(0, a), b)


def _more(total: int | Plus, value: Known) -> int | Plus:
    if isinstance(value, Plus):
        for condition, worth in reversed(terms(value)[1]):
            total = Plus(total, condition, worth)
        return _more(total, terms(value)[0])
    number = as_choice(value)
    if isinstance(number, int):
        return total + number if isinstance(total, int) else (Plus(total, TRUE, number) if number else total)
    for condition, worth in _ways(number, []):
        total = Plus(total, condition, worth) if worth else total
    return total


def _ways(value: Value, so_far: list[Condition]) -> list[tuple[Condition, int]]:
    """Each way through a graph and the number at its end."""
    if isinstance(value, int):
        return [(all_of(so_far), value)]
    if isinstance(value, Fall) or len(so_far) > MOST_ENDS:
        raise Puzzling
    found = _ways(value.then, [*so_far, value.condition])
    found += _ways(value.otherwise, [*so_far, negated(value.condition)])
    if len(found) > MOST_ENDS:
        raise Puzzling
    return found


def multiplied(a: Known, b: Known) -> Known:
    """`a * b`, one of them a constant."""
    if not isinstance(a, int):
        a, b = b, a
    if not isinstance(a, int):
        raise Puzzling
    factor = a
    return whole(mapped(as_choice(b), lambda end: end if isinstance(end, Fall) else end * factor))
