"""Runs a view's own query in its own database, over a copy of its table filled with witnesses and with its own rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import clauses_held, json_number
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.verdict import value_form
from gbfl_compile.auditing.view.computed import FillIn
from gbfl_compile.auditing.view.places import with_members, witness_rows
from gbfl_compile.auditing.view.table_copy import (
    StagedRows,
    TableCopies,
    TableCopy,
    copied_tables,
    one_copy,
)
from gbfl_compile.auditing.view.view import View, feature_columns, other_inputs, query_over, stored_answer
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.options import answer_columns
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.run import PROBABILITY_BOUND, Execution
from gbfl_compile.databases.base import Missing
from gbfl_compile.databases.catalog import Column
from gbfl_compile.ir.batch import Answers, Matrix, evaluate_many
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Label, Program, Tree, leaf_numbers
from gbfl_compile.ir.text import leaf_reasons, printable, rule_reasons

Outputs = Sequence[tuple[str, str]]
"""(kind, column): label, probabilities, score, leaf or reason."""


@dataclass(frozen=True, slots=True)
class ExpectedAnswers:
    """The approved answers to some rows, in the order of the outputs."""

    outputs: Outputs
    is_near: tuple[bool, ...]
    """Which columns may be off by PROBABILITY_BOUND: the probabilities of a rule set, whose `exp` is the engine's."""
    rows: Matrix
    answers: tuple[tuple[Any, ...], ...]
    places: tuple[int, ...]
    """Which of the staged rows these are."""

    def at(self, chosen: NDArray[np.intp]) -> ExpectedAnswers:
        """The answers to some of the rows."""
        answers = tuple(self.answers[place] for place in chosen)
        places = tuple(self.places[place] for place in chosen)
        return ExpectedAnswers(self.outputs, self.is_near, self.rows[chosen], answers, places)

    def parts(self) -> Iterator[tuple[ExpectedAnswers, ...]]:
        """All rows, divided in two once per bit of the answer's number, so that any two answers are divided once.

        Answers come back in no order. Within one part every answer must be one that the part expects: a row that got
        the answer of a row in the other part shows.
        """
        known: dict[tuple[Any, ...], int] = {}
        numbers = np.array([known.setdefault(answer, len(known)) for answer in self.answers], dtype=np.int64)
        for bit in range(max(1, (len(known) - 1).bit_length())):
            has = (numbers >> bit) & 1 == 1
            yield tuple(self.at(np.flatnonzero(part)) for part in (~has, has) if part.any())

    def wrong(self, answers: Sequence[Sequence[Any]]) -> int:
        """How many of the returned answers are not expected."""
        allowed: dict[tuple[Any, ...], list[tuple[float, ...]]] = {}
        for answer in dict.fromkeys(self.answers):
            exact, near = self._split(answer)
            allowed.setdefault(exact, []).append(near)
        close = {exact: np.array(near, dtype=np.float64) for exact, near in allowed.items()}
        count = 0
        for answer, times in Counter(self.read(row) for row in answers).items():
            exact, near = self._split(answer)
            if exact not in close or not _is_close(close[exact], near):
                count += times
        return count

    def read(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """An answer from the database, converted to the values that are compared."""
        return tuple(compared_value(kind, value) for (kind, _), value in zip(self.outputs, row, strict=True))

    def _split(self, answer: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        pairs = list(zip(answer, self.is_near, strict=True))
        return tuple(value for value, near in pairs if not near), tuple(value for value, near in pairs if near)


def expected_answers(
    program: Program, rows: Matrix, outputs: Outputs, names: tuple[Label, ...] | None = None
) -> ExpectedAnswers:
    """What the program answers on the rows; columns such as `p_yes` are called by `names`, or by its own classes."""
    answers, is_exact = evaluate_many(program, rows), program.has_exact_probabilities
    classes = names or program.classes
    columns = [
        [compared_value(kind, value) for value in _column(program, rows, answers, kind, name, classes)]
        for kind, name in outputs
    ]
    near = tuple(kind == "probabilities" and not is_exact for kind, _ in outputs)
    return ExpectedAnswers(outputs, near, rows, tuple(zip(*columns, strict=True)), tuple(range(len(rows))))


def _column(
    program: Program, rows: Matrix, answers: Answers, kind: str, name: str, classes: tuple[Label, ...]
) -> Sequence[Any]:
    if kind == "label":
        return list(answers.labels)
    if kind == "leaf" and answers.leaves is not None:
        return list(answers.leaves.tolist())
    if kind == "reason":
        return _reasons(program, rows, answers)
    if kind == "probabilities":
        return list(answers.probabilities[:, answer_columns("p", classes).index(name)].tolist())
    assert answers.scores is not None  # noqa: S101 - outputs a tree does not have were left out
    return list(answers.scores[:, answer_columns("score", classes).index(name)].tolist())


def _reasons(program: Program, rows: Matrix, answers: Answers) -> list[str]:
    if isinstance(program.decision, Tree):
        assert answers.leaves is not None  # noqa: S101 - a tree has leaves
        texts = leaf_reasons(program, program.decision)
        return [texts[leaf] for leaf in answers.leaves.tolist()]
    words = rule_reasons(program)
    return ["".join(words[clause] for clause in np.flatnonzero(held)) for held in clauses_held(program, rows)]


class TruthLabel(Enum):
    """A truth value as a label. In Python True equals 1; in a database that has truth values it does not."""

    NO = False
    YES = True


def compared_value(kind: str, value: Any) -> Any:
    """A value in the form that is compared: integers, decimals and doubles of equal value are equal."""
    if value is None or isinstance(value, str):
        return value
    if kind == "label" and isinstance(value, bool | np.bool_):
        return TruthLabel(bool(value))
    try:
        return float(value) if kind in ("label", "probabilities") or value != int(value) else int(value)
    except (TypeError, ValueError, ArithmeticError):
        return repr(value)


def _is_close(allowed: Matrix, near: tuple[Any, ...]) -> bool:
    """Whether the probabilities are among those allowed; NULL and NaN never are."""
    if not near:
        return True
    if not all(isinstance(value, float) for value in near):
        return False
    return bool((np.abs(allowed - np.array(near)) <= PROBABILITY_BOUND).all(axis=1).any())


class OtherRowCount(Exception):
    """The view does not answer every row exactly once."""


class NoRowPassed(Unread):
    """The view's filters and joins leave out every row that was tried."""


@dataclass(frozen=True, slots=True)
class ViewRun:
    """The result of running a view."""

    execution: Execution
    outputs: Outputs
    """The columns that were compared."""
    own_columns: tuple[str, ...]
    """Columns called `leaf` or `reason` in which the view says something of its owner's, not compared."""
    words: str
    """What was run, for people."""


def run_view(inputs: AuditInput, view: View, outputs: Outputs, are_answers: bool = False) -> ViewRun:
    """Run the view's query for these columns.

    Whether a column `leaf` or `reason` is an answer of the program or the owner's own is decided by its values, where
    it is not known already (`are_answers`). The number of differences is a lower bound: see `ExpectedAnswers.parts`.
    """
    program = inputs.program
    if view.table is None:
        raise Unread(f"the view reads {len({table.sql() for table in view.require_query().tables})} tables")
    if (name := stored_answer(view, outputs)) is not None:
        raise Unread(f"{name!r} is a column of {view.table.name!r} and not computed by the view")
    if view.views_below:
        raise Unread(f"it reads {printable(view.views_below[0])}, which is a view itself")
    features = feature_columns(inputs, view)
    others = other_inputs(view, [inputs.columns.get(name, name) for name in program.features])
    batches = witness_batches(inputs, view, features) if not others else []
    with copied_tables(view, inputs, features, one_copy(view, features, program)) as copy:
        tally = _Tally(list(outputs), [] if are_answers else None)
        for batch in batches:
            _run_batch(inputs, view, copy, copy.stage_witnesses(*batch), tally)
        own = copy.stage_own_rows()
        own_rows = len(own.numbers)
        _run_batch(inputs, view, copy, own, tally, are_own=True)
    if not tally.rows:
        raise Unread(f"no row could be run: {_why_no_rows(others, tally)}")
    words = f"the view's query on {tally.rows - own_rows:,} witnesses and {own_rows:,} of its table's own rows"
    if others:
        used = ", ".join(map(printable, others[:5]))
        words = f"the view's query on {own_rows:,} of its table's own rows, as it also uses {used}"
    if own.unreadable:
        words += (
            f"; {own.unreadable:,} more of its rows have a value that the program does not accept, and were not run"
        )
    if tally.different:
        words += f"; answers come back in no order, so at least {tally.different} are different"
    execution = Execution(view.database.version, tally.rows, tally.different, tally.first)
    return ViewRun(execution, tally.outputs, tuple(tally.own_columns or ()), words)


def run_copies(
    inputs: AuditInput,
    view: View,
    outputs: Outputs,
    features: Sequence[Column | None],
    copies: Sequence[TableCopy],
    filling: FillIn | None = None,
    only_own: bool = False,
) -> ViewRun:
    """Run a view that reads several tables or other views, or leaves rows out, on copies of its tables.

    Where features are computed from columns that cannot be filled in (`filling`), only the table's own rows are run.
    """
    can_fill = not only_own and (filling is not None or not any(copy.computed for copy in copies))
    batches = witness_batches(inputs, view, features) if can_fill else []
    with copied_tables(view, inputs, features, copies, filling) as copy:
        tally = _Tally(list(outputs), may_drop=True)
        if only_own and copy.database.fetch(query_over(view, copy.names(), outputs)):
            raise Unread("some of its rows do not come from the table that has the features")
        for batch in batches:
            _run_batch(inputs, view, copy, copy.stage_witnesses(*batch), tally)
        witnesses = tally.rows
        if len(copies) == 1:
            _run_batch(inputs, view, copy, copy.stage_own_rows(), tally, are_own=True)
    if not tally.rows:
        raise Unread(f"no row could be run: {tally.refusal or 'the tables accept none'}")
    if not tally.answers:
        raise NoRowPassed(f"none of {tally.rows:,} witnesses passed its filters and joins")
    tables = "1 table" if len(copies) == 1 else f"{len(copies)} tables"
    words = f"the view's query on {witnesses:,} witnesses in copies of {tables}"
    if only_own:
        words = f"the view's query on {tally.rows:,} of its table's own rows"
    elif tally.rows > witnesses:
        words += f" and {tally.rows - witnesses:,} of its table's own rows"
    execution = Execution(view.database.version, tally.rows, tally.different, tally.first)
    return ViewRun(execution, tally.outputs, tuple(tally.own_columns or ()), words)


def as_held(program: Program, view: View) -> Program:
    """The program with truth values as 1 and 0, where the database has no truth values."""
    has_truths = DIALECTS[view.database.dialect].booleans
    is_truth = isinstance(program.classes[0], bool)
    return replace(program, classes=tuple(map(int, program.classes))) if is_truth and not has_truths else program


@dataclass(slots=True)
class _Tally:
    """The results of the batches so far."""

    outputs: list[tuple[str, str]]
    own_columns: list[str] | None = None
    rows: int = 0
    different: int = 0
    first: dict[str, Any] | None = None
    refusal: str | None = None
    may_drop: bool = False
    """Whether the view's text says that it leaves out rows, or may give several."""
    answers: int = 0
    """That came back, over all questions."""


def _why_no_rows(others: Sequence[str], tally: _Tally) -> str:
    if others:
        return f"the table is empty, and the view also uses {', '.join(map(printable, others[:5]))}"
    return tally.refusal or "the table accepts none"


def witness_batches(
    inputs: AuditInput, view: View, features: Sequence[Column | None]
) -> list[tuple[Matrix, Missing, Codebook]]:
    """The witnesses with missing values as NULL, and where a column can hold it as NaN."""
    rows, book = with_members(inputs.program, features, *witness_rows(inputs, view))
    if not view.database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    batches: list[tuple[Matrix, Missing, Codebook]] = [(rows, "null", book)]
    if view.database.holds_nan and any(column is not None and column.type.holds_nan for column in features):
        batches.append((rows[np.isnan(rows).any(axis=1)], "nan", book))
    return batches


def _run_batch(
    inputs: AuditInput, view: View, copy: TableCopies, staged: StagedRows, tally: _Tally, are_own: bool = False
) -> None:
    """Run some rows; a row of the table's own is shown rather than a witness."""
    program = as_held(inputs.program, view)
    tally.refusal = staged.refusal or tally.refusal
    if not len(staged.numbers):
        return

    def answers(part: ExpectedAnswers) -> list[tuple[Any, ...]]:
        copy.fill(staged, part.places)
        listed = copy.database.fetch(query_over(view, copy.names(), part.outputs))
        tally.answers += len(listed)
        if len(listed) != len(part.places) and not tally.may_drop:
            raise OtherRowCount(f"the view gives {len(listed)} answers for {len(part.places)} rows")
        return listed

    if tally.own_columns is None:
        tally.own_columns = [
            name
            for kind, name in tally.outputs
            if kind in ("leaf", "reason") and _is_the_owners(program, staged.rows, (kind, name), answers)
        ]
        tally.outputs = [output for output in tally.outputs if output[1] not in tally.own_columns]
    tally.rows += len(staged.numbers)
    most = 0
    for parts in expected_answers(program, staged.rows, tally.outputs, inputs.class_names).parts():
        counts = [part.wrong(answers(part)) for part in parts]
        most = max(most, sum(counts))
        if (tally.first is None or are_own) and any(counts):
            are_own = False
            part = next(part for part, count in zip(parts, counts, strict=True) if count)
            tally.first = _first(program, part, answers, staged)
    tally.different += most


def _is_the_owners(
    program: Program,
    rows: Matrix,
    output: tuple[str, str],
    answers: Callable[[ExpectedAnswers], list[tuple[Any, ...]]],
) -> bool:
    """Whether a column called `leaf` or `reason` holds something of the owner's and not what we would write there.

    Leaves are numbered from 0; a reason is ours if some row has the very words that it would have.
    """
    expected = expected_answers(program, rows, [output])
    values = {expected.read(answer)[0] for answer in answers(expected)}
    if output[0] == "leaf":
        return not values <= {answer for (answer,) in expected.answers} | set(range(_leaf_count(program)))
    return not any(values & {answer for (answer,) in expected.answers if answer})


def _leaf_count(program: Program) -> int:
    return len(leaf_numbers(program.decision)) if isinstance(program.decision, Tree) else 0


def outputs_of(inputs: AuditInput, view: View, label: str) -> list[tuple[str, str]]:
    """The columns of the view that are answers of the program, by the names that our own views give them."""
    named = [("probabilities", name) for name in answer_columns("p", inputs.class_names)]
    if isinstance(inputs.program.decision, Tree):
        named.append(("leaf", "leaf"))
    else:
        named += [("score", name) for name in answer_columns("score", inputs.class_names)]
    named.append(("reason", "reason"))
    present = {kind for kind, _ in named if all(view.has_column(name) for each, name in named if each == kind)}
    return [("label", label), *(output for output in named if output[0] in present and output[1] != label)]


def _first(
    program: Program,
    part: ExpectedAnswers,
    answers: Callable[[ExpectedAnswers], list[tuple[Any, ...]]],
    staged: StagedRows,
) -> dict[str, Any]:
    """One row that gets another answer, found by halving: the fewer rows, the fewer answers are right."""
    while len(part.rows) > 1:
        halves = np.array_split(np.arange(len(part.rows)), 2)
        half = part.at(halves[0])
        part = half if half.wrong(answers(half)) else part.at(halves[1])
    names = [name for _, name in part.outputs]
    values: list[Any] = [None if np.isnan(value) else repr(float(value)) for value in part.rows[0]]
    if program.kinds:
        values = [
            value if plain is None or program.kind(feature) == "number" else value_form(plain)
            for feature, (value, plain) in enumerate(zip(values, staged.values[part.places[0]], strict=True))
        ]
    return {
        "row": dict(zip(program.features, values, strict=True)),
        "source": _as_json(names, part.answers[0]),
        "target": _as_json(names, part.read(next(each for each in answers(part) if part.wrong([each])))),
    }


def _as_json(names: list[str], answer: tuple[Any, ...]) -> dict[str, Any]:
    values = [value.value if isinstance(value, TruthLabel) else value for value in answer]
    values = [json_number(value) if isinstance(value, float) else value for value in values]
    return dict(zip(names, values, strict=True))
