"""How the clauses of the paper's model came out: how long, how wide, and whether they hold where they were mined."""

from __future__ import annotations

from typing import Any

import numpy as np

from gbfl_compile.ir.batch import clause_column
from gbfl_compile.learn.clauses import Mined
from gbfl_compile.learn.explanations import Explanations


def mining(mined: Mined, training: Explanations) -> dict[str, Any]:
    """Counts of clauses, their atoms and the training rows they hold on, and how their own rows fare.

    Of the rows that gave a clause: at how many it is true at x, true at the PP, false at the PN. A row whose clause
    says nothing, or whose bounds cross, has none.
    """
    at_x = at_pp = off_pn = with_pn = rows = holds_on = 0
    for clause, sources in zip(mined.clauses, mined.sources, strict=True):
        own = np.array(sources, dtype=np.int64)
        found = own[training.has_pn[own]]
        on_x = clause_column(clause, training.x)
        rows += len(own)
        with_pn += len(found)
        holds_on += int(on_x.sum())
        at_x += int(on_x[own].sum())
        at_pp += int(clause_column(clause, training.pp[own]).sum())
        off_pn += int((~clause_column(clause, training.pn[found])).sum())
    return {
        "clauses": len(mined.clauses),
        "atoms": sum(len(clause.atoms) for clause in mined.clauses),
        "holds_on": holds_on,
        "rows": len(training.x),
        "rows_with_a_clause": rows,
        "true_at_x": at_x,
        "true_at_pp": at_pp,
        "false_at_pn": off_pn,
        "false_at_pn_of": with_pn,
        "off_grid": mined.off_grid,
    }
