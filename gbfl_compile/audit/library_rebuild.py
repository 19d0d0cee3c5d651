"""Builds the source that a library is said to come from, and says whether the bytes are the same.

Same bytes tie the library to its source. Other bytes prove nothing: compilers, versions and flags all change them.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from gbfl_compile.backends.c_build import find_compiler
from gbfl_compile.backends.c_command import run_compiler
from gbfl_compile.errors import CannotRun
from gbfl_compile.files import temporary_folder

SECONDS = 60

ALWAYS = ("-ffp-contract=off", "-fPIC", "-shared")
PLAIN = re.compile(
    r"-O[0-3s]?|-g[0-3]?|-s|-w|-W[a-z][a-z0-9=+-]*|-pipe|-shared|-lm|-std=(c|gnu)(99|9x|11|17|18|23|2x)"
    r"|-f(PIC|pic|fp-contract=off|visibility=hidden|stack-protector(-strong|-all)?|no-plt|(function|data)-sections)"
    r"|-DNDEBUG|-DGBFL_(WITH_LIBM|NO_BATCH|NO_CLONES)|-m(64|arch=[\w.-]+|tune=[\w.-]+)"
)
"""Flags with which a source means what it says. A macro, or a header put before it, makes another program of it."""

LEVELS = ("-O2", "-O3", "-O1", "-O0")
LIBM: tuple[tuple[str, ...], ...] = ((), ("-DGBFL_WITH_LIBM", "-lm"))
"""Without and with the probabilities of a rule set."""


def rebuild(source: Path, files: Mapping[str, bytes], fingerprint: str, flags: Sequence[str] | None) -> dict[str, Any]:
    """Whether some build of the source has this fingerprint; with `flags`, that build and no other."""
    compiler = find_compiler()
    if compiler is None:
        return {"same_bytes": None, "told": "not rebuilt: no C compiler was found, install one or name it in CC"}
    failed = ""
    with temporary_folder("rebuild") as folder:
        _write(folder, files)
        for tried in _flags(flags, b"GBFL_WITH_LIBM" in files[source.name]):
            failed = _built(compiler.command, tried, source.name, folder)
            same = not failed and hashlib.sha256((folder / "rebuilt.so").read_bytes()).hexdigest() == fingerprint
            if same:
                told = f"same bytes as a build of {source.name} by {compiler.version}, {' '.join(tried)}"
                if others := [flag for flag in tried if not PLAIN.fullmatch(flag)]:
                    told += f": with {others[0]} the source may mean something else, so its proof is not the library's"
                form = {"compiler": compiler.version, "flags": list(tried), "told": told}
                return {"same_bytes": True, "same_meaning": not others, **form}
    if failed:
        return {"same_bytes": None, "compiler": compiler.version, "told": f"not rebuilt: {failed}"}
    told = f"not the same bytes as a build of {source.name} (compilers and flags differ, this proves nothing)"
    return {"same_bytes": False, "compiler": compiler.version, "told": told}


def _flags(given: Sequence[str] | None, has_libm: bool) -> Iterator[tuple[str, ...]]:
    if given is not None:
        yield tuple(given)
        return
    for level, more in itertools.product(LEVELS, LIBM if has_libm else LIBM[:1]):
        yield (level, *ALWAYS, *more)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        if PurePosixPath(name).suffix in (".c", ".h"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def _built(command: Sequence[str], flags: Sequence[str], name: str, folder: Path) -> str:
    """Build `rebuilt.so`; what went wrong, or nothing. Libraries stand after the source that needs them."""
    libraries = [flag for flag in flags if flag.startswith("-l")]
    others = [flag for flag in flags if not flag.startswith("-l")]
    whole = [*command, *others, f"./{name}", "-o", "rebuilt.so", *libraries]
    try:
        ran = run_compiler(whole, folder, SECONDS)
    except CannotRun as error:
        return str(error)
    return "" if ran.code == 0 else ran.first_error()[:300]
