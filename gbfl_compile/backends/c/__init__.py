"""The C target: a .h/.c pair without allocation or libraries that gives the program's answers.

literals, names, clauses, codes of texts   expressions     build, cache, sizes     build
batch kernels, bit masks                   kernels         loaded scorer, input    scorer, inputs

Around the sources are project files per layout, and rows with their answers by which a device tests itself.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.backends.base import Artifact, Availability, Backend, Options, Predictor, render, take_options
from gbfl_compile.backends.c.expressions import (
    HEADERS_OF_C,
    ONE_ROW,
    Real,
    bit_pattern,
    comment,
    condition,
    enumerators,
    integer,
    kind_values,
    literal,
    require_exact,
    rows_of,
    rules_of,
    string,
    used_features,
)
from gbfl_compile.backends.c.kernels import batch_values, choose
from gbfl_compile.errors import BadInput
from gbfl_compile.files import resource_folder
from gbfl_compile.ir.evaluate import Answer, evaluate
from gbfl_compile.ir.intervals import next_to
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import Value, codebook, decode_rows
from gbfl_compile.ir.nodes import (
    Band,
    Kind,
    Label,
    Leaf,
    OneOf,
    Program,
    Scorecard,
    Split,
    Tree,
    deep_splits,
    leaf_numbers,
)
from gbfl_compile.ir.text import listing, reasons_of
from gbfl_compile.version import GENERATOR, VERSION

if TYPE_CHECKING:
    from gbfl_compile.backends.c.scorer import Scorer

LAYOUTS = ("plain", "arduino", "platformio", "cmake")


def layout_files(layout: str, name: str, real: Real, source: str) -> dict[str, bytes]:
    """The files a layout adds to the sources."""
    values = {"name": name, "real": real, "digest": source, "generator": GENERATOR, "version": VERSION}
    match layout:
        case "arduino":
            return {
                "library.properties": render("c/library.properties.jinja", values),
                "examples/selftest/selftest.ino": render("c/selftest.ino.jinja", values),
            }
        case "platformio":
            return {
                "library.json": _platformio(name, source),
                "examples/selftest/main.c": render("c/selftest.c.jinja", values),
            }
        case "cmake":
            return {
                "CMakeLists.txt": render("c/CMakeLists.txt.jinja", values),
                "examples/selftest/main.c": render("c/selftest.c.jinja", values),
            }
        case _:
            return {}


def _platformio(name: str, source: str) -> bytes:
    form = {
        "name": name,
        "version": VERSION,
        "description": f"A rule model, made from program {source}",
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


EXTENSION = ".c"

OPTIONS = {
    "dtype": ("float64", "float32"),
    "kernel": ("auto", "ifelse", "select", "bits"),
    "layout": LAYOUTS,
    "batch": ("auto", "yes", "no"),
}

DEEP = 16
"""Beyond this many nested ifs the shallower side is indented: compilers limit nesting (clang: 256)."""


def decision(program: Program, real: Real, inverted: Collection[int], numbers: Mapping[int, int]) -> list[str]:
    """The body of `leaf_of` (an if for each split) or of `find_held` (an if for each clause)."""
    match program.decision:
        case Tree():
            return list(_tree_lines(program, program.decision, real, inverted, numbers))
        case Scorecard():
            return [
                f"if ({condition(rule, real, ONE_ROW)}) {{ held[{i // 32}] |= 0x{1 << i % 32:x}u; }}"
                for i, rule in enumerate(rules_of(program))
            ]
        case _:
            assert_never(program.decision)


def _tree_lines(
    program: Program, tree: Tree, real: Real, inverted: Collection[int], numbers: Mapping[int, int]
) -> Iterator[str]:
    """Both sides return, so the second needs no else and a rule list is a flat sequence of ifs."""
    rules = rules_of(program)
    waiting: list[tuple[int, int] | str] = [(0, 0)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        index, depth = item
        node = tree.nodes[index]
        indent = "    " * depth
        if isinstance(node, Leaf):
            yield f"{indent}return {numbers[index]};"
            continue
        test = condition(rules[node.clause], real, ONE_ROW)
        first, second = node.then, node.otherwise
        if index in inverted:
            test, first, second = f"!({test})", second, first
        yield f"{indent}if ({test}) {{"
        waiting += ((second, depth), f"{indent}}}", (first, depth + 1))


def emit(program: Program, name: str, options: Options) -> Artifact:
    """`NAME.h`, `NAME.c` and the `gbfl.h` they share. The tree of the demo begins like this::

    static int32_t leaf_of(const double *x)
    {
        if ((x[23] >= 0x1.afaa3d70a3d71p+9) && (x[24] >= 0x1.0a3d70a3d70a4p-3) && (x[24] < 0x1.999999999999ap-3)) {
            return 0;
    """
    chosen = take_options("c", options, OPTIONS)
    if name.lower() in HEADERS_OF_C:
        raise BadInput(f"the name {name!r}: {name.lower()}.h is a header that C programs include, choose another")
    real: Real = "double" if chosen["dtype"] == "float64" else "float"
    require_exact(program, real)
    layout = chosen["layout"]
    batch = chosen["batch"] == "yes" or (chosen["batch"] == "auto" and layout in ("plain", "cmake"))
    source = digest(program)
    values = _values(program, name, real, source, batch)
    if batch:
        values |= batch_values(program, real, choose(program, chosen["kernel"], real))
    around = layout_files(layout, name, real, source)
    files = {
        f"{name}.h": render("c/model.h.jinja", values),
        f"{name}.c": render("c/model.c.jinja", values),
        "gbfl.h": (resource_folder("runtime_c") / "gbfl.h").read_bytes(),
        **around,
    }
    return Artifact("c", name, files, source)


def _values(program: Program, name: str, real: Real, source: str, batch: bool) -> dict[str, Any]:
    vectors = golden_vectors(program, real)
    own_reasons, rules = reasons_of(program), listing(program).split("\n")
    tree = program.decision if isinstance(program.decision, Tree) else None
    inverted, numbers = (set(), {}) if tree is None else (deep_splits(tree, DEEP), leaf_numbers(tree))
    used, body = used_features(program), decision(program, real, inverted, numbers)
    labels = [label_string(label) for label in program.classes]
    return {
        "name": name,
        "generator": GENERATOR,
        "digest": source,
        "real": real,
        "real_bits": 64 if real == "double" else 32,
        "batch": batch,
        "rules": [comment(line) for line in rules],
        "features": list(zip(enumerators(name, program.features), [comment(f) for f in program.features], strict=True)),
        "feature_names": [string(feature) for feature in program.features],
        "labels": [string(label) for label in labels],
        "reasons": _reasons(own_reasons, len(program.clauses)),
        "label_kind": {str: "s", bool: "b", int: "i", float: "f"}[type(program.classes[0])],
        "feature_count": len(program.features),
        "class_count": len(program.classes),
        "clause_count": len(program.clauses),
        "held_words": max(1, -(-len(program.clauses) // 32)),
        "used": used,
        "slots": max(1, len(used)),
        "uses": rows_of([str(int(f in used)) for f in range(len(program.features))], 32),
        "body": body,
        "reads_row": any("x[" in line for line in body),
        "golden": _golden_values(program, vectors, real),
        **kind_values(program, name, labels),
        **_decision_values(program),
    }


def _reasons(own: Mapping[int, str], clauses: int) -> list[str]:
    """One string per clause, empty where it has no reason; no strings if no clause has one."""
    return [string(own.get(clause, "")) for clause in range(clauses)] if own else []


def label_string(label: Label) -> str:
    """A label as text that reads back as itself."""
    return label if isinstance(label, str) else repr(label)


def _golden_values(program: Program, vectors: Sequence[Golden], real: Real) -> list[dict[str, Any]]:
    return [
        {
            "row": ", ".join(f"{{{bit_pattern(value, real)}}}" for value in vector.row),
            "class_number": program.classes.index(vector.answer.label),
            "leaf": vector.answer.leaf,
            "points": ", ".join(integer(points) for points in vector.answer.scores or ()),
        }
        for vector in vectors
    ]


def _decision_values(program: Program) -> dict[str, Any]:
    match program.decision:
        case Tree():
            return _tree_values(program.decision)
        case Scorecard(bias, points, scale, bands):
            rows = points or ((0,) * len(bias),)
            return {
                "tree": False,
                "leaf_count": 0,
                "bias": [integer(start) for start in bias],
                "points": [", ".join(integer(worth) for worth in row) for row in rows],
                "points_type": _integer_type(max(abs(worth) for row in rows for worth in row)),
                "worth": literal(2.0**-scale),
                **_band_values(bands),
            }
        case _:
            assert_never(program.decision)


def _band_values(bands: Sequence[Sequence[Band]]) -> dict[str, Any]:
    """The bands of all classes end to end, and where those of each class begin."""
    flat = [band for own in bands for band in own]
    return {
        "bands": bool(bands),
        "band_count": len(flat),
        "band_begin": ", ".join(map(str, accumulate(map(len, bands), initial=0))),
        "band_least": ", ".join(integer(band.least) for band in flat),
        "band_rates": [", ".join(literal(p) for p in band.probabilities) for band in flat],
    }


def _integer_type(largest: int) -> str:
    return next(f"int{bits}_t" for bits in (8, 16, 32, 64) if largest < 1 << (bits - 1))


def _tree_values(tree: Tree) -> dict[str, Any]:
    above = [0] * len(tree.nodes)
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            above[node.then], above[node.otherwise] = 2 * index + 1, 2 * index
    leaves = [(index, node) for index, node in enumerate(tree.nodes) if isinstance(node, Leaf)]
    clauses = [node.clause if isinstance(node, Split) else -1 for node in tree.nodes]
    return {
        "tree": True,
        "leaf_count": len(leaves),
        "node_count": len(tree.nodes),
        "leaf_classes": rows_of([str(node.winner) for _, node in leaves]),
        "leaf_probabilities": [", ".join(literal(p) for p in node.probabilities) for _, node in leaves],
        "leaf_nodes": rows_of([str(index) for index, _ in leaves]),
        "nodes_above": rows_of([str(node) for node in above]),
        "node_clauses": rows_of([str(clause) for clause in clauses]),
    }


def load(path: Path) -> Predictor:
    """The scorer in a file, built or taken from the cache, and loaded. It is code: load only what you would run."""
    from gbfl_compile.backends.c.scorer import as_predictor

    return as_predictor(load_scorer(path))


def load_scorer(path: Path) -> Scorer:
    """The scorer in a file, for numpy, pandas, Arrow and Polars, in batches or row by row."""
    from gbfl_compile.backends.c.scorer import open_scorer

    return open_scorer(path)


def available() -> Availability:
    """C can always be emitted; running it needs a compiler and cffi."""
    from gbfl_compile.backends.c.build import find_compiler, why_not

    compiler = find_compiler()
    return Availability("no compiler" if compiler is None else compiler.version, cannot_run=why_not())


BACKEND = Backend(
    "c", "one .h/.c pair, C99, no allocation, no library", EXTENSION, emit, load, available, emits_bands=True
)
