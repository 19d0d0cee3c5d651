"""Builds an emitted scorer as a Python extension, caches it by sources, flags and compiler, and reports its size.

A build happens in a temporary folder inside the cache and its one file is moved into place, so two processes
that build the same scorer at once both get a complete one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import clear_leftovers, read_whole, temporary_folder, unfinished_folder, while_unchanged

SECONDS = 600.0
"""Time limit for one file, in seconds. GBFL_COMPILER_SECONDS sets another."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended. A negative code is the signal that ended it."""

    code: int
    output: str
    errors: str

    def first_error(self) -> str:
        """The most informative line of its error output."""
        named = next((line for line in self.errors.splitlines() if "error" in line), self.errors.strip()[:300])
        if self.code < 0:
            return f"it was ended by signal {-self.code} ({signal.strsignal(-self.code)})"
        return named or f"it printed nothing and ended with {self.code}"


def time_limit() -> float:
    """Time limit of a compiler run, in seconds."""
    setting = os.environ.get("GBFL_COMPILER_SECONDS")
    if setting is None:
        return SECONDS
    try:
        seconds = float(setting)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"GBFL_COMPILER_SECONDS={setting!r}: give a number of seconds")
    return seconds


def run_compiler(command: Sequence[str], place: Path, seconds: float | None = None) -> CommandResult:
    """Run a command in the folder `place`, which also holds its temporary files."""
    limit = time_limit() if seconds is None else seconds
    name = Path(command[0]).name
    try:
        return run_within(command, limit, place, {**os.environ, "TMPDIR": str(place)})
    except TimeoutError:
        raise CannotRun(
            f"{name} did not finish within {limit:g} seconds: name another compiler in CC, "
            "or a longer time in GBFL_COMPILER_SECONDS"
        ) from None
    except OSError as error:
        raise CannotRun(f"{name} cannot be run: {error.strerror or error}") from None


def run_within(
    command: Sequence[str], seconds: float, place: Path | None = None, environment: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a command; if it takes longer, end it and all processes it started, and raise TimeoutError."""
    process = subprocess.Popen(  # noqa: S603 - the user's own compiler
        list(command),
        cwd=place,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    output = None
    try:
        output = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    finally:
        if output is None:  # also if it ended but a process it started did not
            _end(process)
    return CommandResult(process.returncode, *output)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


FLAGS = ("-std=gnu99", "-O3", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-DGBFL_WITH_LIBM")
"""gnu99 only for Python's own header; the scorer itself is C99 and tested as such."""

INEXACT = re.compile(
    r"-Ofast|-f(fast-math|unsafe-math-optimizations|finite-math-only|no-honor-nans|no-honor-infinities|associative-math"
    r"|reciprocal-math|no-signed-zeros|single-precision-constant|denormal-fp-math=.*|fp-model=.*|fp-contract=(fast|on))"
    r"|-mdaz-ftz"
)
"""Flags that change comparisons, or how a whole process treats denormal numbers."""

API_BEGINS, API_ENDS = "/* gbfl api begins */", "/* gbfl api ends */"

VERSION_SECONDS = 60.0
"""Time limit for asking a compiler its version."""

WAYS_OUT = "install gcc or clang (Debian: apt-get install gcc), name one in CC, or use the python target"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: its command and its version line."""

    command: tuple[str, ...]
    version: str


def find_compiler() -> Compiler | None:
    """The compiler in CC, or the first of cc, gcc and clang that is installed."""
    named = shlex.split(os.environ.get("CC", ""))
    for command in [named] if named else [["cc"], ["gcc"], ["clang"]]:
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
    compiler_here = find_compiler()
    if compiler_here is None:
        named = f"CC={os.environ['CC']!r} does not run" if os.environ.get("CC") else "no C compiler was found"
        raise CannotRun(f"{named}: {WAYS_OUT}")
    return compiler_here


def why_not() -> str | None:
    """Why nothing can be built here, or None."""
    if find_compiler() is None:
        return f"no C compiler was found: {WAYS_OUT}"
    if importlib.util.find_spec("cffi") is None:
        return "cffi is not installed: pip install cffi"
    if not python_header().is_file():
        return f"{python_header()} does not exist: install Python's headers (Debian: apt-get install python3-dev)"
    return None


def python_header() -> Path:
    """Python.h, which the glue between Python and the scorer includes."""
    return Path(sysconfig.get_path("include")) / "Python.h"


def user_flags() -> tuple[str, ...]:
    """The flags in CFLAGS; those that make arithmetic inexact are refused."""
    flags = tuple(shlex.split(os.environ.get("CFLAGS", "")))
    for flag in flags:
        if INEXACT.fullmatch(flag):
            raise BadInput(f"CFLAGS has {flag}, which makes comparisons inexact: leave it out")
    return flags


def cache_folder() -> Path:
    """Where built scorers are cached: GBFL_CACHE, or gbfl-compile in the user's cache folder."""
    if named := os.environ.get("GBFL_CACHE"):
        return Path(named)
    if (home := os.environ.get("XDG_CACHE_HOME", "")) and Path(home).is_absolute():
        return Path(home) / "gbfl-compile"
    return Path("~/.cache/gbfl-compile").expanduser()


def build_extension(source: Path) -> Path:
    """The extension built from NAME.c, its NAME.h and gbfl.h: from the cache, or built now."""
    import cffi

    paths = (source, source.with_suffix(".h"), source.with_name("gbfl.h"))
    contents = while_unchanged(source.parent, lambda: {path.name: read_whole(path) for path in paths})
    texts = {name: _decode(source.with_name(name), content) for name, content in contents.items()}
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


def _decode(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
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
    """A source that does not compile is refused, unless the compiler cannot compile anything at all."""
    ran = run_compiler(command, place)
    if ran.code == 0:
        return
    name = Path(command[0]).name
    if ran.code < 0 or not _works(command[0], place):
        raise CannotRun(f"the compiler {name} does not work here: {ran.first_error()}: {WAYS_OUT}")
    raise BadInput(f"the scorer does not compile with {name}: {ran.first_error()}")


def _works(compiler: str, place: Path) -> bool:
    """Whether it compiles and links a minimal source."""
    try:
        (place / "least.c").write_text("int least(void);\nint least(void) { return 0; }\n", encoding="utf-8")
    except OSError:
        return False
    return run_compiler([compiler, "-fPIC", "-shared", "least.c", "-o", "least.so"], place).code == 0


NODE = re.compile(r'node: \{ title: "([^"]*)" label: "[^"]*?\\n(\d+) bytes \((?:static|dynamic,bounded)\)')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')

CORTEX_M4 = ("-mthumb", "-mcpu=cortex-m4", "-ffreestanding")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one build of a scorer."""

    built_with: str
    text: int
    data: int
    bss: int
    stack: int
    """The deepest chain of calls within the scorer."""

    def as_json(self) -> dict[str, str | int]:
        """The stable form scripts read."""
        return {
            "built_with": self.built_with,
            "text": self.text,
            "data": self.data,
            "bss": self.bss,
            "stack": self.stack,
        }


def size_rows(source: Path) -> list[Sizes]:
    """The scorer built with -Os, with and without its batch part: for this machine, and for a Cortex-M4 if gcc can."""
    builds: list[tuple[tuple[str, ...], tuple[str, ...]]] = [(compiler().command, ("-fno-pie",))]
    if (arm := shutil.which("arm-none-eabi-gcc")) is not None:
        builds.append(((arm,), CORTEX_M4))
    return [
        size_table(source, command, ("-Os", *flags, *extra))
        for command, flags in builds
        for extra in ((), ("-DGBFL_NO_BATCH",))
    ]


def size_table(source: Path, command: tuple[str, ...] = (), flags: tuple[str, ...] = ("-Os", "-fno-pie")) -> Sizes:
    """The sizes of one emitted .c file, built with `command` (this machine's compiler by default)."""
    if source.suffix != ".c" or not source.is_file():
        raise BadInput(f"{source}: is not a .c file: give one of a C artifact, such as build/c/model.c")
    with_ = command or compiler().command
    size = shutil.which(f"{with_[0].removesuffix('gcc')}size") or shutil.which("size")
    if size is None:
        raise CannotRun("size needs binutils: install binutils")
    with temporary_folder("sizes") as place:
        target = place / "model.o"
        options = ["-std=c99", "-ffp-contract=off", "-fcallgraph-info=su", *flags, "-DGBFL_NO_CLONES"]
        _run_tool([*with_, *options, "-c", str(source.resolve()), "-o", str(target)], place)
        text, data, bss = (int(number) for number in _run_tool([size, str(target)], place).splitlines()[1].split()[:3])
        graph = "".join(path.read_text(encoding="utf-8") for path in place.glob("*.ci"))
        shown = " ".join([Path(with_[0]).name, *flags])
        return Sizes(shown, text, data, bss, deepest_chain(graph))


def deepest_chain(graph: str) -> int:
    """The stack of the deepest chain of calls, from gcc's call graph. Calls to other libraries are not counted."""
    frames = {name: int(size) for name, size in NODE.findall(graph)}
    calls: dict[str, list[str]] = {}
    for caller, called in EDGE.findall(graph):
        if called in frames:
            calls.setdefault(caller, []).append(called)
    return max((_depth(name, frames, calls) for name in frames), default=0)


def _depth(name: str, frames: Mapping[str, int], calls: Mapping[str, list[str]]) -> int:
    """An emitted scorer has no recursion, so the walk ends."""
    return frames[name] + max((_depth(called, frames, calls) for called in calls.get(name, ())), default=0)


def _run_tool(command: list[str], place: Path) -> str:
    ran = run_compiler(command, place)
    if ran.code != 0:
        name = Path(command[0]).name
        raise CannotRun(f"{name}: {ran.first_error()} (the sizes need gcc 10 or newer: name one in CC)")
    return ran.output
