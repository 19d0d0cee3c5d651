"""A program and a reading restricted to the values that a table's columns can hold.

An INTEGER column never holds 65.5 and a NOT NULL column is never missing, so a difference there is no difference. Each
condition is rewritten to answer for every double x what it answers for the nearest value of the column at or below x:
the two rewritten sides are equal on every double exactly if the original sides are equal on every value of the column.

    age < 65.5 on an INTEGER column      ->  age < 66
    income >= 0.1 on a DECIMAL(10, 2)    ->  income >= 0.1   (unchanged: 0.1 is one of its values)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any, assert_never

import numpy as np

from gbfl_compile.checking.artifact import ArtifactProof, ProofAnswer, prove_readings
from gbfl_compile.checking.prove.findings import Counterexample, Proof
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import in_book, map_tests
from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Or, PointDecision, Reading, StepDecision, Test
from gbfl_compile.databases.base import Missing
from gbfl_compile.databases.catalog import Column
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import Texts, Values, above, below, code_values, float32_at_or_above, values_of
from gbfl_compile.ir.kinds import Codebook, Value, codebook, decode_rows, plain_value, read_value
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Kind, OneOf, Program


def at_or_above(column: Column, value: float) -> float:
    """The least value of the column that is not below `value`; infinite where there is none."""
    kind = column.type
    if value <= kind.least:
        return kind.least
    match kind.kind:
        case "integer" | "boolean":
            nearest = value if math.isinf(value) else float(math.ceil(value))
        case "decimal":
            nearest = _decimal_at_or_above(value, kind.scale)
        case "float32":
            nearest = float32_at_or_above(value)
        case "double" | "text" | "other":
            nearest = value
        case _:
            assert_never(kind.kind)
    return nearest if nearest <= kind.most else math.inf


def at_or_below(column: Column, value: float) -> float:
    """The largest value of the column that is not above `value`; infinite where there is none."""
    mirrored = replace(column, type=replace(column.type, least=-column.type.most, most=-column.type.least))
    return -at_or_above(mirrored, -value)


def _decimal_at_or_above(value: float, scale: int) -> float:
    """The least double that is the nearest one to a decimal of this scale, and not below `value`."""
    if math.isinf(value) or abs(value) >= 2.0**53:
        return value
    unit = Decimal(1).scaleb(-min(scale, 40))
    exact = (Decimal(value) / unit).to_integral_value(ROUND_CEILING) * unit
    return next(float(each) for each in (exact - unit, exact, exact + unit) if float(each) >= value)


FRACTION = re.compile(r"(?:nullable\()?(?:datetime|datetime64|timestamp)\(([0-6])\b.*", re.IGNORECASE)
WHOLE_SECONDS = re.compile(r"(?:nullable\()?datetime(?:\('[^']*'\))?\)?", re.IGNORECASE)


def microseconds_apart(column: Column) -> float:
    """How far apart the moments are that a column holds: DATETIME of MariaDB and ClickHouse has whole seconds."""
    if match := FRACTION.fullmatch(column.declared):
        return float(10 ** (6 - int(match[1])))
    return 1e6 if WHOLE_SECONDS.fullmatch(column.declared) else 1.0


def at_or_below_moment(column: Column, value: float) -> float:
    """The latest moment of a column that is not after a number of microseconds."""
    apart = microseconds_apart(column)
    return value if apart == 1.0 or not math.isfinite(value) else math.floor(value / apart) * apart


def can_be_missing(column: Column, is_nan: bool | None) -> bool:
    """Whether a value can be NaN, NULL or (None) either."""
    as_nan, as_null = column.type.holds_nan, column.nullable
    return (as_nan or as_null) if is_nan is None else as_nan if is_nan else as_null


class Domains:
    """What each feature can be: one column per feature, None where nothing is known about it."""

    __slots__ = ("columns", "kinds", "unequal")

    def __init__(
        self, columns: Sequence[Column | None], readings: Sequence[Reading], kinds: tuple[Kind, ...] = ()
    ) -> None:
        self.columns = tuple(columns)
        self.kinds = kinds
        ways = [reading.nan_features for reading in readings if reading.nan_features is not None]
        self.unequal = frozenset().union(*ways)
        """The features whose NULL and NaN the readings tell apart."""

    def kind(self, feature: int) -> Kind:
        """What the values of a feature are."""
        return self.kinds[feature] if self.kinds else "number"

    def values(self, feature: int, held: Values, nan: frozenset[int] | None) -> Values:
        """The doubles whose nearest value of the column at or below is one of these."""
        column = self.columns[feature]
        if column is None:
            return held
        if self.kind(feature) != "number":  # of words and days only NOT NULL is used
            if self._is_coarse(feature):
                held = _moments(column, held)
            return held if column.nullable else replace(held, missing=held.least <= 0.0 <= held.most)
        kind = column.type
        least = -math.inf if held.least <= kind.least else at_or_above(column, held.least)
        most = math.inf if held.most >= kind.most else below(at_or_above(column, above(held.most)))
        if held.least > held.most or held.most < kind.least or (least == math.inf and kind.most < math.inf):
            least, most = math.inf, -math.inf
        is_nan = None if nan is None or feature not in self.unequal else feature in nan
        missing = held.missing
        if not can_be_missing(column, is_nan):
            zero = self.nearest(feature, 0.0)
            missing = held.least <= zero <= held.most
        return Values(least, most, missing)

    def nearest(self, feature: int, value: float) -> float:
        """The value of the column that represents a double: the one at or below it, or the column's least."""
        column = self.columns[feature]
        if column is None or math.isnan(value) or self.kind(feature) != "number":
            return at_or_below_moment(column, value) if column is not None and self._is_coarse(feature) else value
        nearest = at_or_below(column, value)
        return column.type.least if nearest == -math.inf and math.isfinite(column.type.least) else nearest

    def _is_coarse(self, feature: int) -> bool:
        """Whether a feature is a moment of a column that does not hold every microsecond."""
        column = self.columns[feature]
        return column is not None and self.kind(feature) == "timestamp" and microseconds_apart(column) > 1.0

    def members(self, feature: int) -> tuple[str, ...] | None:
        """The texts that an enumeration may hold; the first of them represents every other text."""
        column = self.columns[feature]
        if column is None or column.members is None or self.kind(feature) != "category":
            return None
        return (*column.members, *column.strays)

    def member(self, feature: int, text: str) -> str:
        """The member that represents a text; the text itself where the column is not an enumeration."""
        members = self.members(feature)
        return text if members is None or text in members else members[0]

    def program(self, program: Program, nan: frozenset[int] | None) -> Program:
        """The program, each interval rewritten."""
        clauses = (Clause(tuple(self._atom(atom, nan) for atom in clause.atoms)) for clause in program.clauses)
        return replace(program, clauses=tuple(clauses))

    def _atom(self, atom: Atom, nan: frozenset[int] | None) -> Atom:
        column = self.columns[atom.feature]
        if isinstance(atom, Interval) and (self.kind(atom.feature) == "number" or self._is_coarse(atom.feature)):
            return self._interval(atom, nan)
        if isinstance(atom, OneOf) and (members := self.members(atom.feature)) is not None:
            answers = [(member in atom.values) != atom.negated for member in members]
            listed = {member for member, holds in zip(members, answers, strict=True) if holds != answers[0]}
            atom = OneOf(atom.feature, tuple(sorted(listed)), answers[0], atom.if_missing)
        if column is None or column.nullable:
            return atom
        if isinstance(atom, OneOf):  # the missing value is answered as any other text, or as false
            return replace(atom, if_missing=atom.negated)
        held = values_of(atom)
        return replace(atom, if_missing=held.least <= 0.0 <= held.most)

    def _interval(self, atom: Interval, nan: frozenset[int] | None) -> Interval:
        held = self.values(atom.feature, values_of(atom), nan)
        if not held.has_numbers:
            return Interval(atom.feature, 1.0, above(1.0), "neither", held.missing)
        lo = None if held.least == -math.inf else held.least
        hi = None if held.most == math.inf else held.most
        return Interval(atom.feature, lo, hi, "both", held.missing)

    def reading(self, reading: Reading) -> Reading:
        """The reading, each test rewritten; its reasons, which quote the original bounds, are left out."""
        nan, reading = reading.nan_features, self._with_members(reading)
        match reading.decision:
            case StepDecision(steps):
                rewritten = tuple(
                    replace(step, condition=self._condition(step.condition, nan))
                    if isinstance(step, Ask)
                    else replace(step, held=None)
                    for step in steps
                )
                return replace(reading, decision=StepDecision(rewritten))
            case PointDecision() as card:
                terms = tuple((self._condition(condition, nan), points) for condition, points in card.terms)
                return replace(reading, decision=replace(card, terms=terms, held=None, words=None))
            case _:
                assert_never(reading.decision)

    def _with_members(self, reading: Reading) -> Reading:
        """The reading with every text that is not a member of an enumeration answered as its first member is."""
        if not any(self.members(feature) for feature in range(len(self.columns))):
            return reading
        own = Codebook(reading.book).with_texts([self.members(feature) or () for feature in range(len(self.columns))])

        def rewrite(test: Test) -> Test:
            if (members := self.members(test.feature)) is None:
                return test
            codes = [own.code(test.feature, member) for member in members]
            held = [any(piece.least <= code <= piece.most for piece in test.values) for code in codes]
            listed = frozenset(member for member, holds in zip(members, held, strict=True) if holds != held[0])
            texts = Texts(listed, held[0], any(piece.missing for piece in test.values))
            return Test(test.feature, code_values(texts, test.feature, own))

        return replace(map_tests(reading, rewrite), book=own.texts)

    def _condition(self, condition: Condition, nan: frozenset[int] | None) -> Condition:
        match condition:
            case Test(feature, pieces):
                rewritten = [self.values(feature, piece, nan) for piece in pieces]
                return Test(feature, tuple(piece for piece in rewritten if not piece.empty))
            case And(parts):
                return And(tuple(self._condition(part, nan) for part in parts))
            case Or(parts):
                return Or(tuple(self._condition(part, nan) for part in parts))
            case Not(part):
                return Not(self._condition(part, nan))
            case _:
                assert_never(condition)

    def row(self, row: Sequence[float], nan: frozenset[int] | None) -> tuple[float, ...]:
        """The values of the columns that represent the doubles of a row."""
        values = []
        for feature, value in enumerate(row):
            column = self.columns[feature]
            is_nan = None if nan is None or feature not in self.unequal else feature in nan
            if math.isnan(value) and column is not None and not can_be_missing(column, is_nan):
                value = 0.0
            values.append(self.nearest(feature, value))
        return tuple(values)


def _moments(column: Column, held: Values) -> Values:
    """The numbers whose latest moment of the column at or before is one of these."""
    if held.least > held.most:
        return held
    least, apart = -at_or_below_moment(column, -held.least), microseconds_apart(column)
    last = at_or_below_moment(column, held.most)
    most = below(last + apart) if math.isfinite(last) else last
    return Values(least, most, held.missing) if least <= most else Values(math.inf, -math.inf, held.missing)


def around(columns: Sequence[Column | None], rows: Matrix) -> Matrix:
    """The rows as the columns can hold them, values between two of a column's own rounded down and rounded up."""
    sides = []
    for rounded in (at_or_below, at_or_above):
        side = rows.copy()
        for feature, column in enumerate(columns):
            if column is not None and (column.type.kind != "double"):
                distinct, places = np.unique(rows[:, feature], return_inverse=True)
                values = [value if math.isnan(value) else rounded(column, float(value)) for value in distinct.tolist()]
                side[:, feature] = np.array(values)[places.reshape(-1)]
        sides.append(side)
    both = np.concatenate(sides)
    unique = {row.tobytes(): place for place, row in enumerate(both)}
    return both[sorted(unique.values())]


SHORT_TEXTS = (9.0, 10.0, 99.0, 100.0, 1000.0, -1.0, -9.0)
"""Numbers that are ordered differently as texts: '9' comes after '10'."""


def with_short_texts(features: Sequence[Column | None], rows: Matrix) -> Matrix:
    """The rows, and some of them again with such numbers in the columns of text."""
    texts = [place for place, column in enumerate(features) if column is not None and column.type.kind == "text"]
    parts = [rows]
    for place in texts:
        for value in SHORT_TEXTS:
            part = rows[:: max(1, len(rows) // 20)].copy()
            part[:, place] = value
            parts.append(part)
    return np.concatenate(parts)


def can_hold(features: Sequence[Column | None], rows: Matrix, missing: Missing) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The rows without values that the columns are known to refuse; what else they refuse shows when it is tried."""
    keep = np.ones(len(rows), dtype=bool)
    for place, column in enumerate(features):
        if column is None:
            continue
        as_nan = missing == "nan" and column.type.holds_nan
        if not can_be_missing(column, as_nan):
            keep &= ~np.isnan(rows[:, place])
        if column.type.kind not in ("double", "float32"):
            keep &= ~np.isinf(rows[:, place])
    return keep


def below_the_last_decimal(features: Sequence[Column | None], rows: Matrix) -> Matrix:
    """The rows, with less than the largest decimal of a column: as a double it may round to one that is too large.

    DECIMAL(18, 4) ends at 99999999999999.9999, and the double nearest to that is 1e14. PostgreSQL makes a decimal of a
    double from its first 15 digits, so that the largest double would be no double any more.
    """
    rows = rows.copy()
    for place, column in enumerate(features):
        if column is not None and (column.type.kind == "decimal" or column.declared.casefold() == "hugeint"):
            largest = min(column.type.most, np.finfo(np.float64).max) * (1 - 1e-14)
            rows[:, place] = np.clip(rows[:, place], -largest, largest)
    return rows


def value_read(kind: Kind, value: Any, name: str, book: Codebook, feature: int) -> tuple[float, Value]:
    """A value as the program's double and as Python has it; BadInput where it is of another kind."""
    if kind == "number":
        number = _as_number(value, name)
        return number, None if math.isnan(number) else number
    native = read_value(kind, value, name)
    plain = plain_value(kind, native, name)
    code = book.code(feature, plain) if isinstance(plain, str) else plain
    return math.nan if code is None else code, native


NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def _as_number(value: Any, name: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and NUMBER.fullmatch(value) is None:  # Python alone takes '1_000', 'nan' and '\uff11'
        raise BadInput(f"feature {name!r}: the text {value!r} is not a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"feature {name!r}: {value!r} is not a number") from None


@dataclass(frozen=True, slots=True)
class ColumnProver:
    """A prover for rows that the columns can hold. Where a proof over all doubles exists, that is the proof."""

    domains: Domains

    def __call__(self, program: Program, readings: tuple[Reading, ...], budget_seconds: float, /) -> ArtifactProof:
        """The proof."""
        proof, domains = prove_readings(program, readings, budget_seconds), self.domains
        if proof.answer != "counterexample":
            return proof
        proofs = [
            prove_readings(domains.program(program, each.nan_features), (domains.reading(each),), budget_seconds)
            for each in readings
        ]
        places = tuple(
            (place, _on_values(domains, program, reading, proof))
            for reading, each in zip(readings, proofs, strict=True)
            for place, proof in each.places
        )
        order: tuple[ProofAnswer, ...] = ("counterexample", "unread", "undecided", "proved")
        answers = {each.answer: each for each in proofs}
        worst = next((answers[word] for word in order if word in answers), proofs[0])
        return ArtifactProof(worst.answer, worst.reason, places, program.features)

    def possible(self, reading: Reading, rows: Matrix) -> Matrix:
        """The rows as the columns hold them."""
        held = [self.domains.row(row, reading.nan_features) for row in rows.tolist()]
        return np.array(list(dict.fromkeys(held)), dtype=np.float64)


def prove_on_columns(
    columns: Sequence[Column | None], readings: Sequence[Reading], kinds: tuple[Kind, ...] = ()
) -> ColumnProver:
    """A prover for rows that the columns can hold."""
    return ColumnProver(Domains(columns, readings, kinds))


def _on_values(domains: Domains, program: Program, reading: Reading, proof: Proof) -> Proof:
    """The proof with its counterexamples as rows of the columns' own values, answered by the original sides."""
    findings = dict(proof.findings)
    book = codebook(program)
    if program.kinds:
        book = book.with_texts(reading.book)
        book = book.with_texts([(domains.members(f) or ())[:1] for f in range(len(program.features))])
        reading = in_book(reading, program, book)
    for aspect, finding in proof.findings.items():
        if isinstance(finding, Counterexample):
            row = list(domains.row(finding.row, reading.nan_features))
            for feature, text in enumerate(finding.values or ()):
                if isinstance(text, str):  # its code was one of the rewritten sides
                    row[feature] = book.code(feature, domains.member(feature, text))
            (values,) = decode_rows(program, [row], book)
            native = tuple(values) if program.kinds else None
            findings[aspect] = Counterexample(tuple(row), evaluate(program, values), run_reading(reading, row), native)
    return replace(proof, findings=findings)
