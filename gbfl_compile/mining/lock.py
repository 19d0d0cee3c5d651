"""One job a folder: two that keep their explained rows in the same place would remove them from under each other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from gbfl_compile.errors import BadInput, CannotRun

LOCK = ".lock"


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the folder while the block runs; CannotRun where another process does. A killed process holds nothing."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; there the user sees to it
        yield
        return
    file = folder / LOCK
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise BadInput(f"{file}: cannot be written: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(handle, 20).decode("ascii", "replace").strip()
            raise CannotRun(
                f"{folder}: another gbfl mine, process {holder or 'unknown'}, keeps its explained rows there: "
                "wait for it, or name another folder with --checkpoint"
            ) from None
        if not _still_there(handle, file):
            raise CannotRun(f"{folder}: another gbfl mine has just finished with it: run the same command again")
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only its holder stays unnamed
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        yield
    finally:
        if _still_there(handle, file) and _is_ours(handle):
            file.unlink(missing_ok=True)
        os.close(handle)


def _still_there(handle: int, file: Path) -> bool:
    """Whether the file that was opened is the one that has the name now: its holder may have removed it since."""
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except OSError:
        return False


def _is_ours(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
