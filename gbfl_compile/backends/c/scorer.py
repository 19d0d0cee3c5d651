"""A built scorer for numpy, pandas, Arrow and Polars, without copies, and as the Predictor of the C target.

Every call into C releases the GIL. `threads` splits a batch; the answers are the same.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gbfl_compile.backends.base import ByColumn, Predictor
from gbfl_compile.backends.c.build import build_extension, compiler
from gbfl_compile.backends.c.inputs import Columns, Encoding, Rows, as_input, encoding_of, takes_values
from gbfl_compile.errors import BadInput, CannotRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.ir.batch import Answers, Matrix
    from gbfl_compile.ir.nodes import Label

THREAD_ROWS = 4096
"""Minimum rows per thread: fewer are not worth starting one."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A loaded scorer. `X` is a matrix in the order of `features`, or a table that has them by name.

    Words and dates are Python's values in a table or a list of rows, and encoded as NAME.h says in a matrix.
    """

    name: str
    engine: str
    digest: str
    features: tuple[str, ...]
    classes: tuple[Label, ...]
    is_tree: bool
    real: np.dtype[Any]
    """What it reads: float64 or float32."""
    used: tuple[bool, ...]
    library: Any
    ffi: Any
    encoding: Encoding | None = None
    """How words and dates become numbers; None where all features are numbers."""

    def predict(self, X: Any, out: NDArray[np.int32] | None = None, threads: int = 1) -> NDArray[np.int32]:
        """The class number of each row."""
        import numpy as np

        return self._fill("predict", X, out, (), np.dtype(np.int32), threads)

    def labels(self, X: Any, threads: int = 1) -> NDArray[np.object_]:
        """The class label of each row."""
        from gbfl_compile.ir.batch import label_array

        return label_array(self.classes)[self.predict(X, threads=threads)]

    def score(self, X: Any, out: NDArray[Any] | None = None, threads: int = 1) -> NDArray[Any]:
        """The leaf of each row (int32), or its points, one column per class (int64)."""
        import numpy as np

        if self.is_tree:
            return self._fill("leaf", X, out, (), np.dtype(np.int32), threads)
        return self._fill("score", X, out, (len(self.classes),), np.dtype(np.int64), threads)

    def probabilities(self, X: Any, threads: int = 1) -> Matrix:
        """One column of probabilities per class."""
        return self.probabilities_of(self.score(X, threads=threads))

    def probabilities_of(self, scored: NDArray[Any]) -> Matrix:
        """The probabilities behind what `score` returned."""
        import numpy as np

        if self.is_tree:
            return np.take(self.leaf_probabilities(), scored, axis=0)
        out = np.empty((len(scored), len(self.classes)))
        points = self.ffi.from_buffer("int64_t[]", np.ascontiguousarray(scored, dtype=np.int64))
        self._function("probabilities")(points, len(scored), self.ffi.from_buffer("double[]", out))
        return out

    def one_by_one(self, X: Matrix) -> tuple[NDArray[np.int32], NDArray[Any], Matrix]:
        """Class number, leaf or points, and probabilities, each row by the functions for one row."""
        import numpy as np

        buffer, pointer = self._row_buffer()
        count, width = len(X), len(self.classes)
        classes, shares = np.empty(count, dtype=np.int32), np.empty((count, width))
        scored = np.empty(count, dtype=np.int32) if self.is_tree else np.empty((count, width), dtype=np.int64)
        for i in range(count):
            buffer[:] = X[i]
            classes[i] = self._function("predict")(pointer)
            answers = {self._function("predict_proba")(pointer, self.ffi.from_buffer("double[]", shares[i]))}
            if self.is_tree:
                scored[i] = self._function("explain")(pointer, self.ffi.NULL)
            else:
                answers.add(self._function("score")(pointer, self.ffi.from_buffer("int64_t[]", scored[i])))
            if answers != {int(classes[i])}:
                raise BadInput(f"{self.name}_predict answers class {classes[i]} for a row, other functions {answers}")
        return classes, scored, shares

    def leaf_probabilities(self) -> Matrix:
        """The probabilities of a tree's leaves, one row per leaf."""
        import numpy as np

        table = np.empty((self._constant("LEAVES"), len(self.classes)))
        for leaf in range(len(table)):
            self._function("leaf")(leaf, self.ffi.from_buffer("double[]", table[leaf]))
        return table

    def explain(self, row: Any) -> tuple[int, tuple[int, ...]]:
        """For one row the leaf (or how many rules hold), and the numbers of the rules that held."""
        import numpy as np

        buffer, pointer = self._row_buffer()
        buffer[:] = self._one_row(row)
        held = np.zeros(self._constant("HELD_WORDS"), dtype=np.uint32)
        number = self._function("explain")(pointer, self.ffi.from_buffer("uint32_t[]", held))
        bits = np.unpackbits(held.view(np.uint8), bitorder="little")
        return int(number), tuple(int(i) for i in np.flatnonzero(bits))

    def bound_row(self) -> tuple[NDArray[Any], Callable[[], int]]:
        """A buffer for one row and a function that returns the class number of its content: the fastest for one row.

        The function keeps the buffer alive. Each thread needs its own pair.
        """
        buffer, pointer = self._row_buffer()
        predict = self._function("predict")

        def call(predict: Any = predict, pointer: Any = pointer) -> int:
            return predict(pointer)  # type: ignore[no-any-return]

        return buffer, call

    def selftest(self) -> int:
        """0 if the rows embedded in the model are answered correctly, else the number of the first wrong one."""
        return int(self._function("selftest")())

    def _row_buffer(self) -> tuple[NDArray[Any], Any]:
        import numpy as np

        buffer = np.zeros(len(self.features), dtype=self.real)
        return buffer, self.ffi.from_buffer(f"{self._real()}[]", buffer)

    def _one_row(self, row: Any) -> NDArray[Any]:
        table = as_input([row], self.features, (True,) * len(self.features), self.real, self.encoding)
        assert isinstance(table, Rows)  # noqa: S101 - a list of one row is not a table
        first: NDArray[Any] = table.values[0]
        return first

    @property
    def has_batch(self) -> bool:
        """Whether it was emitted with functions for many rows at once."""
        return bool(self._constant("HAS_BATCH"))

    def _real(self) -> str:
        return "double" if self.real.itemsize == 8 else "float"

    def _function(self, verb: str) -> Any:
        try:
            return getattr(self.library, f"{self.name}_{verb}")
        except AttributeError:
            raise BadInput(f"{self.name}.h declares no {self.name}_{verb}: emit it again") from None

    def _constant(self, which: str) -> int:
        return int(getattr(self.library, f"{self.name}_{which}"))

    def _fill(
        self, verb: str, X: Any, out: NDArray[Any] | None, width: tuple[int, ...], dtype: np.dtype[Any], threads: int
    ) -> NDArray[Any]:
        if not self.has_batch:
            raise CannotRun(f"{self.name} was emitted without batch entry points: emit it with --set c.batch=yes")
        table = as_input(X, self.features, self.used, self.real, self.encoding)
        out = _checked_out(out, (table.count, *width), dtype)
        workers = max(1, min(int(threads), table.count // THREAD_ROWS))
        share = -(-table.count // workers)
        starts = range(0, table.count, share) if table.count else ()
        if workers == 1:
            for start in starts:
                self._run(verb, table, start, share, out)
            return out
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(self._run, verb, table, start, share, out) for start in starts]:
                done.result()
        return out

    def _run(self, verb: str, table: Rows | Columns, start: int, share: int, out: NDArray[Any]) -> None:
        count = min(share, table.count - start)
        integers = "int64_t *" if out.dtype.itemsize == 8 else "int32_t *"
        target = self.ffi.cast(integers, out[start:].ctypes.data)
        pointer = f"{self._real()} *"
        if isinstance(table, Rows):
            first = self.ffi.cast(pointer, table.values[start:].ctypes.data)
            self._function(f"{verb}_rows")(first, count, table.stride, target)
            return
        columns = [
            self.ffi.NULL if column is None else self.ffi.cast(pointer, column[start:].ctypes.data)
            for column in table.values
        ]
        self._function(f"{verb}_columns")(self.ffi.new(f"{self._real()} *[]", columns), count, target)


def _checked_out(out: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    import numpy as np

    if out is None:
        return np.empty(shape, dtype=dtype)
    if not isinstance(out, np.ndarray) or out.dtype != dtype or out.shape != shape:
        raise BadInput(f"out: give an array of {dtype} and shape {shape}")
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise BadInput("out: give an array that is contiguous, aligned and writeable")
    return out


def open_scorer(path: Path) -> Scorer:
    """The scorer in NAME.c, built if it is not in the cache."""
    module = _module(build_extension(path))
    return scorer_of(path.stem, module.lib, module.ffi, compiler().version)


def scorer_of(name: str, library: Any, ffi: Any, engine: str) -> Scorer:
    """The scorer called `name` in a loaded library, which describes itself."""
    import numpy as np

    def text(function: str, number: int) -> str:
        return str(ffi.string(getattr(library, f"{name}_{function}")(number)).decode("utf-8"))

    def constant(which: str) -> int:
        return int(getattr(library, f"{name}_{which}"))

    features = tuple(text("feature", f) for f in range(constant("FEATURES")))
    kind = getattr(library, f"{name}_label_kind")().decode("ascii")
    return Scorer(
        name=name,
        engine=engine,
        digest=ffi.string(getattr(library, f"{name}_digest")()).decode("ascii"),
        features=features,
        classes=tuple(_label(text("label", c), kind) for c in range(constant("CLASSES"))),
        is_tree=constant("LEAVES") > 0,
        real=np.dtype(np.float64 if constant("REAL_BITS") == 64 else np.float32),
        used=tuple(bool(getattr(library, f"{name}_uses")(f)) for f in range(len(features))),
        library=library,
        ffi=ffi,
        encoding=encoding_of(name, features, library),
    )


def _label(text: str, kind: str) -> Label:
    match kind:
        case "i":
            return int(text)
        case "f":
            return float(text)
        case "b":
            return text == "True"
        case _:
            return text


def _module(path: Path) -> Any:
    name = path.name.split(".")[0]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None  # noqa: S101 - a loader was given
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise CannotRun(f"{path}: the built scorer cannot be loaded: {error}, remove it and try again") from None
    return module


def as_predictor(scorer: Scorer) -> Predictor:
    """Batches of rows; one row at a time where there are no batches.

    For a float32 scorer rows are rounded to float32 first, as the predictor's `dtype` says. Single rows and columns
    are different code in the artifact: a check runs them too.
    """
    import numpy as np

    def by_rows(rows: Matrix) -> Answers:
        return _in_batches(scorer, np.ascontiguousarray(_as_scorer_type(scorer, rows)))

    def by_columns(rows: Matrix) -> Answers:
        return _in_batches(scorer, np.asfortranarray(_as_scorer_type(scorer, rows)))

    def one_by_one(rows: Matrix) -> Answers:
        numbers, scored, probabilities = scorer.one_by_one(_as_scorer_type(scorer, rows))
        return _answers(scorer, _labels(scorer, numbers), scored, probabilities)

    other: dict[str, Callable[[Matrix], Answers]] = {"columns": by_columns, "one row at a time": one_by_one}
    dtype: Literal["float64", "float32"] = "float32" if scorer.real.itemsize == 4 else "float64"
    answer = by_rows if scorer.has_batch else one_by_one
    predictor = Predictor(
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
    return predictor if scorer.encoding is None else takes_values(predictor, scorer.encoding)


def _as_scorer_type(scorer: Scorer, rows: Matrix) -> NDArray[Any]:
    import numpy as np

    if scorer.real.itemsize == 8:
        return rows
    with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
        return rows.astype(np.float32)


UNANSWERED = -1


def _in_batches(scorer: Scorer, rows: NDArray[Any]) -> Answers:
    """Detect rows that were not written: fresh memory may hold the right answers of another call."""
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
    """The batch kernels over columns in place; a tree's probabilities are looked up class by class."""
    import numpy as np

    of_leaf = scorer.leaf_probabilities() if scorer.is_tree else None

    def answer(columns: Sequence[Any], count: int) -> tuple[NDArray[np.int32], Sequence[NDArray[np.float64]]]:
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            read = [
                np.ascontiguousarray(column, dtype=scorer.real) if used and column is not None else None
                for column, used in zip(columns, scorer.used, strict=True)
            ]
        table = Columns(tuple(read), count)
        scored = scorer.score(table)
        if of_leaf is not None:
            return scorer.predict(table), [np.take(shares, scored) for shares in of_leaf.T]
        return scorer.predict(table), tuple(scorer.probabilities_of(scored).T)

    return ByColumn(scorer.used, answer)
