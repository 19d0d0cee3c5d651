"""Is the reason an artifact gives its source's? The clauses that held, and their wording.

Labels and leaves may be proved equal while `explain` tells another story: its tables are not those that decide.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gbfl_compile.checking.prove import BUDGET_SECONDS, prove
from gbfl_compile.checking.prove.cells import cells_of, row_in
from gbfl_compile.checking.prove.findings import Counterexample, Finding, NoDecision, OutOfTime, ProvedEqual, clock_of
from gbfl_compile.checking.prove.solve import Graph, add_decision, take_apart
from gbfl_compile.checking.prove.trees import find_difference
from gbfl_compile.checking.reading.conditions import same_parts
from gbfl_compile.checking.reading.from_program import as_reading, condition_of, in_book
from gbfl_compile.checking.reading.nodes import Ask, Condition, Outcome, PointDecision, Reading, StepDecision
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, codebook, decode_rows
from gbfl_compile.ir.nodes import Leaf, Program, Scorecard, Split, Tree, leaf_numbers, paths
from gbfl_compile.ir.text import clause_text, leaf_reasons, reasons_of, rule_reasons

HOLDS, FAILS = True, False


@dataclass(frozen=True, slots=True)
class WrongReason:
    """The artifact names other clauses than those that held, and where."""

    why: str


ReasonFinding: TypeAlias = ProvedEqual | WrongReason | NoDecision


def prove_reasons(program: Program, reading: Reading, budget_seconds: float = BUDGET_SECONDS) -> ReasonFinding | None:
    """The finding on the reasons a reading gives, or None where it gives none.

    A tree's reasons are compared leaf by leaf, so they say something only where the leaf was proved too.
    """
    if (wrong := _wrong_words(program, reading) or _wrong_example(program, reading)) is not None:
        return wrong
    if program.kinds:
        reading = in_book(reading, program, codebook(program).with_texts(reading.book))
    match program.decision, reading.decision:
        case Tree() as tree, StepDecision(steps) as decision:
            outcomes = [step for step in steps if isinstance(step, Outcome)]
            if any(outcome.text is not None for outcome in outcomes):
                return _tree_texts(program, tree, reading, decision, budget_seconds)
            return _tree_reasons(tree, outcomes)
        case Scorecard(), PointDecision(held=held) if held is not None:
            return _rule_reasons(program, reading, held, budget_seconds)
        case _:
            return None


def _wrong_words(program: Program, reading: Reading) -> WrongReason | None:
    """Texts in a separate table, clause by clause, against the program's."""
    if reading.clause_count not in (None, len(program.clauses)):
        return WrongReason(f"says that there are {reading.clause_count} clauses, there are {len(program.clauses)}")
    own = reasons_of(program)
    if reading.reasons is not None and dict(reading.reasons) != own:
        told_of = dict(reading.reasons)
        clause = min(number for number in {*told_of, *own} if told_of.get(number) != own.get(number))
        return WrongReason(f"gives clause {clause} the reason {told_of.get(clause)!r}, it has {own.get(clause)!r}")
    tables: list[tuple[Sequence[str | None], list[str]]] = []
    if reading.texts is not None:
        own_texts = [clause_text(clause, program.features, program.kinds) for clause in program.clauses]
        tables.append((reading.texts, own_texts))
    if isinstance(reading.decision, PointDecision) and reading.decision.words is not None:
        tables.append((reading.decision.words, rule_reasons(program)))
    for theirs, ours in tables:
        for number, (one, other) in enumerate(zip(theirs, ours, strict=False)):
            if one not in (None, other):
                return WrongReason(f"words clause {number} as {one!r}, it is {other!r}")
        if len(theirs) != len(ours):
            return WrongReason(f"words {len(theirs)} clauses, there are {len(ours)}")
    return None


def _wrong_example(program: Program, reading: Reading) -> WrongReason | None:
    """The rows of a self-test, which would fail on an artifact that is right."""
    for example in reading.examples:
        (values,) = decode_rows(program, [example.row], _book(program, reading))
        answer = evaluate(program, values)
        claim = (example.winner, example.leaf, example.scores)
        if claim != (program.classes.index(answer.label), answer.leaf, answer.scores):
            return WrongReason(f"its self-test expects {claim} on the row {example.row}")
    return None


def _book(program: Program, reading: Reading) -> Codebook:
    """The codes of a reading's texts, which are the program's too once `prove_reasons` has recoded it."""
    return Codebook(reading.book) if program.kinds else codebook(program)


def _tree_texts(
    program: Program, tree: Tree, reading: Reading, steps: StepDecision, budget_seconds: float
) -> ReasonFinding:
    """One sentence per leaf, compared on every row: two leaves may say the same, and the artifact may name neither."""
    sentences = leaf_reasons(program, tree)
    source = as_reading(program, _book(program, reading))
    assert isinstance(source.decision, StepDecision)  # noqa: S101 - the program is a tree
    cells = cells_of((source, reading), reading.dtype)
    graph = Graph(cells, clock_of(budget_seconds))
    try:
        ours = add_decision(graph, source.decision, lambda outcome: sentences[outcome.leaf or 0])
        theirs = add_decision(graph, steps, lambda outcome: outcome.text)
        box = find_difference(graph, ours, theirs)
    except (OutOfTime, RecursionError):
        return NoDecision(f"not decided within {budget_seconds:g} seconds")
    if box is None:
        return ProvedEqual()
    row = row_in(cells, {feature: box.get(feature, 1) for feature in range(len(program.features))})
    return WrongReason(f"another reason is given on the row {tuple(row)}")


def _tree_reasons(tree: Tree, outcomes: list[Outcome]) -> ReasonFinding | None:
    by_leaf = {outcome.leaf: outcome for outcome in outcomes if outcome.held is not None and outcome.leaf is not None}
    if not by_leaf:
        return None
    steps, numbers = paths(tree), leaf_numbers(tree)
    for index, number in numbers.items():
        if (outcome := by_leaf.get(number)) is None:
            continue
        path = [(tree.nodes[at], holds) for at, holds in steps[index]]
        way = tuple((node.clause, holds) for node, holds in path if isinstance(node, Split))
        held = tuple(sorted({clause for clause, holds in way if holds}))
        if tuple(sorted(set(outcome.held or ()))) != held:
            return WrongReason(f"leaf {number} is said to be reached by clauses {outcome.held}, it is by {held}")
        if outcome.way is not None and outcome.way != way:
            return WrongReason(f"leaf {number} is said to be reached by way of {outcome.way}, it is by {way}")
    return ProvedEqual()


def _rule_reasons(
    program: Program, reading: Reading, held: tuple[Condition, ...], budget_seconds: float
) -> ReasonFinding:
    if len(held) != len(program.clauses):
        return WrongReason(f"names {len(held)} rules, there are {len(program.clauses)}")
    book = _book(program, reading)
    written_otherwise = [
        (number, (clause, condition))
        for number, (clause, condition) in enumerate(zip(program.clauses, held, strict=True))
        if not same_parts(condition_of(program, clause, book), condition)
    ]
    if not written_otherwise:
        return ProvedEqual()
    end = time.monotonic() + budget_seconds
    claims = replace(reading, decision=PointDecision((), tuple((condition, ()) for condition in held)))
    cells = cells_of((as_reading(program, book), claims), reading.dtype)
    for number, (clause, condition) in written_otherwise:
        if take_apart(cells, condition, True) == take_apart(cells, condition_of(program, clause, book), True):
            continue
        if time.monotonic() > end:
            return NoDecision(f"rule {number} was not reached within {budget_seconds:g} seconds")
        difference = _same_clause(program, reading, number, condition, end - time.monotonic())
        if isinstance(difference, Counterexample):
            return WrongReason(f"rule {number} is reported wrongly on the row {difference.row}")
        if isinstance(difference, NoDecision):
            return NoDecision(f"rule {number}: {difference.why}")
    return ProvedEqual()


def _same_clause(program: Program, reading: Reading, clause: int, condition: Condition, seconds: float) -> Finding:
    """A clause and a condition as two trees of one split, which the prover compares.

    The other clauses stay where they are: the codes of texts are those of the whole program.
    """
    tree = Tree((Split(clause, 1, 2), Leaf((0.0, 1.0)), Leaf((1.0, 0.0))))
    question = replace(program, classes=(FAILS, HOLDS), decision=tree, metadata={})
    steps = (Ask(condition, 1, 2), Outcome(1), Outcome(0))
    claim = replace(reading, classes=question.classes, decision=StepDecision(steps))
    finding: Finding = prove(question, claim, max(seconds, 0.1)).labels
    return finding
