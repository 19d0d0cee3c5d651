"""Is the reason an artifact gives its source's? The clauses that held, and what is said of them in words.

Labels and leaves may be proved equal while `explain` tells another story: its tables are not those that decide.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gbfl_compile.check.cells import cells_of, row_in
from gbfl_compile.check.clock import OutOfTime, clock_of
from gbfl_compile.check.proof import Counterexample, Finding, Proved, Undecided
from gbfl_compile.check.prove import BUDGET_SECONDS, prove
from gbfl_compile.check.prove_graph import Graph, add_decision
from gbfl_compile.check.prove_trees import find_difference
from gbfl_compile.check.reading import Ask, Condition, Decided, Outcome, Reading, Scored
from gbfl_compile.check.wide import as_reading, condition_of
from gbfl_compile.ir.nodes import Clause, Program, Scorecard, Split, Tree
from gbfl_compile.ir.readable import clause_text
from gbfl_compile.ir.trees import leaf, leaf_numbers, paths, split
from gbfl_compile.reasons import leaf_reasons, reasons_of, rule_reasons

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
    if (wrong := _wrong_words(program, reading)) is not None:
        return wrong
    match program.decision, reading.decision:
        case Tree() as tree, Decided(steps) as told:
            outcomes = [step for step in steps if isinstance(step, Outcome)]
            if any(outcome.text is not None for outcome in outcomes):
                return _tree_texts(program, tree, reading, told, budget_seconds)
            return _tree_reasons(tree, outcomes)
        case Scorecard(), Scored(held=held) if held is not None:
            return _rule_reasons(program, reading, held, budget_seconds)
        case _:
            return None


def _wrong_words(program: Program, reading: Reading) -> WrongReason | None:
    """Texts that stand in a table of their own, clause by clause, against the program's."""
    own = reasons_of(program)
    if reading.reasons is not None and dict(reading.reasons) != own:
        told_of = dict(reading.reasons)
        clause = min(number for number in {*told_of, *own} if told_of.get(number) != own.get(number))
        return WrongReason(f"gives clause {clause} the reason {told_of.get(clause)!r}, it has {own.get(clause)!r}")
    tables: list[tuple[Sequence[str | None] | None, list[str]]] = [
        (reading.texts, [clause_text(clause, program.features) for clause in program.clauses]),
    ]
    if isinstance(reading.decision, Scored):
        tables.append((reading.decision.words, rule_reasons(program)))
    for told, wanted in tables:
        if told is None:
            continue
        for number, (one, other) in enumerate(zip(told, wanted, strict=False)):
            if one not in (None, other):
                return WrongReason(f"words clause {number} as {one!r}, it is {other!r}")
        if len(told) != len(wanted):
            return WrongReason(f"words {len(told)} clauses, there are {len(wanted)}")
    return None


def _tree_texts(program: Program, tree: Tree, reading: Reading, told: Decided, budget_seconds: float) -> ReasonFinding:
    """A sentence a leaf, compared on every row: two leaves may say the same, and the artifact may name neither."""
    sentences = leaf_reasons(program, tree)
    source = as_reading(program)
    assert isinstance(source.decision, Decided)  # noqa: S101 - the program is a tree
    cells = cells_of((source, reading), reading.dtype)
    graph = Graph(cells, clock_of(budget_seconds))
    try:
        ours = add_decision(graph, source.decision, lambda outcome: sentences[outcome.leaf or 0])
        theirs = add_decision(graph, told, lambda outcome: outcome.text)
        found = find_difference(graph, ours, theirs)
    except (OutOfTime, RecursionError):
        return Undecided(f"not decided within {budget_seconds:g} seconds")
    if found is None:
        return Proved()
    row = row_in(cells, {feature: found.get(feature, 1) for feature in range(len(program.features))})
    return WrongReason(f"another reason is told on the row {tuple(row)}")


def _tree_reasons(tree: Tree, outcomes: list[Outcome]) -> ReasonFinding | None:
    told = {outcome.leaf: outcome for outcome in outcomes if outcome.held is not None and outcome.leaf is not None}
    if not told:
        return None
    steps, numbers = paths(tree), leaf_numbers(tree)
    for index, number in numbers.items():
        if (outcome := told.get(number)) is None:
            continue
        asked = [(tree.nodes[at], holds) for at, holds in steps[index]]
        way = tuple((node.clause, holds) for node, holds in asked if isinstance(node, Split))
        held = tuple(sorted({clause for clause, holds in way if holds}))
        if tuple(sorted(set(outcome.held or ()))) != held:
            return WrongReason(f"leaf {number} is told to be reached by clauses {outcome.held}, it is by {held}")
        if outcome.way is not None and outcome.way != way:
            return WrongReason(f"leaf {number} is told to be reached by way of {outcome.way}, it is by {way}")
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
