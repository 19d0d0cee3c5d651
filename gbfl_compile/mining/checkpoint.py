"""The folder of explained rows from which an interrupted run resumes; one run at a time per folder."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import make_folder

LOCK = ".lock"


def default_checkpoint(out: Path) -> Path:
    """Where explained rows are kept until `out` is written."""
    return out.with_name(f"{out.name}.parts")


def explained_files(folder: Path) -> int:
    """How many files of explained rows a checkpoint holds."""
    return len(list(folder.glob("*/**/rows-*.npz")))


@contextlib.contextmanager
def checkpoint_folder(folder: Path, *, keep: bool) -> Iterator[None]:
    """Hold `folder` while the block runs. Unless `keep`, explained rows are removed once the block has succeeded.

    Whatever else stops the block, they stay, and the same run resumes from them. An empty folder is removed.
    """
    make_folder(folder)
    try:
        with only_one(folder):
            yield
            if not keep:
                _remove_explained(folder)
    except KeyboardInterrupt:
        if not keep and not explained_files(folder):
            _remove_explained(folder)
        raise
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _remove_explained(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for part in ("training", "test"):
            shutil.rmtree(folder / part)


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Lock the folder while the block runs; CannotRun where another process has. A killed process holds no lock."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; there the user must take care
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
