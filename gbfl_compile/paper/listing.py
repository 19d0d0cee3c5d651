"""The clauses that matter most, one a line in the form of the paper's listings: `36.04 > area >= 17.29 & ...`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gbfl_compile.ir.nodes import Clause, Interval, Program
from gbfl_compile.ir.readable import printable
from gbfl_compile.learn.explanations import Explanations
from gbfl_compile.learn.rule_table import rule_table
from gbfl_compile.passes.drop_unused_clauses import drop_unused_clauses

TOP = 5


def listing(program: Program, training: Explanations, features: Sequence[str], top: int = TOP) -> list[str]:
    """The `top` clauses of a program, most important first.

    In a tree importance is the Gini gain of a clause's splits; in a rule set how far its points set the classes
    apart, times the spread of the clause itself over the training rows (one that always holds decides nothing).
    """
    used = drop_unused_clauses(program)
    if not used.clauses:
        return []
    importance = _importance(rule_table(used, training, None), len(training.x))
    ranked = np.argsort(-importance, kind="stable")[:top]
    return [clause_line(used.clauses[index], features) for index in ranked.tolist()]


def _importance(table: Any, rows: int) -> Any:
    if "weight" in table:
        return table["weight"].to_numpy()
    weights = table.filter(regex="^weight_").to_numpy()
    share = table["support"].to_numpy() / rows
    return (weights.max(axis=1) - weights.min(axis=1)) * np.sqrt(share * (1 - share))


def clause_line(clause: Clause, features: Sequence[str]) -> str:
    """One clause in the paper's form; unlike there, an open bound is written as one.

    >>> clause_line(Clause((Interval(0, 17.29, 36.04), Interval(1, None, 0.28))), ("radius", "concavity"))
    '36.04 > radius >= 17.29 & 0.28 > concavity'
    """
    return " & ".join(_atom(atom, printable(features[atom.feature])) for atom in clause.atoms) or "always"


def _atom(atom: Interval, name: str) -> str:
    upper = "" if atom.hi is None else f"{atom.hi:.5g} {'>=' if atom.hi_closed else '>'} "
    lower = "" if atom.lo is None else f" {'>=' if atom.lo_closed else '>'} {atom.lo:.5g}"
    return f"{upper}{name}{lower}"
