"""Certificates for what lies in an output folder: one file a way of answering, for whoever wants to check a proof."""

from __future__ import annotations

from pathlib import Path

from gbfl_compile.artifacts import artifact_folders
from gbfl_compile.backends import backend, target_of_folder
from gbfl_compile.backends.base import only_file
from gbfl_compile.check.artifact_proof import artifact_files
from gbfl_compile.check.certificate import certificate
from gbfl_compile.check.readers import read
from gbfl_compile.check.reading import Unread
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import write_whole
from gbfl_compile.ir.nodes import Program


def certify_folder(program: Program, out: Path, to: Path, name: str | None = None) -> dict[str, str]:
    """Write `to/TARGET-N.json` for each way a target answers; for those that have none, why not."""
    refused = {}
    for folder, path in artifact_folders(out).items():
        target = target_of_folder(folder)
        if target is None:
            continue
        main = only_file(path, backend(target).extension, name)
        try:
            readings = read(target, artifact_files(main, backend(target).extension))
        except (Unread, BadInput, CannotRun) as error:
            refused[folder] = str(error)
            continue
        for number, reading in enumerate(readings):
            try:
                write_whole(to / f"{folder}-{number}.json", certificate(program, reading).encode("ascii"))
            except (BadInput, CannotRun) as error:
                refused[f"{folder}, {reading.place}"] = str(error)
    return refused
