"""The Python target: one readable module, standard library only, that answers what the program answers."""

from __future__ import annotations

import keyword
import platform
import re
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.backends.base import Artifact, Availability, Backend, Options, Predictor, take_options
from gbfl_compile.backends.templates import render
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.evaluate import winner
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.readable import clause_text, readable
from gbfl_compile.ir.trees import leaf_numbers, paths
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Answers, Matrix

EXTENSION = ".py"

DEEP = 16
"""Past this many nested ifs the shallower side is the one indented: Python refuses 100 levels."""


def literal(value: object) -> str:
    """A label, name or number as Python source. repr of a float reads back as the same double."""
    return repr(value)


def atom(interval: Interval, name: str) -> str:
    """One interval. NaN fails every comparison, so only a missing value that *holds* needs saying."""
    if interval.lo is None and interval.hi is None:
        return "True" if interval.if_missing else f"{name} == {name}"
    left, right = "<=" if interval.lo_closed else "<", "<=" if interval.hi_closed else "<"
    if interval.hi is None:
        text = f"{name} {'>=' if interval.lo_closed else '>'} {literal(interval.lo)}"
    elif interval.lo is None:
        text = f"{name} {right} {literal(interval.hi)}"
    else:
        text = f"{literal(interval.lo)} {left} {name} {right} {literal(interval.hi)}"
    return f"({name} != {name} or {text})" if interval.if_missing else text


def condition(clause: Clause, names: Mapping[int, str]) -> str:
    """A clause as one expression."""
    return " and ".join(atom(interval, names[interval.feature]) for interval in clause.atoms) or "True"


def decision(program: Program, names: Mapping[int, str]) -> list[str]:
    """The body of `_leaf` (an if for each split) or of `_held` (a truth value a clause)."""
    match program.decision:
        case Tree():
            return list(_tree_lines(program, program.decision, names))
        case Scorecard():
            values = [f"    {condition(clause, names)}," for clause in program.clauses]
            return ["return (", *values, ")"] if values else ["return ()"]
        case _:
            assert_never(program.decision)


def _tree_lines(program: Program, tree: Tree, names: Mapping[int, str]) -> Iterator[str]:
    """Every side returns, so the second needs no else and a rule list is a flat row of ifs."""
    inverted = _inverted_splits(tree)
    number = leaf_numbers(tree)
    waiting = [(0, 0)]
    while waiting:
        index, depth = waiting.pop()
        node = tree.nodes[index]
        indent = "    " * depth
        if isinstance(node, Leaf):
            yield f"{indent}return {number[index]}"
            continue
        asked = condition(program.clauses[node.clause], names)
        first, second = node.then, node.otherwise
        if index in inverted:
            asked, first, second = f"not ({asked})", second, first
        yield f"{indent}if {asked}:"
        waiting += ((second, depth), (first, depth + 1))


def _inverted_splits(tree: Tree) -> set[int]:
    """The splits whose `otherwise` side is indented, because their `then` side is nested too deeply for Python."""
    inverted = set()
    height = [0] * len(tree.nodes)
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Split):
            inner, outer = height[node.then], height[node.otherwise]
            if inner >= DEEP and inner > outer:
                inverted.add(index)
                inner, outer = outer, inner
            height[index] = max(inner + 1, outer)
    return inverted


def variable_names(program: Program) -> dict[int, str]:
    """A local variable for each feature the rules ask: its own name where that is safe, `x7` where not."""
    used = sorted({interval.feature for clause in program.clauses for interval in clause.atoms})
    cleaned = {feature: re.sub(r"[^A-Za-z0-9]+", "_", program.features[feature]).strip("_") for feature in used}
    taken = list(cleaned.values())
    return {f: name if _is_safe(name) and taken.count(name) == 1 else f"x{f}" for f, name in cleaned.items()}


def _is_safe(name: str) -> bool:
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,39}", name) is not None
    return plain and not keyword.iskeyword(name) and re.fullmatch(r"x\d*", name) is None


def emit(program: Program, name: str, options: Options) -> Artifact:
    """One module `NAME.py`. The tree of the demo begins like this::

    def _leaf(x):
        worst_area = x[23]
        if worst_area >= 863.33 and 0.13 <= worst_smoothness < 0.2:
            return 0
    """
    take_options("python", options, {})
    source = digest(program)
    names = variable_names(program)
    values = {
        "name": name,
        "generator": GENERATOR,
        "digest": literal(source),
        "rules": readable(program).split("\n"),
        "features": [literal(feature) for feature in program.features],
        "classes": [literal(label) for label in program.classes],
        "clauses": [literal(clause_text(clause, program.features)) for clause in program.clauses],
        "variables": [(variable, f"x[{feature}]") for feature, variable in names.items()],
        "body": decision(program, names),
        **_tables(program),
    }
    return Artifact("python", name, {f"{name}{EXTENSION}": render("python/module.py.jinja", values)}, source)


def _tables(program: Program) -> dict[str, Any]:
    match program.decision:
        case Tree():
            return {"kind": "tree", "leaves": _leaf_table(program.decision)}
        case Scorecard(bias, points, scale):
            return {
                "kind": "scorecard",
                "bias": literal(bias),
                "points": [literal(row) for row in points],
                "scale": literal(scale),
            }
        case _:
            assert_never(program.decision)


def _leaf_table(tree: Tree) -> list[dict[str, str]]:
    """For each leaf its class, its probabilities, and the (clause, held) answers on the way to it."""
    clause_of = {index: node.clause for index, node in enumerate(tree.nodes) if isinstance(node, Split)}
    return [
        {
            "winner": literal(winner(node.probabilities)),
            "probabilities": literal(node.probabilities),
            "path": literal(tuple((clause_of[split], held) for split, held in steps)),
        }
        for (index, steps) in sorted(paths(tree).items())
        if isinstance(node := tree.nodes[index], Leaf)
    ]


def load(path: Path) -> Predictor:
    """The module in a file, run in this process. It is code: load only what you would import."""
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # noqa: S102 - running it is the point
        digest_found, features, classes = module.DIGEST, module.FEATURES, module.CLASSES
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
    except Exception as error:
        raise BadInput(f"{path}: is not a module this target emits: {type(error).__name__}: {error}") from error

    def answer(rows: Matrix) -> Answers:
        return _answers(module, rows)

    return Predictor("python", _engine(), digest_found, tuple(features), tuple(classes), answer)


def _answers(module: types.ModuleType, rows: Matrix) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    listed = rows.tolist()
    labels = label_array(tuple(module.predict_many(listed)))
    probabilities = np.array([module.predict_proba(row) for row in listed]).reshape(len(listed), len(module.CLASSES))
    reasons = [module.explain(row) for row in listed]
    if hasattr(module, "score"):
        scores = np.array([reason["scores"] for reason in reasons], dtype=np.int64).reshape(probabilities.shape)
        return Answers(labels, probabilities, scores=scores)
    return Answers(labels, probabilities, leaves=np.array([reason["leaf"] for reason in reasons], dtype=np.int64))


def _engine() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def available() -> Availability:
    """Python is always here."""
    return Availability(_engine())


BACKEND = Backend("python", "one readable module, standard library only", EXTENSION, emit, load, available)
