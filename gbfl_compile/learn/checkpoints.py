"""A folder that keeps finished units of explained rows: after an error or a kill the same call goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.files import write_whole
from gbfl_compile.learn.black_box import SAME_ANSWER, BlackBox, Matrix, probabilities
from gbfl_compile.learn.explain_domain import Domain
from gbfl_compile.learn.explain_files import load_explanations, save_explanations
from gbfl_compile.learn.explanations import Explainer, Explanations
from gbfl_compile.learn.units import Unit

PROBES = 8
"""So many rows are asked at each start, to see that the black box is still the same."""


def about(
    explainer: Explainer, black_box: BlackBox, x: Matrix, domain: Domain, unit_rows: int, name: str | None
) -> dict[str, Any]:
    """All that decides what is explained: rows, domain, explainer with its settings, a few answers."""
    few = x[np.unique(np.linspace(0, max(0, len(x) - 1), PROBES).astype(np.int64))] if len(x) else x
    return {
        "rows": _digest(np.array(x.shape, dtype="<i8"), x.astype("<f8", copy=False)),
        "domain": _digest(*(array.astype("<f8") for array in (domain.base, domain.lower, domain.upper)))
        + repr((domain.features, domain.immutable, domain.directions, domain.kinds)),
        "explainer": _named(explainer) if name is None else name,
        "unit_rows": unit_rows,
        "answers": probabilities(black_box, few).tolist(),
    }


def _digest(*arrays: Any) -> str:
    seen = hashlib.sha256()
    for array in arrays:
        seen.update(np.ascontiguousarray(array).data)
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


def settle(place: Path, now: dict[str, Any]) -> None:
    """Make the folder ours, or see that it already is."""
    file = place / "about.json"
    if not file.exists():
        if place.exists() and (not place.is_dir() or any(not _left_behind(found) for found in place.iterdir())):
            raise BadInput(f"{place}: is not a folder of explained chunks: give an empty folder or a new one")
        write_whole(file, json.dumps(now, indent=1).encode())
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        answers = np.array(before["answers"], dtype=np.float64)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{file}: cannot be read as the note of explained chunks: {error}") from None
    for what in _differences(before, now, answers):
        raise BadInput(
            f"{place}: holds chunks of {what}: remove it to begin anew, or name another folder (--checkpoint)"
        )


def _left_behind(file: Path) -> bool:
    """A note that was being written when its process was killed."""
    return file.name.startswith(".about.json.") and file.suffix == ".json"


def _differences(before: dict[str, Any], now: dict[str, Any], answers: Matrix) -> Iterator[str]:
    for key, what in (("rows", "other rows"), ("domain", "another domain")):
        if before.get(key) != now[key]:
            yield what
    for key in ("explainer", "unit_rows"):
        if before.get(key) != now[key]:
            yield f"{key} {before.get(key)}, and this call has {now[key]}"
    probed = np.array(now["answers"], dtype=np.float64)
    if probed.shape != answers.shape or (np.abs(probed - answers) > SAME_ANSWER).any():
        yield "a black box that answers otherwise"


def _file(place: Path, unit: Unit) -> Path:
    return place / f"rows-{unit.begin:09d}-{unit.end:09d}.npz"


def keep(place: Path, unit: Unit, part: Explanations) -> None:
    """Write one unit, whole or not at all. Not compressed: that took a tenth of the time of explaining."""
    save_explanations(_file(place, unit), part, compressed=False)


def kept(place: Path, unit: Unit, rows: Matrix) -> Explanations | None:
    """The unit as it was kept, None where it was not."""
    file = _file(place, unit)
    if not file.exists():
        return None
    part = load_explanations(file)
    if not np.array_equal(part.x, rows):
        raise BadInput(f"{file}: holds other rows than its name says: remove it to explain them again")
    return part
