"""The targets: one row each. A new one is a backend file, a template and a line here.

Artifacts are on disk as `D/<target>/NAME.<ext>`, written together, found again by the folder's name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gbfl_compile.backends.base import Artifact, Backend, Options, Predictor, artifact_name, only_file
from gbfl_compile.backends.c import BACKEND as C
from gbfl_compile.backends.js import BACKEND as JS
from gbfl_compile.backends.onnx import BACKEND as ONNX
from gbfl_compile.backends.python import BACKEND as PYTHON
from gbfl_compile.backends.sql import BACKENDS as SQL
from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.files.atomic import files_together, one_writer, refuse_leading_out, temporary_folder, write_whole
from gbfl_compile.files.formats import shell_command, similar_file, wrong_file
from gbfl_compile.ir.json import as_program, digest
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.ir.validate import validate

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database

BACKENDS: Mapping[str, Backend] = {
    PYTHON.target: PYTHON,
    C.target: C,
    ONNX.target: ONNX,
    JS.target: JS,
    **SQL,
}


OTHER_NAMES = {
    **dict.fromkeys(("javascript", "typescript", "ts", "node", "nodejs", "mjs"), JS.target),
    **dict.fromkeys(("py", "python3"), PYTHON.target),
    **dict.fromkeys(("c99", "cpp", "c++"), C.target),
    **dict.fromkeys(("postgresql", "psql", "sql:postgresql", "sql:psql"), "sql:postgres"),
    **dict.fromkeys(("mssql", "sqlserver", "sql:mssql", "sql:sqlserver"), "sql:tsql"),
    **dict.fromkeys(("sqlite3", "sql:sqlite3"), "sql:sqlite"),
}
"""What people call a target otherwise."""


def _suggestion(target: str) -> str:
    """A guess at a mistyped target."""
    if not target:
        return " (a name is missing between two commas)"
    near = [OTHER_NAMES[target.lower()]] if target.lower() in OTHER_NAMES else []
    near = near or difflib.get_close_matches(target, BACKENDS, 1, 0.6)
    if target in (name.partition(":")[2] for name in BACKENDS):
        near = [f"sql:{target}"]
    if target == "sql":
        return " (which database? sql:duckdb, for example)"
    return f" (did you mean {near[0]}?)" if near else ""


def backend(target: str) -> Backend:
    """The row of a target, or an error that lists them all."""
    if target not in BACKENDS:
        raise BadInput(f"unknown target {target!r}{_suggestion(target)}: there are {', '.join(BACKENDS)}")
    return BACKENDS[target]


def emit(
    program: Program, target: str, name: str = "model", options: Options | None = None, **settings: str
) -> Artifact:
    """The program written for one target; nothing is written to disk.

    The target's options are given as a mapping or by name: `emit(program, "sql:postgres", form="view", table="loans")`.
    """
    all_options = {**(options or {}), **settings}
    for option, value in all_options.items():
        if not isinstance(value, str):
            raise BadInput(f"target {target}: {option}={value!r}: give options as text, such as {option}='{value}'")
    way = backend(target)
    decision = validate(program).decision
    if isinstance(decision, Scorecard) and decision.bands and not way.emits_bands:
        raise BadInput(f"target {target} does not write observed rates: mine the rule set with --probabilities score")
    artifact = way.emit(program, artifact_name(name), all_options)
    return replace(artifact, options=all_options)


def folder_name(target: str) -> str:
    """Where a target's artifacts go below an output folder: `sql:duckdb` goes to `sql-duckdb`."""
    return target.replace(":", "-")


def target_of_folder(name: str) -> str | None:
    """The target whose artifacts a folder of this name holds, or None."""
    return next((target for target in BACKENDS if folder_name(target) == name), None)


def write_artifact(artifact: Artifact, out: Path) -> tuple[Path, ...]:
    """Put an artifact's files into its target's folder below `out`, together; their paths."""
    (paths,) = write_artifacts([artifact], out)
    return paths


def write_artifacts(artifacts: Sequence[Artifact], out: Path) -> list[tuple[Path, ...]]:
    """Put several artifacts below `out`: all are staged before the first is moved into place."""
    folders = [out / folder_name(artifact.target) for artifact in artifacts]
    files: dict[Path, dict[str, bytes]] = {}
    for artifact, folder in zip(artifacts, folders, strict=True):
        files.setdefault(folder, {}).update(artifact.files)
        for name in artifact.files:
            refuse_leading_out(folder / name, out)
    with one_writer(out), ExitStack() as staged:
        for folder, content in files.items():
            staged.enter_context(files_together(folder, content))
    return [
        tuple(folder / name for name in artifact.files) for artifact, folder in zip(artifacts, folders, strict=True)
    ]


@contextmanager
def temporary_artifacts(artifacts: Sequence[Artifact], purpose: str) -> Iterator[dict[str, Path]]:
    """Artifacts in a folder that is gone after the block: for each target, the file to load."""
    folders = {artifact.target: folder_name(artifact.target) for artifact in artifacts}
    main_files = {artifact.target: f"{artifact.name}{backend(artifact.target).extension}" for artifact in artifacts}
    with temporary_folder(purpose) as out:
        for artifact in artifacts:
            for name, content in artifact.files.items():
                path = out / folders[artifact.target] / name
                refuse_leading_out(path, out)
                write_whole(path, content)
        yield {target: out / folders[target] / name for target, name in main_files.items()}


def artifact_folders(out: Path) -> dict[str, Path]:
    """Folder name -> folder below `out`. Hidden folders and Python's caches are ignored."""
    if not out.is_dir():
        absent = f"there is no such folder{similar_file(out)}"
        raise BadInput(f"{out}: {wrong_file(out, 'a folder of artifacts') or absent}")
    folders = sorted(path for path in out.iterdir() if path.is_dir() and path.name[0] not in "._")
    if not folders:
        if target_of_folder(out.resolve().name) is not None:
            raise BadInput(f"{out}: is the folder of one target: give the one above it, {out.parent}")
        compile_command = shell_command("gbfl", "compile", "PROGRAM.json", "--to", "python", "-o", str(out))
        raise BadInput(f"{out}: holds no artifact of any target; to write some: {compile_command}")
    return {folder.name: folder for folder in folders}


def load_artifact(folder: Path, name: str | None = None, *, database: Database | None = None) -> Predictor:
    """The artifact in a target's folder, ready to answer; SQL in a private database, or in one of yours.

    A database of yours is what `connect(url)` or `from_connection(dialect, connection)` gives.
    """
    folder = Path(folder)
    target = target_of_folder(folder.resolve().name)
    if target is None:
        inside = [path.name for path in sorted(folder.glob("*/")) if target_of_folder(path.name) is not None]
        if inside:
            each = ", ".join(str(folder / name) for name in inside)
            raise BadInput(f"{folder}: holds the folders of several artifacts: give one of them, {each}")
        wrong = f"no target is called {folder.resolve().name!r}, give an artifact's folder"
        raise BadInput(f"{folder}: {wrong}{similar_file(folder)}")
    row = backend(target)
    path = only_file(folder, row.extension, name)
    if database is None:
        return row.load(path)
    from gbfl_compile.backends.sql.run import load_in_database

    return load_in_database(path, target, database)


MOST_BESIDE, LARGEST_BESIDE = 20, 2**24
"""JSON files beside an artifact that are read, and the bytes of each."""


def program_beside(folder: Path, digest_there: str) -> Program | None:
    """The program of this digest beside an artifact's folder or one level up; None where there is none.

    It says which columns are needed and which texts mean missing. The answers are the artifact's own.
    """
    above = folder.resolve().parent
    for path in [path for place in (above, above.parent) for path in sorted(place.glob("*.json"))[:MOST_BESIDE]]:
        with suppress(GbflError, OSError):
            if path.stat().st_size <= LARGEST_BESIDE and digest(program := as_program(path)) == digest_there:
                return program
    return None
