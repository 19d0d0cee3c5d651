"""An append-only audit log: JSON lines, each with the hash of the line before, so that tampering shows.

Beside LOG is LOG.end, a small file with the number of lines and the hash of the last one. `verify` finds a line that
was changed, removed, inserted or moved, and lines that were cut off at the end. What it cannot see is a log
and its .end replaced together, as no secret goes into a hash: that shows once the hash of a line is kept elsewhere and
given as `expect`.
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
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.files.atomic import read_whole, write_whole
from gbfl_compile.version import GENERATOR

FORM = 2
"""Of a line. Those of form 1 were written before there was an .end file."""

LARGEST_END = 1000
BEFORE_THE_FIRST = "0" * 64
LARGEST_LOG = 2**30


def append(log: Path, report: AuditReport) -> str:
    """Add a report as one line, whole or not at all; the line's hash. A log that does not verify is not added to."""
    with _lock(log) as file:
        state = _state(log, _read_all(file), None)
        if state.problem is not None:
            raise BadInput(f"{log}: {state.problem}; nothing is added to a broken log, begin a new one and keep this")
        if (
            state.note is not None or not state.lines
        ):  # so that the next line is the one that an interruption leaves over
            write_whole(_end_file(log), end_content(state.lines, state.last))
        form = {
            "form": FORM,
            "number": state.lines + 1,
            "time": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "generator": GENERATOR,
            "python": platform.python_version(),
            "source": report.source,
            "verdict": report.verdict,
            "audited": [_audited_form(each) for each in report.verdicts],
            "before": state.last,
        }
        own = _hash(form)
        _write(file, _line({**form, "hash": own}) + b"\n", log, end_content(state.lines + 1, own))
        return own


@dataclass(frozen=True, slots=True)
class LogState:
    """The result of examining a log."""

    problem: str | None
    """What is wrong with the first bad line, as `line 3: …`."""
    lines: int
    """How many good lines it has, up to there."""
    last: str
    """The hash of the last good one: kept elsewhere, it shows a log that was replaced as a whole."""
    note: str | None = None
    """What is not wrong but worth knowing: a log of an earlier version, an interrupted audit."""


def examine(log: Path, expect: str | None = None) -> LogState:
    """Whether the log is complete, and up to which line; the hash `expect` must be one of its lines."""
    with _unchanging(log):
        return _state(log, read_whole(log, LARGEST_LOG), expect)


def verify(log: Path, expect: str | None = None) -> str | None:
    """What is wrong with the first bad line, or None."""
    return examine(log, expect).problem


def _end_file(log: Path) -> Path:
    log = log.resolve()
    return log.with_name(f"{log.name}.end")


def end_content(lines: int, last: str) -> bytes:
    """The content of a log's .end file."""
    return _line({"lines": lines, "last": last}) + b"\n"


def _state(log: Path, content: bytes, expect: str | None) -> LogState:
    """Examines the lines, then compares their number with the .end file."""
    problem, hashes, is_old = _examine(content, expect)
    lines, last = len(hashes), hashes[-1] if hashes else BEFORE_THE_FIRST
    if problem is not None:
        return LogState(problem, lines, last)
    end = _end_file(log)
    if not end.exists():
        if not lines:
            return LogState(None, 0, last)
        if is_old:
            note = f"a log of an earlier version, without {end.name}: lines cut off at its end do not show"
            return LogState(None, lines, last, note)
        return LogState(f"{end.name} is missing, which says how many lines there are: lines may be too", lines, last)
    stated = _read_end(end)
    if stated is None:
        return LogState(f"{end.name} was changed, or is not of an audit log", lines, last)
    if stated == (lines, last):
        return LogState(None, lines, last)
    if stated == (lines - 1, hashes[-2] if lines > 1 else BEFORE_THE_FIRST):
        note = f"{end.name} is one line behind: an audit was interrupted just after it had added line {lines}"
        return LogState(None, lines, last, note)
    if stated[0] > lines:
        missing = stated[0] - lines
        are = f"the last {missing} lines are" if missing > 1 else "the last line is"
        return LogState(f"line {lines + 1}: the end is cut off: {are} missing, by {end.name}", lines, last)
    if stated[0] and hashes[stated[0] - 1] != stated[1]:
        return LogState(f"line {stated[0]}: {end.name} ends with another: the log was written anew", lines, last)
    return LogState(f"line {stated[0] + 1}: {end.name} ends before it: lines were added by hand", lines, last)


def _read_end(end: Path) -> tuple[int, str] | None:
    content = read_whole(end, LARGEST_END)
    try:
        form = json.loads(content)
        lines, last = form["lines"], form["last"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    is_own = type(lines) is int and lines >= 0 and isinstance(last, str) and content == end_content(lines, last)
    return (lines, last) if is_own else None


@contextmanager
def _unchanging(log: Path) -> Iterator[None]:
    """Lets nobody append meanwhile, where the system has file locks, so that log and .end belong together."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    if not log.is_file():
        yield
        return
    with log.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


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


def _examine(content: bytes, expect: str | None) -> tuple[str | None, list[str], bool]:
    """The first problem, the hashes of the good lines, and whether all of those were written without an .end file."""
    hashes: list[str] = []
    is_old = True
    lines = content.split(b"\n")
    unended = lines.pop()
    for number, line in enumerate(lines, 1):
        problem, own, form = _line_problem(line, number, hashes[-1] if hashes else BEFORE_THE_FIRST)
        if problem is not None:
            return f"line {number}: {problem}", hashes, is_old
        hashes.append(own)
        is_old = is_old and form == 1
    if unended:
        return f"line {len(hashes) + 1}: it breaks off, or was not written by this log", hashes, is_old
    if expect is not None and expect not in hashes:
        problem = f"line {len(hashes) + 1}: no line has the expected hash, lines are missing or were written anew"
        return problem, hashes, is_old
    return None, hashes, is_old


def _line_problem(line: bytes, number: int, before: str) -> tuple[str | None, str, Any]:
    """What is wrong with a line, its hash and its form. It must be written exactly as `append` writes it."""
    try:
        form = json.loads(line)
        own = form.pop("hash")
        rewritten = _line({**form, "hash": own})
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return "it is not a line of an audit log", "", None
    if rewritten != line or own != _hash(form):
        return "it was changed", "", None
    if form.get("before") != before or form.get("number") != number:
        return "it does not follow the line before: a line was removed, inserted or moved here", "", None
    return None, own, form.get("form")


@contextmanager
def _lock(log: Path) -> Iterator[int]:
    """Opens the log, or creates it, while nobody else appends to it."""
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
            raise BadInput(f"{log}: is not a file: name a file for the log")
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


def _write(file: int, line: bytes, log: Path, end: bytes) -> None:
    """Writes the line in one write, then the .end file; undoes what a full disk left half done."""
    size = os.fstat(file).st_size
    try:
        if os.write(file, line) != len(line):
            raise OSError("the line did not fit")
        os.fsync(file)
        write_whole(_end_file(log), end)
    except OSError as error:
        os.ftruncate(file, size)
        raise BadInput(f"{log}: cannot be written: {error.strerror or error}, the log is as it was") from None
    except GbflError as error:
        os.ftruncate(file, size)
        raise BadInput(f"{error}, the log is as it was") from None
