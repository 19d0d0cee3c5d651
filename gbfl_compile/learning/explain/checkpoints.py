"""Units of rows, and a folder that keeps those explained: after an error or a kill the same call continues from there.

A unit is the rows that are explained, counted and kept together. Units are cut at fixed places of the table. Libraries
for matrix products round a row differently in blocks of different sizes, so the rows queried along with it decide the
last bit of a row's answer. With fixed units the number of workers changes nothing the black box is asked, and so no bit
of what it answers. One run at a time uses a folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import make_folder, write_whole
from gbfl_compile.learning.black_box import SAME_ANSWER, BlackBox, Matrix, probabilities
from gbfl_compile.learning.explain import Explainer, Explanations, load_explanations, save_explanations
from gbfl_compile.learning.explain.domain import Domain
from gbfl_compile.learning.explain.table_values import TableValues

UNIT_ROWS = 1000
MANY_ROWS = 20_000
"""Tables with more rows have units four times as large: larger blocks cost the black box less per row."""
PROBES = 8
"""Rows queried at each start, to see that the black box is still the same."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """The rows from `begin` up to `end`."""

    begin: int
    end: int

    @property
    def rows(self) -> slice:
        """Their place in the table."""
        return slice(self.begin, self.end)


def rows_per_unit(rows: int) -> int:
    """The size of a unit in a table with this many rows."""
    return UNIT_ROWS if rows <= MANY_ROWS else 4 * UNIT_ROWS


def units_of(rows: int, unit_rows: int) -> tuple[Unit, ...]:
    """The units of a table; one empty unit where there are no rows.

    >>> units_of(5, 2)
    (Unit(begin=0, end=2), Unit(begin=2, end=4), Unit(begin=4, end=5))
    """
    return tuple(Unit(begin, min(rows, begin + unit_rows)) for begin in range(0, max(1, rows), unit_rows))


def describe_work(
    explainer: Explainer, black_box: BlackBox, x: Matrix, domain: Domain, unit_rows: int, name: str | None
) -> dict[str, Any]:
    """Everything that decides the explanations: rows, domain, explainer with its settings, a few answers."""
    few = x[np.unique(np.linspace(0, max(0, len(x) - 1), PROBES).astype(np.int64))] if len(x) else x
    return {
        "rows": _digest(np.array(x.shape, dtype="<i8"), x.astype("<f8", copy=False)),
        "domain": _digest(*(array.astype("<f8") for array in (domain.base, domain.lower, domain.upper)))
        + repr((domain.features, domain.immutable, domain.directions, domain.kinds))
        + ("" if domain.table is None else _describe_table(domain.table))
        + ("" if domain.examples is None else _digest(domain.examples.rows, domain.examples.label)),
        "explainer": _identify(explainer) if name is None else name,
        "unit_rows": unit_rows,
        "answers": probabilities(black_box, few).tolist(),
    }


def _describe_table(table: TableValues) -> str:
    pairs = [array for pair in table.pairs for array in (np.array((pair.first, pair.second)), pair.never)]
    return repr((table.columns, table.missing)) + _digest(*table.values, table.widths, table.steps, *pairs)


def _digest(*arrays: Any) -> str:
    content = hashlib.sha256()
    for array in arrays:
        content.update(np.ascontiguousarray(array).data)
    return content.hexdigest()


def _identify(explainer: Any) -> str:
    """A name that changes when the explainer or one of its settings does.

    It includes the module, so a folder of a version that kept its explainers elsewhere is refused.
    """
    if isinstance(explainer, partial):
        arguments = [repr(value) for value in explainer.args]
        arguments += [f"{key}={value!r}" for key, value in sorted(explainer.keywords.items())]
        text = f"{_identify(explainer.func)}({', '.join(arguments)})"
    else:
        text = f"{getattr(explainer, '__module__', '?')}.{getattr(explainer, '__qualname__', repr(explainer))}"
    if "<" in text:  # a lambda, a closure, or an object known by its address only
        raise BadInput(f"explainer {text} cannot be recognised in another run: give it a name=")
    return text


def claim_folder(folder: Path, work: dict[str, Any]) -> Path:
    """Where this work is kept: in `folder`, or beside other work in a folder below it.

    Another black box, other rows or settings neither stop this work nor are mixed up with it: a run that failed
    never blocks the next.
    """
    for number in count(1):
        home = folder if number == 1 else folder / f"other-{number}"
        note = home / "about.json"
        if not note.exists():
            if home.exists() and (not home.is_dir() or not all(_is_unfinished_note(path) for path in home.iterdir())):
                raise BadInput(f"{home}: is not a folder of explained rows: give an empty folder or a new one")
            write_whole(note, json.dumps(work, indent=1).encode())
            return home
        if _is_same_work(note, work):
            return home
    raise AssertionError  # numbers do not end


def _is_unfinished_note(file: Path) -> bool:
    """A description that was being written when its process was killed."""
    return file.name.startswith(".about.json.") and file.suffix == ".json"


def _is_same_work(note: Path, work: dict[str, Any]) -> bool:
    """Whether a folder's note describes this work. One that cannot be read describes some other."""
    try:
        earlier = json.loads(note.read_text(encoding="utf-8"))
        answers = np.array(earlier["answers"], dtype=np.float64)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    now = np.array(work["answers"], dtype=np.float64)
    same_answers = now.shape == answers.shape and bool((np.abs(now - answers) <= SAME_ANSWER).all())
    return same_answers and all(earlier.get(key) == work[key] for key in work if key != "answers")


def _file(folder: Path, unit: Unit) -> Path:
    return folder / f"rows-{unit.begin:09d}-{unit.end:09d}.npz"


def save_unit(folder: Path, unit: Unit, explanations: Explanations) -> None:
    """Write one unit, whole or not at all. Not compressed: that took a tenth of the time of explaining."""
    save_explanations(_file(folder, unit), explanations, compressed=False)


def load_unit(folder: Path, unit: Unit, rows: Matrix) -> Explanations | None:
    """The unit as it was saved, None where it was not."""
    file = _file(folder, unit)
    if not file.exists():
        return None
    explanations = load_explanations(file)
    if not np.array_equal(explanations.x, rows, equal_nan=True):
        raise BadInput(f"{file}: holds other rows than its name says: remove it to explain them again")
    return explanations


LOCK = ".lock"


def default_checkpoint(out: Path) -> Path:
    """Where explained rows are kept until `out` is written."""
    return out.with_name(f"{out.name}.parts")


def explained_files(folder: Path) -> int:
    """How many files of explained rows a checkpoint holds."""
    return len(list(folder.glob("*/**/rows-*.npz")))


@contextlib.contextmanager
def checkpoint_folder(folder: Path, *, keep: bool) -> Iterator[None]:
    """Hold `folder` while the block runs. Unless `keep`, explained rows are removed once the block has succeeded.

    Whatever else stops the block, they stay, and the same run resumes from them. An empty folder is removed.
    """
    make_folder(folder)
    try:
        with only_one(folder):
            yield
            if not keep:
                _remove_explained(folder)
    except KeyboardInterrupt:
        if not keep and not explained_files(folder):
            _remove_explained(folder)
        raise
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _remove_explained(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for part in ("training", "test"):
            shutil.rmtree(folder / part)


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Lock the folder while the block runs; CannotRun where another process has. A killed process holds no lock."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; there the user must take care
        yield
        return
    file = folder / LOCK
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 20).decode("ascii", "replace").strip()
            raise CannotRun(
                f"{folder}: another gbfl mine, process {holder or 'unknown'}, keeps its explained rows there: "
                "wait for it, or name another folder with --checkpoint"
            ) from None
        if not _still_there(handle, file):
            raise CannotRun(f"{folder}: another gbfl mine has just finished with it: run the same command again")
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only its holder stays unnamed
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        if _still_there(handle, file) and _is_ours(handle):
            file.unlink(missing_ok=True)
        os.close(handle)


def _still_there(handle: int, file: Path) -> bool:
    """Whether the file that was opened is the one that has the name now: its holder may have removed it since."""
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except OSError:
        return False


def _is_ours(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
