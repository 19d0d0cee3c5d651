"""Atoms and clauses as SQL conditions for WHEN: true where the clause holds, false or unknown where it does not.

NULL makes a comparison unknown, and WHEN treats unknown as false; so no comparison is negated with NOT. Where the
failing side has to come first, `clause_fails` writes the opposite, atom by atom. Columns of words, booleans, dates and
timestamps are converted so that they compare exactly, or refused by name.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import assert_never

from gbfl_compile.backends.sql.dialect import Dialect, Spelling
from gbfl_compile.backends.sql.text import as_double, literal, nan, string
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import DAY, EARLIEST, LATEST, moment
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Kind, OneOf, Program


def refuse_kinds(dialect: Dialect, program: Program) -> None:
    """Refuse what this engine cannot compare exactly, by the feature's name."""
    for feature, kind in enumerate(program.kinds):
        if kind != "number" and kind not in dialect.kinds:
            raise BadInput(
                f"target sql:{dialect.name}: {program.features[feature]!r} is a {kind}: "
                f"{dialect.engine} was never run here, and only numbers are written for it"
            )
    for clause in program.clauses:
        for atom in clause.atoms:
            if isinstance(atom, Interval) and (kind := program.kind(atom.feature)) != "number":
                try:
                    whole_bounds(spelling_of(dialect, kind), atom, kind)
                except BadInput as error:
                    raise BadInput(f"target sql:{dialect.name}: {program.features[atom.feature]!r}: {error}") from None


def spelling_of(dialect: Dialect, kind: Kind) -> Spelling:
    """How the engine writes a kind; `refuse_kinds` has seen to it that it can."""
    return dialect.kinds[kind]


def exact_column(dialect: Dialect, kind: Kind, column: str) -> str:
    """A column of the table as the rules compare it."""
    return as_double(dialect, column) if kind == "number" else spelling_of(dialect, kind).column.format(column=column)


def argument_type(dialect: Dialect, kind: Kind) -> str:
    """The type of a function's argument."""
    return dialect.double if kind == "number" else spelling_of(dialect, kind).argument


def one_of(dialect: Dialect, question: OneOf, column: str, kind: Kind) -> str:
    """A set of texts, or a boolean. NULL makes a comparison unknown, so only what it answers otherwise is written."""
    if not question.values:
        return _presence(question, column)
    if kind == "boolean":
        truths = ("TRUE", "FALSE") if dialect.booleans else ("1", "0")
        text = f"{column} = {truths[question.negated]}"
    else:
        listed = [spelling_of(dialect, kind).literal.format(text=string(dialect, text)) for text in question.values]
        sign, signs = ("<>", "NOT IN") if question.negated else ("=", "IN")
        text = f"{column} {sign} {listed[0]}" if len(listed) == 1 else f"{column} {signs} ({', '.join(listed)})"
    if question.if_missing:
        return f"({text} OR {column} IS NULL)"
    doubtful = dialect.doubtful_not_in and question.negated and len(question.values) > 1
    return f"({text} AND {column} IS NOT NULL)" if doubtful else text


def _presence(question: OneOf, column: str) -> str:
    """An atom without texts, about one feature all the same: what always or never holds too."""
    if question.negated == question.if_missing:
        return f"({column} IS NULL {'OR' if question.negated else 'AND'} {column} IS NOT NULL)"
    return f"{column} IS NOT NULL" if question.negated else f"{column} IS NULL"


def one_of_fails(dialect: Dialect, question: OneOf, column: str, kind: Kind) -> str:
    """The opposite of `one_of`: the other texts, and the missing value where it does not hold."""
    return one_of(
        dialect, OneOf(question.feature, question.values, not question.negated, not question.if_missing), column, kind
    )


def between(dialect: Dialect, interval: Interval, column: str, kind: Kind) -> str:
    """A range of days or microseconds, always from its first to before the one after its last.

    Text sorts right by `>=` and `<` whether a time has digits after its seconds or not, and by no other sign.
    """
    first, past = _moments(dialect, interval, kind)
    parts = [f"{column} >= {first}"] * (first is not None) + [f"{column} < {past}"] * (past is not None)
    if not parts:
        return f"({column} IS NULL OR {column} IS NOT NULL)" if interval.if_missing else f"{column} IS NOT NULL"
    inside = " AND ".join(parts)
    return f"({inside} OR {column} IS NULL)" if interval.if_missing else inside


def between_fails(dialect: Dialect, interval: Interval, column: str, kind: Kind) -> str:
    """The opposite of `between`."""
    first, past = _moments(dialect, interval, kind)
    parts = [f"{column} < {first}"] * (first is not None) + [f"{column} >= {past}"] * (past is not None)
    if not interval.if_missing:
        parts.append(f"{column} IS NULL")
    if not parts:
        return f"({column} IS NULL AND {column} IS NOT NULL)"
    return f"({' OR '.join(parts)})" if len(parts) > 1 else parts[0]


def _moments(dialect: Dialect, interval: Interval, kind: Kind) -> tuple[str | None, str | None]:
    spelling = spelling_of(dialect, kind)
    first, past = whole_bounds(spelling, interval, kind)
    return _moment(dialect, spelling, kind, first), _moment(dialect, spelling, kind, past)


def _moment(dialect: Dialect, spelling: Spelling, kind: Kind, bound: int | None) -> str | None:
    if bound is None:
        return None
    return spelling.literal.format(text=string(dialect, moment_text(kind, bound) + spelling.zone))


def whole_bounds(spelling: Spelling, interval: Interval, kind: Kind) -> tuple[int | None, int | None]:
    """The first day or microsecond of a range and the one after its last, where the engine has both."""
    first = None if interval.lo is None else int(interval.lo) + (not interval.lo_closed)
    past = None if interval.hi is None else int(interval.hi) + interval.hi_closed
    unit = 1 if kind == "date" else DAY
    epoch = datetime.date(1970, 1, 1)
    least, most = ((day - epoch).days * unit for day in (spelling.earliest, spelling.latest))
    for bound in (first, past):
        if bound is None:
            continue
        if not EARLIEST * unit <= bound <= LATEST * unit or abs(bound) > 2**53:
            raise BadInput("a bound is the very end of the calendar: leave it out")
        if not spelling.holds_every_date and not least < bound <= most:
            raise BadInput(
                f"the bound {moment_text(kind, bound)} is not between {spelling.earliest} and {spelling.latest}, "
                "the range that the engine is certain to hold"
            )
    return first, past


def moment_text(kind: Kind, bound: int) -> str:
    """A day or a moment as ISO text, without zeros after its last digit.

    >>> moment_text("timestamp", 500_000)
    '1970-01-01 00:00:00.5'
    """
    if kind == "date":
        return moment("date", bound).isoformat()
    text = str(moment("timestamp", bound))
    return text.rstrip("0") if "." in text else text


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
