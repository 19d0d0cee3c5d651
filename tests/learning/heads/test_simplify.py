"""A plain rule is found as one rule by every head, and a model that needs more is not cut down to one."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.fit import HEADS


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
    assert (member.feature, member.lo, member.hi) == (1, 0.5, None)
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
