"""What surrounds a scorer: project files per layout, and rows with their answers by which a device tests itself."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass

from gbfl_compile.backends.base import render
from gbfl_compile.backends.c.expressions import Real
from gbfl_compile.ir.evaluate import Answer, evaluate
from gbfl_compile.ir.intervals import next_to
from gbfl_compile.ir.kinds import Value, codebook, decode_rows
from gbfl_compile.ir.nodes import Kind, OneOf, Program
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
    width = len(program.features)
    rows = [tuple(_possible(value, program.kind(feature)) for feature in range(width)) for value in ALWAYS]
    pools = _pools(program, real)
    rows += [tuple(choose.choice(pool) for pool in pools) for _ in range(TRIES)]
    values: list[tuple[float, ...]] | list[list[Value]]
    values = decode_rows(program, rows, codebook(program)) if program.kinds else rows
    vectors: dict[tuple[object, ...], Golden] = {}
    for row, own in zip(rows, values, strict=True):
        answer = evaluate(program, own)
        vectors.setdefault((answer.leaf, answer.held if answer.leaf is None else None), Golden(row, answer))
    return list(vectors.values())[: max(1, min(MOST_VECTORS, MOST_NUMBERS // width))]


def _possible(value: float, kind: Kind) -> float:
    """The value, where a feature of this kind can have it."""
    return value if kind == "number" or math.isnan(value) else 0.0


def _pools(program: Program, real: Real) -> list[list[float]]:
    pools: list[list[float]] = [[0.0, math.nan] for _ in program.features]
    for feature, texts in enumerate(codebook(program).texts):
        pools[feature] += map(float, range(1, len(texts) + 1))
    for clause in program.clauses:
        for atom in clause.atoms:
            if isinstance(atom, OneOf):
                continue
            for cut in (atom.lo, atom.hi):
                if cut is not None:
                    pools[atom.feature] += next_to(cut, program.kind(atom.feature), narrow=real == "float")
    return pools
