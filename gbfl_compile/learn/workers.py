"""Units of rows explained side by side by joblib: processes of this machine, or the user's own Dask or Ray cluster.

    with joblib.parallel_config(backend="dask"):
        model.fit(X, y)

Each unit is asked by one thread, wherever that is, so that the number of threads changes no bit either.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from typing import Any, TypeAlias

import cloudpickle
import joblib
import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from gbfl_compile.errors import CannotRun
from gbfl_compile.learn.black_box import BlackBox, Matrix
from gbfl_compile.learn.explain_domain import Domain
from gbfl_compile.learn.explanations import Explainer, Explanations
from gbfl_compile.learn.freed_blocks import keep_freed_blocks
from gbfl_compile.learn.units import Unit, in_chunks

Finished: TypeAlias = tuple[Unit, Explanations]
Asking: TypeAlias = tuple[Explainer, BlackBox, Domain]

Parcel: TypeAlias = tuple[NDArray[np.uint8], str]
"""What asks, pickled, and its digest. In a tuple, because joblib leaves a bare array with one single Dask worker, and
with that worker's end it would be gone; as an array, because loky maps one into memory where it would copy bytes."""


PATIENCE = 3
"""So often in a row a worker may die before any unit is finished."""


def explained_units(
    asking: Asking,
    x: Matrix,
    units: Sequence[Unit],
    n_jobs: int | None,
    units_in_a_chunk: int,
    at_once: int | None = None,
) -> Iterator[Finished]:
    """Each unit with its explanations, as they are finished: in order by one worker, as it comes by several.

    `at_once` chunks are under way together, where that is less than the workers could do.
    """
    if joblib.effective_n_jobs(n_jobs) == 1 or len(units) <= 1:
        explainer, black_box, domain = asking
        keep_freed_blocks()
        with threadpool_limits(1):
            for unit in units:
                yield unit, explainer(black_box, x[unit.rows], domain)
        return
    left = dict.fromkeys(units)
    parcel = None if getattr(get_active_backend()[0], "supports_sharedmem", False) else _packed(asking)
    in_vain = 0
    while left:
        before = len(left)
        try:
            for unit, part in _spread(asking, parcel, x, tuple(left), n_jobs, units_in_a_chunk, at_once):
                del left[unit]
                asking[1].queries += part.queries
                yield unit, part
        except BrokenProcessPool as error:
            in_vain = in_vain + 1 if len(left) == before else 0
            if in_vain == PATIENCE:
                raise CannotRun(
                    f"the worker processes die before they finish {units[0].end - units[0].begin} rows, of too little "
                    f"memory most likely; give fewer jobs: {str(error).splitlines()[0]}"
                ) from None


def _spread(
    asking: Asking,
    parcel: Parcel | None,
    x: Matrix,
    units: Sequence[Unit],
    n_jobs: int | None,
    units_in_a_chunk: int,
    at_once: int | None,
) -> Iterator[Finished]:
    chunks = tuple(in_chunks(units, units_in_a_chunk))

    def tasks(some: Sequence[tuple[Unit, ...]]) -> Iterator[Any]:
        for chunk in some:
            rows = [np.ascontiguousarray(x[unit.rows]) for unit in chunk]
            if parcel is None:
                yield joblib.delayed(_explained_here)(asking, chunk, rows)
            else:
                yield joblib.delayed(_explained_there)(parcel, chunk, rows)

    try:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch=at_once or "2*n_jobs")
    except ValueError:  # this backend, Ray's for one, hands over all its results at the end: a few chunks each time
        together = at_once or 2 * joblib.effective_n_jobs(n_jobs)
        for begin in range(0, len(chunks), together):
            some = chunks[begin : begin + together]
            yield from itertools.chain.from_iterable(joblib.Parallel(n_jobs=n_jobs)(tasks(some)))
        return
    yield from itertools.chain.from_iterable(parallel(tasks(chunks)))


def _packed(asking: Asking) -> Parcel:
    explainer, black_box, domain = asking
    try:
        content = cloudpickle.dumps(
            (explainer, replace(black_box, queries=0), domain), protocol=pickle.HIGHEST_PROTOCOL
        )
    except Exception as error:  # whatever the model holds: an open connection, a lock, a session
        raise CannotRun(
            f"the black box cannot be sent to other processes, ask it with one job: {type(error).__name__}: {error}"
        ) from None
    return np.frombuffer(content, dtype=np.uint8), hashlib.sha256(content).hexdigest()


_OPENED: dict[str, Asking] = {}
"""The last parcel this process was sent: opening it for every chunk would cost more than the chunk."""


def _opened(parcel: Parcel) -> Asking:
    content, digest = parcel
    found = _OPENED.get(digest)
    if found is None:
        try:
            found = pickle.loads(content.tobytes())  # noqa: S301 - we packed it ourselves
        except Exception as error:  # what is imported there is the worker's own
            raise CannotRun(
                f"a worker cannot open the black box it was sent: {type(error).__name__}: {error}"
            ) from None
        _OPENED.clear()
        _OPENED[digest] = found
    return found


def _explained_there(parcel: Parcel, chunk: tuple[Unit, ...], rows: list[Matrix]) -> list[Finished]:
    """In a worker: the units of one chunk."""
    if type(multiprocessing.current_process()).__name__ == "LokyProcess":
        _end_with_parent()
    return _explained_here(_opened(parcel), chunk, rows)


@functools.cache  # one watch a process
def _end_with_parent() -> None:
    """End this process when the one that started it was killed: nobody waits for its work, and it may take hours."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end with parent").start()


def _explained_here(asking: Asking, chunk: tuple[Unit, ...], rows: list[Matrix]) -> list[Finished]:
    explainer, black_box, domain = asking
    keep_freed_blocks()
    own = replace(black_box, queries=0)  # each chunk counts its own queries: threads share the black box
    with threadpool_limits(1):
        return [(unit, explainer(own, part, domain)) for unit, part in zip(chunk, rows, strict=True)]
