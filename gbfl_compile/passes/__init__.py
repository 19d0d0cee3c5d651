"""Passes make a program smaller and leave every answer as it was.

Over clauses: equal ones become one, bounds that always hold are dropped, and so are clauses that the decision never
tests. Over the decision: a test whose answer is known, or makes no difference, is removed. Each pass is Program ->
Program, with its before and after in the docstring. `PASSES` is their order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import assert_never

from gbfl_compile.ir.batch import Matrix, atom_column
from gbfl_compile.ir.intervals import (
    NOTHING_KNOWN,
    Allowed,
    Facts,
    Texts,
    Values,
    allowed_by,
    always_holds,
    is_implied,
    never_holds,
    values_of,
    with_failed,
    with_held,
)
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree, preorder
from gbfl_compile.ir.text import moved_reasons
from gbfl_compile.ir.validate import validate


def merge_equal_clauses(program: Program) -> Program:
    """Two clauses that ask the same become one: every clause is replaced by the first one that asks the same.

    before   clause 0: x >= 1 AND y < 2     clause 1: y < 2 AND x >= 1
             IF clause 0 ... ELSE IF clause 1 ...
    after    IF clause 0 ... ELSE IF clause 0 ...
    """
    first: dict[frozenset[tuple[int, Allowed]], int] = {}
    same_as = [first.setdefault(question(clause), number) for number, clause in enumerate(program.clauses)]
    program = replace(program, metadata=moved_reasons(program, dict(enumerate(same_as))))
    match program.decision:
        case Tree(nodes):
            merged = (n if isinstance(n, Leaf) else Split(same_as[n.clause], n.then, n.otherwise) for n in nodes)
            return replace(program, decision=Tree(tuple(merged)))
        case Scorecard():
            return replace(program, decision=_merged_points(program.decision, same_as))
        case _:
            assert_never(program.decision)


def question(clause: Clause) -> frozenset[tuple[int, Allowed]]:
    """What a clause asks, regardless of the order and spelling of its atoms."""
    return frozenset((atom.feature, allowed_by(atom)) for atom in clause.atoms)


def _merged_points(card: Scorecard, same_as: list[int]) -> Scorecard:
    """The points of a later equal clause move to the first; what is left of it is worth nothing."""
    points = [[0] * len(card.bias) for _ in card.points]
    for number, row in enumerate(card.points):
        target = points[same_as[number]]
        for c, worth in enumerate(row):
            target[c] += worth
    return replace(card, points=tuple(tuple(row) for row in points))


def drop_true_bounds(program: Program) -> Program:
    """A bound that always holds where it is tested is removed, and so is a text that cannot occur there.

        before   IF x >= 5 THEN (IF x >= 3 AND y < 2 THEN a ELSE b) ELSE c
        after    IF x >= 5 THEN (IF y < 2 THEN a ELSE b) ELSE c

    A clause asked in two places may lose a bound in one and keep it in the other: it becomes two clauses.
    """
    match program.decision:
        case Tree():
            return _shorter_tree(program, program.decision)
        case Scorecard():
            return replace(program, clauses=tuple(shorter(clause, NOTHING_KNOWN) for clause in program.clauses))
        case _:
            assert_never(program.decision)


def _shorter_tree(program: Program, tree: Tree) -> Program:
    clauses = list(program.clauses)
    number = {clause: i for i, clause in reversed(list(enumerate(clauses)))}
    nodes = list(tree.nodes)
    facts: dict[int, Facts] = {0: NOTHING_KNOWN}
    for index, node in enumerate(tree.nodes):
        if not isinstance(node, Split):
            continue
        clause = program.clauses[node.clause]
        short = shorter(clause, facts[index])
        if short not in number:
            number[short] = len(clauses)
            clauses.append(short)
        nodes[index] = replace(node, clause=number[short])
        facts[node.then] = with_held(clause, facts[index])
        facts[node.otherwise] = with_failed(clause, facts[index])
    return replace(program, clauses=tuple(clauses), decision=Tree(tuple(nodes)))


def shorter(clause: Clause, facts: Facts) -> Clause:
    """The clause without the bounds that the facts imply."""
    return Clause(tuple(_shorter_atom(atom, facts) for atom in clause.atoms if not is_implied(atom, facts)))


def _shorter_atom(atom: Atom, facts: Facts) -> Atom:
    known = facts.values(atom.feature)
    match atom:
        case Interval():
            return _shorter_interval(atom, known) if isinstance(known, Values) else atom
        case OneOf():
            if not isinstance(known, Texts):
                return atom
            return replace(atom, values=tuple(text for text in atom.values if text in known))
        case _:
            assert_never(atom)


def _shorter_interval(atom: Interval, known: Values) -> Interval:
    own = values_of(atom)
    if atom.lo is not None and known.least >= own.least:
        atom = replace(atom, lo=None, closed="right" if atom.hi_closed else "left")
    if atom.hi is not None and known.most <= own.most:
        atom = replace(atom, hi=None, closed="left" if atom.lo_closed else "right")
    return atom


def drop_unused_clauses(program: Program) -> Program:
    """Clauses that no node tests, or that are worth no points, are dropped; the others are numbered in reading order.

    before   clauses 0, 1, 2; IF clause 2 ... ELSE IF clause 0 ...
    after    clauses 0, 1;    IF clause 0 ... ELSE IF clause 1 ...
    """
    match program.decision:
        case Tree(nodes):
            used = list(dict.fromkeys(node.clause for node in nodes if isinstance(node, Split)))
            number = {old: new for new, old in enumerate(used)}
            renumbered = (n if isinstance(n, Leaf) else Split(number[n.clause], n.then, n.otherwise) for n in nodes)
            decision: Tree | Scorecard = Tree(tuple(renumbered))
        case Scorecard(_, points, _):
            used = [i for i, row in enumerate(points) if any(row)]
            decision = replace(program.decision, points=tuple(points[i] for i in used))
        case _:
            assert_never(program.decision)
    metadata = moved_reasons(program, {old: new for new, old in enumerate(used)})
    return replace(program, clauses=tuple(program.clauses[i] for i in used), decision=decision, metadata=metadata)


def order_atoms(program: Program, rows: Matrix, book: Codebook | None = None) -> Program:
    """Within a clause, the atom that rejects most of `rows` is tested first; ties by feature.

        before   x >= 1 AND y < 2      (x >= 1 keeps 90 % of the rows, y < 2 keeps 5 %)
        after    y < 2 AND x >= 1


    A `book` gives the codes of the rows' texts where they are not the program's own.
    """
    counts: dict[Atom, int] = {}
    codes = codebook(program) if book is None else book

    def selectivity(atom: Atom) -> tuple[int, int]:
        if atom not in counts:
            counts[atom] = int(atom_column(atom, rows[:, atom.feature], codes).sum())
        return counts[atom], atom.feature

    ordered = (Clause(tuple(sorted(clause.atoms, key=selectivity))) for clause in program.clauses)
    return replace(program, clauses=tuple(ordered))


def collapse_splits(program: Program) -> Program:
    """A question is not asked where both answers lead to the same; the rows of the two leaves are added up.

    before   IF x >= 5 THEN a (0.9, 10 rows) ELSE a (0.9, 20 rows)
    after    a (0.9, 30 rows)
    """
    if not isinstance(program.decision, Tree):
        return program
    return replace(program, decision=_collapse(program.decision))


def _collapse(tree: Tree) -> Tree:
    nodes = list(tree.nodes)
    number: dict[Hashable, int] = {}
    shape = [0] * len(nodes)  # equal numbers: the sides below are the same but for row counts
    goes_to = list(range(len(nodes)))
    for index in reversed(range(len(nodes))):
        node = nodes[index]
        if isinstance(node, Leaf):
            shape[index] = number.setdefault(("leaf", node.probabilities, node.answer), len(number))
            continue
        then, otherwise = goes_to[node.then], goes_to[node.otherwise]
        nodes[index] = Split(node.clause, then, otherwise)
        if shape[then] == shape[otherwise]:
            _add_rows(nodes, then, otherwise)
            goes_to[index], shape[index] = then, shape[then]
        else:
            shape[index] = number.setdefault(("split", node.clause, shape[then], shape[otherwise]), len(number))
    return preorder(nodes, goes_to[0])


def _add_rows(nodes: list[Split | Leaf], into: int, other: int) -> None:
    waiting = [(into, other)]
    while waiting:
        a, b = waiting.pop()
        here, there = nodes[a], nodes[b]
        if isinstance(here, Leaf) and isinstance(there, Leaf):
            known = here.rows is not None and there.rows is not None
            nodes[a] = replace(here, rows=(here.rows or 0) + (there.rows or 0) if known else None)
        elif isinstance(here, Split) and isinstance(there, Split):
            waiting += ((here.then, there.then), (here.otherwise, there.otherwise))


def decide_by_path(program: Program) -> Program:
    """A question whose answer follows from the answers before it is not asked.

        before   IF x >= 5 THEN (IF x >= 3 THEN a ELSE b) ELSE c
        after    IF x >= 5 THEN a ELSE c

    In a rule set, where nothing comes before, a clause that always holds moves into the bias and one that
    never holds is worth nothing.
    """
    match program.decision:
        case Tree():
            return replace(program, decision=_decided_tree(program, program.decision))
        case Scorecard():
            return replace(program, decision=_decided_card(program, program.decision))
        case _:
            assert_never(program.decision)


def _decided_tree(program: Program, tree: Tree) -> Tree:
    nodes = list(tree.nodes)
    goes_to = list(range(len(nodes)))
    facts: dict[int, Facts] = {0: NOTHING_KNOWN}
    for index, node in enumerate(tree.nodes):
        if index not in facts or not isinstance(node, Split):
            continue
        clause, known = program.clauses[node.clause], facts[index]
        if always_holds(clause, known):
            goes_to[index], facts[node.then] = node.then, known
        elif never_holds(clause, known):
            goes_to[index], facts[node.otherwise] = node.otherwise, known
        else:
            facts[node.then], facts[node.otherwise] = with_held(clause, known), with_failed(clause, known)
    for index in reversed(range(len(nodes))):  # children come after their parents, so they are final here
        goes_to[index] = index if goes_to[index] == index else goes_to[goes_to[index]]
        node = nodes[index]
        if isinstance(node, Split):
            nodes[index] = Split(node.clause, goes_to[node.then], goes_to[node.otherwise])
    return preorder(nodes, goes_to[0])


def _decided_card(program: Program, card: Scorecard) -> Scorecard:
    bias, nothing = list(card.bias), (0,) * len(card.bias)
    points = list(card.points)
    for number, clause in enumerate(program.clauses):
        if always_holds(clause, NOTHING_KNOWN):
            bias = [start + worth for start, worth in zip(bias, points[number], strict=True)]
            points[number] = nothing
        elif never_holds(clause, NOTHING_KNOWN):
            points[number] = nothing
    return replace(card, bias=tuple(bias), points=tuple(points))


PASSES: tuple[Callable[[Program], Program], ...] = (
    merge_equal_clauses,  # so that equal questions have equal numbers
    decide_by_path,  # before bounds are dropped: it needs the facts they state
    collapse_splits,
    drop_true_bounds,
    drop_unused_clauses,  # last: it numbers the clauses in reading order
)


def optimise(program: Program, rows: Matrix | None = None, book: Codebook | None = None) -> Program:
    """All passes until none finds anything more; with `rows`, atoms are ordered by how few of them they keep.

    A `book` gives the codes of the rows' texts where they are not the program's own.
    """
    validate(program)
    while (smaller := _one_round(program)) != program:
        program = smaller
    return program if rows is None else validate(order_atoms(program, rows, book))


def _one_round(program: Program) -> Program:
    for run in PASSES:
        program = validate(run(program))
    return program
