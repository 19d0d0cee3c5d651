"""The prover is right: judged by brute force over every combination of values that any condition can tell apart."""

import math
import random
import zlib
from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample, NoDecision, ProvedEqual
from gbfl_compile.checking.reading.from_program import align, as_reading
from gbfl_compile.checking.reading.nodes import Outcome, StepDecision
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import Values, above, below, narrow
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree
from tests.checking.prove.brute_force import seen_by_brute_force
from tests.checking.respelling import as_tree, mutated, random_program, respelled
from tests.counts import count

PAIRS = count("GBFL_PROOF_PAIRS", 1500)
KINDS = ("tree", "list", "scorecard")


def agrees_with_brute_force(program, reading, float32=False):
    proof = prove(program, reading)
    different = seen_by_brute_force(program, reading, proof.findings, float32)
    for aspect, finding in proof.findings.items():
        expected = Counterexample if aspect in different else ProvedEqual
        assert isinstance(finding, expected), (aspect, finding, program, reading)
    return proof


@pytest.mark.parametrize("kind", KINDS)
def test_the_prover_and_brute_force_agree(kind):
    choose = random.Random(zlib.crc32(kind.encode()))
    answers = []
    for number in range(PAIRS // len(KINDS)):
        program = random_program(choose, kind, features=choose.choice((1, 2, 2)), most_clauses=5)
        equal = number % 2 == 0
        reading = respelled(choose, program) if equal else mutated(choose, program)
        proof = agrees_with_brute_force(program, reading)
        assert not equal or proof.answer == "proved"
        answers.append(proof.answer)
    assert answers.count("counterexample") > len(answers) / 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_float32_artifact_is_judged_on_every_float32_row(kind):
    choose = random.Random(zlib.crc32(kind.encode()) + 1)
    for number in range(PAIRS // 10):
        program = random_program(choose, kind, features=choose.choice((1, 2)), most_clauses=4)
        equal = number % 2 == 0
        reading = respelled(choose, narrow(program)) if equal else mutated(choose, narrow(program))
        reading = replace(reading, dtype="float32")
        with np.errstate(over="ignore", under="ignore"):
            proof = agrees_with_brute_force(program, reading, float32=True)
        assert not equal or proof.answer == "proved"


def test_a_rule_set_and_a_tree_are_compared_by_their_labels():
    choose = random.Random(5)
    for number in range(PAIRS // 10):
        card = random_program(choose, "scorecard", features=choose.choice((1, 2)), most_clauses=4)
        tree = as_tree(choose, card)
        one, other = (card, tree) if number % 2 else (tree, card)
        assert isinstance(agrees_in_labels(one, respelled(choose, other)), ProvedEqual)
        agrees_in_labels(one, mutated(choose, other))


def agrees_in_labels(program, reading):
    found = prove(program, reading).labels
    different = seen_by_brute_force(program, reading, ["labels"])
    assert isinstance(found, Counterexample if different else ProvedEqual)
    return found


def one_cut(lo=1.0, **more):
    clause = Clause((Interval(0, lo, **more),))
    return Program(("a", "b"), ("no", "yes"), (clause,), Tree((Split(0, 1, 2), Leaf((0.0, 1.0)), Leaf((1.0, 0.0)))))


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (one_cut(above(1.0)), 1.0),
        (one_cut(below(1.0)), below(1.0)),
        (one_cut(closed="neither"), 1.0),
        (one_cut(if_missing=True), None),
    ],
)
def test_a_slip_is_shown_on_the_one_value_where_it_shows(wrong, where):
    proof = prove(one_cut(), as_reading(wrong))
    assert isinstance(proof.labels, Counterexample)
    [value, _] = proof.labels.row
    assert math.isnan(value) if where is None else value == where
    assert proof.labels.source.label != proof.labels.target.label


def test_both_zeros_are_one_value():
    assert prove(one_cut(0.0), as_reading(one_cut(0.0))).answer == "proved"
    minus_zero = StepDecision((as_ask(Values(-0.0, math.inf, False)), Outcome(1), Outcome(0)))
    assert prove(one_cut(0.0), replace(as_reading(one_cut(0.0)), decision=minus_zero)).answer == "proved"


def as_ask(values):
    [ask, *_] = as_reading(one_cut()).decision.steps
    return replace(ask, condition=replace(ask.condition, parts=(replace(ask.condition.parts[0], values=(values,)),)))


def test_labels_may_be_equal_where_probabilities_are_not():
    program = one_cut()
    other = replace(program, decision=Tree((Split(0, 1, 2), Leaf((0.25, 0.75)), Leaf((1.0, 0.0)))))
    proof = prove(program, as_reading(other))
    assert isinstance(proof.labels, ProvedEqual)
    assert isinstance(proof.findings["leaf"], ProvedEqual)
    assert isinstance(proof.findings["probabilities"], Counterexample)
    assert proof.answer == "counterexample"
    assert proof.as_json(program.features)["aspects"]["probabilities"]["row"]["a"] is not None


def test_what_an_artifact_does_not_say_is_named():
    bare = StepDecision((as_ask(Values(1.0, math.inf, False)), Outcome(1), Outcome(0)))
    proof = prove(one_cut(), replace(as_reading(one_cut()), decision=bare))
    assert proof.answer == "proved"
    assert proof.not_said == ("probabilities", "leaf")


def test_ties_that_go_the_other_way_are_seen():
    card = Program(("a",), (0, 1), (Clause((Interval(0, 1.0),)),), Scorecard((0, 0), ((0, 1),)))
    reading = as_reading(card)
    other = replace(reading, decision=replace(reading.decision, tie_to="higher"))
    proof = prove(card, other)
    assert isinstance(proof.labels, Counterexample)
    assert isinstance(proof.findings["scores"], ProvedEqual)


@pytest.mark.parametrize("scale", [3, -1])  # an edited text may have a scale that no program has
def test_another_scale_is_another_probability_and_the_same_label(scale):
    card = Program(("a",), (0, 1), (Clause((Interval(0, 1.0),)),), Scorecard((0, 0), ((0, 1),)))
    proof = prove(card, as_reading(replace(card, decision=replace(card.decision, scale=scale))))
    kinds = {aspect: type(finding) for aspect, finding in proof.findings.items()}
    assert kinds == {"labels": ProvedEqual, "scores": ProvedEqual, "probabilities": Counterexample}


def test_a_search_without_end_is_undecided_within_its_budget():
    choose = random.Random(3)
    clauses = tuple(
        Clause(tuple(Interval(f, choose.gauss(0, 1)) for f in choose.sample(range(30), 3))) for _ in range(400)
    )
    card = Scorecard((0, 0), tuple((0, choose.randrange(-(10**9), 10**9)) for _ in clauses))
    program = Program(tuple(f"x{i}" for i in range(30)), (0, 1), clauses, card)
    nearly = replace(card, points=(*card.points[:-1], (0, card.points[-1][1] + 1)))
    proof = prove(program, as_reading(replace(program, decision=nearly)), budget_seconds=0.5)
    assert isinstance(proof.findings["scores"], Counterexample)
    assert isinstance(proof.labels, NoDecision)
    assert proof.seconds < 3.0  # a busy machine may be late, not an order of magnitude


def test_no_budget_at_all_proves_nothing():
    proof = prove(one_cut(), as_reading(one_cut()), budget_seconds=-1.0)
    assert proof.answer == "undecided"


def test_another_order_of_features_is_matched_by_name_or_refused():
    reading = as_reading(one_cut())
    other = replace(reading, features=("b", "a"), decision=StepDecision((as_ask_of(1), Outcome(1), Outcome(0))))
    with pytest.raises(BadInput, match="align"):
        prove(one_cut(), other)
    assert prove(one_cut(), align(other, ("a", "b"), ("no", "yes"))).answer == "proved"
    with pytest.raises(BadInput, match="'b'"):
        align(other, ("a", "c"), ("no", "yes"))


def as_ask_of(feature):
    ask = as_ask(Values(1.0, math.inf, False))
    [test] = ask.condition.parts
    return replace(ask, condition=replace(ask.condition, parts=(replace(test, feature=feature),)))


def test_labels_in_another_order_are_matched_by_type_and_value():
    reading = as_reading(one_cut())
    swapped = tuple(replace(s, winner=1 - s.winner, probabilities=s.probabilities[::-1]) if isinstance(s, Outcome) else s for s in reading.decision.steps)  # fmt: skip
    other = replace(reading, classes=("yes", "no"), decision=StepDecision(swapped))
    assert prove(one_cut(), align(other, ("a", "b"), ("no", "yes"))).answer == "proved"


def test_a_rule_list_of_a_thousand_rules_is_decided():
    choose = random.Random(8)
    rules = 1000
    clauses = tuple(
        Clause(tuple(Interval(f, lo, lo + 1.0) for f, lo in ((f, choose.gauss(0, 1)) for f in choose.sample(range(20), 3))))
        for _ in range(rules)
    )  # fmt: skip
    nodes = []
    for i in range(rules):
        nodes += [Split(i, 2 * i + 1, 2 * i + 2), Leaf((1.0, 0.0) if i // 20 % 2 else (0.0, 1.0))]
    program = Program(tuple(f"x{i}" for i in range(20)), (0, 1), clauses, Tree((*nodes, Leaf((0.5, 0.5)))))
    assert prove(program, as_reading(program)).answer == "proved"
    atoms = clauses[500].atoms
    slipped = Clause((replace(atoms[0], lo=above(atoms[0].lo)), *atoms[1:]))
    wrong = replace(program, clauses=(*clauses[:500], slipped, *clauses[501:]))
    assert isinstance(prove(program, as_reading(wrong)).findings["leaf"], Counterexample)
