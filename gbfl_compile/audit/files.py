"""Audits a file: an emitted or hand-edited .py, .c, .onnx or .sql, read back and proved. Python and C are never run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from gbfl_compile.audit.answer import Audited
from gbfl_compile.audit.compared import compared
from gbfl_compile.backends import backend
from gbfl_compile.check.artifact_proof import ArtifactProof, artifact_files
from gbfl_compile.check.equivalence import compare, expectation
from gbfl_compile.check.prove import BUDGET_SECONDS
from gbfl_compile.check.readers import LARGEST, read
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import read_whole
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Program
from gbfl_compile.triplets import Triplets

TARGETS = {".py": "python", ".c": "c", ".onnx": "onnx"}
HEADER_TARGET = '["target", "sql:'


@dataclass(frozen=True, slots=True)
class Given:
    """What an audit is held against and looked at with."""

    program: Program
    data: Matrix | None = None
    triplets: Triplets | None = None
    budget_seconds: float = BUDGET_SECONDS
    columns: dict[str, str] = field(default_factory=dict)
    """Feature -> column, where a table has other names."""


def audit_file(given: Given, path: Path, dialect: str | None = None) -> Audited:
    """What is known of one file. A graph and SQL are run on witnesses too; Python and C are only read."""
    content = read_whole(path, LARGEST)
    target = _target(path, content, dialect)
    deployed = Audited(str(path), "file", "not run", fingerprint=hashlib.sha256(content).hexdigest())
    try:
        readings = _readings(target, path, content)
    except Unread as error:
        return replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except CannotRun as error:
        return replace(deployed, reason=str(error))
    found = compared(deployed, given.program, readings, given.data, given.triplets, given.budget_seconds)
    return _run_too(found, given, target, path)


def _target(path: Path, content: bytes, dialect: str | None) -> str:
    if path.suffix in TARGETS:
        return TARGETS[path.suffix]
    if path.suffix != ".sql":
        raise BadInput(f"{path}: give a .py, .c, .onnx or .sql file, or a library with --library")
    if dialect is not None:
        return f"sql:{dialect}"
    _, found, rest = content.decode("utf-8", "replace").partition(HEADER_TARGET)
    if not found:
        raise BadInput(f"{path}: does not say which database it is for: name it with --dialect")
    return f"sql:{rest.partition(chr(34))[0]}"


def _readings(target: str, path: Path, content: bytes) -> tuple[Reading, ...]:
    if target == "c":
        return read(target, artifact_files(path, ".c"))
    return read(target, {path.name: content})


def _run_too(found: Audited, given: Given, target: str, path: Path) -> Audited:
    """With what running it on witnesses showed, where it may be run."""
    if target in ("python", "c") or (found.proof is not None and found.proof.answer == "other names"):
        return found
    try:
        verdict = compare(expectation(given.program), backend(target).load(path))
    except CannotRun as error:
        return found if found.verdict != "not run" else replace(found, reason=str(error))
    except BadInput as error:
        return replace(found, more={**found.more, "not executed": str(error)})
    ran = replace(found, execution=verdict.execution)
    if verdict.execution is not None:
        ran = replace(ran, engine=verdict.execution.engine)
    return replace(ran, verdict="different") if verdict.verdict == "different" else ran
