"""What a row must do to get to a node of a tree: lie in a box of cells, and fail some conjunctions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gbfl_compile.checking.prove.cells import Atoms, Cells, cell_at, ends_of
from gbfl_compile.ir.intervals import values_of
from gbfl_compile.ir.nodes import Clause, Interval, Split, Tree


@dataclass(frozen=True, slots=True)
class Way:
    """The rows of a box that fail each of some conjunctions."""

    box: Mapping[int, int]
    failed: Sequence[Atoms]


def atoms_of(cells: Cells, clause: Clause) -> Atoms:
    """A clause as atoms over cells that its bounds cut."""
    return tuple(sorted((atom.feature, _mask(cells, atom)) for atom in clause.atoms))


def _mask(cells: Cells, atom: Interval) -> int:
    values = values_of(atom)
    least, most = ends_of(values, cells.dtype)
    first, last = cell_at(cells, atom.feature, least), cell_at(cells, atom.feature, most)
    mask = (last << 1) - first if least <= most else 0
    return mask | cells.missing(atom.feature) if values.missing else mask


def way_to(cells: Cells, tree: Tree, atoms: Sequence[Atoms], steps: Sequence[tuple[int, bool]]) -> Way | None:
    """The way that takes these steps from the root; None where the boxes alone forbid it. `atoms` are the clauses."""
    box: dict[int, int] = {}
    failed: list[Atoms] = []
    for index, held in steps:
        node = tree.nodes[index]
        assert isinstance(node, Split)  # noqa: S101 - a step starts at a split
        if not held:
            failed.append(atoms[node.clause])
        elif not narrow_box(cells, box, atoms[node.clause]):
            return None
    return Way(box, failed)


def holding(cells: Cells, way: Way, atoms: Atoms) -> Way | None:
    """The same way with a conjunction held; None where the boxes alone forbid it."""
    box = dict(way.box)
    return Way(box, way.failed) if narrow_box(cells, box, atoms) else None


def failing(way: Way, atoms: Atoms) -> Way:
    """The same way with a conjunction failed."""
    return Way(way.box, (*way.failed, atoms))


def narrow_box(cells: Cells, box: dict[int, int], atoms: Atoms) -> bool:
    """Narrow a box to where the atoms hold; False where nothing is left."""
    for feature, mask in atoms:
        box[feature] = box.get(feature, cells.everything(feature)) & mask
        if not box[feature]:
            return False
    return True
