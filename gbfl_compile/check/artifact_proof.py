"""An artifact read back and proved, every way it answers: what was found, and what could not be read or decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gbfl_compile.check.proof import Counterexample, Proof, Undecided
from gbfl_compile.check.prove import BUDGET_SECONDS, prove
from gbfl_compile.check.readers import LARGEST, read
from gbfl_compile.check.readers.c_artifact import is_model_header
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.check.reasons import WrongReason, prove_reasons
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import read_whole, refuse_leading_out
from gbfl_compile.ir.nodes import Program

ProofAnswer: TypeAlias = Literal[
    "proved", "counterexample", "other names", "other reasons", "unread", "undecided", "not run"
]

SYSTEM_HEADERS = {"stddef", "stdint", "float", "math", "gbfl"}
"""A file of this name beside a .c file would stand in for a header that it includes."""

BUILT = re.compile(r".*\.(o|a|obj|dll|dylib|so(\.[0-9]+)*)", re.IGNORECASE)
"""What a compiler leaves beside a .c file. No .c file that is read includes such a one."""

OTHER_NAMES = "its features or classes are not the source's"


@dataclass(frozen=True, slots=True)
class ArtifactProof:
    """What reading and proving an artifact showed. `proved` is said only where every way it answers is."""

    answer: ProofAnswer
    reason: str | None = None
    """What was not read, not decided or not installed."""
    places: tuple[tuple[str, Proof], ...] = ()
    """For each way of answering, where it stands and what was found of it."""
    features: tuple[str, ...] = ()

    @property
    def different(self) -> bool:
        """Whether it is shown not to be its source."""
        return self.answer in ("counterexample", "other names", "other reasons")

    @property
    def counterexample(self) -> Counterexample | None:
        """A row on which the artifact answers otherwise than its source."""
        findings = (finding for _, proof in self.places for finding in proof.findings.values())
        return next((finding for finding in findings if isinstance(finding, Counterexample)), None)

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        form: dict[str, Any] = {"answer": self.answer}
        if self.reason is not None:
            form["reason"] = self.reason
        form["readings"] = [{"place": place, **proof.as_json(self.features)} for place, proof in self.places]
        return form


def prove_artifact(
    program: Program, target: str, files: Mapping[str, bytes], budget_seconds: float = BUDGET_SECONDS
) -> ArtifactProof:
    """The artifact in these files against its program, within a budget of time a way of answering."""
    try:
        readings = read(target, files)
    except Unread as error:
        return ArtifactProof("unread", str(error))
    except CannotRun as error:
        return ArtifactProof("not run", str(error))
    return prove_readings(program, readings, budget_seconds)


def prove_readings(
    program: Program, readings: tuple[Reading, ...], budget_seconds: float = BUDGET_SECONDS
) -> ArtifactProof:
    """Each reading against the program."""
    if not readings:
        return ArtifactProof("unread", "it answers in no way that was read")
    kinds = [(type(label), label) for label in program.classes]
    for reading in readings:
        same = [(type(label), label) for label in reading.classes] == kinds
        if reading.features != program.features or not same:
            return ArtifactProof("other names", OTHER_NAMES)
    try:
        places = tuple((reading.place, prove(program, reading, budget_seconds)) for reading in readings)
    except (ArithmeticError, ValueError, RuntimeError) as error:  # numbers no artifact has, or a fault of the prover
        return ArtifactProof("undecided", f"the prover gave up on it: {type(error).__name__}: {error}"[:300])
    answers = {proof.answer for _, proof in places}
    if "counterexample" in answers:
        return ArtifactProof("counterexample", next(_open_ends(places), None), places, program.features)
    for reading in readings:
        if (told := _wrong_reason(program, reading, budget_seconds)) is not None:
            return ArtifactProof(told[0], f"{reading.place or 'it'}: {told[1]}", places, program.features)
    if "undecided" in answers:
        return ArtifactProof("undecided", next(_open_ends(places), None), places, program.features)
    return ArtifactProof("proved", None, places, program.features)


def _wrong_reason(program: Program, reading: Reading, budget_seconds: float) -> tuple[ProofAnswer, str] | None:
    """Where the answers are right and the story told of them is not, or is not known to be."""
    match prove_reasons(program, reading, budget_seconds):
        case WrongReason(why):
            return "other reasons", why
        case Undecided(why):
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
    others = {f"{stem}{extension}" for stem in stems} | {
        f"{stem}.h" for stem in stems if _is_another_model(folder, stem)
    }
    found: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.is_symlink() and file.is_dir() and not file.name.startswith("."):
            raise BadInput(f"{file}: is a link to a folder, which is not followed: put the folder itself there")
        if file.is_file() and not _is_nobodys(name, path.stem, extension) and name not in others:
            refuse_leading_out(file, folder)
            found[name] = read_whole(file, LARGEST - sum(len(content) for content in found.values()))
    return found


def _is_nobodys(name: str, stem: str, extension: str) -> bool:
    """Whether a file has no say in what the artifact does: hidden, or left by a compiler and not read by one."""
    parts = name.split("/")
    if any(part.endswith(".gch") for part in parts):
        return False  # gcc takes whatever lies in NAME.h.gch for NAME.h
    if any(part.startswith(".") for part in parts):
        return not (extension == ".sql" and name.endswith((".yml", ".yaml")))  # dbt reads hidden ones too
    if "__pycache__" in parts and not parts[-1].startswith(f"{stem}."):
        return True
    return extension == ".c" and BUILT.fullmatch(parts[-1]) is not None


def _is_another_model(folder: Path, stem: str) -> bool:
    """Whether NAME.h declares a model and nothing else: any other could stand in for a header of the system."""
    header = folder / f"{stem}.h"
    return header.is_file() and is_model_header(stem, read_whole(header, LARGEST))
