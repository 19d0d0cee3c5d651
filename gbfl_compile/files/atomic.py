"""Files are written whole or not at all: a reader never sees half of one, and a failure leaves the old one.

What is read may come from anyone: never more of it than its limit, and nothing that unpacks to many times its size.

An unfinished file or folder has a name that says what it is, begins with a dot and ends in `.gbfl-partial`, and is
locked by the process that writes it. After kill -9 it stays behind; the lock does not, so the next run knows it for a
leftover.

Several files of one folder take their places together: the new folder is made beside the old one, with links to what
else is in it, and the two change places in one step of the file system.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.files.formats import similar_file

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there, and leftovers are left
    fcntl = None  # type: ignore[assignment]

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
        raise BadInput(f"{path}: {error.strerror or error}{similar_file(path)}") from None
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
    """Refuse a link that leads out of a folder of artifacts: whoever wrote the folder did not write its target."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{path}: is, or lies below, a link that leads out of {folder}: put the file itself there")


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` at `path`, making its folder where needed."""
    with whole_file(path) as partial:
        partial.write_bytes(content)


def make_folder(path: Path) -> None:
    """Create the folder if needed, and check now that files can be written to it."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it if the block succeeds, and is removed if it fails.

    A link is followed: what it points at is replaced, not the link.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadInput(f"{path}: is neither a file nor a new name, and is not replaced")
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
    """The umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Reports a file system error in the block in one line that names `path`."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


OUT_OF_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE}
"""Errors that another path would not cure: the disk is full or broken, or too many files are open."""


def unwritable(path: Path, error: OSError) -> GbflError:
    """The error to raise where something could not be written at `path`."""
    problem = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        problem += ": a file is where a folder is needed, name another folder"
    kind = CannotRun if error.errno in OUT_OF_ROOM else BadInput
    return kind(f"{path}: cannot be written: {problem}")


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A temporary folder, removed when the block ends."""
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
    """What `read` returns, retried until the folder was not replaced meanwhile: never a mix of two versions."""
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


ENDING = ".gbfl-partial"

_unfinished: set[Path] = set()


@contextlib.contextmanager
def unfinished_file(beside: Path) -> Iterator[Path]:
    """An empty file beside `beside`, removed when the block ends unless it was moved to its final place."""
    with _unfinished_at(beside.parent, beside.name, is_folder=False) as path:
        yield path


@contextlib.contextmanager
def unfinished_folder(inside: Path, name: str) -> Iterator[Path]:
    """An empty folder in `inside`, removed with its contents when the block ends unless it was moved to its place."""
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
    """Recorded before it is created, so that a signal between the two leaves nothing behind."""
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
        _unfinished.discard(path)  # before it was locked, another process removed it as a leftover


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
    """Remove the unfinished files of killed processes from a folder; those of running processes stay."""
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


SET_ASIDE = ".gbfl-before"
"""Ends the name of an old folder while a new one replaces it, where that takes two steps."""


@contextlib.contextmanager
def one_writer(out: Path) -> Iterator[None]:
    """Create the folder `out`, and keep other gbfl processes from writing to it until the block ends."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        handle = os.open(out, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            _wait_for_lock(handle, out)
        clear_leftovers(out)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _wait_for_lock(handle: int, out: Path) -> None:
    """Wait for the lock, but not for ever."""
    given_up = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > given_up:
                raise CannotRun(f"{out}: another process has been writing there for {LOCK_SECONDS:g} s") from None
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return


LOCK_SECONDS = 60.0


@contextlib.contextmanager
def files_together(folder: Path, files: Mapping[str, bytes]) -> Iterator[None]:
    """Write the files elsewhere now; if the block succeeds, all of them are moved into `folder`."""
    folder = folder.resolve() if folder.is_symlink() else folder
    _bring_back(folder)
    clear_leftovers(folder)
    changed = {name: content for name, content in files.items() if not _holds(folder / name, content)}
    with contextlib.ExitStack() as staged:
        if len(changed) > 1 or not folder.exists():
            staged.enter_context(_folder_replaced(folder, changed))
        for name, content in changed.items() if folder.exists() and len(changed) == 1 else ():
            staged.enter_context(whole_file(folder / name)).write_bytes(content)
        yield


def _holds(path: Path, content: bytes) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


@contextlib.contextmanager
def _folder_replaced(folder: Path, changed: Mapping[str, bytes]) -> Iterator[None]:
    with writing(folder), unfinished_folder(folder.parent, folder.name) as fresh:
        if folder.exists():
            shutil.copytree(folder, fresh, symlinks=True, copy_function=_link, dirs_exist_ok=True)
        else:
            fresh.chmod(0o777 & ~umask())
        for name, content in changed.items():
            write_whole(fresh / name, content)
        yield
        if folder.exists():
            _exchange(fresh, folder)
        else:
            fresh.rename(folder)


def _link(source: str, target: str) -> None:
    """A hard link to the file; a copy where the file system has no hard links."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def _exchange(fresh: Path, folder: Path) -> None:
    """Swap the two; where the system cannot do that in one step, the old one is moved aside for a moment."""
    if _exchange_atomically(fresh, folder):
        return
    aside = folder.with_name(f".{folder.name}{SET_ASIDE}")
    folder.rename(aside)
    fresh.rename(folder)
    shutil.rmtree(aside, ignore_errors=True)


def _bring_back(folder: Path) -> None:
    """A process that was killed between the two steps has left the old folder aside."""
    aside = folder.with_name(f".{folder.name}{SET_ASIDE}")
    if aside.is_dir():
        with writing(folder):
            if folder.exists():
                shutil.rmtree(aside, ignore_errors=True)
            else:
                aside.rename(folder)


AT_WORKING_FOLDER, EXCHANGE = -100, 2
"""Linux: AT_FDCWD and RENAME_EXCHANGE."""


def _exchange_atomically(one: Path, other: Path) -> bool:
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done = rename(AT_WORKING_FOLDER, os.fsencode(one), AT_WORKING_FOLDER, os.fsencode(other), EXCHANGE)
    return bool(done == 0)
