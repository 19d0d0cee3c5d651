"""Slips outside the clauses: leaves, sides, columns mixed up, missing values filled in, classes exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np

from gbfl_compile.auditing.answers import Bits, decided_by, differs_at, leaves_reached
from gbfl_compile.auditing.diagnose.clause import clause_text
from gbfl_compile.auditing.diagnose.points import other_points
from gbfl_compile.auditing.diagnose.slip import Case, Slip, explains
from gbfl_compile.auditing.region import exact_text
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir.intervals import values_of
from gbfl_compile.ir.nodes import Atom, Band, Clause, Kind, Leaf, OneOf, Program, Scorecard, Split, Tree
from gbfl_compile.ir.text import label_text, leaf_rule, printable

LEAF, ORDER, SIDES, OTHER_QUESTION = 2, 3, 4, 5


def answer_slips(case: Case) -> Iterator[Slip]:
    """Every slip in the decision that explains the rows."""
    if isinstance(case.program.decision, Tree):
        yield from _other_leaves(case, case.program.decision)
        yield from _other_splits(case, case.program.decision)
        yield from _other_order(case, case.program.decision)
    else:
        yield from other_points(case, case.program.decision)


def _other_leaves(case: Case, tree: Tree) -> Iterator[Slip]:
    """The same tree with other leaves, where every leaf was answered in one way throughout."""
    program, reached = case.program, leaves_reached(tree, case.held)
    nodes, changes = list(tree.nodes), []
    for number, place in enumerate(i for i, node in enumerate(tree.nodes) if isinstance(node, Leaf)):
        here = reached == number
        if not (here & case.differs).any():
            continue
        before, after = tree.nodes[place], _leaf_answer(case, here)
        assert isinstance(before, Leaf)  # noqa: S101 - chosen so
        if after is None:
            return
        nodes[place] = after
        changes.append(_leaf_change(program, number, before, after))
    changed = replace(program, decision=Tree(tuple(nodes)))
    if changes and not differs_at(program, decided_by(changed, case.held), case.deployed).any():
        yield Slip(LEAF + len(changes) - 1, int(case.differs.sum()), tuple(changes), changed)


def _leaf_answer(case: Case, here: Bits) -> Leaf | None:
    """The one answer that was observed on some rows."""
    classes = np.unique(case.deployed.classes[here]).tolist()
    if len(classes) > 1 or not 0 <= classes[0] < len(case.program.classes):
        return None
    if case.deployed.probabilities is None:
        return Leaf(tuple(float(c == classes[0]) for c in range(len(case.program.classes))))
    leaf_probabilities = np.unique(case.deployed.probabilities[here], axis=0)
    if len(leaf_probabilities) > 1 or not np.isfinite(leaf_probabilities).all():
        return None
    most = int(leaf_probabilities[0].argmax())
    return Leaf(tuple(leaf_probabilities[0].tolist()), answer=None if most == classes[0] else classes[0])


def _leaf_change(program: Program, number: int, before: Leaf, after: Leaf) -> Change:
    classes = [program.classes[leaf.winner] for leaf in (before, after)]
    if classes[0] != classes[1]:
        rule = leaf_rule(program, number)
        return Change(f"leaf {number}", label_text(classes[0]), label_text(classes[1]), rule=rule)
    texts = (", ".join(map(exact_text, leaf.probabilities)) for leaf in (before, after))
    return Change(f"probabilities of leaf {number}", *texts)


def _other_splits(case: Case, tree: Tree) -> Iterator[Slip]:
    """The two sides of a split swapped, or another clause tested there."""
    for place, node in enumerate(tree.nodes):
        if not isinstance(node, Split):
            continue
        case.clock.check()
        where, question = f"split {place}", f"{_side(case, node.clause)}"
        turned = case.held[:, node.clause]
        yield from _split_slip(case, place, ~turned, SIDES, Change(where, question, "the two sides swapped"), None)
        for other in range(len(case.program.clauses)):
            if other != node.clause:
                change = Change(where, question, _side(case, other))
                yield from _split_slip(case, place, case.held[:, other], OTHER_QUESTION, change, other)


def _other_order(case: Case, tree: Tree) -> Iterator[Slip]:
    """Two rules swapped: the later one is tested first."""
    for place, first in enumerate(tree.nodes):
        if not isinstance(first, Split):
            continue
        second = tree.nodes[first.otherwise]
        if not isinstance(second, Split):
            continue
        case.clock.check()
        nodes = in_order(_swap_rules(tree, place, first, second))
        changed = replace(case.program, decision=Tree(nodes))
        if explains(case, changed):
            a, b = first.clause, second.clause
            change = Change(f"clauses {a} and {b}", f"clause {a} before clause {b}", f"clause {b} before clause {a}")
            yield Slip(ORDER, int(case.differs.sum()), (change,), changed)


def _swap_rules(tree: Tree, place: int, first: Split, second: Split) -> list[Leaf | Split]:
    nodes = list(tree.nodes)
    nodes[place] = replace(first, clause=second.clause, then=second.then)
    nodes[first.otherwise] = replace(second, clause=first.clause, then=first.then)
    return nodes


def in_order(nodes: Sequence[Leaf | Split]) -> tuple[Leaf | Split, ...]:
    """The tree's nodes, ordered so that every branch comes after its parent."""
    listed: list[Leaf | Split] = []

    def put(place: int) -> int:
        node, number = nodes[place], len(listed)
        listed.append(node)
        if isinstance(node, Split):
            listed[number] = replace(node, then=put(node.then), otherwise=put(node.otherwise))
        return number

    put(0)
    return tuple(listed)


def _side(case: Case, clause: int) -> str:
    return f"tests clause {clause}: {clause_text(case.program, case.program.clauses[clause])}"


def _split_slip(case: Case, place: int, answers: Bits, cost: int, change: Change, other: int | None) -> Iterator[Slip]:
    """The tree with another test at one node: only answers below it change, so only they are recomputed."""
    tree = case.program.decision
    assert isinstance(tree, Tree)  # noqa: S101 - trees have splits
    node = tree.nodes[place]
    assert isinstance(node, Split)  # noqa: S101 - chosen so
    count = len(case.program.clauses)
    question = replace(node, clause=count)  # a clause of its own, beside those that are there
    nodes = (*tree.nodes[:place], question, *tree.nodes[place + 1 :])
    wider = replace(case.program, decision=Tree(nodes))
    for rows in (case.probe, np.ones(len(case.rows), dtype=bool)):
        held = np.column_stack([case.held[rows], answers[rows]])
        if differs_at(case.program, decided_by(wider, held), case.deployed.at(rows)).any():
            return
    touched = int((answers != case.held[:, node.clause]).sum())
    kept = replace(node, then=node.otherwise, otherwise=node.then) if other is None else replace(node, clause=other)
    changed = Tree((*tree.nodes[:place], kept, *tree.nodes[place + 1 :]))
    yield Slip(cost, touched, (change,), replace(case.program, decision=changed))


MIXED_UP, FILLED_IN, EXCHANGED = 3, 3, 3
MOST_COLUMNS = 40
"""Pairs of columns are tried if the program uses at most this many features."""


def column_slips(case: Case) -> Iterator[Slip]:
    """Every such slip that explains the rows."""
    tried = (*_mixed_up(case.program), *_filled_in(case.program), *_class_exchanges(case))
    for cost, change, other in tried:
        if explains(case, other):
            yield Slip(cost, len(case.rows), (change,), other)


Tried = tuple[int, Change, Program]


def _used_features(program: Program) -> list[int]:
    return sorted({atom.feature for clause in program.clauses for atom in clause.atoms})


def _everywhere(program: Program, changed: Callable[[Atom], Atom]) -> Program:
    clauses = (Clause(tuple(changed(atom) for atom in clause.atoms)) for clause in program.clauses)
    return replace(program, clauses=tuple(clauses))


def _mixed_up(program: Program) -> Iterator[Tried]:
    """Two columns swapped, or one read instead of another, everywhere."""
    used = _used_features(program)[:MOST_COLUMNS]
    names = [printable(name) for name in program.features]
    for a, b in combinations(used, 2):
        if program.kind(a) != program.kind(b):
            continue
        other = {a: b, b: a}
        change = Change("every clause", f"on columns {names[a]} and {names[b]}", f"on {names[b]} and {names[a]}")
        yield MIXED_UP, change, _everywhere(program, lambda atom, o=other: _on_other_feature(atom, o))  # type: ignore[misc]
    for a, b in permutations(range(len(names)) if len(names) <= MOST_COLUMNS else used, 2):
        if a in used and program.kind(a) == program.kind(b):
            change = Change("every clause", f"on column {names[a]}", f"on {names[b]} in its place")
            yield MIXED_UP, change, _everywhere(program, lambda atom, o={a: b}: _on_other_feature(atom, o))  # type: ignore[misc]


def _on_other_feature(atom: Atom, other: dict[int, int]) -> Atom:
    return replace(atom, feature=other.get(atom.feature, atom.feature))


def _filled_in(program: Program) -> Iterator[Tried]:
    """A missing value read as 0, as an empty text, or as a value that always or never passes, in one column or all."""
    used = _used_features(program)
    ways: tuple[tuple[str, Callable[[Atom], bool]], ...] = (
        ("taken for {nothing}", _holds_on_nothing),
        ("let through everywhere", lambda _: True),
        ("kept out everywhere", lambda _: False),
    )
    chosen = [([feature], f"missing {printable(program.features[feature])}") for feature in used]
    for features, where in [*chosen, (used, "missing values")]:
        nothing = " or ".join(dict.fromkeys(NOTHING[program.kind(feature)] for feature in features))
        for phrase, taken in ways:
            other = _everywhere(
                program,
                lambda atom, f=features, t=taken: replace(atom, if_missing=t(atom)) if atom.feature in f else atom,  # type: ignore[misc]
            )
            if other != program:
                deployed = f"{where} {phrase.format(nothing=nothing)}"
                yield FILLED_IN, Change("every clause", f"{where} as each condition says", deployed), other


NOTHING: Mapping[Kind, str] = {
    "number": "0",
    "category": "an empty text",
    "boolean": "false",
    "date": "1970-01-01",
    "timestamp": "1970-01-01",
}
"""What programs and databases take for a missing value of each kind, where they are not careful."""


def _holds_on_nothing(atom: Atom) -> bool:
    if isinstance(atom, OneOf):
        return ("" in atom.values) != atom.negated
    return values_of(atom).least <= 0.0 <= values_of(atom).most


def _class_exchanges(case: Case) -> Iterator[Tried]:
    """Two classes swapped, or one class for every row."""
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
        swapped = (tuple(_with_order(band, order) for band in decision.bands[c]) for c in order)
        bands = tuple(swapped) if decision.bands else ()
        return replace(decision, bias=rows[0], points=tuple(rows[1:]), bands=bands)
    nodes = (_swapped_leaf(node, order) if isinstance(node, Leaf) else node for node in decision.nodes)
    return Tree(tuple(nodes))


def _with_order(band: Band, order: Sequence[int]) -> Band:
    return replace(band, probabilities=tuple(band.probabilities[c] for c in order))


def _swapped_leaf(leaf: Leaf, order: Sequence[int]) -> Leaf:
    """The leaf with its classes exchanged, the class it answers as well."""
    moved = replace(leaf, probabilities=tuple(leaf.probabilities[c] for c in order), answer=None)
    answer = order.index(leaf.winner)
    return moved if moved.winner == answer else replace(moved, answer=answer)
