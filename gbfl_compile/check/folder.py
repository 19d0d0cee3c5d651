"""Checks every artifact in an output folder against its source program."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gbfl_compile.artifacts import artifact_folders
from gbfl_compile.backends import backend, folder_name, target_of_folder
from gbfl_compile.backends.base import Predictor, only_file
from gbfl_compile.check.equivalence import Expectation, TargetVerdict, Verdict, check
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.version import GENERATOR


def check_folder(
    expected: Expectation, out: Path, name: str | None = None, targets: Collection[str] | None = None
) -> Verdict:
    """One verdict over all that lies in `out`; what cannot be run is named, never left out.

    With `targets` only their folders are looked at.
    """
    folders = artifact_folders(out)
    if targets is not None:
        folders = {folder_name(target): out / folder_name(target) for target in targets}
    return check(expected, {folder: _loaded(path, name) for folder, path in folders.items()})


def _loaded(folder: Path, name: str | None) -> Predictor | TargetVerdict:
    target = target_of_folder(folder.name)
    if target is None:
        return TargetVerdict(folder.name, "not run", f"{GENERATOR} has no target of this name")
    path = only_file(folder, backend(target).extension, name)  # an artifact that is not there is no verdict
    try:
        return backend(target).load(path)
    except CannotRun as error:
        return TargetVerdict(target, "not run", str(error))
    except BadInput as error:
        return TargetVerdict(target, "different", str(error))
