"""What a scorer takes on a device: flash, memory and stack, as the compiler that builds it says."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gbfl_compile.backends.c_build import compiler
from gbfl_compile.errors import BadInput, CannotRun


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes. `stack` is the largest frame of one function, not a chain of calls."""

    compiler: str
    text: int
    data: int
    bss: int
    stack: int


def size_table(source: Path, command: tuple[str, ...] = (), flags: tuple[str, ...] = ("-Os", "-fno-pie")) -> Sizes:
    """The sizes of one emitted .c file, built with `command` (this machine's compiler where none is named)."""
    with_ = command or compiler().command
    size = shutil.which(f"{with_[0].removesuffix('gcc')}size") or shutil.which("size")
    if size is None:
        raise CannotRun("the sizes need binutils' size: install binutils")
    with tempfile.TemporaryDirectory() as made:
        target = Path(made) / "model.o"
        options = ["-std=c99", "-ffp-contract=off", "-fstack-usage", *flags, "-c", str(source), "-o", str(target)]
        _told([*with_, *options])
        text, data, bss = (int(number) for number in _told([size, str(target)]).splitlines()[1].split()[:3])
        frames = [line.split("\t") for line in target.with_suffix(".su").read_text(encoding="utf-8").splitlines()]
        return Sizes(with_[0], text, data, bss, max((int(frame[1]) for frame in frames), default=0))


def _told(command: list[str]) -> str:
    run = subprocess.run(command, capture_output=True, text=True, errors="replace")  # noqa: S603 - the user's own compiler
    if run.returncode != 0:
        raise BadInput(f"{Path(command[0]).name}: {run.stderr.strip()[:300]}")
    return run.stdout
