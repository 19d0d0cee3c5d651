"""Python values of every kind as the numbers of a scorer's rows: texts by the scorer's own `NAME_code`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import plain_value
from gbfl_compile.ir.nodes import TRUE, Kind

if TYPE_CHECKING:
    from gbfl_compile.backends.base import Predictor
    from gbfl_compile.ir.batch import Answers, Matrix

LETTERS: dict[str, Kind] = {"n": "number", "c": "category", "b": "boolean", "d": "date", "t": "timestamp"}
"""What `NAME_kind` answers, and the kind it means."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The kinds of a scorer's features and the function that knows the codes of its texts."""

    features: tuple[str, ...]
    kinds: tuple[Kind, ...]
    code: Callable[[int, bytes], float]

    def rows(self, rows: Sequence[Sequence[Any]]) -> Matrix:
        """Rows of Python values as a matrix; NaN is missing."""
        import numpy as np

        width = len(self.features)
        for row in rows:
            if len(row) != width:
                raise BadInput(f"the rows have {len(row)} values, the model has {width} features")
        columns = [self.column(feature, (row[feature] for row in rows)) for feature in range(width)]
        return np.array(columns, dtype=np.float64).reshape(width, len(rows)).T

    def column(self, feature: int, values: Iterable[Any]) -> list[float]:
        """The values of one feature as numbers; NaN is missing."""
        kind, name = self.kinds[feature], self.features[feature]
        codes: dict[str, float] = {}

        def number(value: Any) -> float:
            if kind == "category" and isinstance(value, str) and value in codes:
                return codes[value]
            plain = plain_value(kind, value, name)
            if plain is None or isinstance(plain, float):
                return math.nan if plain is None else plain
            if kind == "boolean":
                return float(plain == TRUE)
            return codes.setdefault(plain, self.code(feature, plain.encode("utf-8", "surrogatepass")))

        return [number(value) for value in values]


def encoding_of(name: str, features: tuple[str, ...], library: Any) -> Encoding | None:
    """How a loaded scorer encodes values; None where all features are numbers."""
    if not hasattr(library, f"{name}_kind"):
        return None
    letters = [getattr(library, f"{name}_kind")(feature).decode("ascii") for feature in range(len(features))]
    if unknown := sorted(set(letters) - LETTERS.keys()):
        raise BadInput(f"{name}_kind answers {unknown[0]!r}, which is no kind: emit it again")

    def code(feature: int, text: bytes) -> float:
        return float(getattr(library, f"{name}_code")(feature, text, len(text)))

    return Encoding(features, tuple(LETTERS[letter] for letter in letters), code)


CLOSE = 1e-12
"""How far apart two of a rule set's probabilities may be: they go through exp."""


def takes_values(predictor: Predictor, encoding: Encoding) -> Predictor:
    """The predictor for rows of Python values: encoded once, and answered in all of its ways."""

    def answer_rows(rows: Sequence[Sequence[Any]]) -> Answers:
        matrix = encoding.rows(rows)
        answers = predictor.answer(matrix)
        for name, way in predictor.other_ways.items():
            _require_same(answers, way(matrix), name)
        return answers

    return replace(predictor, other_ways={}, columns=None, kinds=encoding.kinds, answer_rows=answer_rows)


def _require_same(answers: Answers, others: Answers, way: str) -> None:
    import numpy as np

    same = np.array_equal(answers.labels, others.labels)
    for one, other in ((answers.leaves, others.leaves), (answers.scores, others.scores)):
        same = same and (one is None or other is None or np.array_equal(one, other))
    apart = 0.0 if answers.scores is None else CLOSE
    if not same or not (np.abs(answers.probabilities - others.probabilities) <= apart).all():
        raise BadInput(f"{way}: other answers than in a batch of rows")
