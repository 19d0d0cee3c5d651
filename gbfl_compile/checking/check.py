"""The verbs of checking: compile a program for targets, check and certify artifacts, prove them without running any.

There is one verdict per target and one certificate per reading::

    verdict = check(program, "build")
    proofs = prove(program, emit(program, "c"))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from gbfl_compile.backends import (
    artifact_folders,
    backend,
    emit,
    folder_name,
    target_of_folder,
    temporary_artifacts,
    write_artifacts,
)
from gbfl_compile.backends.base import Artifact, Options, only_file
from gbfl_compile.checking.artifact import ArtifactProof, artifact_files, prove_artifact, read_artifact
from gbfl_compile.checking.prove import BUDGET_SECONDS
from gbfl_compile.checking.prove.certificate import certificate
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.run import Expectation, TargetVerdict, Verdict, compare, expectation, with_proof
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import while_unchanged, write_whole
from gbfl_compile.ir.json import as_program, digest
from gbfl_compile.ir.nodes import Program
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    from gbfl_compile.learning.consistency import Triplets

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
    with temporary_artifacts(tuple(by_target.values()), "check") as paths:
        to_run = [ArtifactToRun(target, paths[target], proof) for target, proof in proofs.items()]
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

    With `targets`, only their folders are read. A proof may take `budget_seconds` per way of answering. `options`
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
    """The proof of the artifact in a folder, or the verdict on a folder that is not a target's."""
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
        verdict = compare(expected, backend(target).load(path), proof.constants())
    except CannotRun as error:
        verdict = TargetVerdict(target, "not run", str(error))
    except BadInput as error:
        verdict = TargetVerdict(target, "different", str(error))
    return verdict if _is_as_read(target, path, proof) else TargetVerdict(target, "not run", CHANGED)


CHANGED = "its files were changed after they were read: check it again"


def _is_as_read(target: str, path: Path, proof: ArtifactProof) -> bool:
    """Whether the artifact is still the one that was proved; of one that could not be read nothing was."""
    try:
        return not proof.files or _files_of(target, path) == proof.files
    except BadInput:
        return False


def _files_of(target: str, path: Path) -> dict[str, bytes]:
    return while_unchanged(path.parent, lambda: artifact_files(path, backend(target).extension))


def prove_file(
    program: Program,
    target: str,
    path: Path,
    budget_seconds: float = BUDGET_SECONDS,
    options: Options | None = None,
) -> ArtifactProof:
    """The proof of the artifact whose main file is `path`."""
    try:
        return prove_artifact(program, target, _files_of(target, path), budget_seconds, options)
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
            files = _files_of(target, main)
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


File: TypeAlias = "str | os.PathLike[str]"
Artifacts: TypeAlias = "File | Artifact | Iterable[Artifact]"
"""A folder with one subfolder per target, or artifacts that are on no disk yet."""


class Progress(Protocol):
    """Called at the start of each step, with a description and the number of steps in all."""

    def __call__(self, step: str, /, steps: int) -> None: ...


def _no_progress(step: str, /, steps: int) -> None:
    pass


def check(
    program: Program | File,
    artifacts: Artifacts,
    *,
    data: Any = None,
    triplets: Triplets | File | None = None,
    name: str | None = None,
    options: Mapping[str, Mapping[str, str]] | None = None,
    budget_seconds: float = BUDGET_SECONDS,
    progress: Progress = _no_progress,
) -> Verdict:
    """Read artifacts back, prove them equal to their source, and run them on rows chosen to tell them apart.

    data: a table (file, DataFrame or matrix) whose rows are run too.
    triplets: rows with their PPs and PNs, to compare local consistency.
    name: the artifacts' name, where a folder holds several.
    options: what the artifacts in a folder should have been emitted with: `{"sql:duckdb": {"column.age": "AGE"}}`.
    budget_seconds: the time limit per proof.
    """
    source = as_program(program)
    rows = points = book = None
    if data is not None:
        from gbfl_compile.tables.values import coded_rows

        rows, book = coded_rows(data, source)
    if triplets is not None:
        from gbfl_compile.learning.consistency import triplets_for

        points = triplets_for(source, triplets)
    emitted = _artifacts_of(artifacts)
    steps = 1 + len(emitted if isinstance(emitted, tuple) else artifact_folders(emitted))
    expected = expectation(source, rows, points, book)
    tell = partial(progress, steps=steps)
    if isinstance(emitted, tuple):
        return check_artifacts(expected, emitted, budget_seconds, tell)
    return check_folder(expected, emitted, name, budget_seconds=budget_seconds, tell=tell, options=options)


def prove(
    program: Program | File,
    artifacts: Artifacts,
    *,
    name: str | None = None,
    options: Mapping[str, Mapping[str, str]] | None = None,
    budget_seconds: float = BUDGET_SECONDS,
) -> dict[str, ArtifactProof]:
    """Read artifacts back and prove them equal to their source for every input; nothing is run. One proof per target.

    A folder may be that of one target (`build/c`) or hold one subfolder per target (`build`).
    """
    source, emitted = as_program(program), _artifacts_of(artifacts)
    if isinstance(emitted, tuple):
        return {
            each.target: prove_artifact(source, each.target, each.files, budget_seconds, each.options)
            for each in emitted
        }
    folders = [emitted] if target_of_folder(emitted.resolve().name) else list(artifact_folders(emitted).values())
    proofs = {}
    for folder in folders:
        if (target := target_of_folder(folder.resolve().name)) is None:
            raise BadInput(f"{folder}: no target is called {folder.name!r}")
        file = only_file(folder, backend(target).extension, name)
        proofs[target] = prove_file(source, target, file, budget_seconds, (options or {}).get(target))
    return proofs


def targets_in(out: File) -> list[str]:
    """The targets that a folder holds artifacts of."""
    return [target for name in artifact_folders(Path(out)) if (target := target_of_folder(name)) is not None]


def _artifacts_of(artifacts: Artifacts) -> Path | tuple[Artifact, ...]:
    if isinstance(artifacts, str | os.PathLike):
        return Path(artifacts)
    several = (artifacts,) if isinstance(artifacts, Artifact) else tuple(artifacts)
    for each in several:
        if not isinstance(each, Artifact):
            raise BadInput(f"an artifact is what emit returns, not {type(each).__name__}; or name a folder")
    if not several:
        raise BadInput("there are no artifacts to check")
    return several


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """Artifacts of one program, the verdict on them, and the files written."""

    program: str
    """The source's digest."""
    artifacts: tuple[Artifact, ...]
    verdict: Verdict | None
    """None where they were not checked."""
    files: Mapping[str, tuple[Path, ...]]
    """Target -> its files. None are written where an artifact is different."""

    @property
    def is_written(self) -> bool:
        """Whether the artifacts passed, or were not checked."""
        return self.verdict is None or self.verdict.verdict != "different"

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        return {
            "program": self.program,
            "targets": {target: [str(path) for path in paths] for target, paths in self.files.items()},
            "check": "not run" if self.verdict is None else self.verdict.as_json(),
        }


def compile_program(
    program: Program | File,
    targets: str | Sequence[str],
    out: File,
    *,
    name: str = "model",
    options: Mapping[str, Mapping[str, str]] | None = None,
    checked: bool = True,
    progress: Progress = _no_progress,
) -> CompilationResult:
    """Write a program for one or more targets, as OUT/<target>/NAME.<ext>, once all of them are checked.

    `options` are those of each target: `{"c": {"dtype": "float32"}}`. If an artifact is different, none is written.
    """
    wanted = (targets,) if isinstance(targets, str) else tuple(targets)
    settings = options or {}
    source = as_program(program)
    artifacts = tuple(
        emit(source, target, name, settings.get(target)) for target in wanted
    )  # all, before any is written
    verdict = check(source, artifacts, progress=progress) if checked else None
    result = CompilationResult(digest(source), artifacts, verdict, {})
    if not result.is_written:
        return result
    paths = write_artifacts(artifacts, Path(out))
    return replace(result, files=dict(zip(wanted, paths, strict=True)))


def certify(program: Program | File, artifacts: File, out: File, *, name: str | None = None) -> dict[str, str]:
    """Write the proofs of trees as certificates, one file per way a target answers; for those without one, why."""
    return certify_folder(as_program(program), Path(artifacts), Path(out), name)
