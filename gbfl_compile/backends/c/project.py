"""What surrounds a scorer: project files per layout, and rows with their answers by which a device tests itself."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass

from gbfl_compile.backends.c.expressions import Real
from gbfl_compile.backends.render import render
from gbfl_compile.ir.evaluate import Answer, evaluate
from gbfl_compile.ir.float32 import float32_at_or_above, float32_at_or_below
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Program
from gbfl_compile.version import GENERATOR, VERSION

LAYOUTS = ("plain", "arduino", "platformio", "cmake")


def layout_files(layout: str, name: str, real: Real, digest: str) -> dict[str, bytes]:
    """The files a layout adds to the sources."""
    values = {"name": name, "real": real, "digest": digest, "generator": GENERATOR, "version": VERSION}
    match layout:
        case "arduino":
            return {
                "library.properties": render("c/library.properties.jinja", values),
                "examples/selftest/selftest.ino": render("c/selftest.ino.jinja", values),
            }
        case "platformio":
            return {
                "library.json": _platformio(name, digest),
                "examples/selftest/main.c": render("c/selftest.c.jinja", values),
            }
        case "cmake":
            return {
                "CMakeLists.txt": render("c/CMakeLists.txt.jinja", values),
                "examples/selftest/main.c": render("c/selftest.c.jinja", values),
            }
        case _:
            return {}


def _platformio(name: str, digest: str) -> bytes:
    form = {
        "name": name,
        "version": VERSION,
        "description": f"A rule model, made from program {digest}",
        "headers": f"{name}.h",
        "build": {"srcDir": ".", "includeDir": ".", "srcFilter": [f"+<{name}.c>"], "flags": ["-ffp-contract=off"]},
    }
    return (json.dumps(form, indent=2) + "\n").encode("ascii")


MOST_VECTORS = 16
MOST_NUMBERS = 2_000
"""Values in all vectors together: a wide program gets fewer rows."""
TRIES = 60
ALWAYS = (math.nan, math.inf, -math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Golden:
    """A row and what the program answers on it."""

    row: tuple[float, ...]
    answer: Answer


def golden_vectors(program: Program, real: Real) -> list[Golden]:
    """Rows at and next to the program's cuts, chosen for different answers."""
    choose = random.Random(0)  # noqa: S311 - nothing secret
    pools = _pools(program, real)
    width = len(program.features)
    rows = [tuple([value] * width) for value in ALWAYS]
    rows += [tuple(choose.choice(pool) for pool in pools) for _ in range(TRIES)]
    vectors: dict[tuple[object, ...], Golden] = {}
    for row in rows:
        answer = evaluate(program, row)
        vectors.setdefault((answer.leaf, answer.held if answer.leaf is None else None), Golden(row, answer))
    return list(vectors.values())[: max(1, min(MOST_VECTORS, MOST_NUMBERS // width))]


def _pools(program: Program, real: Real) -> list[list[float]]:
    pools: list[list[float]] = [[0.0, math.nan] for _ in program.features]
    for clause in program.clauses:
        for atom in intervals_in(clause):
            for cut in (atom.lo, atom.hi):
                if cut is not None:
                    pools[atom.feature] += _around(cut, real)
    return pools


def _around(cut: float, real: Real) -> tuple[float, ...]:
    if real == "double":
        return below(cut), cut, above(cut)
    return float32_at_or_below(cut), float32_at_or_above(cut)
