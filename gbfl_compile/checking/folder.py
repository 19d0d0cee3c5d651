"""Checks and certifies the artifacts in an output folder: one verdict per target, one certificate per reading."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from gbfl_compile.backends import artifact_folders, backend, folder_name, target_of_folder, write_artifacts
from gbfl_compile.backends.base import Artifact, Options, only_file
from gbfl_compile.checking.artifact import ArtifactProof, artifact_files, prove_artifact
from gbfl_compile.checking.prove import BUDGET_SECONDS
from gbfl_compile.checking.prove.certificate import certificate
from gbfl_compile.checking.readers import read_artifact
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.run import Expectation, TargetVerdict, Verdict, compare, with_proof
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import temporary_folder, while_unchanged, write_whole
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Program
from gbfl_compile.version import GENERATOR

Tell: TypeAlias = Callable[[str], None]
"""Called with the name of each target when its proof begins, and with what is done once all are read."""


def _tell_nobody(_: str) -> None:
    """Show no progress."""


def check_artifacts(
    expected: Expectation,
    artifacts: Iterable[Artifact],
    budget_seconds: float = BUDGET_SECONDS,
    tell: Tell = _tell_nobody,
) -> Verdict:
    """One verdict over artifacts that are on no disk yet: read and proved as they are, run from a temporary folder."""
    by_target = {artifact.target: artifact for artifact in artifacts}
    proofs = {}
    for target, artifact in by_target.items():
        tell(target)
        proofs[target] = prove_artifact(expected.program, target, artifact.files, budget_seconds, artifact.options)
    with temporary_folder("check") as folder:
        write_artifacts(tuple(by_target.values()), folder)
        to_run = [
            ArtifactToRun(
                target, folder / folder_name(target) / f"{by_target[target].name}{backend(target).extension}", proof
            )
            for target, proof in proofs.items()
        ]
        return _run_all(expected, to_run, tell)


def check_folder(
    expected: Expectation,
    out: Path,
    name: str | None = None,
    targets: Collection[str] | None = None,
    budget_seconds: float = BUDGET_SECONDS,
    tell: Tell = _tell_nobody,
    options: Mapping[str, Options] | None = None,
) -> Verdict:
    """One verdict over all artifacts in `out`; what cannot be run is named, never left out.

    With `targets` only their folders are looked at. A proof may take `budget_seconds` per way of answering. `options`
    are those that the artifacts of each target should have been emitted with.
    """
    folders = artifact_folders(out)
    if targets is not None:
        folders = {folder_name(target): out / folder_name(target) for target in targets}
    to_run = []
    for path in folders.values():
        target = target_of_folder(path.name)
        tell(target or path.name)
        settings = (options or {}).get(target or "", {})
        to_run.append(_prove_folder(expected.program, path, name, budget_seconds, settings))
    return _run_all(expected, to_run, tell)


@dataclass(frozen=True, slots=True)
class ArtifactToRun:
    """An artifact that was read, and is still to be run."""

    target: str
    path: Path
    """Its main file."""
    proof: ArtifactProof


def _prove_folder(
    program: Program, folder: Path, name: str | None, budget_seconds: float, options: Options
) -> ArtifactToRun | TargetVerdict:
    """The proof of the artifact in a folder, or the verdict on a folder that is no target's."""
    target = target_of_folder(folder.name)
    if target is None:
        return TargetVerdict(folder.name, "not run", f"{GENERATOR} has no target of this name")
    path = only_file(folder, backend(target).extension, name)  # an artifact that is not there is no verdict
    return ArtifactToRun(target, path, prove_file(program, target, path, budget_seconds, options))


def _run_all(expected: Expectation, to_run: Sequence[ArtifactToRun | TargetVerdict], tell: Tell) -> Verdict:
    """Every artifact is read before any is run: reading executes nothing."""
    tell("looking for witnesses")
    given_up = expected.witness_set.given_up
    verdicts = []
    for each in to_run:
        match each:
            case ArtifactToRun(target, path, proof):
                verdicts.append(with_proof(_run(expected, target, path, proof), proof))
            case TargetVerdict():
                verdicts.append(each)
    return Verdict(digest(expected.program), tuple(verdicts), given_up)


def _run(expected: Expectation, target: str, path: Path, proof: ArtifactProof) -> TargetVerdict:
    """What running the artifact whose main file is `path` shows. Compiled code that was not read is not run here."""
    if target == "c" and proof.answer == "unread":
        return TargetVerdict(target, "not run", "it could crash this process: build it and audit it with --library")
    try:
        return compare(expected, backend(target).load(path), proof.constants())
    except CannotRun as error:
        return TargetVerdict(target, "not run", str(error))
    except BadInput as error:
        return TargetVerdict(target, "different", str(error))


def prove_file(
    program: Program,
    target: str,
    path: Path,
    budget_seconds: float = BUDGET_SECONDS,
    options: Options | None = None,
) -> ArtifactProof:
    """The proof of the artifact whose main file is `path`."""
    try:
        files = while_unchanged(path.parent, lambda: artifact_files(path, backend(target).extension))
        return prove_artifact(program, target, files, budget_seconds, options)
    except BadInput as error:
        return ArtifactProof("not run", str(error))


def certify_folder(program: Program, out: Path, to: Path, name: str | None = None) -> dict[str, str]:
    """Write `to/TARGET-N.json` for each way a target answers; for those that have none, why not."""
    refused = {}
    for folder, path in artifact_folders(out).items():
        target = target_of_folder(folder)
        if target is None:
            continue
        main = only_file(path, backend(target).extension, name)
        try:
            files = artifact_files(main, backend(target).extension)
            artifact = read_artifact(target, files, program)
        except (Unread, BadInput, CannotRun) as error:
            refused[folder] = str(error)
            continue
        if artifact.tier != "proved":
            refused[folder] = artifact.not_strict or "it is not in the strict form"
            continue
        for number, reading in enumerate(artifact.readings):
            try:
                write_whole(to / f"{folder}-{number}.json", certificate(program, reading, files).encode("ascii"))
            except (BadInput, CannotRun) as error:
                refused[f"{folder}, {reading.place}"] = str(error)
    return refused
