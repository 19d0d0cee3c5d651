"""Many rows explained: unit by unit, by one or by many workers, each finished unit kept where a folder is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.learn import checkpoints
from gbfl_compile.learn.black_box import BlackBox, Matrix
from gbfl_compile.learn.explain_domain import Domain
from gbfl_compile.learn.explanations import BY_ROW, Explainer, Explanations
from gbfl_compile.learn.units import Unit, explainable_now, rows_in_a_unit, units_of
from gbfl_compile.learn.workers import explained_units


def explain_in_chunks(
    explainer: Explainer,
    black_box: BlackBox,
    x: Matrix,
    domain: Domain,
    *,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    at_once: int | None = None,
    chunk_rows: int | None = None,
    unit_rows: int | None = None,
    name: str | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Explanations:
    """What `explainer(black_box, x, domain)` answers, a unit of rows at a time.

    `n_jobs` workers of joblib's backend explain side by side, each given `chunk_rows` rows (whole units, one at
    least) at a time; where something else goes on beside them, `at_once` lets fewer work. None of these changes an
    answer, to the bit: the black box is asked about the same `unit_rows` rows together, whoever asks. Another
    `unit_rows` may change a last bit, where the black box answers a row otherwise in blocks of another size
    (libraries for matrix products round differently). A query budget is spent in the order of rows, as by one call.
    `tell` is called for each finished unit.

    A `folder` keeps the units as they are finished, and remembers the rows, the domain, the explainer with its
    settings, and the black box's answers to a few rows; units of anything else are refused. The same call, with
    any number of workers and chunks of any size, goes on with what is missing. An explainer is known by its function
    and settings, as in `partial(explain_greedily, settings=Greedy(kappa=0.3))`; one that is not, a lambda or an
    object, needs a `name` that changes when it does.
    """
    size = rows_in_a_unit(len(x)) if unit_rows is None else unit_rows
    for what, given in (("chunk_rows", chunk_rows), ("unit_rows", size)):
        if given is not None and given < 1:
            raise BadInput(f"{what} {given} is not a positive number of rows")
    place = None if folder is None else Path(folder)
    if place is not None:
        checkpoints.settle(place, checkpoints.about(explainer, black_box, x, domain, size, name))
    units, gathered, spent = units_of(len(x), size), _Gathered(x, {}), dict[Unit, int]()

    def add(unit: Unit, part: Explanations) -> None:
        gathered.put(unit, part)
        spent[unit] = part.queries
        tell()

    for unit in units:
        if place is not None and (part := checkpoints.kept(place, unit, x[unit.rows])) is not None:
            add(unit, part)
    together = max(1, (chunk_rows or size) // size)
    try:
        while len(spent) < len(units):
            explain, now = explainable_now(explainer, units, spent, domain)
            for unit, part in explained_units((explain, black_box, domain), x, now, n_jobs, together, at_once):
                if place is not None:
                    checkpoints.keep(place, unit, part)
                add(unit, part)
    except GbflError as error:
        raise type(error)(f"{error}{_what_is_kept(spent, place, len(x))}") from error
    return gathered.whole(sum(spent.values()))


@dataclass(slots=True)
class _Gathered:
    """Explanations put together in arrays of all rows: a unit is let go as soon as it is in its place.

    Not frozen for the sake of what is only counted.
    """

    x: Matrix
    columns: dict[str, NDArray[Any]]
    features: tuple[str, ...] = ()
    not_reached: int = 0

    def put(self, unit: Unit, part: Explanations) -> None:
        for name in BY_ROW:
            values = getattr(part, name)
            if name not in self.columns:
                self.columns[name] = np.empty((len(self.x), *values.shape[1:]), dtype=values.dtype)
            self.columns[name][unit.rows] = values
        self.features = part.features
        self.not_reached += part.not_reached

    def whole(self, queries: int) -> Explanations:
        return Explanations(
            x=self.x, **self.columns, queries=queries, features=self.features, not_reached=self.not_reached
        )


def _what_is_kept(spent: Mapping[Unit, int], place: Path | None, rows: int) -> str:
    """For an error message; nothing where nothing is kept."""
    if place is None:
        return ""
    done = sum(unit.end - unit.begin for unit in spent)
    return f" ({done} of {rows} rows are kept in {place}: the same call goes on from there)"
