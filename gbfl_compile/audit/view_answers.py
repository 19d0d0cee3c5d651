"""What a view should answer on witnesses, column by column, and which of its answers are none of those.

A query gives its rows in no order. So rows are asked in parts, and no answer may come back that is none of the part's.
Each answer that is expected has a number; for every bit of these numbers, those that have it are one part and the
others another. Two different answers differ in a bit: a row that gets another row's answer is in a part without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit.observed import clauses_held
from gbfl_compile.backends.sql_layout import class_names
from gbfl_compile.check.equivalence import PROBABILITY_BOUND
from gbfl_compile.ir.batch import Answers, Matrix, evaluate_many
from gbfl_compile.ir.nodes import Program, Tree
from gbfl_compile.reasons import leaf_reasons, rule_reasons

Outputs = Sequence[tuple[str, str]]
"""(kind, column): label, probabilities, score, leaf or reason."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The answers to some rows, in the order of the outputs."""

    outputs: Outputs
    is_near: tuple[bool, ...]
    """Which columns may be off by PROBABILITY_BOUND: the probabilities of a rule set, whose `exp` is the engine's."""
    rows: Matrix
    answers: tuple[tuple[Any, ...], ...]

    def at(self, places: NDArray[np.intp]) -> Expected:
        """Those of some of the rows."""
        chosen = tuple(self.answers[place] for place in places)
        return Expected(self.outputs, self.is_near, self.rows[places], chosen)

    def parts(self) -> Iterator[tuple[Expected, ...]]:
        """All rows, divided anew for every bit."""
        known: dict[tuple[Any, ...], int] = {}
        numbers = np.array([known.setdefault(answer, len(known)) for answer in self.answers], dtype=np.int64)
        for bit in range(max(1, (len(known) - 1).bit_length())):
            has = (numbers >> bit) & 1 == 1
            yield tuple(self.at(np.flatnonzero(part)) for part in (~has, has) if part.any())

    def wrong(self, given: Sequence[Sequence[Any]]) -> int:
        """How many of the answers that came back are none of these."""
        allowed: dict[tuple[Any, ...], list[tuple[float, ...]]] = {}
        for answer in dict.fromkeys(self.answers):
            exact, near = self._split(answer)
            allowed.setdefault(exact, []).append(near)
        close = {exact: np.array(near, dtype=np.float64) for exact, near in allowed.items()}
        count = 0
        for answer, times in Counter(self.read(row) for row in given).items():
            exact, near = self._split(answer)
            if exact not in close or not _is_close(close[exact], near):
                count += times
        return count

    def read(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """An answer as the database gave it, in the values that are compared."""
        return tuple(_value(kind, value) for (kind, _), value in zip(self.outputs, row, strict=True))

    def _split(self, answer: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        pairs = list(zip(answer, self.is_near, strict=True))
        return tuple(value for value, near in pairs if not near), tuple(value for value, near in pairs if near)


def expected_answers(program: Program, rows: Matrix, outputs: Outputs) -> Expected:
    """What the program answers on the rows."""
    answers = evaluate_many(program, rows)
    is_tree = isinstance(program.decision, Tree)
    columns = [[_value(kind, value) for value in _column(program, rows, answers, kind, name)] for kind, name in outputs]
    near = tuple(kind == "probabilities" and not is_tree for kind, _ in outputs)
    return Expected(outputs, near, rows, tuple(zip(*columns, strict=True)))


def _column(program: Program, rows: Matrix, answers: Answers, kind: str, name: str) -> Sequence[Any]:
    if kind == "label":
        return list(answers.labels)
    if kind == "leaf" and answers.leaves is not None:
        return list(answers.leaves.tolist())
    if kind == "reason":
        return _reasons(program, rows, answers)
    if kind == "probabilities":
        return list(answers.probabilities[:, class_names("p", program.classes).index(name)].tolist())
    assert answers.scores is not None  # noqa: S101 - a tree that says scores was not read
    return list(answers.scores[:, class_names("score", program.classes).index(name)].tolist())


def _reasons(program: Program, rows: Matrix, answers: Answers) -> list[str]:
    if isinstance(program.decision, Tree):
        assert answers.leaves is not None  # noqa: S101 - a tree has leaves
        told = leaf_reasons(program, program.decision)
        return [told[leaf] for leaf in answers.leaves.tolist()]
    words = rule_reasons(program)
    return ["".join(words[clause] for clause in np.flatnonzero(held)) for held in clauses_held(program, rows)]


def _value(kind: str, value: Any) -> Any:
    """Databases have no one type for truth values and whole numbers: 1 and True are the same column there."""
    if value is None or isinstance(value, str):
        return value
    try:
        return float(value) if kind in ("label", "probabilities") or value != int(value) else int(value)
    except (TypeError, ValueError, ArithmeticError):
        return repr(value)


def _is_close(allowed: Matrix, near: tuple[Any, ...]) -> bool:
    """Whether probabilities are one of those allowed; a NULL or a NaN is never."""
    if not near:
        return True
    if not all(isinstance(value, float) for value in near):
        return False
    return bool((np.abs(allowed - np.array(near)) <= PROBABILITY_BOUND).all(axis=1).any())
