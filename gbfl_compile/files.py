"""Files are written whole or not at all: a reader never sees half of one, and a failure leaves the old one.

What is read may come from anyone: never more of it than its limit, and nothing that unpacks to many times its size.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gbfl_compile.errors import BadInput

MOST_UNPACKED = 2**30
MOST_TIMES = 200
"""A compressed file may unpack to so many bytes, or to so many times its size if that is more."""


LARGEST_FILE = 512 * 2**20
"""Bytes of an artifact or a black box."""


def read_whole(path: Path, most: int = LARGEST_FILE) -> bytes:
    """What a file holds, at most so many bytes. A pipe may be named too, a device that never ends is cut off."""
    try:
        with path.open("rb") as file:
            content = file.read(most + 1) if (size := os.fstat(file.fileno()).st_size) <= most else b""
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    if max(size, len(content)) > most:
        raise BadInput(f"{path}: {max(size, len(content))} bytes or more, at most {most} are read")
    return content


def refuse_bomb(path: Path, unpacked: int, most: int = MOST_UNPACKED) -> None:
    """Refuse a compressed file that unpacks to far more than data does: it would fill the memory."""
    if unpacked > max(most, MOST_TIMES * path.stat().st_size):
        raise BadInput(
            f"{path}: unpacks to {unpacked:,} bytes or more, over {MOST_TIMES} times its size:"
            " unpack it yourself if that is what you expect"
        )


def refuse_leading_out(path: Path, folder: Path) -> None:
    """Refuse a link in a folder of artifacts that leads out of it: who made the folder did not make what is there."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{path}: is or stands below a link that leads out of {folder}: put the file itself there")


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path`, making its folder where needed."""
    with whole_file(path) as partial:
        partial.write_bytes(content)


def make_folder(path: Path) -> None:
    """Make a folder where there is none, and find out now whether files can be put there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well, and vanishes when not.

    A link is followed: what it points at is replaced, not the link.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadInput(f"{path}: is neither a file nor a new name, nothing is put in its place")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise BadInput(f"{path}: is a folder, name a file")
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
    partial = Path(name)
    try:
        yield partial
        _settle(partial, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _settle(partial: Path, path: Path) -> None:
    mode = 0o666 & ~_umask()
    partial.chmod(path.stat().st_mode & 0o777 if path.exists() else mode)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
