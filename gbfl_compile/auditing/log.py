"""An append-only audit log: JSON lines, each with the hash of the line before, so that meddling shows.

`verify` finds a line that was changed, removed, put in or moved. Two things it cannot see from the file alone: lines
cut off at the end, and a log written anew from some line on, as no secret goes into a hash. Both show once the hash
of a line is kept elsewhere and given as `expect`.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gbfl_compile.auditing.verdict import AuditReport, DeployedVerdict
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole
from gbfl_compile.version import GENERATOR

FORM = 1
BEFORE_THE_FIRST = "0" * 64
LARGEST_LOG = 2**30


def append(log: Path, report: AuditReport) -> str:
    """Add a report as one line, whole or not at all; the line's hash. A log that does not verify is not added to."""
    with _lock(log) as file:
        problem, last, number = _examine(_read_all(file), None)
        if problem is not None:
            raise BadInput(f"{log}: {problem}; nothing is added to a broken log, begin a new one and keep this")
        form = {
            "form": FORM,
            "number": number + 1,
            "time": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "generator": GENERATOR,
            "python": platform.python_version(),
            "source": report.source,
            "verdict": report.verdict,
            "audited": [_audited_form(each) for each in report.verdicts],
            "before": last,
        }
        line = _line({**form, "hash": _hash(form)})
        _write(file, line + b"\n", log)
        return str(_hash(form))


@dataclass(frozen=True, slots=True)
class LogState:
    """What a look at a log showed."""

    problem: str | None
    """What is wrong with the first bad line, as `line 3: …`."""
    lines: int
    """How many good lines it has, up to there."""
    last: str
    """The hash of the last good one: kept elsewhere, it shows a cut-off end."""


def examine(log: Path, expect: str | None = None) -> LogState:
    """Whether the log is whole, and how far; a line with the hash `expect` must be there."""
    problem, last, lines = _examine(read_whole(log, LARGEST_LOG), expect)
    return LogState(problem, lines, last)


def verify(log: Path, expect: str | None = None) -> str | None:
    """What is wrong with the first bad line, or None."""
    return examine(log, expect).problem


def _audited_form(each: DeployedVerdict) -> dict[str, Any]:
    labels = {"class_labels": dict(each.class_labels)} if each.class_labels else {}
    return labels | {
        "what": each.what,
        "kind": each.kind,
        "verdict": each.verdict,
        "reason": each.reason,
        "evidence": each.evidence(),
        "fingerprint": each.fingerprint,
        "found_digest": each.carried_digest,
        "engine": each.engine,
    }


def _line(form: dict[str, Any]) -> bytes:
    return json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def _hash(form: dict[str, Any]) -> str:
    return hashlib.sha256(_line(form)).hexdigest()


def _examine(content: bytes, expect: str | None) -> tuple[str | None, str, int]:
    """What is wrong first, the hash of the last good line, and how many good lines there are."""
    before, number, seen = BEFORE_THE_FIRST, 0, expect is None
    lines = content.split(b"\n")
    unended = lines.pop()
    for number, line in enumerate(lines, 1):
        problem, own = _line_problem(line, number, before)
        if problem is not None:
            return f"line {number}: {problem}", before, number - 1
        before, seen = own, seen or own == expect
    if unended:
        return f"line {number + 1}: it breaks off, or was not written by this log", before, number
    if not seen:
        return (
            f"line {number + 1}: no line has the expected hash, lines are missing or were written anew",
            before,
            number,
        )
    return None, before, number


def _line_problem(line: bytes, number: int, before: str) -> tuple[str | None, str]:
    """What is wrong with a line, and its hash. It must be written exactly as `append` writes it."""
    try:
        form = json.loads(line)
        own = form.pop("hash")
        rewritten = _line({**form, "hash": own})
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return "it is not a line of an audit log", ""
    if rewritten != line or own != _hash(form):
        return "it was changed", ""
    if form.get("before") != before or form.get("number") != number:
        return "it does not follow the line before: a line was removed, put in or moved here", ""
    return None, own


@contextmanager
def _lock(log: Path) -> Iterator[int]:
    """The log, made where there is none, while nobody else appends to it."""
    try:
        import fcntl
    except ImportError:
        raise CannotRun("an audit log needs file locks, which this system does not have: use Linux or macOS") from None
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(log, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise BadInput(f"{log}: cannot be written: {error.strerror or error}") from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise BadInput(f"{log}: is not a file, name one")
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _read_all(file: int) -> bytes:
    pieces, place = [], 0
    while piece := os.pread(file, 1 << 20, place):
        pieces.append(piece)
        place += len(piece)
    return b"".join(pieces)


def _write(file: int, line: bytes, log: Path) -> None:
    """One write; what a full disk left half done is taken back."""
    size = os.fstat(file).st_size
    try:
        if os.write(file, line) != len(line):
            raise OSError("the line did not fit")
        os.fsync(file)
    except OSError as error:
        os.ftruncate(file, size)
        raise BadInput(f"{log}: cannot be written: {error.strerror or error}, the log is as it was") from None
