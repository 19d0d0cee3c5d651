"""Is the reason an artifact gives its source's? The clauses that held on the way to a leaf, or the rules that hold.

Labels and leaves may be proved equal while `explain` tells another story: its tables are not those that decide.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TypeAlias

from gbfl_compile.check.proof import Counterexample, Finding, Proved, Undecided
from gbfl_compile.check.prove import BUDGET_SECONDS, prove
from gbfl_compile.check.reading import Ask, Condition, Decided, Outcome, Reading, Scored
from gbfl_compile.check.wide import condition_of
from gbfl_compile.ir.nodes import Clause, Program, Scorecard, Split, Tree
from gbfl_compile.ir.trees import leaf, leaf_numbers, paths, split

HOLDS, FAILS = True, False


@dataclass(frozen=True, slots=True)
class WrongReason:
    """The artifact tells of other clauses than those that held, and where."""

    why: str


ReasonFinding: TypeAlias = Proved | WrongReason | Undecided


def prove_reasons(program: Program, reading: Reading, budget_seconds: float = BUDGET_SECONDS) -> ReasonFinding | None:
    """What is found of the reasons a reading gives, or None where it gives none.

    A tree's reasons are compared leaf by leaf, so they say something only where the leaf was proved too.
    """
    match program.decision, reading.decision:
        case Tree() as tree, Decided(steps):
            outcomes = [step for step in steps if isinstance(step, Outcome)]
            return _tree_reasons(tree, outcomes)
        case Scorecard(), Scored(held=held) if held is not None:
            return _rule_reasons(program, reading, held, budget_seconds)
        case _:
            return None


def _tree_reasons(tree: Tree, outcomes: list[Outcome]) -> ReasonFinding | None:
    told = {outcome.leaf: outcome.held for outcome in outcomes if outcome.held is not None and outcome.leaf is not None}
    if not told:
        return None
    steps, numbers = paths(tree), leaf_numbers(tree)
    for index, number in numbers.items():
        asked = [(tree.nodes[at], held) for at, held in steps[index]]
        held = tuple(sorted({node.clause for node, held in asked if held and isinstance(node, Split)}))
        if number in told and tuple(sorted(set(told[number] or ()))) != held:
            return WrongReason(f"leaf {number} is told to be reached by clauses {told[number]}, it is by {held}")
    return Proved()


def _rule_reasons(
    program: Program, reading: Reading, held: tuple[Condition, ...], budget_seconds: float
) -> ReasonFinding:
    if len(held) != len(program.clauses):
        return WrongReason(f"tells of {len(held)} rules, there are {len(program.clauses)}")
    end = time.monotonic() + budget_seconds
    for number, (clause, condition) in enumerate(zip(program.clauses, held, strict=True)):
        if condition == condition_of(clause):
            continue
        if time.monotonic() > end:
            return Undecided(f"rule {number} was not reached within {budget_seconds:g} seconds")
        found = _same_clause(program, reading, clause, condition, end - time.monotonic())
        if isinstance(found, Counterexample):
            return WrongReason(f"rule {number} is not told as it is on the row {found.row}")
        if isinstance(found, Undecided):
            return Undecided(f"rule {number}: {found.why}")
    return Proved()


def _same_clause(program: Program, reading: Reading, clause: Clause, told: Condition, seconds: float) -> Finding:
    """A clause and a condition as two trees of one split, which the prover compares."""
    asked = Program(program.features, (FAILS, HOLDS), (clause,), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    steps = (Ask(told, 1, 2), Outcome(1), Outcome(0))
    said = replace(reading, classes=asked.classes, decision=Decided(steps))
    finding: Finding = prove(asked, said, max(seconds, 0.1)).labels
    return finding
