"""Rules as logical operators on whole columns: one comparison per bound, And within a clause, Where up a tree.

Columns, because ONNX Runtime is fastest at comparing a whole column with a constant. Every value up to the answer is
flat, `[rows]`: a `[rows, 1]` is broadcast value by value, which is far slower.

Of categories a text becomes its code, and a code is looked up in a table of what each atom says of it. For
`contract in {a, b}`, where the rules mention a, b and c::

    code = LabelEncoder(contract)              a: 1, b: 2, c: 3, any other text: 0
    code or missing = Where(contract is missing, 4, code)
    contract in {a, b} = Gather([False, True, True, False, False], code or missing)

LabelEncoder compares the bytes of UTF-8, which are equal where code points are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gbfl_compile.backends.onnx.graph import Graph, add, add_many, constant, numbers, tensor_type
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree, leaf_numbers
from gbfl_compile.ir.text import atom_text, clause_text, printable


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of one category in a graph: `[rows]`, 0 any other text, then those listed, then missing."""

    column: str
    texts: tuple[str, ...]

    def truths(self, atom: OneOf) -> list[bool]:
        """What an atom says of each code."""
        listed = [(text in atom.values) != atom.negated for text in self.texts]
        return [atom.negated, *listed, atom.if_missing]


def encode(graph: Graph, program: Program, feature: int, text: str, missing: str) -> Codes:
    """The codes of a category, given its texts and its missing values, each `[rows]`."""
    import numpy as np

    name = printable(program.features[feature])
    texts = codebook(program).texts[feature]
    # ONNX has no encoder without keys: where rules only test for missing values, one key says what all others do
    keys, codes = (texts, range(1, len(texts) + 1)) if texts else (("",), range(1))
    code = add(
        graph,
        "LabelEncoder",
        [text],
        f"code of {name}",
        domain="ai.onnx.ml",
        keys_strings=list(keys),
        values_int64s=list(codes),
        default_int64=0,
    )
    last = constant(graph, np.array(len(texts) + 1, dtype=np.int64), f"{name}: the code of a missing value")
    return Codes(add(graph, "Where", [missing, last, code], f"code of {name} or missing"), texts)


def word_column(graph: Graph, program: Program, codes: Codes, atom: OneOf) -> str:
    """Whether an atom holds, `[rows]`."""
    import numpy as np

    name = atom_text(atom, program.features, program.kinds)
    table = constant(graph, np.array(codes.truths(atom)), f"{name}: by code")
    return add(graph, "Gather", [table, codes.column], name, axis=0)


def word_matrix(graph: Graph, program: Program, codes: Codes, atoms: Sequence[OneOf]) -> str:
    """1 where an atom on one category holds and 0 where not, `[rows, atoms]`, as numbers for a TreeEnsemble."""
    import numpy as np

    name = printable(program.features[atoms[0].feature])
    by_code: Any = np.array([codes.truths(atom) for atom in atoms], dtype=numbers(graph)).T.copy()
    table = constant(graph, by_code, f"{name}: rules by code")
    return add(graph, "Gather", [table, codes.column], f"{name} in rules", axis=0)


def boolean_interval(atom: OneOf) -> Interval:
    """An atom on a boolean, which is 1, 0 or missing, as an interval."""
    if atom.values:
        lo, hi = (None, 1.0) if atom.negated else (1.0, None)
    else:
        lo, hi = (None, None) if atom.negated else (2.0, None)  # no boolean is
    return Interval(atom.feature, lo, hi, if_missing=atom.if_missing)


def is_word(program: Program, atom: Atom) -> bool:
    """Whether an atom tests a category."""
    return program.kind(atom.feature) == "category"


def word_atoms(program: Program) -> dict[int, tuple[OneOf, ...]]:
    """The different atoms on each category, in the order in which the rules test them."""
    atoms: dict[int, dict[OneOf, None]] = {}
    for clause in program.clauses:
        for atom in clause.atoms:
            if isinstance(atom, OneOf) and is_word(program, atom):
                atoms.setdefault(atom.feature, {})[atom] = None
    return {feature: tuple(atoms[feature]) for feature in sorted(atoms)}


def as_numbers(program: Program) -> Program:
    """The program over the columns that a tree compares: numbers, then 1 or 0 for each atom on each category."""
    if not program.kinds:
        return program
    plain = [feature for feature, kind in enumerate(program.kinds) if kind != "category"]
    place = {feature: column for column, feature in enumerate(plain)}
    atoms = [atom for several in word_atoms(program).values() for atom in several]
    column = {atom: len(plain) + index for index, atom in enumerate(atoms)}

    def interval(atom: Atom) -> Interval:
        if isinstance(atom, Interval):
            return replace(atom, feature=place[atom.feature])
        if not is_word(program, atom):
            return replace(boolean_interval(atom), feature=place[atom.feature])
        if not atom.values and atom.negated and atom.if_missing:
            return Interval(column[atom], if_missing=True)  # which always holds, and is not tested
        return Interval(column[atom], 1.0)

    names = [program.features[feature] for feature in plain]
    texts = [atom_text(atom, program.features, program.kinds) for atom in atoms]
    clauses = tuple(Clause(tuple(map(interval, clause.atoms))) for clause in program.clauses)
    return replace(program, features=(*names, *texts), clauses=clauses, kinds=())


EXACT_FLOAT32 = 2**24
"""Integers below this are exact in float32: points that cannot add up to it may be added there."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What clauses are made from: a column for each feature used, and what the graph already has of it."""

    program: Program
    columns: dict[int, str]
    words: dict[int, Codes]
    rows: str
    """The shape `[rows]`, for constants that have to be as long as the batch."""
    nodes: dict[Any, str] = field(default_factory=dict)
    """Literals, atoms and clauses that the graph has already, so that none is written twice."""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features."""
        return self.program.features


def used_features(program: Program) -> list[int]:
    """The features that some clause tests."""
    return sorted({atom.feature for clause in program.clauses for atom in clause.atoms})


def split_columns(graph: Graph, matrix: str, program: Program, features: Sequence[int]) -> dict[int, str]:
    """A column `[rows, 1]` for each feature used of a matrix, by one Split: Gather along rows takes longer."""
    import numpy as np

    used = set(used_features(program))
    names: list[str] = []
    sizes: list[int] = []
    place: dict[int, int] = {}
    for index, feature in enumerate(features):
        if feature in used:
            place[feature] = len(names)
            names.append(printable(program.features[feature]))
            sizes.append(1)
        elif names and features[index - 1] not in used:
            sizes[-1] += 1
        else:
            names.append("not asked")
            sizes.append(1)
    widths = constant(graph, np.array(sizes, dtype=np.int64), "features side by side")
    outputs = add_many(graph, "Split", [matrix, widths], [f"{name} in a column" for name in names], axis=1)
    return {feature: outputs[index] for feature, index in place.items()}


def flat_columns(graph: Graph, columns: dict[int, str], features: tuple[str, ...]) -> dict[int, str]:
    """Each `[rows, 1]` as `[rows]`; nothing is copied."""
    import numpy as np

    if not columns:
        return {}
    second = constant(graph, np.array([1]), "second dimension")
    return {f: add(graph, "Squeeze", [column, second], printable(features[f])) for f, column in columns.items()}


def column_shape(graph: Graph, first_input: str) -> str:
    """The shape `[rows]` of every column."""
    import numpy as np

    shape = add(graph, "Shape", [first_input], "shape of the input")
    return add(graph, "Gather", [shape, constant(graph, np.array([0]), "first dimension")], "number of rows", axis=0)


def everywhere(graph: Graph, sources: Sources, value: Any, name: str) -> str:
    """A column with the same value in each row."""
    from onnx import numpy_helper

    return add(graph, "ConstantOfShape", [sources.rows], name, value=numpy_helper.from_array(value))


def literal(graph: Graph, sources: Sources, feature: int, operator: str, bound: float) -> str:
    """One comparison of a column with a threshold. NaN fails each of the four operators."""
    import numpy as np

    signs = {"GreaterOrEqual": ">=", "Greater": ">", "LessOrEqual": "<=", "Less": "<"}
    key = (feature, operator, bound)
    if key not in sources.nodes:
        name = f"{printable(sources.features[feature])} {signs[operator]} {bound!r}"
        threshold = constant(graph, np.array(bound, dtype=numbers(graph)), repr(bound))
        sources.nodes[key] = add(graph, operator, [sources.columns[feature], threshold], name)
    return sources.nodes[key]


def atom(graph: Graph, sources: Sources, question: Atom) -> str | None:
    """Whether an atom holds, row by row; None where it always does."""
    if isinstance(question, Interval):
        return _between(graph, sources, question)
    if not is_word(sources.program, question):
        return _between(graph, sources, boolean_interval(question))
    return _one_of(graph, sources, question)


def _one_of(graph: Graph, sources: Sources, question: OneOf) -> str | None:
    if not question.values and question.negated and question.if_missing:
        return None
    if question not in sources.nodes:
        sources.nodes[question] = word_column(graph, sources.program, sources.words[question.feature], question)
    return sources.nodes[question]


def _between(graph: Graph, sources: Sources, interval: Interval) -> str | None:
    if interval in sources.nodes:
        return sources.nodes[interval]
    parts = []
    if interval.lo is not None:
        operator = "GreaterOrEqual" if interval.lo_closed else "Greater"
        parts.append(literal(graph, sources, interval.feature, operator, interval.lo))
    if interval.hi is not None:
        operator = "LessOrEqual" if interval.hi_closed else "Less"
        parts.append(literal(graph, sources, interval.feature, operator, interval.hi))
    name = printable(sources.features[interval.feature])
    if not parts and interval.if_missing:
        return None
    if not parts:
        missing = _missing(graph, sources, interval.feature)
        sources.nodes[interval] = add(graph, "Not", [missing], f"{name} is present")
        return sources.nodes[interval]
    held = parts[0] if len(parts) == 1 else add(graph, "And", parts, " and ".join(parts))
    if interval.if_missing:
        missing = _missing(graph, sources, interval.feature)
        held = add(graph, "Or", [held, missing], f"{held} or missing")
    sources.nodes[interval] = held
    return held


def _missing(graph: Graph, sources: Sources, feature: int) -> str:
    key = (feature, "missing")
    if key not in sources.nodes:
        name = f"{printable(sources.features[feature])} is missing"
        sources.nodes[key] = add(graph, "IsNaN", [sources.columns[feature]], name)
    return sources.nodes[key]


def condition(graph: Graph, sources: Sources, number: int, clause: Clause) -> str:
    """Whether a clause holds, row by row: its atoms joined by And, under the name `rule 7`."""
    import numpy as np

    key = ("clause", frozenset(clause.atoms))
    if key in sources.nodes:
        return sources.nodes[key]
    parts = [part for part in (atom(graph, sources, question) for question in clause.atoms) if part is not None]
    if not parts:
        held = everywhere(graph, sources, np.array([True]), "always")
    else:
        held = parts[0]
        for index, part in enumerate(parts[1:], start=2):
            last = index == len(parts)
            doc = clause_text(clause, sources.features, sources.program.kinds) if last else ""
            held = add(graph, "And", [held, part], f"rule {number}" if last else f"rule {number}, {index} parts", doc)
    sources.nodes[key] = held
    return held


def leaf_column(graph: Graph, sources: Sources, program: Program, tree: Tree) -> str:
    """The number of the leaf each row reaches: from the leaves up, Where(clause, then, otherwise)."""
    import numpy as np
    from onnx import TensorProto

    number = leaf_numbers(tree)
    # one byte per row makes Where fast; int32 for the rare tree with more leaves
    small = np.uint8 if len(number) <= 256 else np.int32
    if len(tree.nodes) == 1:
        return everywhere(graph, sources, np.array([0], dtype=np.int64), "the only leaf")
    value: dict[int, str] = {}
    for index in reversed(range(len(tree.nodes))):
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            value[index] = constant(graph, np.array(number[index], dtype=small), f"leaf {number[index]}")
        else:
            held = condition(graph, sources, node.clause, program.clauses[node.clause])
            choice = [held, value.pop(node.then), value.pop(node.otherwise)]
            value[index] = add(graph, "Where", choice, f"leaf below split {index}")
    return add(graph, "Cast", [value[0]], "leaf of each row", to=TensorProto.INT64)


def clause_bits(graph: Graph, sources: Sources, program: Program) -> str:
    """Which clauses hold, `[clauses, rows]`: columns concatenated, then reshaped."""
    import numpy as np

    bits = [condition(graph, sources, number, clause) for number, clause in enumerate(program.clauses)]
    end_to_end = add(graph, "Concat", bits, "rules end to end", axis=0)
    lines = constant(graph, np.array([len(bits), -1], dtype=np.int64), "a line a rule")
    return add(graph, "Reshape", [end_to_end, lines], "rules that hold")


def score_lines(graph: Graph, bits: str, card: Scorecard) -> str:
    """Points per class, `[classes, rows]`, in floating point: integers small enough to be exact in any order."""
    import numpy as np

    most = max(sum(abs(row[c]) for row in (card.bias, *card.points)) for c in range(len(card.bias)))
    exact: Any = np.float32 if most < EXACT_FLOAT32 else np.float64
    held = add(graph, "Cast", [bits], "1 for each rule that holds", to=tensor_type(exact))
    points = constant(graph, np.array(card.points, dtype=exact).T.copy(), "points of each rule")
    bias = constant(graph, np.array(card.bias, dtype=exact)[:, None], "points to start with")
    return add(graph, "Add", [add(graph, "MatMul", [points, held], "points of the rules that hold"), bias], "points")


def leaf_tables(tree: Tree) -> tuple[list[tuple[float, ...]], list[int]]:
    """For each leaf its probabilities and the index of its class."""
    leaves = [node for node in tree.nodes if not isinstance(node, Split)]
    return [leaf.probabilities for leaf in leaves], [leaf.winner for leaf in leaves]
