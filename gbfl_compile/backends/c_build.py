"""Builds an emitted scorer as a Python extension and keeps it: same sources, flags and compiler, same file.

A build happens in a temporary folder inside the cache and its one file is moved in whole, so two processes
that build the same scorer at once both end with a good one.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from gbfl_compile.backends.c_command import run_compiler, run_within, time_limit
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import read_whole, while_unchanged
from gbfl_compile.unfinished import clear_leftovers, unfinished_folder

FLAGS = ("-std=gnu99", "-O3", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-DGBFL_WITH_LIBM")
"""gnu99 only for Python's own header; the scorer itself is C99 and tested as such."""

INEXACT = re.compile(
    r"-Ofast|-f(fast-math|unsafe-math-optimizations|finite-math-only|no-honor-nans|no-honor-infinities|associative-math"
    r"|reciprocal-math|no-signed-zeros|fp-model=.*|fp-contract=(fast|on))|-mdaz-ftz"
)
"""Flags that change what a comparison answers, or what a whole process does with tiny numbers."""

API_BEGINS, API_ENDS = "/* gbfl api begins */", "/* gbfl api ends */"

VERSION_SECONDS = 60.0
"""What a compiler may take to say which one it is."""

WAYS_OUT = "install gcc or clang (Debian: apt-get install gcc), name one in CC, or use the python target"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: how it is called, and what it says it is."""

    command: tuple[str, ...]
    version: str


def find_compiler() -> Compiler | None:
    """The compiler in CC, or the first of cc, gcc and clang that is here."""
    wanted = shlex.split(os.environ.get("CC", ""))
    for command in [wanted] if wanted else [["cc"], ["gcc"], ["clang"]]:
        if (path := shutil.which(command[0])) is not None and (version := _version((path, *command[1:]))) is not None:
            return Compiler((path, *command[1:]), version)
    return None


@functools.cache
def _version(command: tuple[str, ...]) -> str | None:
    try:
        ran = run_within([*command, "--version"], min(VERSION_SECONDS, time_limit()))
    except (OSError, TimeoutError):
        return None
    return None if ran.code else (ran.output.strip().splitlines() or [command[0]])[0]


def compiler() -> Compiler:
    """The compiler, or an error that names the ways out."""
    found = find_compiler()
    if found is None:
        named = f"CC={os.environ['CC']!r} does not run" if os.environ.get("CC") else "no C compiler was found"
        raise CannotRun(f"{named}: {WAYS_OUT}")
    return found


def why_not() -> str | None:
    """Why nothing can be built here, or None."""
    if find_compiler() is None:
        return f"no C compiler was found: {WAYS_OUT}"
    if importlib.util.find_spec("cffi") is None:
        return "cffi is not installed: pip install cffi"
    if not python_header().is_file():
        return f"{python_header()} is not there: install Python's headers (Debian: apt-get install python3-dev)"
    return None


def python_header() -> Path:
    """Python.h, which the glue between Python and the scorer includes."""
    return Path(sysconfig.get_path("include")) / "Python.h"


def user_flags() -> tuple[str, ...]:
    """The flags in CFLAGS; those that make arithmetic inexact are refused."""
    flags = tuple(shlex.split(os.environ.get("CFLAGS", "")))
    for flag in flags:
        if INEXACT.fullmatch(flag):
            raise BadInput(f"CFLAGS has {flag}, with which comparisons are not exact: leave it out")
    return flags


def cache_folder() -> Path:
    """Where built scorers are kept: GBFL_CACHE, or gbfl-compile in the user's cache folder."""
    if named := os.environ.get("GBFL_CACHE"):
        return Path(named)
    if (home := os.environ.get("XDG_CACHE_HOME", "")) and Path(home).is_absolute():
        return Path(home) / "gbfl-compile"
    return Path("~/.cache/gbfl-compile").expanduser()


def built(source: Path) -> Path:
    """The extension built from NAME.c, its NAME.h and gbfl.h: from the cache, or built now."""
    import cffi

    paths = (source, source.with_suffix(".h"), source.with_name("gbfl.h"))
    texts = while_unchanged(source.parent, lambda: {path.name: _read(path) for path in paths})
    with_ = compiler()
    flags = (*user_flags(), *FLAGS)
    if (reason := why_not()) is not None:
        raise CannotRun(reason)
    parts = (*with_.command, with_.version, *flags, cffi.__version__, sys.version, *texts, *texts.values())
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    target = cache_folder() / f"_gbfl_{key}{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not target.is_file():
        _build(source.stem, texts, with_, flags, target)
    return target


def _read(path: Path) -> str:
    try:
        return read_whole(path).decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not a source this target emits: not UTF-8") from None


def _build(name: str, texts: dict[str, str], with_: Compiler, flags: tuple[str, ...], target: Path) -> None:
    module = target.name.split(".")[0]
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        clear_leftovers(target.parent)
        with unfinished_folder(target.parent, "building") as place:
            for file, text in texts.items():
                (place / file).write_text(text, encoding="utf-8")
            _write_glue(name, texts[f"{name}.h"], module, place)
            glue_flags = ["-w", "-O1", f"-I{sysconfig.get_path('include')}", "-c", f"{module}.c", "-o", "glue.o"]
            _run([*with_.command, *flags, *glue_flags], place)
            _run([*with_.command, *flags, "-c", f"{name}.c", "-o", "model.o"], place)
            _run([*with_.command, *flags, "-shared", "glue.o", "model.o", "-o", "whole.so", "-lm"], place)
            (place / "whole.so").replace(target)
    except OSError as error:
        raise CannotRun(f"{target.parent}: cannot be written: {error.strerror or error}, set GBFL_CACHE") from None


def declarations(header: str, where: str) -> str:
    """The declarations in a header that this target emitted."""
    _, begins, rest = header.partition(API_BEGINS)
    api, ends, _ = rest.partition(API_ENDS)
    if not begins or not ends:
        raise BadInput(f"{where}: is not a header this target emits")
    return "\n".join(line for line in api.splitlines() if not line.startswith("#"))


def _write_glue(name: str, header: str, module: str, place: Path) -> None:
    import cffi
    from cffi.recompiler import make_c_source  # FFI.emit_c_code does the same and prints

    ffi = cffi.FFI()
    try:
        ffi.cdef(declarations(header, f"{name}.h"))
    except (cffi.CDefError, cffi.FFIError) as error:
        raise BadInput(f"{name}.h: is not a header this target emits: {error}") from None
    make_c_source(ffi, module, f'#include "{name}.h"', str(place / f"{module}.c"))


def _run(command: list[str], place: Path) -> None:
    """A source that does not compile is no scorer of ours; a compiler that compiles nothing at all proves nothing."""
    ran = run_compiler(command, place)
    if ran.code == 0:
        return
    name = Path(command[0]).name
    if ran.code < 0 or not _works(command[0], place):
        raise CannotRun(f"the compiler {name} does not work here: {ran.first_error()}: {WAYS_OUT}")
    raise BadInput(f"the scorer does not compile with {name}: {ran.first_error()}")


def _works(compiler: str, place: Path) -> bool:
    """Whether it compiles and links the least there is."""
    try:
        (place / "least.c").write_text("int least(void);\nint least(void) { return 0; }\n", encoding="utf-8")
    except OSError:
        return False
    return run_compiler([compiler, "-fPIC", "-shared", "least.c", "-o", "least.so"], place).code == 0
