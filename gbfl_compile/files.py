"""Files are written whole or not at all: a reader never sees half of one, and a failure leaves the old one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gbfl_compile.errors import BadInput


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
