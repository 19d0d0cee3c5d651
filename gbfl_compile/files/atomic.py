"""Files are written whole or not at all: a reader never sees half of one, and a failure leaves the old one.

What is read may come from anyone: never more of it than its limit, and nothing that unpacks to many times its size.

An unfinished file or folder has a name that says what it is, begins with a dot and ends in `.gbfl-partial`, and is
locked by the process that writes it. After kill -9 it stays behind; the lock does not, so the next run knows it for a
leftover.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from gbfl_compile.errors import BadInput, CannotRun, GbflError

Read = TypeVar("Read")

MOST_UNPACKED = 2**30
MOST_TIMES = 200
"""A compressed file may unpack to this many bytes, or this many times its size if that is more."""


LARGEST_FILE = 512 * 2**20
"""Bytes of an artifact or a black box."""


def read_whole(path: Path, most: int = LARGEST_FILE) -> bytes:
    """The bytes of a file, at most `most`. A pipe may be named too; a device that never ends is cut off."""
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
        raise BadInput(f"{path}: is, or lies below, a link that leads out of {folder}: put the file itself there")


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path`, making its folder where needed."""
    with whole_file(path) as partial:
        partial.write_bytes(content)


def make_folder(path: Path) -> None:
    """Make a folder where there is none, and find out now whether files can be put there."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well, and vanishes when not.

    A link is followed: what it points at is replaced, not the link.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadInput(f"{path}: is neither a file nor a new name, nothing is put in its place")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise BadInput(f"{path}: is a folder, name a file")
        with unfinished_file(path) as partial:
            yield partial
            _settle(partial, path)


def _settle(partial: Path, path: Path) -> None:
    partial.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~umask())
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(path)


def umask() -> int:
    """What is taken from the mode of new files; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """An error of the file system in the block is said in one line that names `path`."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


OUT_OF_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE}
"""What is no fault of the name given: the machine has no room, or not the means."""


def unwritable(path: Path, error: OSError) -> GbflError:
    """The error to raise where something could not be written at `path`."""
    problem = os.strerror(error.errno) if error.errno else str(error)
    kind = CannotRun if error.errno in OUT_OF_ROOM else BadInput
    return kind(f"{path}: cannot be written: {problem}")


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A folder among the system's temporary ones, gone with the block."""
    try:
        inside = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise CannotRun(f"there is no folder for temporary files: {error.strerror}: name one in TMPDIR") from None
    clear_leftovers(inside)
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(unfinished_folder(inside, f"gbfl-{purpose}"))
        except OSError as error:
            problem = error.strerror or error
            raise CannotRun(
                f"{inside}: no temporary folder can be made there: {problem}: name another in TMPDIR"
            ) from None
        inner = folder / purpose  # the outer one is locked as unfinished; this one may be locked by its writer
        inner.mkdir()
        yield inner


def while_unchanged(folder: Path, read: Callable[[], Read]) -> Read:
    """What `read` finds in a folder that was not replaced in the meantime: never some files of one, some of another."""
    for _ in range(PATIENCE):
        before = _identity(folder)
        try:
            content = read()
        except (OSError, BadInput):
            if before == _identity(folder):
                raise
            continue
        if before == _identity(folder):
            return content
    raise BadInput(f"{folder}: keeps being replaced by another process, try again later")


PATIENCE = 100


def _identity(folder: Path) -> tuple[int, ...] | None:
    try:
        state = folder.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_mtime_ns


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
