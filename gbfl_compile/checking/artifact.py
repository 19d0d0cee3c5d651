"""An artifact read back and proved in every way it answers: the result, and what could not be read or decided.

READERS has one row per target, with one reading per way of answering. Readers share no code with the backends: a reader
is the second opinion. They never run what they read, and they refuse (Unread, with the place) whatever they do not
understand. A strict reader accounts for every token by a grammar of its own: only what it reads can be `proved`. A
general reader understands more texts, through a parser that is not the engine's: what it reads is `read as equal` at
best.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gbfl_compile.checking.general.sql import read_sql_files
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.prove import BUDGET_SECONDS, prove
from gbfl_compile.checking.prove.findings import Counterexample, NoDecision, Proof
from gbfl_compile.checking.prove.reasons import WrongReason, prove_reasons
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import Reading, Unread, limit_work
from gbfl_compile.checking.strict.c import is_model_header, read_strict_c
from gbfl_compile.checking.strict.js import read_js
from gbfl_compile.checking.strict.onnx import read_onnx
from gbfl_compile.checking.strict.python import PYTHONS_OWN, read_python
from gbfl_compile.checking.strict.sql import read_strict_files
from gbfl_compile.checking.witnesses import artifact_constants
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.files.atomic import read_whole, refuse_leading_out
from gbfl_compile.ir.nodes import Label, Leaf, Program, Tree

Tier: TypeAlias = Literal["proved", "read as equal"]
"""What an artifact that turns out equal is called: by what the strict reader read, or by what the general one did."""

Reader: TypeAlias = Callable[[Mapping[str, bytes]], tuple[Reading, ...]]
StrictReader: TypeAlias = Callable[[Mapping[str, bytes], Program, Mapping[str, str]], tuple[Reading, ...]]
"""It also takes what to expect: the program, and the options that the artifact should have been emitted with."""

ENGINES_RUN = frozenset({"clickhouse", "datafusion", "duckdb", "mariadb", "postgres", "spark", "sqlite"})
"""The databases whose reading of SQL was tried out. What is written for any other is never `proved`."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one target; the general one is used where the strict one refuses."""

    strict: StrictReader | None
    general: Reader | None = None


def was_run(target: str) -> bool:
    """Whether the engine of a target has ever been run, here or in the tests."""
    family, _, dialect = target.partition(":")
    return family != "sql" or dialect in ENGINES_RUN


NO_PROGRAM = Program((), (), (), Tree((Leaf(()),)))
"""For strict readers that need not know what to expect."""


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
    """What the reader that understands most finds: one reading per way of answering. It says nothing about the tier."""
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
    not_strict = f"no {target} database was ever run: its SQL is read as documented"
    if readers.strict is not None:
        strict = readers.strict
        try:
            return ReadArtifact("proved", _guard(lambda: strict(files, program, options or {})))
        except Unread as error:
            if readers.general is None or program.kinds:  # the general reader knows numbers alone
                raise
            not_strict = f"not in the strict form: {error}"
    if program.kinds:
        raise Unread(f"{not_strict}; words and dates are read only in the strict form")
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


ProofAnswer: TypeAlias = (
    Tier | Literal["counterexample", "other names", "other reasons", "unread", "undecided", "not run"]
)

OTHERS_TAKEN_FOR = {
    ".c": frozenset({"stddef", "stdint", "float", "math", "gbfl"}),
    ".py": PYTHONS_OWN,
}
"""Files of these names are no other models: beside a .c file one would be taken for a header that it includes, beside
a .py file for a module that Python imports."""

BUILT = re.compile(r".*\.(o|a|obj|dll|dylib|so(\.[0-9]+)*)", re.IGNORECASE)
"""What a compiler leaves beside a .c file. No .c file that is read includes such a one."""

OTHER_NAMES = "its features or classes are not the source's"


@dataclass(frozen=True, slots=True)
class ArtifactProof:
    """What reading and proving an artifact showed. It is `proved` only where every output is.

    `read as equal` is the same proof about what a general reader read: a text that this reader misunderstands would
    be proved wrongly, so it is a lower tier.
    """

    answer: ProofAnswer
    reason: str | None = None
    """What was not read, not decided or not installed; for `read as equal`, why it is not `proved`."""
    places: tuple[tuple[str, Proof], ...] = ()
    """For each way of answering, where it is and what was proved about it."""
    features: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    readings: tuple[Reading, ...] = field(default=(), repr=False, compare=False)

    @property
    def tier(self) -> Tier | None:
        """How strong the proof of equality is; None where there is none."""
        return self.answer if self.answer in ("proved", "read as equal") else None

    @property
    def different(self) -> bool:
        """Whether it is shown not to be its source."""
        return self.answer in ("counterexample", "other names", "other reasons")

    @property
    def counterexample(self) -> Counterexample | None:
        """A row on which the artifact answers otherwise than its source."""
        findings = (finding for _, proof in self.places for finding in proof.findings.values())
        return next((finding for finding in findings if isinstance(finding, Counterexample)), None)

    def constants(self) -> frozenset[float]:
        """The numbers that occur in the artifact: rows at them are run too."""
        return artifact_constants(self.files, self.readings)

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        form: dict[str, Any] = {"answer": self.answer, "tier": self.tier}
        if self.reason is not None:
            form["reason"] = self.reason
        form["readings"] = [{"place": place, **proof.as_json(self.features)} for place, proof in self.places]
        return form


def prove_artifact(
    program: Program,
    target: str,
    files: Mapping[str, bytes],
    budget_seconds: float = BUDGET_SECONDS,
    options: Mapping[str, str] | None = None,
) -> ArtifactProof:
    """The artifact in these files against its program, within a time limit per way of answering."""
    with _collector_paused():
        try:
            artifact = read_artifact(target, files, program, options)
        except Unread as error:
            return ArtifactProof("unread", str(error), files=files)
        except CannotRun as error:
            return ArtifactProof("not run", str(error), files=files)
        proof = prove_readings(program, artifact.readings, budget_seconds)
    if proof.answer == "proved" and artifact.tier != "proved":
        proof = replace(proof, answer=artifact.tier, reason=artifact.not_strict)
    return replace(proof, files=files, readings=artifact.readings)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Readings are many small objects, none in a cycle: looking for cycles among them took a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def prove_readings(
    program: Program, readings: tuple[Reading, ...], budget_seconds: float = BUDGET_SECONDS
) -> ArtifactProof:
    """Each reading against the program."""
    if not readings:
        return ArtifactProof("unread", "it answers in no way that was read")
    kinds = [(type(label), label) for label in program.classes]
    for reading in readings:
        same = [(type(label), label) for label in reading.classes] == kinds
        if (reading.features, reading.kinds) != (program.features, program.kinds) or not same:
            return ArtifactProof("other names", OTHER_NAMES)
    try:
        source = as_reading(program)
        places = tuple((reading.place, prove(program, reading, budget_seconds, source)) for reading in readings)
    except (ArithmeticError, ValueError, RuntimeError) as error:  # numbers no artifact has, or a fault of the prover
        return ArtifactProof("undecided", f"the prover gave up on it: {type(error).__name__}: {error}"[:300])
    answers = {proof.answer for _, proof in places}
    if "counterexample" in answers:
        return ArtifactProof("counterexample", next(_open_ends(places), None), places, program.features)
    for reading in readings:
        if (wrong := _wrong_reason(program, reading, budget_seconds)) is not None:
            return ArtifactProof(wrong[0], f"{reading.place or 'it'}: {wrong[1]}", places, program.features)
    if "undecided" in answers:
        return ArtifactProof("undecided", next(_open_ends(places), None), places, program.features)
    return ArtifactProof("proved", None, places, program.features)


def _wrong_reason(program: Program, reading: Reading, budget_seconds: float) -> tuple[ProofAnswer, str] | None:
    """Where the answers are right and the reasons given for them are not, or are not known to be."""
    match prove_reasons(program, reading, budget_seconds):
        case WrongReason(why):
            return "other reasons", why
        case NoDecision(why):
            return "undecided", f"reasons: {why}"
        case _:
            return None


def _open_ends(places: tuple[tuple[str, Proof], ...]) -> Iterator[str]:
    for place, proof in places:
        for aspect, finding in proof.findings.items():
            if (why := getattr(finding, "why", None)) is not None:
                yield f"{place or 'it'}, {aspect}: {why}"


def artifact_files(path: Path, extension: str) -> dict[str, bytes]:
    """The files of the artifact whose main file is `path`: all in its folder but what other artifacts brought."""
    folder = path.parent
    stems = {other.stem for other in folder.glob(f"*{extension}")} - {path.stem}
    stems = {stem for stem in stems if stem.lower() not in OTHERS_TAKEN_FOR.get(extension, ())}
    others = {f"{stem}{ending}" for stem in stems for ending in (extension, ".d.ts")} | {
        f"{stem}.h" for stem in stems if _is_another_model(folder, stem)
    }
    files: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_symlink() and file.is_dir() and not file.name.startswith("."):
            raise BadInput(f"{file}: is a link to a folder, which is not followed: put the folder itself there")
        if file.is_file() and not _is_ignored(name, path.stem, extension) and name not in others:
            refuse_leading_out(file, folder)
            files[name] = read_whole(file, LARGEST - sum(len(content) for content in files.values()))
    return files


def _is_ignored(name: str, stem: str, extension: str) -> bool:
    """Whether a file has no effect on the artifact: hidden, or left by a compiler and not read by one."""
    parts = name.split("/")
    if any(part.endswith(".gch") for part in parts):
        return False  # gcc takes anything in NAME.h.gch for NAME.h
    if any(part.startswith(".") for part in parts):
        return not (extension == ".sql" and name.endswith((".yml", ".yaml")))  # dbt reads hidden ones too
    if "__pycache__" in parts and not parts[-1].startswith(f"{stem}."):
        return True
    return extension == ".c" and BUILT.fullmatch(parts[-1]) is not None


def _is_another_model(folder: Path, stem: str) -> bool:
    """Whether NAME.h declares a model and nothing else: any other could be taken for a header of the system."""
    header = folder / f"{stem}.h"
    return header.is_file() and is_model_header(stem, read_whole(header, LARGEST))
