"""Checks every artifact in an output folder against its source program: read back and proved, then run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeAlias

from gbfl_compile.artifacts import artifact_folders, write_artifacts
from gbfl_compile.backends import backend, folder_name, target_of_folder
from gbfl_compile.backends.base import Artifact, only_file
from gbfl_compile.check.artifact_proof import ArtifactProof, artifact_files, prove_artifact
from gbfl_compile.check.equivalence import Expectation, TargetVerdict, Verdict, compare, with_proof
from gbfl_compile.check.prove import BUDGET_SECONDS
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import temporary_folder, while_unchanged
from gbfl_compile.ir.digest import digest
from gbfl_compile.version import GENERATOR

Tell: TypeAlias = Callable[[str], None]
"""Told the name of each target as it is begun."""


def _nobody(_: str) -> None:
    """Tell nobody."""


def check_artifacts(
    expected: Expectation, artifacts: Iterable[Artifact], budget_seconds: float = BUDGET_SECONDS, tell: Tell = _nobody
) -> Verdict:
    """One verdict over artifacts that are on no disk yet: they are put into a temporary folder to be run."""
    with temporary_folder("check") as made:
        given = tuple(artifacts)
        write_artifacts(given, made)
        targets = [artifact.target for artifact in given]
        return check_folder(expected, made, targets=targets, budget_seconds=budget_seconds, tell=tell)


def check_folder(
    expected: Expectation,
    out: Path,
    name: str | None = None,
    targets: Collection[str] | None = None,
    budget_seconds: float = BUDGET_SECONDS,
    tell: Tell = _nobody,
) -> Verdict:
    """One verdict over all that lies in `out`; what cannot be run is named, never left out.

    With `targets` only their folders are looked at. A proof may take `budget_seconds` a way of answering.
    """
    folders = artifact_folders(out)
    if targets is not None:
        folders = {folder_name(target): out / folder_name(target) for target in targets}
    verdicts = []
    for path in folders.values():
        tell(target_of_folder(path.name) or path.name)
        verdicts.append(_verdict(expected, path, name, budget_seconds))
    return Verdict(digest(expected.program), tuple(verdicts), expected.unwitnessed)


def _verdict(expected: Expectation, folder: Path, name: str | None, budget_seconds: float) -> TargetVerdict:
    """An artifact is read before it is run: reading executes nothing."""
    target = target_of_folder(folder.name)
    if target is None:
        return TargetVerdict(folder.name, "not run", f"{GENERATOR} has no target of this name")
    row = backend(target)
    path = only_file(folder, row.extension, name)  # an artifact that is not there is no verdict
    proof = _proof(expected, target, path, row.extension, budget_seconds)
    try:
        verdict = compare(expected, row.load(path))
    except CannotRun as error:
        verdict = TargetVerdict(target, "not run", str(error))
    except BadInput as error:
        verdict = TargetVerdict(target, "different", str(error))
    return with_proof(verdict, proof)


def _proof(expected: Expectation, target: str, path: Path, extension: str, budget_seconds: float) -> ArtifactProof:
    try:
        files = while_unchanged(path.parent, lambda: artifact_files(path, extension))
        return prove_artifact(expected.program, target, files, budget_seconds)
    except BadInput as error:
        return ArtifactProof("not run", str(error))
