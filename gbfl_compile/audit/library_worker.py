"""Loads a foreign library and asks it about each row. Runs alone: `library_worker.py LIBRARY NAME FOLDER`.

Standard library only, so that it can run isolated (`python -I`). In FOLDER it finds `order.json` and `rows.bin`, and
keeps `answers.bin` up to date while it runs: what was reached is known even if the process does not come back.
Numbers of `answers.bin`, 64 bits each: where it is, then an answer a row, then the answers of a second pass backwards.

A library that tells a digest has the functions of an emitted one, and those are asked too: probabilities, scores and
leaves of each row into `probabilities.bin`, `scores.bin` and `leaves.bin`, and whole batches into a file a function.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import resource
import struct
import sys
from pathlib import Path
from typing import Any

NO_ANSWER = -(2**63)
LOADING, LOADED = -2, -1
MEMORY = 2 << 30
FILE_SIZE = 256 << 20


def main(library: str, name: str, folder: Path) -> None:
    """Load, run every row forwards and backwards, then ask for the names."""
    order = json.loads((folder / "order.json").read_text())
    rows, width = order["rows"], order["features"]
    _set_limits()
    answers = _mapped(folder / "answers.bin").cast("q")
    answers[0] = LOADING
    try:
        loaded = ctypes.CDLL(library)
        predict = getattr(loaded, f"{name}_predict")
    except (OSError, AttributeError) as error:
        _tell(folder, {"problem": _problem(error, name)})
        return
    answers[0] = LOADED
    values = (folder / "rows.bin").read_bytes()
    real = ctypes.c_float if order["real"] == "float32" else ctypes.c_double
    emitted = hasattr(loaded, f"{name}_digest")
    beside = _beside(loaded, name, order["classes"], folder) if emitted else []
    _ask(predict, values, rows, width, real, answers, beside)
    told = {"flushes_denormals": flushes_denormals()}
    _tell(folder, told)
    told |= _names(loaded, name, width, order["classes"])
    _tell(folder, told)
    if emitted:
        _ask_batches(loaded, name, values, rows, width, real, order["classes"], folder, answers)
        _tell(folder, {**told, "batches_done": True})


class Beside:
    """A function of one row that fills `out` and returns a number; what it says goes into a file."""

    def __init__(self, function: Any, returned: Any, out: Any, kept: Any, keeps_returned: bool) -> None:
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p], returned
        self.function, self.out, self.kept, self.keeps_returned = function, out, kept, keeps_returned

    def ask(self, buffer: Any, row: int) -> None:
        """One row's answer."""
        returned = self.function(buffer, self.out)
        if self.keeps_returned:
            self.kept[row] = returned
            return
        width = len(self.out)
        for place, value in enumerate(self.out):
            self.kept[row * width + place] = value


def _beside(loaded: Any, name: str, classes: int, folder: Path) -> list[Beside]:
    """What else the library says of a row. Each has a file made for it, where the caller knows what to expect."""
    found = []
    for function, kind, letter, file in (
        ("predict_proba", ctypes.c_double * classes, "d", "probabilities.bin"),
        ("score", ctypes.c_int64 * classes, "q", "scores.bin"),
        ("explain", None, "q", "leaves.bin"),
    ):
        if hasattr(loaded, f"{name}_{function}") and (folder / file).exists():
            out = None if kind is None else kind()
            returned = ctypes.c_int32 if kind is None else ctypes.c_int
            kept: Any = _mapped(folder / file).cast(letter)  # type: ignore[call-overload]  # one of two letters
            found.append(Beside(getattr(loaded, f"{name}_{function}"), returned, out, kept, kind is None))
    return found


def _mapped(path: Path) -> memoryview:
    with path.open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0))


def _ask(
    predict: Any, values: bytes, rows: int, width: int, real: Any, answers: memoryview, beside: list[Beside]
) -> None:
    """Each row in a buffer that is filled afresh: a library that writes into its input spoils only its own."""
    predict.argtypes, predict.restype = [ctypes.c_void_p], ctypes.c_int
    buffer = (real * max(1, width))()
    size = ctypes.sizeof(real) * width
    for step in range(2 * rows):
        row = step if step < rows else 2 * rows - 1 - step
        answers[0] = step
        ctypes.memmove(buffer, values[row * size : (row + 1) * size], size)
        answers[1 + row + (0 if step < rows else rows)] = predict(buffer)
        for other in beside if step < rows else ():
            ctypes.memmove(buffer, values[row * size : (row + 1) * size], size)
            other.ask(buffer, row)
    answers[0] = 2 * rows


BATCHES = {"predict": ctypes.c_int32, "leaf": ctypes.c_int32, "score": ctypes.c_int64}
"""What the functions on many rows give: `NAME_predict_rows`, `NAME_predict_columns` and so on."""


def _ask_batches(
    loaded: Any, name: str, values: bytes, rows: int, width: int, real: Any, classes: int, folder: Path, answers: Any
) -> None:
    """All rows at once, side by side and column by column: other code than that for one row."""
    whole = (real * max(1, rows * width)).from_buffer_copy(values.ljust(ctypes.sizeof(real)))
    columns = [(real * max(1, rows))(*whole[place : rows * width : width]) for place in range(width)]
    pointers = (ctypes.c_void_p * max(1, width))(*(ctypes.addressof(column) for column in columns))
    for step, (what, number) in enumerate((what, number) for what in BATCHES for number in ("rows", "columns")):
        function = getattr(loaded, f"{name}_{what}_{number}", None)
        if function is None:
            continue
        answers[0] = 2 * rows + 1 + step
        out = (BATCHES[what] * max(1, rows * (classes if what == "score" else 1)))()
        function.restype = None
        if number == "rows":
            function(whole, ctypes.c_size_t(rows), ctypes.c_ssize_t(width), out)
        else:
            function(pointers, ctypes.c_size_t(rows), out)
        (folder / f"{what}_{number}.bin").write_bytes(bytes(out))
    answers[0] = 2 * rows


def _set_limits() -> None:
    """No core files, no endless memory, no endless files."""
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE)):
        _, hard = resource.getrlimit(what)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit of memory
            resource.setrlimit(what, (allowed, allowed))


def flushes_denormals() -> bool:
    """Whether arithmetic here takes the smallest numbers for zero, as -ffast-math sets it for a whole process."""
    (tiny,) = struct.unpack("<d", struct.pack("<q", 1))
    (least_normal,) = struct.unpack("<d", struct.pack("<q", 1 << 52))
    return bool(tiny + 0.0 == 0.0 or least_normal * 0.5 == 0.0)


def _names(loaded: Any, name: str, width: int, classes: int) -> dict[str, Any]:
    """What the library says it is, as far as it has the functions to say it."""
    return {
        "digest": next(iter(_texts(loaded, f"{name}_digest", [()])), None),
        "features": _texts(loaded, f"{name}_feature", [(number,) for number in range(width)]),
        "labels": _texts(loaded, f"{name}_label", [(number,) for number in range(classes)]),
    }


def _texts(loaded: Any, function: str, calls: list[tuple[int, ...]]) -> list[str | None]:
    found = getattr(loaded, function, None)
    if found is None:
        return []
    found.restype = ctypes.c_char_p
    texts = [found(*call) for call in calls]
    return [None if text is None else text.decode("utf-8", "replace")[:10_000] for text in texts]


def _problem(error: Exception, name: str) -> str:
    if isinstance(error, AttributeError):
        return f"it has no function {name}_predict: give the name the scorer was emitted under"
    return f"it cannot be loaded: {(str(error).splitlines() or ['no reason told'])[0][:300]}"


def _tell(folder: Path, form: dict[str, Any]) -> None:
    """Whole or not at all, as the parent may read it after a crash."""
    partial = folder / "told.partial"
    partial.write_text(json.dumps(form))
    partial.replace(folder / "told.json")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
