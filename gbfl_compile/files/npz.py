"""Arrays in an NPZ file that may come from anyone: only those expected, as large as they say, nothing unpickled."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import refuse_bomb

LONGEST_HEADER = 10_000
"""Characters in which an array says its type and shape."""


def read_arrays(
    path: Path, names: Collection[str], what: str, optional: Collection[str] = ()
) -> dict[str, NDArray[Any]]:
    """The arrays of these names in a file of `what`; one that is absent, or there besides, is an error."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return _arrays(path, archive, names, what, optional)
    except BadInput:
        raise
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a broken archive fails in as many ways as there are bytes in it
        raise BadInput(f"{path}: not an NPZ file of {what}: {error or type(error).__name__}") from None


def _arrays(
    path: Path, archive: zipfile.ZipFile, names: Collection[str], what: str, optional: Collection[str]
) -> dict[str, NDArray[Any]]:
    members = archive.infolist()
    stored = [member.filename.removesuffix(".npy") for member in members]
    for name in stored:
        if name not in names and (name not in optional or stored.count(name) > 1):
            raise BadInput(f"{path}: holds an array {name!r} that {what} do not have")
    for name in names:
        if stored.count(name) != 1:
            lacks = "lacks the array" if name not in stored else "holds more than one array"
            raise BadInput(f"{path}: {lacks} {name!r}, it needs {', '.join(names)}")
    refuse_bomb(path, sum(member.file_size for member in members))
    return {name: _array(archive, member) for name, member in zip(stored, members, strict=True)}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array. Its shape is believed once the bytes for it are there: room is made for a shape before it is read."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{member.filename}: of format {version}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file, max_header_size=LONGEST_HEADER)
        size = member.file_size - file.tell()
    if any(type(length) is not int or length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{member.filename}: says it has the shape {shape} of {dtype}, in {size} bytes")
    with archive.open(member) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array
