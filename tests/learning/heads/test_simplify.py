"""A plain rule is found as one rule by every head, a model that needs more is not cut down to one, and thresholds read well."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Scorecard, Split, Tree
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.fit import HEADS
from gbfl_compile.learning.heads import Head, Triplets
from gbfl_compile.learning.heads.simplify import round_thresholds


def members(rows):
    """`income > 30000 AND member`, as a black box that is sure of it."""
    yes = (rows[:, 0] > 30_000) & (rows[:, 1] >= 0.5)
    return np.where(yes, 0.95, 0.05)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("trained", [False, True])
def test_every_head_finds_a_plain_rule_exactly(head, seed, trained):
    rng = np.random.default_rng(seed)
    ages = rng.integers(18, 80, 400)
    x = np.column_stack([np.round(rng.lognormal(10.3, 0.6, 400)), rng.random(400) < 0.5, ages]).astype(float)
    y = (members(x) > 0.5).astype(int)
    box = HistGradientBoostingClassifier(random_state=0).fit(x, y) if trained else members
    model = GBFLClassifier(box, head=head, random_state=0).fit(x, y)
    (clause,) = model.clauses_
    income, member = clause.atoms
    assert (income.feature, income.hi) == (0, None)
    assert (member.feature, member.lo, member.hi) == (1, 1.0, None)
    assert model.predict(x).tolist() == y.tolist()
    if not trained:  # the black box itself knows the bound to the unit
        incomes = np.concatenate([np.arange(0, 100_000, 250), [29_900, 30_100]]).astype(float)
        every = np.array([(i, member, age) for i in incomes for member in (0.0, 1.0) for age in (18.0, 50.0)])
        every = every[every[:, 0] != 30_000]
        assert model.predict(every).tolist() == (members(every) > 0.5).astype(int).tolist()
    assert len(f"{income.lo:.10g}".strip("0").replace(".", "")) <= 4, "it reads well"


def test_one_rule_is_not_mistaken_for_a_model_that_needs_more():
    rng = np.random.default_rng(0)
    x = rng.random((400, 2))
    xor = GBFLClassifier(lambda rows: np.where((rows[:, 0] > 0.5) != (rows[:, 1] > 0.5), 0.9, 0.1), head="tree").fit(x)
    assert len(xor.clauses_) > 1
    assert xor.consistency_.fidelity > 95


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize(
    "yes",
    [
        lambda rows: (rows[:, 0] > 0.5) & (rows[:, 1] > 0.5),
        lambda rows: (rows[:, 0] > 0.5) | (rows[:, 1] > 0.5),
        lambda rows: (rows[:, 0] > 0.5) != (rows[:, 1] > 0.5),
        lambda rows: rows[:, 0] < 0.5,
        lambda rows: rows.mean(axis=1) > 0.5,
    ],
    ids=["and", "or", "either", "not", "most"],
)
def test_truth_values_alone_are_learned_although_they_make_few_different_rows(head, width, yes):
    x = (np.random.default_rng(0).random((200, width)) < 0.5).astype(float)
    model = GBFLClassifier(lambda rows: np.where(yes(rows), 0.95, 0.05), head=head, random_state=0).fit(x)
    assert (model.predict(x) == yes(x)).all()
    assert model.consistency_.c_tb_all == 100.0
    bounds = [bound for clause in model.clauses_ for atom in clause.atoms for bound in (atom.lo, atom.hi)]
    assert set(bounds) == {1.0, None}


def alone(values, label):
    """Rows, or values of one feature, as triplets without a PP and a PN."""
    label = np.asarray(label)
    values = np.asarray(values, dtype=float).reshape(len(label), -1)
    first = np.tile([True, False, False], len(values))
    return Triplets(
        x=np.repeat(values, 3, axis=0),
        exists=first,
        label=np.repeat(label, 3),
        avoids=np.tile([False, False, True], len(values)),
        goal=np.repeat(label, 3),
        counts=np.ones(3 * len(values)),
        weight=np.ones(len(values)),
        own=first,
        n_classes=2,
    )


def from_on(bound):
    return Clause((Interval(0, bound),))


AGES = alone(range(18, 80), [age >= 65 for age in range(18, 80)])
LATE = Scorecard((0, 0), ((0, 6),))


def test_a_threshold_on_whole_numbers_is_whole():
    (below,) = round_thresholds(Head((Clause((Interval(0, 64.5, 79.5),)),), LATE), AGES, whole=(True,)).clauses
    assert below == Clause((Interval(0, 65.0, 80.0),))
    broken = alone(AGES.x[::3, 0] / 8.0, AGES.label[::3])
    (clause,) = round_thresholds(Head((from_on(8.0625),), LATE), broken, whole=(False,)).clauses
    assert 8.0 < clause.atoms[0].lo <= 8.125


def test_a_clause_holds_on_rows_of_the_table_when_its_thresholds_have_been_rounded():
    """Rounded to one digit, 79 is 80, and no row changes its class: but no row has an age of 80."""
    card = Scorecard((0, 0), ((0, 6), (0, 1)))
    old, oldest = round_thresholds(Head((from_on(65.0), from_on(79.0)), card), AGES, whole=(True,)).clauses
    assert old == from_on(65.0)
    assert oldest.atoms[0].lo <= 79.0


def test_a_threshold_that_another_clause_has_already_is_preferred():
    head = Head((Clause((Interval(0, None, 62.0),)), from_on(63.0)), Scorecard((0, 0), ((0, 3), (0, -3))))
    below, above = round_thresholds(head, alone([50, 61, 63, 80], [1, 1, 0, 0])).clauses
    assert below.atoms[0].hi == above.atoms[0].lo == 63.0


def test_clauses_that_have_become_equal_are_one_whose_points_are_no_larger_than_before():
    twins = Head((from_on(65.0), from_on(64.0)), Scorecard((0, 1), ((0, 6), (0, 2))))
    assert round_thresholds(twins, AGES).decision.points != ((0, 8),), "8 is more than 6"
    split = Scorecard((0, 2), ((0, 3), (0, -6)))
    merged = round_thresholds(Head((from_on(65.0), from_on(64.5)), split), alone([60, 64, 65, 66], [1, 1, 0, 0]))
    assert merged == Head((from_on(65.0),), Scorecard((0, 2), ((0, -3),)))


def test_a_tree_tests_equal_clauses_by_one_number():
    no, yes = Leaf((1.0, 0.0)), Leaf((0.0, 1.0))
    tree = Tree((Split(0, 1, 4), Split(1, 2, 3), yes, no, Split(2, 5, 6), yes, no))
    rows = [(age, sex) for age in range(18, 80) for sex in (0, 1)]
    clauses = Clause((Interval(1, 0.5),)), from_on(64.5), from_on(64.25)
    rounded = round_thresholds(Head(clauses, tree), alone(rows, [age >= 65 for age, _ in rows]), whole=(True, True))
    assert rounded.clauses == (Clause((Interval(1, 1.0),)), from_on(65.0))
    assert [node.clause for node in rounded.decision.nodes if isinstance(node, Split)] == [0, 1, 1]
