"""Slips in what a whole program is given or gives: columns mixed up, missing values filled in, classes exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np

from gbfl_compile.auditing.diagnose.slip import Case, Slip, explains
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir.intervals import values_of
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Tree
from gbfl_compile.ir.text import label_text, printable

MIXED_UP, FILLED_IN, EXCHANGED = 3, 3, 3
MOST_COLUMNS = 40
"""Pairs of columns are tried up to so many features that are asked."""


def column_slips(case: Case) -> Iterator[Slip]:
    """Every such slip that explains the rows."""
    tried = (*_mixed_up(case.program), *_filled_in(case.program), *_class_exchanges(case))
    for cost, change, other in tried:
        if explains(case, other):
            yield Slip(cost, len(case.rows), (change,), other)


Tried = tuple[int, Change, Program]


def _used_features(program: Program) -> list[int]:
    return sorted({atom.feature for clause in program.clauses for atom in clause.atoms})


def _everywhere(program: Program, changed: Callable[[Interval], Interval]) -> Program:
    clauses = (Clause(tuple(changed(atom) for atom in clause.atoms)) for clause in program.clauses)
    return replace(program, clauses=tuple(clauses))


def _mixed_up(program: Program) -> Iterator[Tried]:
    """Two columns in each other's place, and one read in place of another, everywhere."""
    used = _used_features(program)[:MOST_COLUMNS]
    names = [printable(name) for name in program.features]
    for a, b in combinations(used, 2):
        other = {a: b, b: a}
        change = Change("every clause", f"on columns {names[a]} and {names[b]}", f"on {names[b]} and {names[a]}")
        yield MIXED_UP, change, _everywhere(program, lambda atom, o=other: _on_other_feature(atom, o))  # type: ignore[misc]
    for a, b in permutations(range(len(names)) if len(names) <= MOST_COLUMNS else used, 2):
        if a in used:
            change = Change("every clause", f"on column {names[a]}", f"on {names[b]} in its place")
            yield MIXED_UP, change, _everywhere(program, lambda atom, o={a: b}: _on_other_feature(atom, o))  # type: ignore[misc]


def _on_other_feature(atom: Interval, other: dict[int, int]) -> Interval:
    return replace(atom, feature=other.get(atom.feature, atom.feature))


def _filled_in(program: Program) -> Iterator[Tried]:
    """A missing value taken for 0, for what always holds or never, in one column or in all."""
    used = _used_features(program)
    ways: tuple[tuple[str, Callable[[Interval], bool]], ...] = (
        ("taken for 0", lambda atom: values_of(atom).least <= 0.0 <= values_of(atom).most),
        ("let through everywhere", lambda _: True),
        ("kept out everywhere", lambda _: False),
    )
    chosen = [([feature], f"missing {printable(program.features[feature])}") for feature in used]
    for features, where in [*chosen, (used, "missing values")]:
        for phrase, taken in ways:
            other = _everywhere(
                program,
                lambda atom, f=features, t=taken: replace(atom, if_missing=t(atom)) if atom.feature in f else atom,  # type: ignore[misc]
            )
            if other != program:
                yield FILLED_IN, Change("every clause", f"{where} as each condition says", f"{where} {phrase}"), other


def _class_exchanges(case: Case) -> Iterator[Tried]:
    """Two classes in each other's place, or one class for every row."""
    program = case.program
    for a, b in combinations(range(len(program.classes)), 2):
        names = [label_text(program.classes[c]) for c in (a, b)]
        change = Change("every answer", f"{names[0]} and {names[1]}", f"{names[1]} and {names[0]}")
        yield EXCHANGED, change, replace(program, decision=_with_classes(program, a, b))
    observed_classes = np.unique(case.deployed.classes).tolist()
    if len(observed_classes) == 1 and 0 <= observed_classes[0] < len(program.classes):
        only = Leaf(tuple(float(c == observed_classes[0]) for c in range(len(program.classes))))
        change = Change(
            "every answer", "as the rules say", f"always {label_text(program.classes[observed_classes[0]])}"
        )
        yield EXCHANGED, change, replace(program, decision=Tree((only,)))


def _with_classes(program: Program, a: int, b: int) -> Tree | Scorecard:
    order = list(range(len(program.classes)))
    order[a], order[b] = b, a
    decision = program.decision
    if isinstance(decision, Scorecard):
        rows = [tuple(row[c] for c in order) for row in (decision.bias, *decision.points)]
        return replace(decision, bias=rows[0], points=tuple(rows[1:]))
    nodes = (
        replace(node, probabilities=tuple(node.probabilities[c] for c in order)) if isinstance(node, Leaf) else node
        for node in decision.nodes
    )
    return Tree(tuple(nodes))
