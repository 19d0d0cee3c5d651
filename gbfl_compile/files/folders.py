"""Several files of one folder take their places together: a reader finds all of the old ones or all of the new.

The new folder is made beside the old one, with links to what else lies there, and the two change places in one step
of the file system.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from gbfl_compile.errors import CannotRun
from gbfl_compile.files.atomic import clear_leftovers, umask, unfinished_folder, whole_file, write_whole, writing

try:
    import fcntl
except ImportError:  # Windows: two processes are not kept apart there
    fcntl = None  # type: ignore[assignment]

SET_ASIDE = ".gbfl-before"
"""Ends the name of an old folder while a new one takes its place, where that takes two steps."""


@contextlib.contextmanager
def one_writer(out: Path) -> Iterator[None]:
    """Make the folder `out` and keep other processes of ours from putting anything there until the block ends."""
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        handle = os.open(out, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            _lock(handle, out)
        clear_leftovers(out)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int, out: Path) -> None:
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
    """Write the files aside now; they are in `folder`, all of them, when the block has ended well."""
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
    """The same file under another name; a copy where the file system has no such thing."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def _exchange(fresh: Path, folder: Path) -> None:
    """Each takes the other's place; where the system cannot do that at once, the old one is set aside for a moment."""
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
