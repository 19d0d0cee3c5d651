"""An artifact read back and proved in every way it answers: the result, and what could not be read or decided."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gbfl_compile.checking.prove import BUDGET_SECONDS, prove
from gbfl_compile.checking.prove.findings import Counterexample, NoDecision, Proof
from gbfl_compile.checking.prove.reasons import WrongReason, prove_reasons
from gbfl_compile.checking.readers import LARGEST, Tier, read_artifact
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.checking.strict.c import is_model_header
from gbfl_compile.checking.witnesses import artifact_constants
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole, refuse_leading_out
from gbfl_compile.ir.nodes import Program

ProofAnswer: TypeAlias = (
    Tier | Literal["counterexample", "other names", "other reasons", "unread", "undecided", "not run"]
)

SYSTEM_HEADERS = {"stddef", "stdint", "float", "math", "gbfl"}
"""A file of this name beside a .c file would be taken for a header that it includes."""

BUILT = re.compile(r".*\.(o|a|obj|dll|dylib|so(\.[0-9]+)*)", re.IGNORECASE)
"""What a compiler leaves beside a .c file. No .c file that is read includes such a one."""

OTHER_NAMES = "its features or classes are not the source's"


@dataclass(frozen=True, slots=True)
class ArtifactProof:
    """What reading and proving an artifact showed. `proved` is said only where every way it answers is.

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
    stems = {other.stem for other in folder.glob(f"*{extension}")} - {path.stem} - SYSTEM_HEADERS
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
