"""Long explaining in chunks that are kept: after an error or a kill the same call goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.files import write_whole
from gbfl_compile.learn.black_box import SAME_ANSWER, BlackBox, Matrix, probabilities
from gbfl_compile.learn.explain_domain import Domain
from gbfl_compile.learn.explain_rows import Wanted
from gbfl_compile.learn.explanations import Explainer, Explanations, concatenate

PROBES = 8
"""So many rows are asked at each start, to see that the black box is still the same."""


def explain_in_chunks(
    explainer: Explainer,
    black_box: BlackBox,
    x: Matrix,
    domain: Domain,
    *,
    chunk_rows: int,
    folder: str | Path,
    name: str | None = None,
) -> Explanations:
    """What `explainer(black_box, x, domain)` answers, each chunk of rows kept in `folder` as it is finished.

    The folder remembers the rows, the domain, the explainer with its settings, and the black box's answers to
    a few rows; chunks of anything else are refused. An explainer is known by its function and settings, as in
    `partial(explain_greedily, settings=Greedy(kappa=0.3))`; one that is not, a lambda or an object, needs a
    `name` that changes when it does. A query budget holds for all chunks together.

    Rows do not look at each other, so the answer is the same whatever `chunk_rows` is, to the bit where the
    black box answers a row alike in blocks of any size (libraries for matrix products round differently).
    """
    if chunk_rows < 1:
        raise BadInput(f"chunk_rows {chunk_rows} is not a positive number of rows")
    place = Path(folder)
    _settle(place, _about(explainer, black_box, x, domain, chunk_rows, name))
    parts: list[Explanations] = []
    for begin in range(0, max(1, len(x)), chunk_rows):
        rows = x[begin : begin + chunk_rows]
        kept = place / f"rows-{begin:09d}-{begin + len(rows):09d}.npz"
        if kept.exists():
            parts.append(_kept(kept, rows))
            continue
        left = _with_what_is_left(explainer, sum(part.queries for part in parts), len(x) - begin - len(rows))
        try:
            part = left(black_box, rows, domain)
        except GbflError as error:
            done = f"the {begin} rows before are kept in {place}: the same call goes on from there"
            raise type(error)(f"rows {begin} to {begin + len(rows)}: {error} ({done})") from error
        part.save(kept)
        parts.append(part)
    return concatenate(parts)


def _about(
    explainer: Explainer, black_box: BlackBox, x: Matrix, domain: Domain, chunk_rows: int, name: str | None
) -> dict[str, Any]:
    few = x[np.unique(np.linspace(0, max(0, len(x) - 1), PROBES).astype(np.int64))] if len(x) else x
    return {
        "rows": _digest(np.array(x.shape, dtype="<i8"), x.astype("<f8")),
        "domain": _digest(*(array.astype("<f8") for array in (domain.base, domain.lower, domain.upper)))
        + repr((domain.features, domain.immutable, domain.directions, domain.kinds)),
        "explainer": _named(explainer) if name is None else name,
        "chunk_rows": chunk_rows,
        "answers": probabilities(black_box, few).tolist(),
    }


def _digest(*arrays: Any) -> str:
    seen = hashlib.sha256()
    for array in arrays:
        seen.update(np.ascontiguousarray(array).tobytes())
    return seen.hexdigest()


def _named(explainer: Any) -> str:
    """A name that is another when the explainer or one of its settings is."""
    if isinstance(explainer, partial):
        given = [repr(value) for value in explainer.args] + [
            f"{k}={v!r}" for k, v in sorted(explainer.keywords.items())
        ]
        text = f"{_named(explainer.func)}({', '.join(given)})"
    else:
        text = f"{getattr(explainer, '__module__', '?')}.{getattr(explainer, '__qualname__', repr(explainer))}"
    if "<" in text:  # a lambda, a closure, or an object known by its address only
        raise BadInput(f"explainer {text} cannot be recognised in another run: give it a name=")
    return text


def _settle(place: Path, about: dict[str, Any]) -> None:
    """Make the folder ours, or see that it already is."""
    file = place / "about.json"
    if not file.exists():
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise BadInput(f"{place}: is not a folder of explained chunks: give an empty folder or a new one")
        write_whole(file, json.dumps(about, indent=1).encode())
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        answers = np.array(before["answers"], dtype=np.float64)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{file}: cannot be read as the note of explained chunks: {error}") from None
    for what in _differences(before, about, answers):
        raise BadInput(f"{place}: holds chunks of {what}: give another folder, or empty this one")


def _differences(before: dict[str, Any], about: dict[str, Any], answers: Matrix) -> Iterator[str]:
    for key, what in (("rows", "other rows"), ("domain", "another domain")):
        if before.get(key) != about[key]:
            yield what
    for key in ("explainer", "chunk_rows"):
        if before.get(key) != about[key]:
            yield f"{key} {before.get(key)}, and this call has {about[key]}"
    now = np.array(about["answers"], dtype=np.float64)
    if now.shape != answers.shape or (np.abs(now - answers) > SAME_ANSWER).any():
        yield "a black box that answers otherwise"


def _kept(file: Path, rows: Matrix) -> Explanations:
    part = Explanations.load(file)
    if not np.array_equal(part.x, rows):
        raise BadInput(f"{file}: holds other rows than its name says: remove it to explain them again")
    return part


def _with_what_is_left(explainer: Any, spent: int, rows_to_come: int) -> Any:
    """The explainer with the rest of its query budget, less a query for the class of each row still to come."""
    if not isinstance(explainer, partial):
        return explainer

    def rest(value: Any) -> Any:
        if not isinstance(value, Wanted) or value.max_queries is None:
            return value
        return replace(value, max_queries=value.max_queries - spent - rows_to_come)

    arguments = {key: rest(value) for key, value in explainer.keywords.items()}
    return partial(explainer.func, *(rest(value) for value in explainer.args), **arguments)
