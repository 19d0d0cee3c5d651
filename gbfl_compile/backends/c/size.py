"""The size of an emitted scorer as the compiler reports it, for embedding."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gbfl_compile.backends.c.build import compiler, run_compiler
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import temporary_folder

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
