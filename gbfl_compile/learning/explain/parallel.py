"""Many rows explained, one unit at a time, by one worker or many; a folder can keep each finished unit."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import cloudpickle
import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.learning.black_box import BlackBox, Matrix
from gbfl_compile.learning.explain import BY_ROW, Explainer, Explanations, checkpoints
from gbfl_compile.learning.explain.checkpoints import Unit, rows_per_unit, units_of
from gbfl_compile.learning.explain.domain import Domain
from gbfl_compile.learning.explain.search import ExplainerSettings

LARGEST = 32 * 2**20 - 2**16
"""Just below the largest allocation that glibc may learn to keep (on 64 bits)."""


@functools.cache  # once per process
def keep_freed_memory() -> None:
    """Have the allocator keep freed memory for the next array of that size.

    glibc returns a large allocation to the system when it is freed, and is handed every page of the next one anew. It
    learns what counts as large from the largest allocation freed so far, so one is freed here. It is never written to
    and takes no memory. Without this the first ten thousand rows that a process explains cost more each than later
    ones; with it they cost about the same (`python -m tests.bench mine_scale`). Other allocators are unaffected.
    """
    np.empty(LARGEST, dtype=np.uint8)


Finished: TypeAlias = tuple[Unit, Explanations]
Work: TypeAlias = tuple[Explainer, BlackBox, Domain]

Parcel: TypeAlias = tuple[NDArray[np.uint8], str]
"""The pickled Work and its digest. In a tuple, because joblib leaves a bare array with a single Dask worker and loses
it when that worker ends; as an array, because loky maps an array into memory where it would copy bytes."""

PATIENCE = 3
"""How often in a row workers may die without finishing a unit."""


def explain_by_methods(
    explainers: Mapping[str, Explainer],
    black_box: BlackBox,
    x: Matrix,
    domain: Domain,
    *,
    folder: str | os.PathLike[str] | None,
    **how: Any,
) -> dict[str, Explanations]:
    """The rows explained by each method, one after the other; each of several keeps its rows in a folder of its own."""
    folders = {
        name: None if folder is None else Path(folder, name if len(explainers) > 1 else "") for name in explainers
    }
    return {
        name: explain_in_units(explainer, black_box, x, domain, folder=folders[name], **how)
        for name, explainer in explainers.items()
    }


def explain_in_units(
    explainer: Explainer,
    black_box: BlackBox,
    x: Matrix,
    domain: Domain,
    *,
    folder: str | Path | None = None,
    n_jobs: int | None = None,
    at_once: int | None = None,
    unit_rows: int | None = None,
    name: str | None = None,
    tell: Callable[[], None] = lambda: None,
) -> Explanations:
    """What `explainer(black_box, x, domain)` answers, one unit of rows at a time.

    `n_jobs` workers of joblib's backend explain side by side; `at_once` limits how many units are under way, where
    other work goes on beside them. Neither changes a bit of the answer: the black box is always queried with the same
    `unit_rows` rows together. Another `unit_rows` may change a last bit, where the black box's libraries round a row
    differently in blocks of another size. A query budget is spent in the order of rows, as by one call. `tell` is
    called for each finished unit.

    A `folder` keeps units as they are finished, with a description of the rows, the domain, the explainer with its
    settings, and the black box's answers to a few rows; units of anything else are kept apart. The same call, with any
    number of workers, continues with what is missing. An explainer is recognised by its function and settings, as in
    `partial(explain_greedily, settings=Greedy(kappa=0.3))`; a lambda or an object needs a `name` that changes when
    it does.
    """
    size = rows_per_unit(len(x)) if unit_rows is None else unit_rows
    if size < 1:
        raise BadInput(f"unit_rows {size} is not a positive number of rows")
    home = None if folder is None else Path(folder)
    if home is not None:
        home = checkpoints.claim_folder(home, checkpoints.describe_work(explainer, black_box, x, domain, size, name))
    units, collection, spent = units_of(len(x), size), _Collection(x, {}), dict[Unit, int]()

    def add(unit: Unit, explanations: Explanations) -> None:
        collection.put(unit, explanations)
        spent[unit] = explanations.queries
        tell()

    for unit in units:
        if home is not None and (explanations := checkpoints.load_unit(home, unit, x[unit.rows])) is not None:
            add(unit, explanations)
    try:
        while len(spent) < len(units):
            limited, ready = next_units(explainer, units, spent, domain)
            for unit, explanations in _explain_units((limited, black_box, domain), x, ready, n_jobs, at_once):
                if home is not None:
                    checkpoints.save_unit(home, unit, explanations)
                add(unit, explanations)
    except GbflError as error:
        raise type(error)(f"{error}{_progress_note(spent, home, len(x))}") from error
    return collection.whole(sum(spent.values()))


def next_units(
    explainer: Any, units: Sequence[Unit], spent: Mapping[Unit, int], domain: Domain
) -> tuple[Any, tuple[Unit, ...]]:
    """The next units that can be explained side by side, and the explainer to do so.

    Without a query budget these are all that are not in `spent`. A budget is spent in the order of rows, so only units
    that are sure to fit whole go side by side, regardless of what those before them cost. Where not even one is sure to
    fit, the next goes alone with exactly what is left.
    """
    missing = tuple(unit for unit in units if unit not in spent)
    settings = _settings_of(explainer)
    if settings is None or settings.max_queries is None:
        return explainer, missing
    dearest, total, at_most, sure = settings.dearest(domain), units[-1].end, 0, []
    for unit in units:
        rows = unit.end - unit.begin
        left = settings.max_queries - at_most - (total - unit.end)  # a query for the class of each row still to come
        if unit in spent:
            at_most += spent[unit]
        elif left >= rows + rows * dearest:
            sure.append(unit)
            at_most += rows + rows * dearest
        elif sure:
            break
        else:
            return _with_queries(explainer, left), (unit,)
    return _with_queries(explainer, None), tuple(sure)


def _settings_of(explainer: Any) -> ExplainerSettings | None:
    if not isinstance(explainer, partial):
        return None
    arguments = (*explainer.args, *explainer.keywords.values())
    return next((value for value in arguments if isinstance(value, ExplainerSettings)), None)


def _with_queries(explainer: Any, most: int | None) -> Any:
    def limit(value: Any) -> Any:
        return replace(value, max_queries=most) if isinstance(value, ExplainerSettings) else value

    keywords = {key: limit(value) for key, value in explainer.keywords.items()}
    return partial(explainer.func, *(limit(value) for value in explainer.args), **keywords)


def _explain_units(
    work: Work, x: Matrix, units: Sequence[Unit], n_jobs: int | None, at_once: int | None
) -> Iterator[Finished]:
    """Each unit with its explanations when it is finished: in order with one worker, in any order with several."""
    if joblib.effective_n_jobs(n_jobs) == 1 or len(units) <= 1:
        explainer, black_box, domain = work
        keep_freed_memory()
        with threadpool_limits(1):
            for unit in units:
                yield unit, explainer(black_box, x[unit.rows], domain)
        return
    left = dict.fromkeys(units)
    parcel = None if getattr(get_active_backend()[0], "supports_sharedmem", False) else _pack(work)
    in_vain = 0
    while left:
        before = len(left)
        try:
            for unit, explanations in _distribute(work, parcel, x, tuple(left), n_jobs, at_once):
                del left[unit]
                work[1].queries += explanations.queries
                yield unit, explanations
        except (BrokenProcessPool, CancelledError) as error:  # Dask cancels what needs data of a worker that died
            in_vain = in_vain + 1 if len(left) == before else 0
            if in_vain == PATIENCE:
                raise CannotRun(
                    f"the worker processes die before they finish {units[0].end - units[0].begin} rows, most likely "
                    f"for lack of memory; give fewer jobs: {(str(error) or 'cancelled').splitlines()[0]}"
                ) from None


def _distribute(
    work: Work, parcel: Parcel | None, x: Matrix, units: Sequence[Unit], n_jobs: int | None, at_once: int | None
) -> Iterator[Finished]:
    def tasks(some: Sequence[Unit]) -> Iterator[Any]:
        for unit in some:
            rows = np.ascontiguousarray(x[unit.rows])
            if parcel is None:
                yield joblib.delayed(_explain_here)(work, unit, rows)
            else:
                yield joblib.delayed(_explain_in_worker)(parcel, unit, rows)

    try:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=at_once or "2*n_jobs")
    except ValueError:  # this backend, such as Ray's, hands over all its results at the end: a few units each time
        together = at_once or 2 * joblib.effective_n_jobs(n_jobs)
        for begin in range(0, len(units), together):
            yield from joblib.Parallel(n_jobs=n_jobs)(tasks(units[begin : begin + together]))
        return
    yield from parallel(tasks(units))


def _pack(work: Work) -> Parcel:
    explainer, black_box, domain = work
    try:
        content = cloudpickle.dumps(
            (explainer, replace(black_box, queries=0), domain), protocol=pickle.HIGHEST_PROTOCOL
        )
    except Exception as error:  # the model may hold anything: an open connection, a lock, a session
        raise CannotRun(
            f"the black box cannot be sent to other processes, use one job: {type(error).__name__}: {error}"
        ) from None
    return np.frombuffer(content, dtype=np.uint8), hashlib.sha256(content).hexdigest()


_LAST_PARCEL: dict[str, Work] = {}
"""The last Work that was sent to this process: unpickling it for every unit would cost more than the unit."""


def _open_parcel(parcel: Parcel) -> Work:
    content, digest = parcel
    work = _LAST_PARCEL.get(digest)
    if work is None:
        try:
            work = pickle.loads(content.tobytes())  # noqa: S301 - we packed it ourselves
        except Exception as error:  # the worker imports its own modules
            raise CannotRun(
                f"a worker cannot open the black box it was sent: {type(error).__name__}: {error}"
            ) from None
        _LAST_PARCEL.clear()
        _LAST_PARCEL[digest] = work
    return work


def _explain_in_worker(parcel: Parcel, unit: Unit, rows: Matrix) -> Finished:
    if type(multiprocessing.current_process()).__name__ == "LokyProcess":
        _end_with_parent()
    return _explain_here(_open_parcel(parcel), unit, rows)


@functools.cache  # one watch per process
def _end_with_parent() -> None:
    """End this process when its parent is killed: nothing waits for its work, which may take hours."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()


def _explain_here(work: Work, unit: Unit, rows: Matrix) -> Finished:
    explainer, black_box, domain = work
    keep_freed_memory()
    own = replace(black_box, queries=0)  # each unit counts its own queries: threads share the black box
    with threadpool_limits(1):
        return unit, explainer(own, rows, domain)


@dataclass(slots=True)
class _Collection:
    """Arrays of all rows that finished units are copied into, so that no unit is held twice.

    Not frozen, for the sake of the counts.
    """

    x: Matrix
    columns: dict[str, NDArray[Any]]
    features: tuple[str, ...] = ()
    not_reached: int = 0

    def put(self, unit: Unit, explanations: Explanations) -> None:
        for name in BY_ROW:
            values = getattr(explanations, name)
            if name not in self.columns:
                self.columns[name] = np.empty((len(self.x), *values.shape[1:]), dtype=values.dtype)
            self.columns[name][unit.rows] = values
        self.features = explanations.features
        self.not_reached += explanations.not_reached

    def whole(self, queries: int) -> Explanations:
        return Explanations(
            x=self.x, **self.columns, queries=queries, features=self.features, not_reached=self.not_reached
        )


def _progress_note(spent: Mapping[Unit, int], folder: Path | None, rows: int) -> str:
    """For an error message; empty where nothing is kept."""
    if folder is None:
        return ""
    done = sum(unit.end - unit.begin for unit in spent)
    return f" ({done} of {rows} rows are kept in {folder}: the same call goes on from there)"
