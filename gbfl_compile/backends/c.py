"""The C target: a .h/.c pair without allocation or libraries that answers what the program answers.

literal, bounds      c_numbers      names in comments  c_text         build and cache   c_build
atoms, clauses       c_conditions   batch kernels      c_kernels      loaded scorer     c_scorer
golden vectors       c_golden       bit-mask tables    c_tables       layouts, sizes    c_layouts, c_size
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.backends.base import Artifact, Availability, Backend, Options, Predictor, take_options
from gbfl_compile.backends.c_batch import batch_values
from gbfl_compile.backends.c_conditions import ONE_ROW, condition, used_features
from gbfl_compile.backends.c_golden import golden_vectors
from gbfl_compile.backends.c_kernels import choose
from gbfl_compile.backends.c_layouts import LAYOUTS, layout_files
from gbfl_compile.backends.c_numbers import Real, bit_pattern, integer, literal
from gbfl_compile.backends.c_text import HEADERS_OF_C, comment, enumerators, rows_of, string
from gbfl_compile.backends.templates import render
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.nodes import Label, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.readable import readable
from gbfl_compile.ir.trees import deep_splits, leaf_numbers
from gbfl_compile.reasons import reasons_of
from gbfl_compile.resources import folder
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    from gbfl_compile.backends.c_scorer import Scorer

EXTENSION = ".c"

OPTIONS = {
    "dtype": ("float64", "float32"),
    "kernel": ("auto", "ifelse", "select", "bits"),
    "layout": LAYOUTS,
    "batch": ("auto", "yes", "no"),
}

DEEP = 16
"""Past this many nested ifs the shallower side is the one indented: compilers limit nesting (clang: 256)."""


def decision(program: Program, real: Real) -> list[str]:
    """The body of `leaf_of` (an if for each split) or of `find_held` (an if for each clause)."""
    match program.decision:
        case Tree():
            return list(_tree_lines(program, program.decision, real))
        case Scorecard():
            return [
                f"if ({condition(clause, real, ONE_ROW)}) {{ held[{i // 32}] |= 0x{1 << i % 32:x}u; }}"
                for i, clause in enumerate(program.clauses)
            ]
        case _:
            assert_never(program.decision)


def _tree_lines(program: Program, tree: Tree, real: Real) -> Iterator[str]:
    """Every side returns, so the second needs no else and a rule list is a flat row of ifs."""
    inverted = deep_splits(tree, DEEP)
    number = leaf_numbers(tree)
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
            yield f"{indent}return {number[index]};"
            continue
        asked = condition(program.clauses[node.clause], real, ONE_ROW)
        first, second = node.then, node.otherwise
        if index in inverted:
            asked, first, second = f"!({asked})", second, first
        yield f"{indent}if ({asked}) {{"
        waiting += ((second, depth), f"{indent}}}", (first, depth + 1))


def emit(program: Program, name: str, options: Options) -> Artifact:
    """`NAME.h`, `NAME.c` and the `gbfl.h` they share. The tree of the demo begins like this::

    static int32_t leaf_of(const double *x)
    {
        if ((x[23] >= 0x1.afaa3d70a3d71p+9) && (x[24] >= 0x1.0a3d70a3d70a4p-3) && (x[24] < 0x1.999999999999ap-3)) {
            return 0;
    """
    taken = take_options("c", options, OPTIONS)
    if name.lower() in HEADERS_OF_C:
        raise BadInput(f"the name {name!r}: {name.lower()}.h is a header that C programs include, choose another")
    real: Real = "double" if taken["dtype"] == "float64" else "float"
    layout = taken["layout"]
    batch = taken["batch"] == "yes" or (taken["batch"] == "auto" and layout in ("plain", "cmake"))
    source = digest(program)
    values = _values(program, name, real, source, batch)
    if batch:
        values |= batch_values(program, real, choose(program, taken["kernel"], real))
    files = {
        f"{name}.h": render("c/model.h.jinja", values),
        f"{name}.c": render("c/model.c.jinja", values),
        "gbfl.h": (folder("runtime_c") / "gbfl.h").read_bytes(),
        **layout_files(layout, name, real, source),
    }
    return Artifact("c", name, files, source)


def _values(program: Program, name: str, real: Real, source: str, batch: bool) -> dict[str, Any]:
    used, body = used_features(program), decision(program, real)
    asked = set(used)
    return {
        "name": name,
        "generator": GENERATOR,
        "digest": source,
        "real": real,
        "real_bits": 64 if real == "double" else 32,
        "batch": batch,
        "rules": [comment(line) for line in readable(program).split("\n")],
        "features": list(zip(enumerators(name, program.features), [comment(f) for f in program.features], strict=True)),
        "feature_names": [string(feature) for feature in program.features],
        "labels": [string(label_string(label)) for label in program.classes],
        "reasons": _reasons(program),
        "label_kind": {str: "s", bool: "b", int: "i", float: "f"}[type(program.classes[0])],
        "feature_count": len(program.features),
        "class_count": len(program.classes),
        "clause_count": len(program.clauses),
        "held_words": max(1, -(-len(program.clauses) // 32)),
        "used": used,
        "slots": max(1, len(used)),
        "uses": rows_of([str(int(f in asked)) for f in range(len(program.features))], 32),
        "body": body,
        "reads_row": any("x[" in line for line in body),
        "golden": _golden_values(program, real),
        **_decision_values(program),
    }


def _reasons(program: Program) -> list[str]:
    """A string a clause, empty where it has no reason; nothing where none has."""
    own = reasons_of(program)
    return [string(own.get(clause, "")) for clause in range(len(program.clauses))] if own else []


def label_string(label: Label) -> str:
    """A label as text that reads back as itself."""
    return label if isinstance(label, str) else repr(label)


def _golden_values(program: Program, real: Real) -> list[dict[str, Any]]:
    return [
        {
            "row": ", ".join(f"{{{bit_pattern(value, real)}}}" for value in vector.row),
            "class_number": program.classes.index(vector.answer.label),
            "leaf": vector.answer.leaf,
            "points": ", ".join(integer(points) for points in vector.answer.scores or ()),
        }
        for vector in golden_vectors(program, real)
    ]


def _decision_values(program: Program) -> dict[str, Any]:
    match program.decision:
        case Tree():
            return _tree_values(program.decision)
        case Scorecard(bias, points, scale):
            rows = points or ((0,) * len(bias),)
            return {
                "tree": False,
                "leaf_count": 0,
                "bias": [integer(start) for start in bias],
                "points": [", ".join(integer(worth) for worth in row) for row in rows],
                "points_type": _integer_type(max(abs(worth) for row in rows for worth in row)),
                "worth": literal(2.0**-scale),
            }
        case _:
            assert_never(program.decision)


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
        "leaf_classes": rows_of([str(winner(node.probabilities)) for _, node in leaves]),
        "leaf_probabilities": [", ".join(literal(p) for p in node.probabilities) for _, node in leaves],
        "leaf_nodes": rows_of([str(index) for index, _ in leaves]),
        "nodes_above": rows_of([str(node) for node in above]),
        "node_clauses": rows_of([str(clause) for clause in clauses]),
    }


def load(path: Path) -> Predictor:
    """The scorer in a file, built (or found built) and loaded. It is code: load only what you would run."""
    from gbfl_compile.backends.c_predictor import as_predictor

    return as_predictor(load_scorer(path))


def load_scorer(path: Path) -> Scorer:
    """The scorer in a file, for numpy, pandas, Arrow and Polars, in batches or row by row."""
    from gbfl_compile.backends.c_scorer import open_scorer

    return open_scorer(path)


def available() -> Availability:
    """C can always be emitted; running it needs a compiler and cffi."""
    from gbfl_compile.backends.c_build import find_compiler, why_not

    compiler = find_compiler()
    return Availability("no compiler" if compiler is None else compiler.version, cannot_run=why_not())


BACKEND = Backend("c", "one .h/.c pair, C99, no allocation, no library", EXTENSION, emit, load, available)
