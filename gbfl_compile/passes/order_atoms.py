"""Within a clause, the atom that rejects most rows is asked first.

before   x >= 1 AND y < 2      (x >= 1 keeps 90 % of the rows, y < 2 keeps 5 %)
after    y < 2 AND x >= 1
"""

from __future__ import annotations

from dataclasses import replace

from gbfl_compile.ir.batch import Matrix, atom_column
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Atom, Clause, Program


def order_atoms(program: Program, rows: Matrix, book: Codebook | None = None) -> Program:
    """The program with each clause's atoms sorted by how few of `rows` they hold on; ties by feature.

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
