"""Which values satisfy an atom, exactly, over doubles and float32s: the algebra that passes and witnesses share.

Between two neighbouring doubles there is nothing, so every interval over float64 is a closed one:
`x > 1.0` is `x >= nextafter(1.0, inf)`. With that, implication and contradiction are comparisons. The values of a
category are a set of texts, or all texts but these.

A float32 value compared with a float64 threshold answers as it would if the threshold moved to the next float32 on the
side that nothing crosses (`narrow`): up for `>=` and `<`, down for `>` and `<=`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from gbfl_compile.ir.kinds import LIMITS, Codebook
from gbfl_compile.ir.nodes import Atom, Clause, Closed, Interval, Kind, OneOf, Program

Dtype: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, slots=True)
class Values:
    """The doubles from `least` to `most`, both included, and the missing value or not."""

    least: float = -math.inf
    most: float = math.inf
    missing: bool = True

    @property
    def has_numbers(self) -> bool:
        """Whether any number is in it."""
        return self.least <= self.most

    @property
    def empty(self) -> bool:
        """Whether nothing is in it, not even the missing value."""
        return not self.has_numbers and not self.missing


ANYTHING = Values()


@dataclass(frozen=True, slots=True)
class Texts:
    """The listed texts, or with `negated` all others, and the missing value or not."""

    listed: frozenset[str] = frozenset()
    negated: bool = True
    missing: bool = True

    @property
    def empty(self) -> bool:
        """Whether nothing is in it, not even the missing value."""
        return not self.negated and not self.listed and not self.missing

    def __contains__(self, text: str) -> bool:
        return (text in self.listed) != self.negated


Allowed: TypeAlias = Values | Texts
"""The values that a feature may have."""


def allowed_by(atom: Atom) -> Allowed:
    """The values on which `atom` holds, of whatever kind."""
    match atom:
        case Interval():
            return values_of(atom)
        case OneOf(_, values, negated, if_missing):
            return Texts(frozenset(values), negated, if_missing)
        case _:
            assert_never(atom)


def values_of(atom: Interval) -> Values:
    """The values on which `atom` holds.

    >>> values_of(Interval(0, 1.0, 2.0))
    Values(least=1.0, most=1.9999999999999998, missing=False)
    """
    least, most = -math.inf, math.inf
    if atom.lo is not None:
        least = atom.lo if atom.lo_closed else above(atom.lo)
    if atom.hi is not None:
        most = atom.hi if atom.hi_closed else below(atom.hi)
    return Values(least, most, atom.if_missing)


def above(value: float, dtype: Dtype = "float64") -> float:
    """The next number up. `+ 0.0` because the neighbour of the smallest negative is spelled -0.0."""
    double = math.nextafter(value, math.inf) + 0.0
    return float32_at_or_above(double) if dtype == "float32" else double


def below(value: float, dtype: Dtype = "float64") -> float:
    """The next number down."""
    return -above(-value, dtype) + 0.0


def both(a: Values, b: Values) -> Values:
    """The values in `a` and in `b`."""
    return Values(max(a.least, b.least), min(a.most, b.most), a.missing and b.missing)


def within(a: Values, b: Values) -> bool:
    """Whether every value of `a` is one of `b`."""
    numbers = not a.has_numbers or (b.least <= a.least and a.most <= b.most)
    return numbers and (b.missing or not a.missing)


def _texts(allowed: Allowed) -> Texts:
    """What is known of a category; where nothing is, that is any text."""
    if isinstance(allowed, Texts):
        return allowed
    assert allowed == ANYTHING  # noqa: S101 - a feature is a number or a category, and no atom mixes them
    return Texts()


def both_allow(a: Allowed, b: Allowed) -> Allowed:
    """The values in `a` and in `b`, of whatever kind."""
    if isinstance(a, Values) and isinstance(b, Values):
        return both(a, b)
    a, b = _texts(a), _texts(b)
    missing = a.missing and b.missing
    if a.negated and b.negated:
        return Texts(a.listed | b.listed, True, missing)
    if a.negated or b.negated:
        plain, other = (b, a) if a.negated else (a, b)
        return Texts(plain.listed - other.listed, False, missing)
    return Texts(a.listed & b.listed, False, missing)


def allows_all(b: Allowed, a: Allowed) -> bool:
    """Whether every value of `a` is one of `b`, of whatever kind."""
    if isinstance(a, Values) and isinstance(b, Values):
        return within(a, b)
    a, b = _texts(a), _texts(b)
    if a.missing and not b.missing:
        return False
    if a.negated:
        return b.negated and b.listed <= a.listed
    return not a.listed & b.listed if b.negated else a.listed <= b.listed


def tested_values(atom: Atom, kind: Kind, book: Codebook) -> tuple[Values, ...]:
    """The doubles on which `atom` holds, as the prover compares them: texts by their codes, dates by whole days.

    A whole number n owns all doubles up to n + 1, so that no range ends between two of them.

    >>> tested_values(OneOf(0, ("a",)), "category", Codebook((("a", "b"),)))
    (Values(least=1.0, most=1.9999999999999998, missing=False),)
    """
    match atom:
        case Interval():
            return (values_of(atom) if kind == "number" else whole_values(values_of(atom), kind),)
        case OneOf(feature, texts, negated, if_missing):
            return code_values(Texts(frozenset(texts), negated, if_missing), feature, book)
        case _:
            assert_never(atom)


def clause_values(program: Program, book: Codebook) -> tuple[tuple[tuple[int, tuple[Values, ...]], ...], ...]:
    """What each clause tests: for every atom its feature and the values it holds on, texts by the codes of `book`."""
    return tuple(
        tuple((atom.feature, tested_values(atom, program.kind(atom.feature), book)) for atom in clause.atoms)
        for clause in program.clauses
    )


def whole_values(values: Values, kind: Kind) -> Values:
    """A range of days or microseconds, each of which owns the doubles up to the next one.

    The first and the last of them own all that is before and after: nothing else can come there.
    """
    first, last = LIMITS[kind]
    if values.most < first or values.least > last:
        return Values(math.inf, -math.inf, values.missing)
    least = -math.inf if values.least <= first else math.ceil(values.least) + 0.0
    most = math.inf if values.most >= last else below(math.floor(values.most) + 1.0)
    return Values(least, most, values.missing)


def next_to(cut: float, kind: Kind, narrow: bool = False) -> tuple[float, ...]:
    """The values next to a cut: doubles or float32 numbers, and of dates and timestamps the whole ones that exist."""
    if kind in LIMITS:
        first, last = LIMITS[kind]
        return tuple(value for value in (cut - 1.0, cut, cut + 1.0) if first <= value <= last)
    return (float32_at_or_below(cut), float32_at_or_above(cut)) if narrow else (below(cut), cut, above(cut))


def code_values(texts: Texts, feature: int, book: Codebook) -> tuple[Values, ...]:
    """The codes of some texts as ranges; any other text is below 1, or above all codes of the book."""
    ranges = []
    if texts.negated:
        ranges.append(Values(-math.inf, below(1.0), False))
    for place, text in enumerate(book.texts[feature], start=1):
        if text in texts:
            ranges.append(Values(float(place), below(place + 1.0), False))
    if texts.negated:
        ranges.append(Values(len(book.texts[feature]) + 1.0, math.inf, False))
    if texts.missing:
        ranges.append(Values(math.inf, -math.inf, True))
    return tuple(ranges)


def refused_by(atom: Atom) -> tuple[Allowed, ...]:
    """The values on which `atom` fails, of whatever kind, in one or more pieces."""
    match atom:
        case Interval():
            return outside(atom)
        case OneOf(_, values, negated, if_missing):
            return (Texts(frozenset(values), not negated, not if_missing),)
        case _:
            assert_never(atom)


def outside(atom: Interval) -> tuple[Values, ...]:
    """The values on which `atom` fails: those below, those above, and the missing one where it fails."""
    inside = values_of(atom)
    missing = not atom.if_missing
    if not inside.has_numbers:
        return (Values(missing=missing),)
    pieces = []
    if inside.least > -math.inf:
        pieces.append(Values(-math.inf, below(inside.least), False))
    if inside.most < math.inf:
        pieces.append(Values(above(inside.most), math.inf, False))
    if missing:
        pieces.append(Values(math.inf, -math.inf, True))
    return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a row on its way through a tree: the values its features may have, the clauses that failed."""

    box: Mapping[int, Allowed]
    failed: tuple[Clause, ...] = ()

    def values(self, feature: int) -> Allowed:
        """The values a feature may still have."""
        return self.box.get(feature, ANYTHING)


NOTHING_KNOWN = Facts({})


def is_implied(atom: Atom, facts: Facts) -> bool:
    """Whether `atom` holds for every row the facts allow."""
    return allows_all(allowed_by(atom), facts.values(atom.feature))


def always_holds(clause: Clause, facts: Facts) -> bool:
    """Whether the facts make `clause` true (sound; a False may only mean not seen)."""
    return all(is_implied(atom, facts) for atom in clause.atoms)


def never_holds(clause: Clause, facts: Facts) -> bool:
    """Whether the facts make `clause` false: no value is left, or a clause that failed would have to hold."""
    narrowed = _narrow(clause, facts)
    if any(narrowed.values(atom.feature).empty for atom in clause.atoms):
        return True
    return any(always_holds(failed, narrowed) for failed in facts.failed)


def with_held(clause: Clause, facts: Facts) -> Facts:
    """The facts after `clause` held."""
    return _settle(_narrow(clause, facts))


def with_failed(clause: Clause, facts: Facts) -> Facts:
    """The facts after `clause` failed."""
    known = Facts(facts.box, (*facts.failed, clause))
    narrower = _one_step(known, (clause,))  # only the new clause can add information, until the box changes
    return known if narrower is known else _settle(narrower)


def _narrow(clause: Clause, facts: Facts) -> Facts:
    box = dict(facts.box)
    for atom in clause.atoms:
        box[atom.feature] = both_allow(facts.values(atom.feature), allowed_by(atom))
    return Facts(box, facts.failed)


def _settle(facts: Facts) -> Facts:
    """A failed clause with one atom still open shows that this atom fails: narrow by it until nothing changes."""
    while (narrower := _one_step(facts, facts.failed)) is not facts:
        facts = narrower
    return facts


def _one_step(facts: Facts, clauses: tuple[Clause, ...]) -> Facts:
    for failed in clauses:
        open_atoms = [atom for atom in failed.atoms if not is_implied(atom, facts)]
        if len(open_atoms) != 1:
            continue
        atom = open_atoms[0]
        known = facts.values(atom.feature)
        pieces = [both_allow(known, piece) for piece in refused_by(atom)]
        left = _hull([piece for piece in pieces if not piece.empty])
        if left is not None and left != known:
            return Facts({**facts.box, atom.feature: left}, facts.failed)
    return facts


def _hull(pieces: list[Allowed]) -> Allowed | None:
    """The pieces as one range, or None where numbers lie on both sides of a gap or nothing is left."""
    if pieces and isinstance(pieces[0], Texts):
        return pieces[0]  # what a set leaves is one set
    numbers = [piece for piece in pieces if isinstance(piece, Values) and piece.has_numbers]
    if not pieces or len(numbers) > 1:
        return None
    missing = any(piece.missing for piece in pieces)
    if not numbers:
        return Values(math.inf, -math.inf, missing)
    return Values(numbers[0].least, numbers[0].most, missing)


LARGEST_FLOAT32 = (2.0 - 2.0**-23) * 2.0**127
"""The largest finite float32: beyond it only infinity is left."""

NOWHERE = (1.0, 1.0 + 2.0**-23)
"""Two neighbouring float32s. Doubles lie between them and float32s do not: the way to write "no number"."""


def narrow(program: Program) -> Program:
    """The program for float32 rows: every bound is a float32, every float32 row gets the answer it got before.

    On a double that is not a float32 the two may differ: it is a program of its own, with its own digest.
    """
    moved = ([narrow_interval(a) if isinstance(a, Interval) else a for a in c.atoms] for c in program.clauses)
    return replace(program, clauses=tuple(Clause(tuple(atoms)) for atoms in moved))


def narrow_interval(atom: Interval) -> Interval:
    """The interval with float32 bounds that holds the same float32 values.

    >>> narrow_interval(Interval(0, 0.1, 1e300))
    Interval(feature=0, lo=0.10000000149011612, hi=3.4028234663852886e+38, closed='both', if_missing=False)
    """
    lo, lo_closed = _narrow_lo(atom)
    hi, hi_closed = _narrow_hi(atom)
    if lo is not None and hi is not None and (lo > hi or (lo == hi and not (lo_closed and hi_closed))):
        return Interval(atom.feature, *NOWHERE, closed="neither", if_missing=atom.if_missing)
    return Interval(atom.feature, lo, hi, _closed_ends(lo_closed, hi_closed), atom.if_missing)


def _narrow_lo(atom: Interval) -> tuple[float | None, bool]:
    if atom.lo is None:
        return None, atom.lo_closed
    if atom.lo_closed:
        least = float32_at_or_above(atom.lo)
        return (LARGEST_FLOAT32, False) if least == math.inf else (least, True)
    most = float32_at_or_below(atom.lo)
    return (-LARGEST_FLOAT32, True) if most == -math.inf else (most, False)


def _narrow_hi(atom: Interval) -> tuple[float | None, bool]:
    if atom.hi is None:
        return None, atom.hi_closed
    if atom.hi_closed:
        most = float32_at_or_below(atom.hi)
        return (-LARGEST_FLOAT32, False) if most == -math.inf else (most, True)
    least = float32_at_or_above(atom.hi)
    return (LARGEST_FLOAT32, True) if least == math.inf else (least, False)


def _closed_ends(lo: bool, hi: bool) -> Closed:
    if lo:
        return "both" if hi else "left"
    return "right" if hi else "neither"


def float32_at_or_above(value: float) -> float:
    """The least float32 that is not below `value`, as a double; infinity where there is none."""
    if value > LARGEST_FLOAT32:
        return math.inf
    if value < -LARGEST_FLOAT32:
        return -LARGEST_FLOAT32 if math.isfinite(value) else value
    nearest = float(struct.unpack("<f", struct.pack("<f", value))[0])
    return (nearest if nearest >= value else _next_float32(nearest)) + 0.0  # a zero is spelled 0.0


def _next_float32(value: float) -> float:
    """The float32 after a finite one."""
    if value == 0.0:
        return float(2.0**-149)
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    return float(struct.unpack("<f", struct.pack("<i", bits + (1 if value > 0 else -1)))[0])


def float32_at_or_below(value: float) -> float:
    """The largest float32 that is not above `value`, as a double; minus infinity where there is none."""
    return -float32_at_or_above(-value) + 0.0
