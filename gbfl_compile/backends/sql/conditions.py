"""Atoms and clauses as SQL conditions for WHEN: true where the clause holds, false or unknown where it does not.

NULL makes a comparison unknown, and WHEN treats unknown as false; so no comparison is negated with NOT. Where the
failing side has to come first, `clause_fails` writes the opposite, atom by atom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.text import literal, nan
from gbfl_compile.backends.sql.words import between, between_fails, one_of, one_of_fails
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Kind, OneOf

ALWAYS = "1 = 1"
NEVER = "1 = 0"


def is_missing(dialect: Dialect, column: str) -> str:
    """`x IS NULL`, or also NaN where the engine has it."""
    match dialect.missing:
        case "null":
            return f"{column} IS NULL"
        case "greatest":
            return f"{column} IS NULL OR {column} = {nan(dialect)}"
        case "ieee" | "total":
            return f"{column} IS NULL OR {dialect.nan_test}({column})"


def is_present(dialect: Dialect, column: str) -> str:
    """Neither NULL nor NaN."""
    match dialect.missing:
        case "null":
            return f"{column} IS NOT NULL"
        case "greatest":
            return f"{column} <> {nan(dialect)}"  # unknown for NULL
        case "ieee":
            return f"{column} = {column}"  # unknown for NULL, false for NaN
        case "total":
            return f"NOT {dialect.nan_test}({column})"  # unknown for NULL


def nan_above(dialect: Dialect) -> bool:
    """Whether some NaN is above every lower bound."""
    return dialect.missing in ("greatest", "total")


def nan_below(dialect: Dialect) -> bool:
    """Whether some NaN is below every upper bound."""
    return dialect.missing == "total"


def atom(dialect: Dialect, interval: Interval, column: str) -> str:
    """One interval, in brackets where it joins parts by OR."""
    parts = _inside(dialect, interval, column)
    if not parts:
        return ALWAYS if interval.if_missing else is_present(dialect, column)
    if interval.if_missing:
        return f"({' AND '.join(parts)} OR {is_missing(dialect, column)})"
    if (interval.hi is None and nan_above(dialect)) or (interval.lo is None and nan_below(dialect)):
        parts.append(is_present(dialect, column))
    return " AND ".join(parts)


def _inside(dialect: Dialect, interval: Interval, column: str) -> list[str]:
    parts = []
    if interval.lo is not None:
        parts.append(f"{column} {'>=' if interval.lo_closed else '>'} {literal(dialect, interval.lo)}")
    if interval.hi is not None:
        parts.append(f"{column} {'<=' if interval.hi_closed else '<'} {literal(dialect, interval.hi)}")
    return parts


def atom_fails(dialect: Dialect, interval: Interval, column: str) -> str:
    """The opposite of `atom`."""
    parts = []
    if interval.lo is not None:
        parts.append(f"{column} {'<' if interval.lo_closed else '<='} {literal(dialect, interval.lo)}")
    if interval.hi is not None:
        parts.append(f"{column} {'>' if interval.hi_closed else '>='} {literal(dialect, interval.hi)}")
    if not interval.if_missing:
        return f"({' OR '.join([*parts, is_missing(dialect, column)])})"
    if not parts:
        return NEVER
    outside = f"({' OR '.join(parts)})" if len(parts) > 1 else parts[0]
    if (interval.hi is not None and nan_above(dialect)) or (interval.lo is not None and nan_below(dialect)):
        return f"({outside} AND {is_present(dialect, column)})"
    return outside


def _holds(dialect: Dialect, question: Atom, column: str, kind: Kind) -> str:
    match question:
        case OneOf():
            return one_of(dialect, question, column, kind)
        case Interval():
            return atom(dialect, question, column) if kind == "number" else between(dialect, question, column, kind)
        case _:
            assert_never(question)


def _fails(dialect: Dialect, question: Atom, column: str, kind: Kind) -> str:
    match question:
        case OneOf():
            return one_of_fails(dialect, question, column, kind)
        case Interval():
            if kind != "number":
                return between_fails(dialect, question, column, kind)
            return atom_fails(dialect, question, column)
        case _:
            assert_never(question)


def _kind(kinds: Sequence[Kind], question: Atom) -> Kind:
    return kinds[question.feature] if kinds else "number"


def clause_holds(dialect: Dialect, clause: Clause, columns: Mapping[int, str], kinds: Sequence[Kind] = ()) -> str:
    """All atoms of a clause."""
    atoms = (_holds(dialect, question, columns[question.feature], _kind(kinds, question)) for question in clause.atoms)
    return " AND ".join(atoms) or ALWAYS


def clause_fails(dialect: Dialect, clause: Clause, columns: Mapping[int, str], kinds: Sequence[Kind] = ()) -> str:
    """At least one atom of a clause fails."""
    atoms = (_fails(dialect, question, columns[question.feature], _kind(kinds, question)) for question in clause.atoms)
    return " OR ".join(atoms) or NEVER
