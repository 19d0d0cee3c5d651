"""Audits a file: an emitted or hand-edited .py, .c, .js, .onnx or .sql, read back and proved. Code is never run."""

from __future__ import annotations

import ast
import hashlib
import marshal
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

from gbfl_compile.auditing.compare import AuditInput, OverDoubles, Prover, compare_readings, weaker_without_run
from gbfl_compile.auditing.mend import feature_columns, with_mend
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.backends import backend
from gbfl_compile.backends.base import Predictor
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import load as load_sql
from gbfl_compile.checking.artifact import LARGEST, ArtifactProof, artifact_files, read_artifact
from gbfl_compile.checking.general.sql import layout_in_header
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.checking.strict.python import PYTHONS_OWN
from gbfl_compile.checking.witnesses import artifact_constants
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole

TARGETS = {".py": "python", ".c": "c", ".onnx": "onnx", ".js": "js"}
OPENING = "-- gbfl ["
HEADER_TARGET = '["target", "sql:'


def audit_file(inputs: AuditInput, path: Path, dialect: str | None = None, label: str | None = None) -> DeployedVerdict:
    """The verdict on one file. A graph and SQL are run on witnesses too; Python, C and JavaScript are only read."""
    verdict = _audit(inputs, path, dialect, label)
    if fingerprint_of(_files(path, read_whole(path, LARGEST))) != verdict.fingerprint:
        raise BadInput(f"{path}: was changed while it was audited, audit it again")
    return verdict


def _files(path: Path, content: bytes) -> dict[str, bytes]:
    """The text that an audit of the file covers: C together with its folder, any other file by itself."""
    return artifact_files(path, ".c") if path.suffix == ".c" else {path.name: content}


def _audit(inputs: AuditInput, path: Path, dialect: str | None, label: str | None) -> DeployedVerdict:
    content = read_whole(path, LARGEST)
    target = _target(path, content, dialect)
    options = {f"column.{feature}": column for feature, column in inputs.columns.items()}
    files = _files(path, content)
    deployed = DeployedVerdict(str(path), "file", "not run", fingerprint=fingerprint_of(files), material=files)
    approved = replace(inputs.program, classes=inputs.class_names)
    labels = None if inputs.names is None else inputs.program.classes
    try:
        if labels is not None and target.startswith("sql:"):
            _refuse_other_classes(inputs, content)
        artifact = read_artifact(target, files, approved, options, labels)
    except Unread as error:
        if target.startswith("sql:") and OPENING.encode() not in content and not approved.kinds:
            return _audit_by_hand(inputs, deployed, content, target.removeprefix("sql:"), label)
        return replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except CannotRun as error:
        return replace(deployed, reason=str(error))
    verdict = compare_readings(deployed, inputs, artifact)
    if target != "onnx" and len(files) == 1:

        def read(name: str, text: str) -> tuple[Prover, tuple[Reading, ...]]:
            del name
            edited = read_artifact(target, {path.name: text.encode("utf-8")}, approved, options, labels)
            return OverDoubles(), edited.readings

        text = content.decode("utf-8", errors="replace")
        verdict = with_mend(verdict, inputs, {"": text}, feature_columns(inputs), read)
    if target == "python":
        return _without_shadows(verdict, path, content)
    if target.startswith("sql:"):
        verdict = _use_header(verdict, inputs, content)
    return weaker_without_run(_run(verdict, inputs, target, path, files))


def _audit_by_hand(
    inputs: AuditInput, deployed: DeployedVerdict, content: bytes, dialect: str, label: str | None
) -> DeployedVerdict:
    """SQL without our header, as people write it."""
    from gbfl_compile.auditing.plain_sql import audit_plain_sql

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return replace(deployed, verdict="unread", reason="is not UTF-8", proof=ArtifactProof("unread", "is not UTF-8"))
    try:
        return audit_plain_sql(inputs, deployed, text, dialect, label or "label")
    except CannotRun as error:
        return replace(deployed, reason=str(error))


def _target(path: Path, content: bytes, dialect: str | None) -> str:
    if path.suffix in TARGETS:
        return TARGETS[path.suffix]
    if path.suffix != ".sql":
        raise BadInput(f"{path}: give a .py, .c, .js, .onnx or .sql file, or a library with --library")
    if dialect is not None:
        return f"sql:{dialect}"
    _, header, rest = content.decode("utf-8", "replace").partition(HEADER_TARGET)
    if not header:
        raise BadInput(f"{path}: does not say which database it is for: name it with --dialect")
    return f"sql:{rest.partition(chr(34))[0]}"


def _refuse_other_classes(inputs: AuditInput, content: bytes) -> None:
    """A header that lists the classes otherwise would put names and labels together in an order of its own."""
    try:
        listed = layout_in_header(content.decode("utf-8", "replace")).classes
    except Unread:
        return  # without a header only the strict reader reads it, and that one needs no header
    kinds = [(type(label), label) for label in listed]
    if not any(kinds == [(type(each), each) for each in side] for side in (inputs.class_names, inputs.program.classes)):
        raise Unread(f"its header lists the classes {', '.join(map(repr, listed[:5]))}, which are not the program's")


def _without_shadows(verdict: DeployedVerdict, path: Path, content: bytes) -> DeployedVerdict:
    """A file that an import would skip is not what is deployed."""
    shadow = import_shadow(path, content) if verdict.verdict == "equal" else None
    return verdict if shadow is None else replace(verdict, verdict="unread", reason=shadow)


def _use_header(verdict: DeployedVerdict, inputs: AuditInput, content: bytes) -> DeployedVerdict:
    """What the file's header says: the digest, and the columns that features are read from, checked against --column.

    The strict reader needs no header: it reads each feature from the column that --column names, or of its own name.
    """
    try:
        header = layout_in_header(content.decode("utf-8"))
    except Unread:
        return verdict
    verdict = replace(verdict, carried_digest=header.digest)
    columns = {header.features[feature]: column for feature, column in header.columns}
    verdict = replace(verdict, feature_columns={name: own for name, own in columns.items() if own != name})
    for name, own in columns.items():
        stated = inputs.columns.get(name)
        if stated is not None and stated != own and verdict.verdict == "equal":
            reason = f"it reads the feature {name!r} from the column {own!r}, not from {stated!r} as --column says"
            return replace(verdict, verdict="different", reason=reason)
        if stated is None and own != name and verdict.verdict == "equal":
            reason = (
                f"it reads the feature {name!r} from the column {own!r}: if that is meant, say --column {name}={own}"
            )
            verdict = replace(verdict, verdict="unread", reason=reason)
    return verdict


def _load(inputs: AuditInput, target: str, path: Path) -> Predictor:
    if inputs.names is None or not target.startswith("sql:"):
        return backend(target).load(path)
    return load_sql(DIALECTS[target.removeprefix("sql:")], path, inputs.program.classes)


def _run(
    verdict: DeployedVerdict, inputs: AuditInput, target: str, path: Path, files: Mapping[str, bytes]
) -> DeployedVerdict:
    """The verdict after running the file on witnesses, where it may be run."""
    if target in ("python", "c", "js") or (verdict.proof is not None and verdict.proof.answer == "other names"):
        return verdict
    try:
        ran = compare(expectation(inputs.program), _load(inputs, target, path), artifact_constants(files))
    except CannotRun as error:  # there is no engine here
        verdict = replace(verdict, not_executed=str(error))
        return verdict if verdict.verdict != "not run" else replace(verdict, reason=str(error))
    except BadInput as error:
        return replace(verdict, not_executed=str(error))
    if ran.execution is not None:
        verdict = replace(verdict, execution=ran.execution, engine=ran.execution.engine)
    if ran.verdict == "not run" and verdict.verdict == "equal":
        return replace(verdict, verdict="not run", reason=f"its engine did not run it: {ran.reason}")
    if ran.verdict == "different":
        return replace(verdict, verdict="different", reason=verdict.reason or ran.reason)
    return verdict


def import_shadow(path: Path, content: bytes) -> str | None:
    """The first file beside a Python file that an import may run in its place; None where there is none."""
    folder, stem = path.parent, path.stem
    package = folder / stem
    if package.is_dir() and any(package.glob("__init__.*")):
        return f"{stem}/ beside it is a package, which Python imports instead: remove it"
    for file in sorted(folder.glob(f"{stem}.*")):
        if file.suffix in (".so", ".pyd"):
            return f"{file.name} beside it is a compiled module, which Python imports instead: remove it"
    for file in sorted(folder.iterdir()):
        name = file.name.split(".")[0]
        if file != path and name in PYTHONS_OWN and _can_be_imported(file):
            return f"{file.name} beside it may be what Python imports as {name}, and not its own: remove it"
    for file in sorted((folder / "__pycache__").glob(f"{stem}.*.pyc")):
        if not _is_stale(file, path, content) and not _is_compiled_from(file, content):
            return f"__pycache__/{file.name} is what Python runs, and was not compiled from it: remove it"
    opening = folder / "__init__.py"
    if stem != "__init__" and opening.is_file() and not _does_nothing(opening.read_bytes()):
        return (
            "__init__.py beside it runs first, when the folder is imported as a package: remove it, or leave it empty"
        )
    return None


def _can_be_imported(file: Path) -> bool:
    """Whether an import finds this file or folder; `math-notes.txt` is ignored."""
    if file.is_dir():
        return any(file.glob("__init__.*"))
    return file.suffix in (".py", ".pyc", ".pyw", ".so", ".pyd")


def _is_stale(file: Path, source: Path, content: bytes) -> bool:
    """Whether Python sees that the compiled file is older than its source, and compiles it again."""
    try:
        head = file.read_bytes()[:16]
        changed, size = int(source.stat().st_mtime) & 0xFFFFFFFF, len(content) & 0xFFFFFFFF
    except OSError:
        return False
    flags = int.from_bytes(head[4:8], "little")
    if len(head) < 16:
        return True
    if flags & 1:  # by the hash of the source: looked at only with the second bit
        return bool(flags & 2) and head[:4] == MAGIC_NUMBER and head[8:] != source_hash(content)
    return (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")) != (changed, size)


def _is_compiled_from(file: Path, content: bytes) -> bool:
    """Whether the compiled file was compiled from this source. Code of another Python cannot be compared."""
    compiled = file.read_bytes()
    level = re.search(r"\.opt-([12])\.pyc$", file.name)
    if compiled[:4] != MAGIC_NUMBER:
        return False
    try:
        code = marshal.loads(compiled[16:])  # noqa: S302 - loaded and compared, never run
        expected = compile(content, "model", "exec", dont_inherit=True, optimize=int(level[1]) if level else 0)
    except (ValueError, EOFError, TypeError, SyntaxError):
        return False
    return bool(code == expected)


def _does_nothing(content: bytes) -> bool:
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError):
        return False
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in body)


def fingerprint_of(files: Mapping[str, bytes]) -> str:
    """The SHA-256 of a file; of several, that of the list of their names and hashes."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    return hashlib.sha256("".join(f"{name} {hashes[name]}\n" for name in sorted(hashes)).encode("utf-8")).hexdigest()
