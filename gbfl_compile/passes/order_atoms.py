"""Within a clause, the atom that rejects most rows is asked first.

before   x >= 1 AND y < 2      (x >= 1 keeps 90 % of the rows, y < 2 keeps 5 %)
after    y < 2 AND x >= 1
"""

from __future__ import annotations

from dataclasses import replace

from gbfl_compile.ir.batch import Matrix, atom_column
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Atom, Clause, Program


def order_atoms(program: Program, rows: Matrix) -> Program:
    """The program with each clause's atoms sorted by how few of `rows` they hold on; ties by feature."""
    counts: dict[Atom, int] = {}
    book = codebook(program)

    def selectivity(atom: Atom) -> tuple[int, int]:
        if atom not in counts:
            counts[atom] = int(atom_column(atom, rows[:, atom.feature], book).sum())
        return counts[atom], atom.feature

    ordered = (Clause(tuple(sorted(clause.atoms, key=selectivity))) for clause in program.clauses)
    return replace(program, clauses=tuple(ordered))
