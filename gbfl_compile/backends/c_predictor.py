"""A built scorer as every target's predictor: a float64 matrix in, answers out, by each way it can be called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gbfl_compile.backends.base import ByColumn, Predictor
from gbfl_compile.backends.c_inputs import Columns
from gbfl_compile.backends.c_scorer import Scorer
from gbfl_compile.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.ir.batch import Answers, Matrix


def as_predictor(scorer: Scorer) -> Predictor:
    """Batches of rows; one row at a time where there are no batches.

    For a float32 scorer rows are rounded to float32 first, as the predictor's `dtype` says. One row at a time and
    columns are other code in the artifact: a check runs them too.
    """
    import numpy as np

    def by_rows(rows: Matrix) -> Answers:
        return _in_batches(scorer, np.ascontiguousarray(_given(scorer, rows)))

    def by_columns(rows: Matrix) -> Answers:
        return _in_batches(scorer, np.asfortranarray(_given(scorer, rows)))

    def one_by_one(rows: Matrix) -> Answers:
        numbers, scored, probabilities = scorer.one_by_one(_given(scorer, rows))
        return _answers(scorer, _labels(scorer, numbers), scored, probabilities)

    other: dict[str, Callable[[Matrix], Answers]] = {"columns": by_columns, "one row at a time": one_by_one}
    dtype: Literal["float64", "float32"] = "float32" if scorer.real.itemsize == 4 else "float64"
    answer = by_rows if scorer.has_batch else one_by_one
    return Predictor(
        "c",
        scorer.engine,
        scorer.digest,
        scorer.features,
        scorer.classes,
        answer,
        dtype,
        other_ways=other if scorer.has_batch else {},
        threads=True,
        columns=_by_column(scorer) if scorer.has_batch else None,
    )


def _given(scorer: Scorer, rows: Matrix) -> NDArray[Any]:
    import numpy as np

    if scorer.real.itemsize == 8:
        return rows
    with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
        return rows.astype(np.float32)


UNANSWERED = -1


def _in_batches(scorer: Scorer, rows: NDArray[Any]) -> Answers:
    """A row that is not written to is seen: fresh memory may hold the right answers of another call."""
    import numpy as np

    shape = len(rows) if scorer.is_tree else (len(rows), len(scorer.classes))
    scored = scorer.score(rows, out=np.full(shape, UNANSWERED, dtype=np.int32 if scorer.is_tree else np.int64))
    numbers = scorer.predict(rows, out=np.full(len(rows), UNANSWERED, dtype=np.int32))
    if UNANSWERED in numbers or (scorer.is_tree and UNANSWERED in scored):
        raise BadInput(f"{scorer.name}: a batch left rows unanswered")
    return _answers(scorer, _labels(scorer, numbers), scored, scorer.probabilities_of(scored))


def _labels(scorer: Scorer, numbers: NDArray[Any]) -> NDArray[Any]:
    from gbfl_compile.ir.batch import label_array

    labels: NDArray[Any] = label_array(scorer.classes)[numbers]
    return labels


def _answers(scorer: Scorer, labels: NDArray[Any], scored: NDArray[Any], probabilities: Matrix) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers

    if scorer.is_tree:
        return Answers(labels, probabilities, leaves=scored.astype(np.int64))
    return Answers(labels, probabilities, scores=scored)


def _by_column(scorer: Scorer) -> ByColumn:
    """The batch kernels over columns where they lie; a tree's probabilities are looked up a class at a time."""
    import numpy as np

    of_leaf = scorer.leaf_probabilities() if scorer.is_tree else None

    def answer(columns: Sequence[Any], count: int) -> tuple[NDArray[np.int32], Sequence[NDArray[np.float64]]]:
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            read = [
                np.ascontiguousarray(column, dtype=scorer.real) if used and column is not None else None
                for column, used in zip(columns, scorer.used, strict=True)
            ]
        given = Columns(tuple(read), count)
        scored = scorer.score(given)
        if of_leaf is not None:
            return scorer.predict(given), [np.take(shares, scored) for shares in of_leaf.T]
        return scorer.predict(given), tuple(scorer.probabilities_of(scored).T)

    return ByColumn(scorer.used, answer)
