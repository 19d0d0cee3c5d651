"""Artifacts on disk: `D/<target>/NAME.<ext>`, written whole, found again by the folder's name."""

from __future__ import annotations

from pathlib import Path

from gbfl_compile.backends import backend, folder_name, target_of_folder
from gbfl_compile.backends.base import Artifact, Predictor, only_file
from gbfl_compile.errors import BadInput
from gbfl_compile.files import refuse_leading_out, write_whole


def write_artifact(artifact: Artifact, out: Path) -> tuple[Path, ...]:
    """Put an artifact's files into its target's folder below `out`; their paths."""
    folder = out / folder_name(artifact.target)
    for name in artifact.files:
        refuse_leading_out(folder / name, out)
    written = []
    for name, content in artifact.files.items():
        write_whole(folder / name, content)
        written.append(folder / name)
    return tuple(written)


def artifact_folders(out: Path) -> dict[str, Path]:
    """Folder name -> folder for what lies below `out`. Hidden folders and Python's caches are nobody's artifacts."""
    if not out.is_dir():
        raise BadInput(f"{out}: there is no such folder")
    folders = sorted(path for path in out.iterdir() if path.is_dir() and path.name[0] not in "._")
    if not folders:
        raise BadInput(f"{out}: holds no artifact of any target, write some with gbfl compile")
    return {folder.name: folder for folder in folders}


def load_artifact(folder: Path, name: str | None = None) -> Predictor:
    """The artifact in a target's folder, ready to answer."""
    target = target_of_folder(folder.resolve().name)
    if target is None:
        inside = [path.name for path in sorted(folder.glob("*/")) if target_of_folder(path.name) is not None]
        here = f", there is {', '.join(str(folder / name) for name in inside)}" if inside else ""
        raise BadInput(f"{folder}: no target is called {folder.resolve().name!r}, name an artifact's folder{here}")
    row = backend(target)
    return row.load(only_file(folder, row.extension, name))
