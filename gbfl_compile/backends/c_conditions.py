"""Atoms and clauses as C expressions, in two spellings: `&&` for one row, `&` where a loop is to be vectorised."""

from __future__ import annotations

from dataclasses import dataclass

from gbfl_compile.backends.c_numbers import Real, bounds, literal
from gbfl_compile.ir.nodes import Clause, Interval, Program


@dataclass(frozen=True, slots=True)
class Spelling:
    """How conditions are joined, and how a value is named."""

    both: str
    either: str
    value: str


ONE_ROW = Spelling(" && ", " || ", "x[{0}]")
"""Stops at the first atom that fails: what a small processor without floating point wants."""

MANY_ROWS = Spelling(" & ", " | ", "x{0}")
"""No branches: `&&` made a batch of 50 rules 15 times slower (390 against 26 ns a row in the first trial)."""


def atom(interval: Interval, real: Real, spelling: Spelling) -> str:
    """One interval. NaN fails every comparison, so only a missing value that *holds* needs saying."""
    name = spelling.value.format(interval.feature)
    asked = [f"({name} {bound.comparison} {literal(bound.value, real)})" for bound in bounds(interval, real)]
    if not asked:
        return "1" if interval.if_missing else f"({name} == {name})"
    text = spelling.both.join(asked)
    if not interval.if_missing:
        return text
    return f"(({name} != {name}){spelling.either}{text if len(asked) == 1 else f'({text})'})"


def condition(clause: Clause, real: Real, spelling: Spelling) -> str:
    """A clause as one expression; the empty one is true."""
    atoms = (atom(interval, real, spelling) for interval in clause.atoms)
    return spelling.both.join(text for text in atoms if text != "1") or "1"


def used_features(program: Program) -> tuple[int, ...]:
    """The features some clause compares, ascending: the only columns a batch has to read."""
    atoms = (interval for clause in program.clauses for interval in clause.atoms)
    return tuple(sorted({a.feature for a in atoms if a.lo is not None or a.hi is not None or not a.if_missing}))
