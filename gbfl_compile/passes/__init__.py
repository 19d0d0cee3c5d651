"""Passes make a program smaller and leave every answer as it was.

Each is Program -> Program, with its before and after. `PASSES` is their order.
"""

from __future__ import annotations

from collections.abc import Callable

from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.validate import validate
from gbfl_compile.passes.clauses import drop_true_bounds, drop_unused_clauses, merge_equal_clauses, order_atoms
from gbfl_compile.passes.decisions import collapse_splits, decide_by_path

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
