"""What is odd about a program, decided with the prover's algebra: rules that cannot hold, that add nothing, that no
data reaches. Every finding is proved for all inputs or counted on the data, and comes with a row where one helps.
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

import numpy as np

from gbfl_compile.checking.prove.cells import Atoms, Cells, cells_of, row_in
from gbfl_compile.checking.prove.findings import Clock, OutOfTime, clock_of
from gbfl_compile.checking.prove.solve import Graph, Way, add_steps, atoms_of, failing, holding, solve, way_to
from gbfl_compile.checking.prove.trees import find_difference_within
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import StepDecision
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many
from gbfl_compile.ir.json import as_program
from gbfl_compile.ir.kinds import codebook, decode_value
from gbfl_compile.ir.nodes import Interval, Leaf, OneOf, Program, Scorecard, Split, Tree, leaf_numbers, paths
from gbfl_compile.ir.text import clause_text, value_text
from gbfl_compile.tables.values import encoded_rows


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """True and False are shown for every row; None is undecided or, for a leaf, does not apply."""

    reached: bool | None
    row: Mapping[int, int] | None = None
    """A box of rows that get there."""
    holds: bool | None = None
    """Whether some row that gets there holds the clause; likewise `fails`."""
    fails: bool | None = None
    changes_label: bool | None = None


def node_facts(
    program: Program, tree: Tree, cells: Cells, atoms: Sequence[Atoms], clock: Clock
) -> tuple[NodeFacts, ...]:
    """The facts of every node, in order; nodes for which the time does not suffice stay undecided."""
    graph = Graph(cells, clock)
    facts: list[NodeFacts] = []
    try:
        decided = as_reading(program).decision
        assert isinstance(decided, StepDecision)  # noqa: S101 - a tree's reading is one
        graph_node = add_steps(graph, decided, lambda outcome: outcome.winner)
        for index, steps in sorted(paths(tree).items()):
            facts.append(_facts(tree, graph, graph_node, index, way_to(cells, tree, atoms, steps), atoms))
    except OutOfTime:
        pass
    return (*facts, *[NodeFacts(None)] * (len(tree.nodes) - len(facts)))


def _facts(
    tree: Tree, graph: Graph, graph_node: Mapping[int, int], index: int, way: Way | None, atoms: Sequence[Atoms]
) -> NodeFacts:
    row = None if way is None else _row(graph, way)
    if way is None or row is None:
        return NodeFacts(False)
    node = tree.nodes[index]
    if not isinstance(node, Split):
        return NodeFacts(True, row)
    held = holding(graph.cells, way, atoms[node.clause])
    holds = held is not None and _row(graph, held) is not None
    fails = _row(graph, failing(way, atoms[node.clause])) is not None
    differs = holds and fails
    if differs:
        difference = find_difference_within(
            graph, graph_node[node.then], graph_node[node.otherwise], way.box, way.failed
        )
        differs = difference is not None
    return NodeFacts(True, row, holds, fails, differs)


def _row(graph: Graph, way: Way) -> Mapping[int, int] | None:
    return solve(graph.cells, way.box, way.failed, graph.clock)


BUDGET_SECONDS = 10.0

Kind: TypeAlias = Literal[
    "unreachable leaf",
    "never holds",
    "always holds",
    "never changes the label",
    "equal clauses",
    "implied clause",
    "points without effect",
    "label never given",
    "feature never used",
    "leaf without data",
    "clause without data",
    "bound outside the data",
    "text not in the data",
    "missing in the data",
    "not decided",
]


@dataclass(frozen=True, slots=True)
class Oddity:
    """One finding: what kind, where, a sentence, and a row that shows it where there is one.

    NaN is missing; words and dates are encoded as `ir.kinds` does.
    """

    kind: Kind
    where: str
    text: str
    row: tuple[float, ...] | None = None
    clauses: tuple[int, ...] = ()
    """The clauses it is about: their wording is printed below it."""


def lint(
    program: Program | str | os.PathLike[str], data: Any = None, budget_seconds: float = BUDGET_SECONDS
) -> tuple[Oddity, ...]:
    """Everything odd about a program; with data (a file, DataFrame or matrix) also what its rows leave untouched."""
    program = as_program(program)
    rows = None if data is None else encoded_rows(data, program)
    cells = cells_of((as_reading(program),))
    clock = clock_of(budget_seconds)
    book = codebook(program)
    atoms = [atoms_of(cells, program, clause, book) for clause in program.clauses]
    oddities = [*_clause_oddities(program, cells, atoms), *_unused_features(program), *_unused_labels(program)]
    facts: Sequence[NodeFacts] = ()
    if isinstance(program.decision, Tree):
        facts = node_facts(program, program.decision, cells, atoms, clock)
        oddities += _tree_oddities(program, program.decision, cells, facts)
    try:
        oddities += _pair_oddities(cells, atoms, clock)
    except OutOfTime:
        oddities.append(Oddity("not decided", "the clauses", "comparing them all took too long: give a larger budget"))
    if rows is not None:
        oddities += _data_oddities(program, cells, facts, rows)
    return tuple(oddities)


def _clause_oddities(program: Program, cells: Cells, atoms: Sequence[Atoms]) -> Iterator[Oddity]:
    card = program.decision if isinstance(program.decision, Scorecard) else None
    for number, conjunction in enumerate(atoms):
        where = f"clause {number}"
        if any(not mask for _, mask in conjunction):
            text = "no value satisfies it" if program.kinds else "no value lies between its bounds"
            yield Oddity("never holds", where, text, clauses=(number,))
        elif all(mask == cells.everything(feature) for feature, mask in conjunction):
            yield Oddity("always holds", where, "it holds for every row", clauses=(number,))
        if card is not None and len(set(card.points[number])) == 1 and len(program.classes) > 1:
            text = f"every class gets {card.points[number][0]} points: labels and probabilities do not change"
            yield Oddity("points without effect", where, text, _row_of(cells, dict(conjunction)), (number,))


def _row_of(cells: Cells, box: dict[int, int]) -> tuple[float, ...] | None:
    return tuple(row_in(cells, box)) if all(box.values()) else None


def _unused_features(program: Program) -> Iterator[Oddity]:
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    for feature, name in enumerate(program.features):
        if feature not in used:
            yield Oddity("feature never used", f"feature {name!r}", "no clause asks it")


def _unused_labels(program: Program) -> Iterator[Oddity]:
    if isinstance(program.decision, Tree):
        used = {node.winner for node in program.decision.nodes if isinstance(node, Leaf)}
        for position, label in enumerate(program.classes):
            if position not in used:
                yield Oddity("label never given", f"label {label!r}", "no leaf gives it")


def _tree_oddities(program: Program, tree: Tree, cells: Cells, facts: Sequence[NodeFacts]) -> Iterator[Oddity]:
    numbers = leaf_numbers(tree)
    for index, (node, fact) in enumerate(zip(tree.nodes, facts, strict=True)):
        if isinstance(node, Leaf):
            if fact.reached is False:
                label = program.classes[node.winner]
                yield Oddity("unreachable leaf", f"leaf {numbers[index]}", f"no row ends in it; it says {label!r}")
            elif fact.reached is None:
                yield Oddity("not decided", f"leaf {numbers[index]}", "whether a row ends in it took too long")
        elif fact.reached:
            yield from _split_oddities(index, node, cells, fact)


def _split_oddities(index: int, node: Split, cells: Cells, fact: NodeFacts) -> Iterator[Oddity]:
    where = f"node {index}, clause {node.clause}"
    row = None if fact.row is None else tuple(row_in(cells, fact.row))
    if fact.holds is False:
        yield Oddity("never holds", where, "of the rows that get there none holds it", row)
    elif fact.fails is False:
        yield Oddity("always holds", where, "every row that gets there holds it", row)
    elif fact.changes_label is False:
        yield Oddity("never changes the label", where, "both sides give the same label to every row", row)


def _pair_oddities(cells: Cells, atoms: Sequence[Atoms], clock: Clock) -> list[Oddity]:
    """Clauses of equal meaning, and clauses that hold whenever another does."""
    oddities: list[Oddity] = []
    real = [tuple((f, m) for f, m in conjunction if m != cells.everything(f)) for conjunction in atoms]
    first: dict[Atoms, int] = {}
    for number, same in enumerate(real):
        if same in first:
            text = f"it means what clause {first[same]} means"
            row = _row_of(cells, dict(same))
            oddities.append(Oddity("equal clauses", f"clause {number}", text, row, (number, first[same])))
        first.setdefault(same, number)
    listed = [(number, dict(each), sum(1 << f for f, _ in each)) for each, number in first.items() if each]
    for number, narrow, features in listed:
        clock.check()
        for other, wide, fewer in listed:
            if fewer & ~features or number == other or not all(narrow.values()):
                continue
            if all(not narrow[feature] & ~mask for feature, mask in wide.items()):
                box = solve(cells, wide, [tuple(narrow.items())], clock)
                text = f"where it holds, clause {other} holds too; on this row {other} holds and it does not"
                row = None if box is None else tuple(row_in(cells, box))
                oddities.append(Oddity("implied clause", f"clause {number}", text, row, (number, other)))
    return oddities


def _data_oddities(program: Program, cells: Cells, facts: Sequence[NodeFacts], data: Matrix) -> Iterator[Oddity]:
    if data.ndim != 2 or data.shape[1] != len(program.features) or not len(data):
        raise BadInput(f"data of shape {data.shape}: give rows of {len(program.features)} features")
    yield from _bounds_outside(program, data)
    yield from _texts_outside(program, data)
    for feature, count in enumerate(np.isnan(data).sum(axis=0).tolist()):
        if count:
            name = program.features[feature]
            yield Oddity("missing in the data", f"feature {name!r}", f"{count} of {len(data)} rows have no value")
    book = codebook(program)
    for number, clause in enumerate(program.clauses):
        held = int(clause_column(clause, data, book).sum())
        if held == 0:
            row = _row_of(cells, dict(atoms_of(cells, program, clause, book)))
            yield Oddity(
                "clause without data", f"clause {number}", f"none of {len(data)} rows holds it", row, (number,)
            )
    if isinstance(program.decision, Tree):
        leaves = evaluate_many(program, data).leaves
        assert leaves is not None  # noqa: S101 - a tree has leaves
        reached = set(leaves.tolist())
        for index, leaf in leaf_numbers(program.decision).items():
            if leaf not in reached and facts[index].row is not None:
                row = tuple(row_in(cells, facts[index].row or {}))
                yield Oddity("leaf without data", f"leaf {leaf}", f"none of {len(data)} rows ends in it", row)


def _bounds_outside(program: Program, data: Matrix) -> Iterator[Oddity]:
    there = ~np.isnan(data)
    least = np.where(there, data, np.inf).min(axis=0).tolist()
    most = np.where(there, data, -np.inf).max(axis=0).tolist()
    for number, clause in enumerate(program.clauses):
        for atom in clause.atoms:
            for bound in (atom.lo, atom.hi) if isinstance(atom, Interval) else ():
                if bound is not None and not least[atom.feature] <= bound <= most[atom.feature]:
                    name = program.features[atom.feature]
                    ends = [
                        _bound_text(program, atom.feature, end) for end in (least[atom.feature], most[atom.feature])
                    ]
                    shown = _bound_text(program, atom.feature, bound)
                    text = f"bound {shown} of {name!r}; the data goes from {ends[0]} to {ends[1]}"
                    yield Oddity("bound outside the data", f"clause {number}", text, clauses=(number,))


def _bound_text(program: Program, feature: int, bound: float) -> str:
    """A bound in full: a number as Python writes it, a date or timestamp as one."""
    kind = program.kind(feature)
    return repr(bound) if kind == "number" or not math.isfinite(bound) else str(decode_value(kind, bound))


def _texts_outside(program: Program, data: Matrix) -> Iterator[Oddity]:
    """Texts of a category that a clause lists and no row has."""
    book = codebook(program)
    for number, clause in enumerate(program.clauses):
        for atom in clause.atoms:
            if not isinstance(atom, OneOf) or program.kind(atom.feature) != "category":
                continue
            there = set(data[:, atom.feature].tolist())
            absent = [text for text in atom.values if book.code(atom.feature, text) not in there]
            if absent:
                more = f" and {len(absent) - MOST_SHOWN} more" if len(absent) > MOST_SHOWN else ""
                texts = ", ".join(map(value_text, absent[:MOST_SHOWN])) + more
                text = f"{texts} of {program.features[atom.feature]!r}; none of {len(data)} rows has it"
                yield Oddity("text not in the data", f"clause {number}", text, clauses=(number,))


MOST_SHOWN = 5
"""Texts named in one finding."""


def _row_text(program: Program, row: tuple[float, ...]) -> str:
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    present = [f for f in sorted(used) if not math.isnan(row[f])]
    values = [f"{program.features[f]!r}={_value_text(program, f, row[f])}" for f in present]
    if len(present) < len(used):
        values.append("the rest missing" if present else "all missing")
    return ", ".join(values)


def _value_text(program: Program, feature: int, value: float) -> str:
    kind, texts = program.kind(feature), codebook(program).texts[feature]
    if kind == "category" and not 1 <= value < len(texts) + 1:
        return "any other"
    plain = decode_value(kind, value, texts)
    match kind:
        case "number":
            return repr(value)
        case "category":
            return value_text(str(plain))
        case "boolean":
            return str(plain).lower()
        case "date" | "timestamp":
            return str(plain)
        case _:
            assert_never(kind)


def as_text(program: Program, oddities: Sequence[Oddity]) -> str:
    """The findings for people, one per line; below each, the clauses it is about and a row where there is one.

    A clause without data shows by itself which rows would satisfy it.
    """
    lines = []
    unused = [oddity.where.removeprefix("feature ") for oddity in oddities if oddity.kind == "feature never used"]
    if len(unused) > 1:
        lines.append(f"features never used: {', '.join(unused)}: no clause tests them")
    for oddity in oddities:
        if len(unused) > 1 and oddity.kind == "feature never used":
            continue
        lines.append(f"{oddity.kind}: {oddity.where}: {oddity.text}")
        for number in oddity.clauses:
            lines.append(
                f"    clause {number}: {clause_text(program.clauses[number], program.features, program.kinds)}"
            )
        if oddity.row is not None and oddity.kind != "clause without data":
            lines.append(f"    row: {_row_text(program, oddity.row)}")
    return "\n".join(lines or ["nothing odd found"]) + "\n"


def as_json(program: Program, oddities: Sequence[Oddity]) -> list[dict[str, Any]]:
    """The stable form scripts read; a number is a float.hex() string, a missing value null.

    A category is its text, a boolean true or false, a date or timestamp its ISO 8601 text.
    """
    forms = []
    for oddity in oddities:
        form: dict[str, Any] = {"kind": oddity.kind, "where": oddity.where, "text": oddity.text}
        if oddity.row is not None:
            values = (_json_value(program, feature, value) for feature, value in enumerate(oddity.row))
            form["row"] = dict(zip(program.features, values, strict=True))
        forms.append(form)
    return forms


def _json_value(program: Program, feature: int, value: float) -> Any:
    if math.isnan(value):
        return None
    plain = decode_value(program.kind(feature), value, codebook(program).texts[feature])
    if isinstance(plain, float):
        return plain.hex()
    return plain.isoformat() if isinstance(plain, datetime.date) else plain
