"""What a file is, by its name and first bytes, so that the wrong one is answered with the command that takes it.

Nothing is opened beyond its first bytes, and nothing is decided by this: it only words a refusal.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from gbfl_compile.errors import LONGEST_COMPARED

HEAD = 65_536
"""Bytes that are read to recognise a file."""

MOST_BESIDE = 500
"""Files of a folder that a mistyped name is compared with."""

A_PROGRAM, A_TABLE, A_BLACK_BOX = "a rule program", "a table", "a black box"

GENERATED = b"gbfl-compile "
"""How emitted files name what wrote them, near their beginning."""

ARTIFACTS = (".py", ".c", ".h", ".js", ".sql", ".onnx")
TARGET_FOLDER = re.compile(r"python|c|js|onnx|sql-\w+")
"""How `gbfl compile` names the folders of its targets."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is in plain words, and the command for such a file: capitals in it are for the user to replace."""

    what: str
    purpose: str
    command: str


AN_ARTIFACT_FOLDER = "the folder of one artifact"
ORDER = {"audit": (A_PROGRAM,), "check": (A_PROGRAM,), "score": (A_PROGRAM, AN_ARTIFACT_FOLDER)}
"""What these commands take first."""


def file_kind(path: Path) -> str | None:
    """What a file or folder is, in plain words."""
    known = recognise(path, _head(path))
    return None if known is None else known.what


def shell_command(*words: str) -> str:
    """A command that can be pasted into a shell, names with spaces and the like quoted.

    >>> shell_command("gbfl", "show", "my loans.json")
    "gbfl show 'my loans.json'"
    """
    return shlex.join(words)


def similar_file(path: Path) -> str:
    """`; did you mean demo-out/loans.csv?`: a file or folder of a similar name beside it, if there is one."""
    with contextlib.suppress(OSError, ValueError):
        if len(path.name) <= LONGEST_COMPARED and not path.exists():
            with os.scandir(path.parent) as entries:
                beside = [entry.name for entry in islice(entries, MOST_BESIDE) if entry.name[0] != "."]
            if near := get_close_matches(path.name, beside, 1, 0.8):
                return f"; did you mean {shell_command(str(path.with_name(near[0])))}?"
    return ""


def wrong_file(path: Path, wanted: str, head: bytes | None = None) -> str | None:
    """Why this file is not `wanted`, and the command that takes it; None where it is not recognised.

    `head` is its first bytes, where they were read already.
    """
    known = recognise(path, _head(path) if head is None else head[:HEAD])
    if known is None or known.what == wanted:
        return None
    purpose, command = known.purpose, known.command
    if wanted == A_TABLE and path.is_dir() and (tables := sorted(each for each in path.iterdir() if _is_table(each))):
        purpose, command = "a table in it", shell_command(str(tables[0]))
    way_out = ": ".join(filter(None, (purpose, command)))
    return f"is {known.what}, not {wanted}" + (f"; {way_out}" if way_out else "")


def recognise(path: Path, head: bytes) -> FileKind | None:
    """What the file or folder is, as far as its name and first bytes say."""
    name, ending = path.name.lower(), path.suffix.lower()
    if path.is_dir():
        return _folder(path)
    if not path.exists():
        return None
    for is_it, known in _kinds(path, name, ending, head):
        if is_it:
            return known
    return None


def _kinds(path: Path, name: str, ending: str, head: bytes) -> Iterator[tuple[bool, FileKind]]:
    """Each kind of file, and whether this is one; the surest signs come first."""
    file, made = str(path), f"{path.name.split('.')[0] or 'model'}.gbfl.json"
    mine = ("gbfl", "mine", "TABLE.csv", "--target", "COLUMN")
    if ending in ARTIFACTS and GENERATED in (head if ending == ".onnx" else head[:2000]):
        yield True, _artifact(path, ending)
    for is_it, what in (
        (ending in (".pkl", ".pickle", ".joblib") or re.match(rb"\x80[\x02-\x05]", head) is not None, "a pickled"),
        (ending == ".skops", "a skops"),
        (ending == ".onnx", "an ONNX"),
    ):
        command = shell_command(*mine, "--black-box", file, "-o", made)
        yield is_it, FileKind(f"{what} model", "to mine rules from it", command)
    for magic, engine in ((head.startswith(b"SQLite format 3\0"), "sqlite"), (head[8:12] == b"DUCK", "duckdb")):
        words = ("--database", f"{engine}:///{file}", "--table", "TABLE", "--target", "COLUMN", "--train", "gbm")
        command = shell_command("gbfl", "mine", *words, "-o", made)
        yield magic, FileKind("a database", "to mine rules from one of its tables", command)
    table = shell_command("gbfl", "mine", file, "--target", "COLUMN", "--train", "gbm", "-o", made)
    is_table = head.startswith((b"PAR1", b"ARROW1")) or _is_table(path)
    yield is_table, FileKind(A_TABLE, "to mine rules from it", table)
    yield from _other_kinds(path, name, ending, head)


def _is_table(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".csv.gz", ".parquet", ".arrow"))


def _artifact(path: Path, ending: str) -> FileKind:
    """A file that was compiled from a program."""
    what = "an artifact compiled from a program"
    if TARGET_FOLDER.fullmatch(path.resolve().parent.name):
        score = shell_command("gbfl", "score", str(path.parent), "TABLE.csv", "-o", "scored.csv")
        return FileKind(what, "to score a table with it", score)
    file = str(path.with_suffix(".c") if ending == ".h" else path)
    return FileKind(
        what, "to compare it with its program", shell_command("gbfl", "audit", "PROGRAM.json", "--file", file)
    )


def _other_kinds(path: Path, name: str, ending: str, head: bytes) -> Iterator[tuple[bool, FileKind]]:
    """What these commands write, and what other programs do."""
    file = str(path)
    if ending == ".json" or head.lstrip()[:1] == b"{":
        yield from _json_kinds(file, head)
    triplets = shell_command("gbfl", "check", "PROGRAM.json", "build", "--triplets", file)
    yield ending == ".npz", FileKind("a file of explained rows", "to use them in a check", triplets)
    yield head.lstrip()[:9].lower() == b"<!doctype", FileKind("an HTML page", "", "")
    spreadsheet = FileKind("a spreadsheet", "save its sheet as CSV (UTF-8)", "")
    yield name.endswith((".xlsx", ".xls", ".ods")), spreadsheet
    yield (
        ending == ".sql",
        FileKind(
            "SQL",
            "to compare it with a program",
            shell_command("gbfl", "audit", "PROGRAM.json", "--file", file, "--dialect", "DIALECT"),
        ),
    )
    yield (
        ending == ".py",
        FileKind(
            "a Python file",
            "to mine rules from a function in it",
            shell_command("gbfl", "mine", "TABLE.csv", "--target", "COLUMN", "--black-box", f"{path.stem}:FUNCTION"),
        ),
    )
    yield not head and path.is_file(), FileKind("an empty file", "", "")


def _json_kinds(file: str, head: bytes) -> Iterator[tuple[bool, FileKind]]:
    """The JSON files of ours, by the keys they begin with."""
    keys = set(re.findall(rb'"(\w+)" ?:', head[:4000]))
    report = ("gbfl", "report", "PROGRAM.json", "-o", "report.html")
    yield (
        {b"clauses", b"decision"} <= set(re.findall(rb'"(\w+)" ?:', head)) or {b"schema", b"features"} <= keys,
        (FileKind(A_PROGRAM, "to print its rules", shell_command("gbfl", "show", file))),
    )
    yield (
        {b"number", b"time", b"generator", b"form"} <= keys,
        FileKind("a log of audits", "to verify it", shell_command("gbfl", "audit-log", "verify", file)),
    )
    yield (
        {b"verdict", b"audited"} <= keys,
        FileKind("the result of an audit", "to put it into a report", shell_command(*report, "--audit", file)),
    )
    yield (
        {b"verdict", b"program", b"targets"} <= keys,
        FileKind("the verdict of a check", "to put it into a report", shell_command(*report, "--verdict", file)),
    )


def _folder(path: Path) -> FileKind | None:
    """A folder by what it holds."""
    file = str(path)
    if (path / "manifest.json").is_file():
        return FileKind("an evidence pack", "to verify it", shell_command("gbfl", "audit-evidence", "verify", file))
    if TARGET_FOLDER.fullmatch(path.resolve().name) and any(each.suffix in ARTIFACTS for each in path.iterdir()):
        score = shell_command("gbfl", "score", file, "TABLE.csv", "-o", "scored.csv")
        return FileKind(AN_ARTIFACT_FOLDER, "to score a table with it", score)
    if any(TARGET_FOLDER.fullmatch(each.name) and each.is_dir() for each in path.iterdir()):
        check = shell_command("gbfl", "check", "PROGRAM.json", file)
        return FileKind("a folder of artifacts", "to check them", check)
    programs = sorted(path.glob("*.gbfl.json"))
    if programs:
        return FileKind("a folder", "the program in it", str(programs[0]))
    return FileKind("a folder", "", "")


def _head(path: Path) -> bytes:
    """The first bytes of a file; none of a pipe, which could be read only once."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError:
        return b""
