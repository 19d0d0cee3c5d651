"""Readers: what an artifact says, from its bytes alone. One row per target, one reading per way of answering.

They share no code with the backends: a reader is the second opinion. They never run what they read, and they refuse
(Unread, with the place) whatever they do not understand. A strict reader accounts for every token by a grammar of its
own: only what it reads can be `proved`. A general reader understands more texts, through a parser that is not the
engine's: what it reads is `read as equal` at best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from gbfl_compile.checking.general.sql import read_sql_files
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.reading.nodes import Reading, Unread, limit_work
from gbfl_compile.checking.strict.c import read_strict_c
from gbfl_compile.checking.strict.js import read_js
from gbfl_compile.checking.strict.onnx import read_onnx
from gbfl_compile.checking.strict.python import read_python
from gbfl_compile.checking.strict.sql import read_strict_files
from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.ir.nodes import Label, Leaf, Program, Tree

Tier: TypeAlias = Literal["proved", "read as equal"]
"""What an artifact that turns out equal is called: by what the strict reader read, or by what the general one did."""

Reader: TypeAlias = Callable[[Mapping[str, bytes]], tuple[Reading, ...]]
StrictReader: TypeAlias = Callable[[Mapping[str, bytes], Program, Mapping[str, str]], tuple[Reading, ...]]
"""It is told what to expect: the program, and the options that the artifact should have been emitted with."""

ENGINES_RUN = frozenset({"clickhouse", "datafusion", "duckdb", "mariadb", "postgres", "spark", "sqlite"})
"""The databases whose reading of SQL was tried out. What is written for any other is never `proved`."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one target; the general one is asked where the strict one refuses."""

    strict: StrictReader | None
    general: Reader | None = None


def was_run(target: str) -> bool:
    """Whether the engine of a target has ever been run, here or in the tests."""
    family, _, dialect = target.partition(":")
    return family != "sql" or dialect in ENGINES_RUN


NO_PROGRAM = Program((), (), (), Tree((Leaf(()),)))
"""For strict readers that need not be told what to expect."""


def _by_files(reader: Reader) -> StrictReader:
    """A reader of a target whose files say all that there is to expect."""
    return lambda files, program, options: reader(files)


def _strict_sql(dialect: str, labels: tuple[Label, ...] | None = None) -> StrictReader:
    return lambda files, program, options: read_strict_files(dialect, files, program, options, labels)


def _sql_readers(dialect: str, labels: tuple[Label, ...] | None = None) -> Readers:
    general = partial(read_sql_files, dialect, labels=labels)
    return Readers(_strict_sql(dialect, labels) if was_run(f"sql:{dialect}") else None, general)


READERS: Mapping[str, Readers] = {
    "python": Readers(_by_files(read_python)),
    "c": Readers(_by_files(read_strict_c)),
    "onnx": Readers(_by_files(read_onnx)),
    "js": Readers(_by_files(read_js)),
    **{f"sql:{dialect}": _sql_readers(dialect) for dialect in ENGINES},
}

LARGEST = 64 * 2**20
"""Bytes of all files together."""


@dataclass(frozen=True, slots=True)
class ReadArtifact:
    """What was read of an artifact: one reading per way it answers."""

    tier: Tier
    readings: tuple[Reading, ...]
    not_strict: str | None = None
    """Why the strict reader refused it."""


def read(target: str, files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """What the reader that understands most finds: one reading per way of answering. It tells nothing of the tier."""
    readers = _readers_of(target, files)
    if readers.general is not None:
        general = readers.general
        return _guard(lambda: general(files))
    strict = readers.strict
    assert strict is not None  # noqa: S101 - a target has one of the two
    return _guard(lambda: strict(files, NO_PROGRAM, {}))


def read_artifact(
    target: str,
    files: Mapping[str, bytes],
    program: Program,
    options: Mapping[str, str] | None = None,
    labels: tuple[Label, ...] | None = None,
) -> ReadArtifact:
    """The artifact by the strict reader or, where that refuses and there is one, by the general reader.

    Unread names the place that is not understood. `labels` is how SQL should write the classes, where that is not by
    their names; other artifacts name their labels themselves.
    """
    readers = _readers_of(target, files)
    if labels is not None and target.startswith("sql:"):
        readers = _sql_readers(target.removeprefix("sql:"), labels)
    not_strict = f"no database of {target} was ever run: its SQL is read as documented"
    if readers.strict is not None:
        strict = readers.strict
        try:
            return ReadArtifact("proved", _guard(lambda: strict(files, program, options or {})))
        except Unread as error:
            if readers.general is None or program.kinds:  # the general reader knows numbers alone
                raise
            not_strict = f"not in the strict form: {error}"
    if program.kinds:
        raise Unread(f"{not_strict}; words and dates are read in the strict form alone")
    general = readers.general
    assert general is not None  # noqa: S101 - a target has one of the two
    return ReadArtifact("read as equal", _guard(lambda: general(files)), not_strict)


def _readers_of(target: str, files: Mapping[str, bytes]) -> Readers:
    if target not in READERS:
        raise BadInput(f"no reader for target {target!r}: there is one for {', '.join(READERS)}")
    size = sum(len(content) for content in files.values())
    if size > LARGEST:
        raise Unread(f"{size} bytes, at most {LARGEST} are read")
    return READERS[target]


def _guard(read_files: Callable[[], tuple[Reading, ...]]) -> tuple[Reading, ...]:
    try:
        with limit_work():
            return read_files()
    except RecursionError:  # parsers and readers follow nesting by recursion, and an artifact may nest without end
        raise Unread("nested too deeply") from None
    except (GbflError, Unread):
        raise
    except Exception as error:  # anything a reader trips over was not read: that is a refusal, never a pass
        raise Unread(f"the reader gave up on it: {type(error).__name__}") from error
