"""Loads a foreign library and calls it on each row. Runs alone: `library_worker.py LIBRARY NAME FOLDER`.

Standard library only, so that it can run isolated (`python -I`). In FOLDER it finds `order.json` and `rows.bin`, and
keeps `answers.bin` up to date while it runs: what was reached is known even if the process does not come back.
Numbers of `answers.bin`, 64 bits each: where it is, then one answer per row, then those of a second pass backwards.

A library that reports a digest has the functions of an emitted one, and those are called too: what each fills for a row
and what it returns go into two files of its own, and whole batches into a file a function.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import resource
import struct
import sys
from dataclasses import dataclass
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
    answers = _map_file(folder / "answers.bin").cast("q")
    answers[0] = LOADING
    try:
        loaded = ctypes.CDLL(library)
        predict = getattr(loaded, f"{name}_predict")
    except (OSError, AttributeError) as error:
        _tell(folder, {"problem": _problem(error, name)})
        return
    answers[0] = LOADED
    real = ctypes.c_float if order["real"] == "float32" else ctypes.c_double
    codes = _codes(loaded, name, order["texts"], real)
    if codes is None:
        _tell(folder, {"problem": f"it has no function {name}_code, by which texts become numbers: nothing was run"})
        return
    values = _with_codes((folder / "rows.bin").read_bytes(), width, real, codes)
    emitted = hasattr(loaded, f"{name}_digest")
    beside = _beside(loaded, name, order, folder) if emitted else []
    _ask(predict, values, rows, width, real, answers, beside)
    report: dict[str, Any] = {"flushes_denormals": flushes_denormals()}
    _tell(folder, report)
    report |= _names(loaded, name, order)
    _tell(folder, report)
    if emitted:
        report |= {"uses": _uses(loaded, name, width), "leaf": _leaves(loaded, name, order)}
        report |= {"label_kind": _label_kind(loaded, name), "code": list(codes.values())}
        report |= {"kind": _kinds(loaded, name, width)} if codes else {}
        _tell(folder, report)
        _ask_batches(loaded, name, values, rows, width, real, order["classes"], folder, answers)
        _ask_probabilities(loaded, name, rows, order["classes"], folder)
        _tell(folder, {**report, "selftest": _selftest(loaded, name), "batches_done": True})


class Beside:
    """A function of one row that fills `out` and returns a number; both go into files."""

    def __init__(self, function: Any, returned: Any, out: Any, kept: memoryview, kept_returned: memoryview) -> None:
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_void_p], returned
        self.function, self.out, self.kept, self.kept_returned = function, out, kept, kept_returned
        self.width = len(kept) // max(1, len(kept_returned))

    def ask(self, buffer: Any, row: int) -> None:
        """One row's answer. What it does not fill holds a value that is no answer, not what the last row left there."""
        ctypes.memset(self.out, 0xA5, ctypes.sizeof(self.out))
        self.kept_returned[row] = self.function(buffer, self.out)
        self.kept[row * self.width : (row + 1) * self.width] = bytes(self.out)[: self.width]


ROOM = 4096
"""Extra words of memory: a library with more rules may fill more than expected."""


def _beside(loaded: Any, name: str, order: dict[str, Any], folder: Path) -> list[Beside]:
    """What else the library says of a row. Each has files made for it, where the caller knows what to expect."""
    found = []
    classes, words = order["classes"], order["held_words"]
    for function, returned, out in (
        ("predict_proba", ctypes.c_int, ctypes.c_double * classes),
        ("score", ctypes.c_int, ctypes.c_int64 * classes),
        ("explain", ctypes.c_int32, ctypes.c_uint32 * (words + ROOM)),
    ):
        files = folder / f"{function}.bin", folder / f"{function}_returned.bin"
        if hasattr(loaded, f"{name}_{function}") and files[0].exists():
            kept, kept_returned = _map_file(files[0]), _map_file(files[1]).cast("q")
            found.append(Beside(getattr(loaded, f"{name}_{function}"), returned, out(), kept, kept_returned))
    return found


def _map_file(path: Path) -> memoryview:
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

ROUNDS = ("", " in pieces", " one by one")
"""How often all rows are given to each of these, and how."""


PIECES = (2, 7, 300, 64)
"""Sizes of the repeated batches: a kernel has other code for rows that fill no block."""

GAP = 3
"""Values between one row and the next in the repeated batches."""


@dataclass
class Table:
    """All rows, one after another with a gap between them, and column by column."""

    real: Any
    rows: int
    width: int
    gap: int
    content: Any
    columns: list[Any]

    def ask(self, function: Any, number: str, out: Any, place: int, first: int, count: int) -> None:
        """What the function fills for some of the rows, from `place` bytes into `out` on."""
        size, stride = ctypes.sizeof(self.real), self.width + self.gap
        target = ctypes.c_void_p(ctypes.addressof(out) + place)
        if number == "rows":
            start = ctypes.c_void_p(ctypes.addressof(self.content) + first * stride * size)
            function(start, ctypes.c_size_t(count), ctypes.c_ssize_t(stride), target)
            return
        starts = (ctypes.addressof(column) + first * size for column in self.columns)
        function((ctypes.c_void_p * max(1, self.width))(*starts), ctypes.c_size_t(count), target)


def _table(values: bytes, rows: int, width: int, real: Any, gap: int) -> Table:
    size = ctypes.sizeof(real) * width
    parts = [values[row * size : (row + 1) * size] + b"\xff" * ctypes.sizeof(real) * gap for row in range(rows)]
    content = (real * max(1, rows * (width + gap))).from_buffer_copy(b"".join(parts).ljust(ctypes.sizeof(real)))
    columns = [(real * max(1, rows))(*content[place :: width + gap][:rows]) for place in range(width)]
    return Table(real, rows, width, gap, content, columns)


def _pieces(rows: int, sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """The first row and the number of rows of each call, the last first: what fills too much spoils an answer."""
    found, first, turn = [], 0, 0
    while first < rows:
        found.append((first, min(sizes[turn % len(sizes)], rows - first)))
        first, turn = first + found[-1][1], turn + 1
    return found[::-1]


def _ask_batches(
    loaded: Any, name: str, values: bytes, rows: int, width: int, real: Any, classes: int, folder: Path, answers: Any
) -> None:
    """All rows at once, in pieces and one by one, by rows and by columns: this code differs from that for one row."""
    close, apart = (_table(values, rows, width, real, gap) for gap in (0, GAP))
    rounds = ((close, [(0, rows)]), (apart, _pieces(rows, PIECES)), (apart, _pieces(rows, (1,))))
    for step, (what, number) in enumerate((what, number) for what in BATCHES for number in ("rows", "columns")):
        function = getattr(loaded, f"{name}_{what}_{number}", None)
        if function is None:
            continue
        answers[0] = 2 * rows + 1 + step
        function.restype = None
        size = ctypes.sizeof(BATCHES[what]) * (classes if what == "score" else 1)
        for words, (table, calls) in zip(ROUNDS, rounds, strict=True):
            out = ctypes.create_string_buffer(b"\xa5" * max(1, rows * size), max(1, rows * size) + ROOM)
            for first, count in calls:
                table.ask(function, number, out, first * size, first, count)
            (folder / f"{what}_{number}{words}.bin").write_bytes(out.raw[: rows * size])
    answers[0] = 2 * rows


def _ask_probabilities(loaded: Any, name: str, rows: int, classes: int, folder: Path) -> None:
    """The probabilities of many rows by their points, for those points that the library itself has given."""
    function = getattr(loaded, f"{name}_probabilities", None)
    if function is None or not (folder / "score.bin").exists():
        return
    points = (folder / "score.bin").read_bytes()
    out = ctypes.create_string_buffer(b"\xa5" * (rows * classes * 8), rows * classes * 8 + ROOM)
    function.restype = None
    function(ctypes.create_string_buffer(points, len(points)), ctypes.c_size_t(rows), out)
    (folder / "probabilities.bin").write_bytes(out.raw[: rows * classes * 8])


def _set_limits() -> None:
    """No core files, no endless memory, no endless files."""
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE)):
        _, hard = resource.getrlimit(what)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit of memory
            resource.setrlimit(what, (allowed, allowed))


def flushes_denormals() -> bool:
    """Whether arithmetic here treats the smallest numbers as zero, which -ffast-math sets for a whole process."""
    (tiny,) = struct.unpack("<d", struct.pack("<q", 1))
    (least_normal,) = struct.unpack("<d", struct.pack("<q", 1 << 52))
    return bool(tiny + 0.0 == 0.0 or least_normal * 0.5 == 0.0)


def _names(loaded: Any, name: str, order: dict[str, Any]) -> dict[str, Any]:
    """What the library says about itself, if it has functions for that."""
    numbers: dict[str, list[tuple[int, ...]]] = {
        what: [(number,) for number in range(order[what])] for what in ("features", "classes", "clauses")
    }
    return {
        "digest": next(iter(_texts(loaded, f"{name}_digest", [()])), None),
        "features": _texts(loaded, f"{name}_feature", numbers["features"]),
        "labels": _texts(loaded, f"{name}_label", numbers["classes"]),
        "reason": _texts(loaded, f"{name}_reason", numbers["clauses"]),
    }


def _uses(loaded: Any, name: str, width: int) -> list[bool]:
    """Which features it says it looks at."""
    uses = getattr(loaded, f"{name}_uses", None)
    return [] if uses is None else [bool(uses(feature)) for feature in range(width)]


def _codes(loaded: Any, name: str, texts: dict[str, list[str]], real: Any) -> dict[int, list[float]] | None:
    """The library's own code of each text, feature by feature; None where it has no function for that."""
    code = getattr(loaded, f"{name}_code", None)
    if not texts or code is None:
        return None if texts else {}
    code.argtypes, code.restype = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t], real
    found: dict[int, list[float]] = {}
    for feature, listed in texts.items():
        contents = [bytes.fromhex(text) for text in listed]
        # what follows a text is not part of it
        found[int(feature)] = [code(int(feature), ctypes.create_string_buffer(c + b"x"), len(c)) for c in contents]
    return found


def _with_codes(values: bytes, width: int, real: Any, codes: dict[int, list[float]]) -> bytes:
    """The rows with the library's codes in place of ours, of which the first is 1."""
    if not codes:
        return values
    numbers = (real * (len(values) // ctypes.sizeof(real))).from_buffer_copy(values)
    for feature, own in codes.items():
        for place in range(feature, len(numbers), width):
            number = numbers[place]
            if number == number:
                numbers[place] = own[int(number) - 1] if 1 <= number <= len(own) else 0.0
    return bytes(numbers)


def _kinds(loaded: Any, name: str, width: int) -> list[str]:
    """The letter of each feature's kind."""
    kind = getattr(loaded, f"{name}_kind", None)
    if kind is None:
        return []
    kind.argtypes, kind.restype = [ctypes.c_int], ctypes.c_char
    return [kind(feature).decode("latin-1") for feature in range(width)]


def _label_kind(loaded: Any, name: str) -> list[str]:
    kind = getattr(loaded, f"{name}_label_kind", None)
    if kind is None:
        return []
    kind.restype = ctypes.c_char
    return [kind().decode("latin-1")]


def _selftest(loaded: Any, name: str) -> list[int]:
    selftest = getattr(loaded, f"{name}_selftest", None)
    return [] if selftest is None else [selftest()]


def _leaves(loaded: Any, name: str, order: dict[str, Any]) -> list[list[Any]]:
    """The class and probabilities of each leaf, exactly; also of one before the first and one after the last."""
    leaf = getattr(loaded, f"{name}_leaf", None)
    if leaf is None or not order["leaves"]:
        return []
    leaf.argtypes, leaf.restype = [ctypes.c_int32, ctypes.c_void_p], ctypes.c_int
    out, found = (ctypes.c_double * order["classes"])(), []
    for number in range(-1, order["leaves"] + 1):
        ctypes.memset(out, 0, ctypes.sizeof(out))
        returned = leaf(number, out)
        found.append([returned, *(value.hex() for value in out)] if 0 <= number < order["leaves"] else [returned])
    return found


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
    return f"it cannot be loaded: {(str(error).splitlines() or ['no reason report'])[0][:300]}"


def _tell(folder: Path, form: dict[str, Any]) -> None:
    """Whole or not at all, as the parent may read it after a crash."""
    partial = folder / "report.partial"
    partial.write_text(json.dumps(form))
    partial.replace(folder / "report.json")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
