"""What is being made and not yet in its place: removed when the command ends, whichever way it ends.

Each has a name that says what it is, begins with a dot and ends in `.gbfl-partial`, and is locked by the process that
makes it. After kill -9 it stays behind; the lock does not, so that the next run knows it for a leftover.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and leftovers are left
    fcntl = None  # type: ignore[assignment]

ENDING = ".gbfl-partial"

_unfinished: set[Path] = set()


@contextlib.contextmanager
def unfinished_file(beside: Path) -> Iterator[Path]:
    """An empty file beside `beside`, gone with the block unless it was moved to its place."""
    with _unfinished_at(beside.parent, beside.name, is_folder=False) as path:
        yield path


@contextlib.contextmanager
def unfinished_folder(inside: Path, name: str) -> Iterator[Path]:
    """An empty folder in `inside`, gone with the block and with all that is in it, unless it was moved to its place."""
    with _unfinished_at(inside, name, is_folder=True) as path:
        yield path


@contextlib.contextmanager
def _unfinished_at(inside: Path, name: str, is_folder: bool) -> Iterator[Path]:
    path, handle = _create(inside, name, is_folder)
    try:
        yield path
    finally:
        _remove(path)
        if handle is not None:
            os.close(handle)
        _unfinished.discard(path)


def _create(inside: Path, name: str, is_folder: bool) -> tuple[Path, int | None]:
    """Noted before it is made: a signal between the two leaves nothing behind."""
    while True:
        path = inside / f".{name[:100]}.{secrets.token_hex(4)}{ENDING}"
        _unfinished.add(path)
        try:
            if is_folder:
                path.mkdir(mode=0o700)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            _unfinished.discard(path)
            continue
        except OSError:
            _unfinished.discard(path)
            raise
        if fcntl is None:
            return path, None
        if (handle := _lock(path)) is not None:
            return path, handle
        _unfinished.discard(path)  # someone who was tidying up took it for a leftover before it was locked


def _lock(path: Path) -> int | None:
    """An open, locked handle of the file at `path`, or None where another has the lock or it is gone."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == path.stat().st_ino:
            return handle
    except OSError:
        pass
    os.close(handle)
    return None


def clear_leftovers(folder: Path) -> None:
    """Remove what killed processes have left unfinished in a folder; what a living one is making stays."""
    if fcntl is None or not folder.is_dir():
        return
    with contextlib.suppress(OSError):  # a folder that cannot be listed is reported when it is written to
        for path in folder.glob(f".*{ENDING}"):
            if not path.is_symlink() and (handle := _lock(path)) is not None:
                _remove(path)
                os.close(handle)


def sweep() -> None:
    """Remove all that this process has not finished: the last thing a command does."""
    for path in list(_unfinished):
        _remove(path)
        _unfinished.discard(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
