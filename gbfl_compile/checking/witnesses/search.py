"""Finds, for every atom of a tree, rows that reach it and on which a slip in that atom would change the answer.

A slip (a bound one double off, `>` for `>=`, a bound lost, a missing value treated otherwise) turns the atom over at a
value next to a bound or at the missing value. With the other atoms of its conjunction held, the row then takes the
other side of the split: a row shows the slip where the two sides end differently, and that is what the prover finds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import assert_never

from gbfl_compile.checking.prove.cells import Atoms, Cells, cell_at, ends_of, value_in
from gbfl_compile.checking.prove.findings import OutOfTime, Steps
from gbfl_compile.checking.prove.solve import (
    Graph,
    Way,
    add_steps,
    atoms_of,
    end_node,
    failing,
    holding,
    narrow_box,
    solve,
    way_to,
)
from gbfl_compile.checking.prove.trees import find_difference_within
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import StepDecision
from gbfl_compile.ir.intervals import Dtype, above, below, values_of
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Atom, Interval, Leaf, OneOf, Program, Split, Tree, paths

STEPS_TO_GET_THERE = 2_000
STEPS_TO_SHOW = 100
STEPS_IN_ALL = 20_000
"""Of all searches for rows that show a slip in the label; later ones have to do with rows that get there."""

PINS = (0.0, math.inf, -math.inf)
"""Values every atom is also tried at: engines have their own ideas about them."""

Row = dict[int, int]
"""A cell for every feature."""


@dataclass(slots=True)
class WitnessSearch:
    """Rows found so far, and what was not found: not frozen, the search adds to it."""

    rows: list[Row] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    """Places shown to be reached by no row."""
    given_up: list[str] = field(default_factory=list)
    """Searches that used up their steps: a slip there may go unseen."""


@dataclass(frozen=True, slots=True)
class SearchState:
    """A tree made ready for searching: the same tree as a graph of labels and as one of everything it answers."""

    program: Program
    tree: Tree
    cells: Cells
    atoms: Sequence[Atoms]
    """Each clause as atoms."""
    choose: random.Random
    labels: Graph
    label_node: Mapping[int, int]
    whole: Graph
    whole_node: Mapping[int, int]
    show: Steps
    in_all: Steps


def cells_around(program: Program, dtype: Dtype = "float64") -> Cells:
    """Cells in which every bound, each of its neighbours and every pin is a cell of its own.

    For float32 the bounds are float32s, as `narrow` makes them.
    """
    book = codebook(program)
    atoms = [atom for clause in program.clauses for atom in clause.atoms]
    bounds = [(atom.feature, bound) for atom in atoms for bound in bounds_of(atom, book)]
    up, down = partial(above, dtype=dtype), partial(below, dtype=dtype)
    starts: list[set[float]] = [{0.0, up(0.0), math.inf, up(-math.inf)} for _ in program.features]
    for feature, bound in bounds:
        starts[feature].update((down(bound), bound, up(bound), up(up(bound))))
    return Cells(tuple(tuple(sorted(own - {-math.inf})) for own in starts), dtype)


def bounds_of(atom: Atom, book: Codebook) -> list[float]:
    """The bounds of an interval, the codes of a set."""
    match atom:
        case Interval(_, lo, hi):
            return [bound for bound in (lo, hi) if bound is not None]
        case OneOf(feature, texts):
            return [book.code(feature, text) for text in texts]
        case _:
            assert_never(atom)


def turning_cells(cells: Cells, atom: Atom, book: Codebook) -> Iterator[tuple[int, ...]]:
    """Where a slip turns the atom over, one kind of slip after another.

    The second of two is all of one side, for a bound that is lost: a row from the first shows that slip too. A set
    turns over at each text it lists, at any other text and at those that the rest of the program lists.
    """
    if isinstance(atom, OneOf):
        yield (cells.missing(atom.feature),)
        for code in range(len(book.texts[atom.feature]) + 1):
            yield (cell_at(cells, atom.feature, float(code)),)
        return
    least, most = ends_of(values_of(atom), cells.dtype)
    yield (cells.missing(atom.feature),)
    if atom.lo is not None:
        first = cell_at(cells, atom.feature, least)
        yield (first,)
        yield (first >> 1, first - 1)
    if atom.hi is not None:
        last = cell_at(cells, atom.feature, most)
        yield (last,)
        yield (last << 1, cells.missing(atom.feature) - (last << 1))


def tree_rows(program: Program, tree: Tree, cells: Cells, choose: random.Random) -> WitnessSearch:
    """Rows for every atom of every split, and one for every leaf."""
    search = WitnessSearch()
    state = _search_state(program, tree, cells, choose)
    for index, steps in sorted(paths(tree).items()):
        node = tree.nodes[index]
        way = way_to(cells, tree, state.atoms, steps)
        if way is None:
            search.unreachable.append(f"node {index}")
        elif isinstance(node, Leaf):
            row = _row_there(state, way, search, f"node {index}, a leaf")
            search.rows += [] if row is None else [row]
        else:
            _split_rows(state, index, node, way, search)
    return search


def _search_state(program: Program, tree: Tree, cells: Cells, choose: random.Random) -> SearchState:
    decided = as_reading(program).decision
    assert isinstance(decided, StepDecision)  # noqa: S101 - a tree's reading is one
    show, in_all = Steps(10**9), Steps(STEPS_IN_ALL)
    labels, whole = Graph(cells, show), Graph(cells, show)
    by_label = add_steps(labels, decided, lambda outcome: outcome.winner)
    by_leaf = add_steps(whole, decided, lambda outcome: outcome)
    book = codebook(program)
    atoms = [atoms_of(cells, program, clause, book) for clause in program.clauses]
    return SearchState(program, tree, cells, atoms, choose, labels, by_label, whole, by_leaf, show, in_all)


def _split_rows(state: SearchState, index: int, split: Split, way: Way, search: WitnessSearch) -> None:
    """Rows for every atom of a split; then, where none of them shows it, for the whole conjunction being lost."""
    atoms = state.atoms[split.clause]
    where = f"node {index}, clause {split.clause}"
    held = holding(state.cells, way, atoms)
    near = None if held is None else _row_there(state, held, search, f"{where} held")
    asking = _asking(way.failed, {feature for feature, _ in atoms})
    in_label = {True: False, False: False}
    """Whether a row that holds the conjunction showed a slip in the label, and one that fails it."""
    for atom in state.program.clauses[split.clause].atoms:
        box = dict(way.box)
        rest = tuple(pair for pair in atoms if pair[0] != atom.feature)
        if narrow_box(state.cells, box, rest):
            mine = f"{where}, feature {atom.feature}"
            start = near or _row_there(state, Way(box, way.failed), search, mine)
            if start is not None:
                there = Way(box, way.failed)
                for inside in _atom_rows(state, split, atom, there, start, asking[atom.feature], search, mine):
                    in_label[inside] = True
    for inside, whole in ((True, held), (False, failing(way, atoms))):
        if whole is not None and not in_label[inside]:
            first = near if inside else _row_there(state, whole, search, f"{where} failed")
            search.rows += [] if first is None else [_show(state, split, whole, first, search, where)[0]]


def _asking(failed: Sequence[Atoms], features: set[int]) -> dict[int, list[Atoms]]:
    """For each of some features, the conjunctions that test it."""
    asking: dict[int, list[Atoms]] = {feature: [] for feature in features}
    for atoms in failed:
        for feature, _ in atoms:
            if feature in asking:
                asking[feature].append(atoms)
    return asking


def _atom_rows(
    state: SearchState,
    split: Split,
    atom: Atom,
    way: Way,
    near: Row,
    asking: list[Atoms],
    search: WitnessSearch,
    where: str,
) -> Iterator[bool]:
    """Add rows for one atom, all others held; say of each that shows a slip in the label whether the atom holds there.

    `near` is a row that gets there: with another value of the feature it mostly still does, if those of the failed
    conjunctions that test the feature (`asked`) still fail.
    """
    free = way.box.get(atom.feature, -1)
    inside = dict(state.atoms[split.clause])[atom.feature]
    for value in PINS:
        moved = _move(near, atom.feature, free & cell_at(state.cells, atom.feature, value), asking)
        search.rows += [] if moved is None else [moved]
    for masks in turning_cells(state.cells, atom, codebook(state.program)):
        for pin in (free & mask for mask in masks if free & mask):
            there = Way({**way.box, atom.feature: pin}, way.failed)
            first = _move(near, atom.feature, pin, asking) or _row_there(state, there, search, where)
            if first is None:
                continue
            row, in_label = _show(state, split, there, first, search, where)
            search.rows.append(row)
            if in_label:
                near = row  # what showed one slip often shows the next
                yield bool(pin & inside)
                break


def _move(row: Row, feature: int, pin: int, asking: list[Atoms]) -> Row | None:
    """The row with a feature in one of these cells, None where it then misses its way; `asked` are to fail."""
    moved = {**row, feature: pin & -pin}
    return None if not pin or any(_holds(moved, atoms) for atoms in asking) else moved


def _holds(row: Row, atoms: Atoms) -> bool:
    for feature, mask in atoms:  # noqa: SIM110 - asked a million times, and twice as quick as all(...)
        if not row[feature] & mask:
            return False
    return True


def _shows(graph: Graph, node: Mapping[int, int], split: Split, row: Row) -> bool:
    return end_node(graph, node[split.then], row) != end_node(graph, node[split.otherwise], row)


def _show(
    state: SearchState, split: Split, way: Way, there: Row, search: WitnessSearch, where: str
) -> tuple[Row, bool]:
    """A row whose two sides differ in the label (True), else in probabilities or leaf, else the one that is there."""
    for graph, node in ((state.labels, state.label_node), (state.whole, state.whole_node)):
        in_label = graph is state.labels
        if _shows(graph, node, split, there):
            return there, in_label
        row = _search(state, graph, node[split.then], node[split.otherwise], way, search, where)
        if row is not None:
            return row, in_label
    return there, False


def _search(
    state: SearchState, graph: Graph, then: int, otherwise: int, way: Way, search: WitnessSearch, where: str
) -> Row | None:
    state.show.left = before = min(STEPS_TO_SHOW, state.in_all.left)
    try:
        row = find_difference_within(graph, then, otherwise, way.box, way.failed)
    except OutOfTime:
        search.given_up.append(where)
        return None
    finally:
        state.in_all.left -= max(0, before - state.show.left)
    return None if row is None else {feature: row.get(feature, 1) for feature in range(len(state.cells.starts))}


def _row_there(state: SearchState, way: Way, search: WitnessSearch, where: str) -> Row | None:
    """A row that gets there; features nothing binds are in any cell."""
    try:
        box = solve(state.cells, way.box, way.failed, Steps(STEPS_TO_GET_THERE))
    except OutOfTime:
        search.given_up.append(where)
        return None
    if box is None:
        search.unreachable.append(where)
        return None
    return {**any_row(state.cells, state.choose), **{feature: mask & -mask for feature, mask in box.items()}}


def values_of_rows(cells: Cells, rows: Sequence[Row]) -> list[list[float]]:
    """Rows of cells as rows of numbers, NaN is missing."""
    value = cache(partial(value_in, cells))
    return [[value(feature, row[feature]) for feature in range(len(cells.starts))] for row in rows]


def any_row(cells: Cells, choose: random.Random) -> Row:
    """A cell for every feature, any one."""
    return {feature: 1 << int(choose.random() * (len(starts) + 2)) for feature, starts in enumerate(cells.starts)}
