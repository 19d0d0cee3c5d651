"""The Python target: one readable module, standard library only, that gives the program's answers."""

from __future__ import annotations

import keyword
import platform
import re
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.backends.base import Artifact, Availability, Backend, Options, Predictor, render, take_options
from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import read_whole
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import (
    Atom,
    Clause,
    Interval,
    Kind,
    Leaf,
    OneOf,
    Program,
    Scorecard,
    Tree,
    deep_splits,
    leaf_numbers,
)
from gbfl_compile.ir.text import clause_text, listing, reasons_of
from gbfl_compile.version import GENERATOR

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Answers, Matrix
    from gbfl_compile.ir.kinds import Value

EXTENSION = ".py"

IMPORTED = ("math",)
"""What the module imports: a module of that name would import itself, or shadow Python's own."""

IMPORTED_FOR_KINDS = (*IMPORTED, "datetime", "_datetime")
"""The same for a module that takes dates; datetime itself imports _datetime."""

DEEP = 16
"""Beyond this many nested ifs the shallower side is indented: Python refuses 100 levels."""


def literal(value: object) -> str:
    """A label, name or number as Python source. repr of a float reads back as the same double."""
    return repr(value)


def atom(node: Atom, name: str, kind: Kind) -> str:
    """One atom. A row's words are texts or None, its booleans and dates are numbers (`_values` has seen to that)."""
    match node:
        case Interval():
            return between(node, name)
        case OneOf():
            return truth(node, name) if kind == "boolean" else one_of(node, name)
        case _:
            assert_never(node)


def truth(node: OneOf, name: str) -> str:
    """A boolean is 1.0 or 0.0, and NaN where it is missing."""
    if not node.values:
        return (
            between(Interval(node.feature, if_missing=node.if_missing), name)
            if node.negated
            else (f"{name} != {name}" if node.if_missing else "False")
        )
    text = f"{name} == {'0.0' if node.negated else '1.0'}"
    return f"({name} != {name} or {text})" if node.if_missing else text


def one_of(node: OneOf, name: str) -> str:
    """One set of texts. None is in no set: it needs a test where that is not what a missing value answers."""
    if not node.values:
        if node.negated:
            return "True" if node.if_missing else f"{name} is not None"
        return f"{name} is None" if node.if_missing else "False"
    is_one = len(node.values) == 1
    listed = literal(node.values[0]) if is_one else literal(node.values)
    sign = ("!=" if node.negated else "==") if is_one else ("not in" if node.negated else "in")
    text = f"{name} {sign} {listed}"
    if node.negated == node.if_missing:
        return text
    return f"{name} is not None and {text}" if node.negated else f"({name} is None or {text})"


def between(interval: Interval, name: str) -> str:
    """One interval. NaN fails every comparison, so only a missing value that *holds* needs a test."""
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


def condition(program: Program, clause: Clause, names: Mapping[int, str]) -> str:
    """A clause as one expression."""
    atoms = (atom(node, names[node.feature], program.kind(node.feature)) for node in clause.atoms)
    return " and ".join(atoms) or "True"


def decision(program: Program, names: Mapping[int, str]) -> list[str]:
    """The body of `_leaf` (an if for each split) or of `_held` (one boolean per clause)."""
    match program.decision:
        case Tree():
            return list(_tree_lines(program, program.decision, names))
        case Scorecard():
            values = [f"    {condition(program, clause, names)}," for clause in program.clauses]
            return ["return (", *values, ")"] if values else ["return ()"]
        case _:
            assert_never(program.decision)


def _tree_lines(program: Program, tree: Tree, names: Mapping[int, str]) -> Iterator[str]:
    """Both sides return, so the second needs no else and a rule list is a flat sequence of ifs."""
    inverted = deep_splits(tree, DEEP)
    number = leaf_numbers(tree)
    waiting = [(0, 0)]
    while waiting:
        index, depth = waiting.pop()
        node = tree.nodes[index]
        indent = "    " * depth
        if isinstance(node, Leaf):
            yield f"{indent}return {number[index]}"
            continue
        test = condition(program, program.clauses[node.clause], names)
        first, second = node.then, node.otherwise
        if index in inverted:
            test, first, second = f"not ({test})", second, first
        yield f"{indent}if {test}:"
        waiting += ((second, depth), (first, depth + 1))


def variable_names(program: Program) -> dict[int, str]:
    """A local variable for each feature in use: its own name where that is safe, `x7` otherwise."""
    used = sorted({interval.feature for clause in program.clauses for interval in clause.atoms})
    cleaned = {feature: re.sub(r"[^A-Za-z0-9]+", "_", program.features[feature]).strip("_") for feature in used}
    times = Counter(cleaned.values())
    return {f: name if _is_safe(name) and times[name] == 1 else f"x{f}" for f, name in cleaned.items()}


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
    imported = IMPORTED_FOR_KINDS if program.kinds else IMPORTED
    if name.lower() in imported:  # file systems may not distinguish Math.py from math.py
        raise BadInput(
            f"the name {name!r} is also the name of a module that {name}{EXTENSION} imports: choose another with --name"
        )
    source = digest(program)
    names = variable_names(program)
    values = {
        "name": name,
        "generator": GENERATOR,
        "digest": literal(source),
        "rules": listing(program).split("\n"),
        "features": [literal(feature) for feature in program.features],
        "kinds": [literal(kind) for kind in program.kinds],
        "classes": [literal(label) for label in program.classes],
        "clauses": [literal(clause_text(clause, program.features, program.kinds)) for clause in program.clauses],
        "reasons": [(clause, literal(text)) for clause, text in reasons_of(program).items()],
        "variables": [(variable, f"x[{feature}]") for feature, variable in names.items()],
        "body": decision(program, names),
        **_tables(program),
    }
    return Artifact("python", name, {f"{name}{EXTENSION}": render("python/module.py.jinja", values)}, source)


def _tables(program: Program) -> dict[str, Any]:
    match program.decision:
        case Tree():
            return {"kind": "tree", **_leaf_paths(program.decision)}
        case Scorecard(bias, points, scale, bands):
            return {
                "kind": "scorecard",
                "bias": literal(bias),
                "points": [literal(row) for row in points],
                "scale": literal(scale),
                "bands": [[literal((band.least, band.probabilities)) for band in own] for own in bands],
                "share": "_rates" if bands else "_softmax",
            }
        case _:
            assert_never(program.decision)


def _leaf_paths(tree: Tree) -> dict[str, list[Any]]:
    """For each leaf its class, its probabilities and its last step; a step is (the step before, clause, held).

    Steps are shared: a path written out for every leaf of a rule list would grow with the square of its rules.
    """
    steps: list[tuple[int, int, bool]] = []
    last = {0: -1}
    leaves = []
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Leaf):
            winning, probabilities = literal(node.winner), literal(node.probabilities)
            leaves.append({"winner": winning, "probabilities": probabilities, "step": literal(last[index])})
            continue
        for child, held in ((node.then, True), (node.otherwise, False)):
            last[child] = len(steps)
            steps.append((last[index], node.clause, held))
    return {"leaves": leaves, "steps": [literal(step) for step in steps]}


def load(path: Path) -> Predictor:
    """The module in a file, run in this process. It is code: load only what you would import."""
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    content = read_whole(path)
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)  # noqa: S102 - running it is the point
        digest_here, features, classes = module.DIGEST, tuple(module.FEATURES), tuple(module.CLASSES)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{path}: is not a module this target emits: {type(error).__name__}: {error}") from error

    def answer(rows: Matrix) -> Answers:
        return _answers(module, rows.tolist())

    def answer_rows(rows: Sequence[Sequence[Value]]) -> Answers:
        return _answers(module, [list(row) for row in rows])

    kinds = tuple(getattr(module, "KINDS", ()))
    return Predictor("python", _engine(), digest_here, features, classes, answer, kinds=kinds, answer_rows=answer_rows)


ROWS_BY_NAME = 200
"""How many rows are also passed by name, with None for NaN."""


def _answers(module: types.ModuleType, listed: list[list[Any]]) -> Answers:
    """The module's answers, by every one of its functions: if two disagree it is broken."""
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    labels = module.predict_many(listed)
    reasons = [module.explain(row) for row in listed]
    probabilities = [module.predict_proba(row) for row in listed]
    _require_equal([module.predict(row) for row in listed], labels, "predict and predict_many")
    _require_equal([reason["label"] for reason in reasons], labels, "explain and predict_many")
    _require_equal([reason["probabilities"] for reason in reasons], probabilities, "explain and predict_proba")
    named = [_row_by_name(module, row) for row in listed[:ROWS_BY_NAME]]
    _require_equal(module.predict_many(named), labels[:ROWS_BY_NAME], "rows by name and rows by place")
    shares = np.array(probabilities).reshape(len(listed), len(module.CLASSES))
    if hasattr(module, "score"):
        _require_equal(
            [module.score(row) for row in listed], [reason["scores"] for reason in reasons], "explain and score"
        )
        scores = np.array([reason["scores"] for reason in reasons]).reshape(shares.shape)
        return Answers(label_array(tuple(labels)), shares, scores=scores)
    return Answers(label_array(tuple(labels)), shares, leaves=np.array([reason["leaf"] for reason in reasons]))


def _require_equal(one: Sequence[Any], other: Sequence[Any], functions: str) -> None:
    if list(one) != list(other):
        place = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        raise BadInput(f"{functions} disagree: {one[place]!r} and {other[place]!r}")


def _row_by_name(module: types.ModuleType, row: list[Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in zip(module.FEATURES, row, strict=True)}


def _engine() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def available() -> Availability:
    """Python is always available."""
    return Availability(_engine())


BACKEND = Backend(
    "python", "one readable module, standard library only", EXTENSION, emit, load, available, emits_bands=True
)
