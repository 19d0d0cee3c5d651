"""The black boxes that are trained here on words serve rows they have not seen, however few there are to learn from."""

import numpy as np
import pytest

from gbfl_compile.learning.tables import FEW_ROWS, MOST_TREES, boosting_on_codes

WORDS = np.array([True, True, True, False])


def rows_of(count, seed):
    """Rows of three words of twelve each, and a number."""
    choose = np.random.default_rng(seed)
    return np.column_stack((choose.integers(1, 13, (count, 3)), choose.normal(size=count))).astype(float)


def mean_loss(model, x, y):
    return -np.log(np.maximum(model.predict_proba(x)[np.arange(len(x)), y], 1e-6)).mean()


def test_boosting_learns_no_classes_that_the_words_say_nothing_about():
    y = np.random.default_rng(1).integers(0, 2, 240)
    model = boosting_on_codes(rows_of(240, 0), y, WORDS, 0)
    new, truth = rows_of(2000, 2), np.random.default_rng(3).integers(0, 2, 2000)
    assert model.n_iter_ < MOST_TREES // 4
    assert mean_loss(model, new, truth) < np.log(2.0) + 0.05


def test_boosting_still_learns_what_the_words_do_say():
    x, new = rows_of(240, 4), rows_of(2000, 5)
    model = boosting_on_codes(x, (x[:, 0] > 6).astype(int), WORDS, 0)
    assert (model.predict(new) == (new[:, 0] > 6)).mean() > 0.95


@pytest.mark.parametrize("rows", [[0] * 60 + [1], [0] * 40 + [1] * 3, list(range(3)) * 30])
def test_rare_classes_and_several_are_learned_too(rows):
    y = np.array(rows)
    model = boosting_on_codes(rows_of(len(y), 6), y, WORDS, 0)
    assert model.classes_.tolist() == sorted(set(rows))


def test_the_same_rows_and_seed_give_the_same_trees():
    x, y = rows_of(FEW_ROWS - 1, 7), np.random.default_rng(8).integers(0, 3, FEW_ROWS - 1)
    one, two = (boosting_on_codes(x, y, WORDS, 5).predict_proba(x) for _ in range(2))
    assert (one == two).all()
