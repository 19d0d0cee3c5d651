"""A reading that is matched to a program by name keeps its meaning: tests, kinds and texts move with their feature."""

from dataclasses import replace

import pytest

from gbfl_compile.auditing.diff import diff
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.reading.from_program import align, as_reading
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, OneOf, Program, Scorecard, leaf, split

ONE = Program(
    ("a", "b"),
    ("no", "yes"),
    (Clause((OneOf(0, ("x",)), OneOf(1, ("y",)))),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    kinds=("category", "category"),
)
TURNED = replace(ONE, features=("b", "a"), clauses=(Clause((OneOf(0, ("y",)), OneOf(1, ("x",)))),))
SWAPPED = replace(ONE, features=("b", "a"))


def test_texts_move_with_their_feature():
    assert prove(ONE, align(as_reading(TURNED), ONE.features, ONE.classes)).answer == "proved"
    assert prove(ONE, align(as_reading(SWAPPED), ONE.features, ONE.classes)).answer == "counterexample"


def test_a_feature_that_is_never_mentioned_is_not_a_category():
    wider = replace(ONE, features=("a", "b", "c"), kinds=("category",) * 3)
    with pytest.raises(BadInput, match="its features are not the program's"):
        prove(wider, align(as_reading(ONE), wider.features, wider.classes))


def test_the_reason_of_a_rule_set_moves_too():
    card = replace(TURNED, decision=Scorecard((0, 0), ((0, 1),)))
    reading = as_reading(card)
    held = tuple(condition for condition, _ in reading.decision.terms)
    moved = align(replace(reading, decision=replace(reading.decision, held=held)), ONE.features, ONE.classes)
    assert moved.decision.held == tuple(condition for condition, _ in moved.decision.terms)
    assert moved.decision.held != held


def test_versions_whose_features_have_another_order_are_compared_by_name():
    assert diff(ONE, TURNED).verdict == "equal"
    assert diff(ONE, SWAPPED).verdict == "different"
