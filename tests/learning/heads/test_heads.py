"""Heads: what is fitted on clauses is as good as it can be at its size, and the same every time."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, paths
from gbfl_compile.ir.validate import validate
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.consistency import consistency
from gbfl_compile.learning.heads import (
    Head,
    Points,
    count_bounds,
    deal_rows,
    holds_on,
    leaf_of,
    triplet_rows,
    triplets_side_by_side,
    without_a_bound,
)
from gbfl_compile.learning.heads.box_search import (
    SearchSettings,
    box_holds,
    clause_of,
    cut_grid,
    explained_cuts,
    promising_boxes,
)
from gbfl_compile.learning.heads.rule_list import fit_rule_list
from gbfl_compile.learning.heads.rules import RuleSettings, fit_rules
from gbfl_compile.learning.heads.simplify import round_thresholds
from gbfl_compile.learning.heads.tree import fit_tree
from gbfl_compile.learning.prepare import rows_between

X, Y = load_iris(return_X_y=True)
BOX = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
HEADS = ("tree", "rules", "rule_list")


@pytest.fixture(scope="module")
def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    box = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    explained = GBFLClassifier(box, head="tree").fit(x, y).explanations_
    return x, y, box, explained


def points_of(x, label, weight=None):
    weight = np.ones(len(x)) if weight is None else weight
    return Points(x, label, weight, np.arange(len(x)), int(label.max()) + 1)


def right(head, points):
    features = tuple(f"f{j}" for j in range(points.x.shape[1]))
    program = validate(Program(features, tuple(range(points.n_classes)), head.clauses, head.decision))
    return evaluate_many(program, points.x)


COLUMNS = [Clause((Interval(j, 0.5),)) for j in range(12)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_tree_is_as_pure_as_scikit_learns(seed, weighted):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (400, 12)).astype(float)
    label = ((x[:, 0] + x[:, 1] * x[:, 2] + x[:, 3] + (rng.random(400) < 0.2)) % 3).astype(int)
    weight = rng.choice([0.5, 1.0, 2.0], 400) if weighted else np.ones(400)
    points = points_of(x, label, weight)
    for depth in (1, 2):
        ours = right(fit_tree(COLUMNS, points, depth, 1), points).probabilities
        theirs = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x, label, weight).predict_proba(x)

        def purity(probabilities, weight=weight):
            return float((weight * (probabilities**2).sum(axis=1)).sum())

        # The same greedy choice; where two splits tie the halves may be other ones but are as pure at depth 1.
        assert purity(ours) == pytest.approx(purity(theirs), rel=1e-9 if depth == 1 else 0.02)


def test_a_tree_finds_a_rule_that_is_there():
    rng = np.random.default_rng(0)
    x = rng.random((500, 12))
    label = ((x[:, 3] >= 0.5) & (x[:, 7] >= 0.5)).astype(int)
    head = fit_tree(COLUMNS, points_of(x, label), 5, 1)
    assert (right(head, points_of(x, label)).labels == label).all()
    assert len(head.clauses) == 2


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, "cv"])
def test_depth_is_a_limit_and_leaves_have_their_least(depth):
    rng = np.random.default_rng(1)
    x = rng.random((300, 12))
    label = (x[:, 0] + rng.normal(scale=0.3, size=300) > 0.5).astype(int)
    points = points_of(x, label)
    head = fit_tree(COLUMNS, points, depth, 20)
    assert max(map(len, paths(head.decision).values())) <= (5 if depth == "cv" else depth)
    assert np.bincount(right(head, points).leaves).min() >= 20


def test_noise_is_cut_shallow_by_cross_validation():
    rng = np.random.default_rng(2)
    x = rng.random((300, 12))
    label = np.where(rng.random(300) < 0.1, 1, 0) ^ (x[:, 0] >= 0.5)
    head = fit_tree(COLUMNS, points_of(x, label.astype(int)), "cv", 1)
    assert max(map(len, paths(head.decision).values())) <= 2
    assert head.clauses[0] == COLUMNS[0]


def test_folds_keep_triplets_together_and_cover_everything():
    row = np.repeat(np.arange(20), 3)
    folds = deal_rows(row, 5)
    assert sorted(np.concatenate(folds).tolist()) == list(range(20))
    assert deal_rows(np.zeros(4, dtype=int), 5) == []


def test_a_box_on_the_cuts_is_the_same_clause_in_the_rule_language():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 3))
    cuts = tuple(np.quantile(x[:, j], [0.2, 0.4, 0.6, 0.8]) for j in range(3))
    grid = cut_grid(x, cuts)
    pull = rng.normal(size=(300, 2))
    boxes = promising_boxes(grid, pull, np.ones_like(pull), SearchSettings())
    assert len(boxes) > 20
    assert list(boxes.values()) == sorted(boxes.values(), reverse=True)
    for box in boxes:
        clause = clause_of(grid, box)
        assert box_holds(grid, box).tolist() == clause_column(clause, x).tolist()
        assert 1 <= sum((a.lo is not None) + (a.hi is not None) for a in clause.atoms) <= 4
        assert box_holds(grid, box).sum() >= 5


def test_the_search_finds_a_conjunction_that_is_there():
    rng = np.random.default_rng(4)
    x = rng.random((2000, 6))
    inside = (x[:, 1] >= 0.3) & (x[:, 1] < 0.8) & (x[:, 4] >= 0.5)
    pull = (inside - inside.mean())[:, None]  # a residual: what the shares alone get wrong
    cuts = tuple(np.linspace(0.1, 0.9, 9) for _ in range(6))
    grid = cut_grid(x, cuts)
    best = next(iter(promising_boxes(grid, pull, np.ones_like(pull), SearchSettings())))
    assert clause_of(grid, best) == Clause(
        (Interval(1, float(cuts[1][2]), float(cuts[1][7])), Interval(4, float(cuts[4][4])))
    )


def test_sums_over_bins_are_those_of_the_points_in_them():
    rng = np.random.default_rng(2)
    x, columns = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    grid = cut_grid(x, tuple(np.quantile(x[:, j], np.linspace(0.1, 0.9, 3 + j)) for j in range(3)))
    for at in (None, np.flatnonzero(rng.random(200) < 0.3)):
        sums = grid.sums(at, columns if at is None else columns[at])
        for j in range(3):
            for k in range(2):
                code, weight = (grid.codes[j], columns[:, k]) if at is None else (grid.codes[j][at], columns[at, k])
                assert sums[j, :, k].tolist() == np.bincount(code, weight, grid.n_bins).tolist()


def test_nothing_to_cut_is_no_box():
    grid = cut_grid(np.ones((10, 2)), (np.array([]), np.array([])))
    assert promising_boxes(grid, np.ones((10, 1)), np.ones((10, 1)), SearchSettings()) == {}


def test_cuts_separate_values_and_are_short(cancer):
    _, _, _, e = cancer
    for j, cuts in enumerate(explained_cuts(e, np.median(e.x, axis=0), 32)):
        assert (np.diff(cuts) > 0).all()
        assert len(cuts) <= 3 * 32 + 2
        assert np.isfinite(cuts).all()
        assert np.median([len(repr(float(cut))) for cut in cuts]) <= 8, j


def test_more_clauses_are_never_worse_on_the_loss_and_the_path_is_kept(cancer):
    x, y, _, e = cancer
    rows = triplet_rows(e, e.label, 2, truth=y)
    sets = fit_rules(
        rows, cut_grid(rows.points, explained_cuts(e, np.median(x, axis=0), 32)), (4, 8, 16), RuleSettings(points=None)
    )
    assert [len(rule_set.head.clauses) for rule_set in sets] == [4, 8, 16]
    assert [point.clauses for point in sets[-1].path] == list(range(17))
    consistent = [rule_set.path[-1].c_tb_all for rule_set in sets]
    assert consistent == sorted(consistent)
    assert consistent[-1] > 85
    assert sets[-1].path[-1].accuracy > 90


def test_a_rule_set_has_integer_points_and_the_rounded_model_is_the_model(cancer):
    x, y, box, e = cancer
    model = GBFLClassifier(box, head="rules", max_clauses=8, extra_rows=0).fit(x, y, explanations=e)
    card = model.head_.decision
    assert isinstance(card, Scorecard)
    assert all(type(points) is int for row in (card.bias, *card.points) for points in row)
    scores = np.array(card.bias) + sum(
        clause_column(clause, x)[:, None] * np.array(points)
        for clause, points in zip(model.clauses_, card.points, strict=True)
    )
    assert (model.predict(x) == model.classes_[scores.argmax(axis=1)]).all()


@pytest.mark.parametrize("head", HEADS)
def test_fitting_twice_gives_the_same_bits(head):
    first, second = (GBFLClassifier(BOX, head=head, max_clauses=6, extra_rows=0).fit(X, Y) for _ in range(2))
    assert first.head_ == second.head_


@pytest.mark.parametrize("head", HEADS)
def test_every_head_learns_three_classes_within_its_budget(head):
    model = GBFLClassifier(BOX, head=head, max_clauses=10, extra_rows=0).fit(X, Y)
    assert model.score(X, Y) > 0.9
    if head != "tree":
        assert len(model.clauses_) <= 10
    assert model.consistency_.c_tb_all > 50


def test_a_rule_set_is_more_consistent_than_a_tree_of_the_same_size(cancer):
    x, y, box, e = cancer
    tree = GBFLClassifier(box, head="tree").fit(x, y, explanations=e)
    rules = GBFLClassifier(box, head="rules", max_clauses=32, extra_rows=0).fit(x, y, explanations=e)
    assert rules.consistency_.c_tb > tree.consistency_.c_tb + 5


def test_every_leaf_of_the_tree_holds_rows_of_the_table(cancer):
    x, y, box, e = cancer
    for least in (None, 1, 20):
        model = GBFLClassifier(box, head="tree", min_samples_leaf=least, extra_rows=500).fit(x, y, explanations=e)
        leaves = np.bincount(model.answers(x).leaves, minlength=sum(isinstance(n, Leaf) for n in nodes_of(model)))
        assert leaves.min() >= (5 if least is None else least)
        assert max(map(len, paths(model.head_.decision).values())) <= 5


def nodes_of(model):
    return model.head_.decision.nodes


def conditions(head):
    clauses = [head.clauses[node.clause] for node in head.decision.nodes if isinstance(node, Split)]
    return sum((atom.lo is not None) + (atom.hi is not None) for clause in clauses for atom in clause.atoms)


def test_the_tree_is_more_consistent_than_the_papers_and_short(cancer):
    x, y, box, e = cancer
    joint, faithful = (
        GBFLClassifier(box, head="tree", mode=m).fit(x, y, explanations=e) for m in ("joint", "faithful")
    )
    assert joint.consistency_.c_tb_all > faithful.consistency_.c_tb_all
    assert conditions(joint.head_) <= 30


def test_a_shorter_box_has_one_condition_less_and_holds_wherever_the_longer_does():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3))
    grid = cut_grid(x, tuple(np.quantile(x[:, j], [0.2, 0.4, 0.6, 0.8]) for j in range(3)))
    for box in promising_boxes(grid, rng.normal(size=(300, 1)), np.ones((300, 1)), SearchSettings()):
        shorter = list(without_a_bound(grid, box))
        assert len(shorter) == (count_bounds(grid, box) if count_bounds(grid, box) > 1 else 0)
        for other in shorter:
            assert count_bounds(grid, other) == count_bounds(grid, box) - 1
            assert not (holds_on(grid, box) & ~holds_on(grid, other)).any()


def test_a_leaf_answers_its_class_whatever_most_of_its_points_have():
    for mass in ([3.0, 1.0, 2.0], [2.0, 2.0, 2.0], [0.0, 5.0, 1.0], [1.0, 3.0, 3.0]):
        for label in range(3):
            leaf = leaf_of(np.array(mass), label)
            assert leaf.winner == label
            assert leaf.answer is None
            assert sum(leaf.probabilities) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("head", HEADS)
def test_a_constant_black_box_needs_no_rule(head):
    model = GBFLClassifier(lambda rows: np.full(len(rows), 0.9), head=head, extra_rows=0).fit(X)
    assert model.clauses_ == ()
    assert (model.predict(X) == 1).all()
    if head == "rules":
        assert max(map(abs, model.head_.decision.bias)) <= 10


@pytest.mark.parametrize("most", [5, 10, 100])
def test_points_stay_within_the_limit(cancer, most):
    x, y, box, e = cancer
    card = GBFLClassifier(box, points=most, max_clauses=8, extra_rows=0).fit(x, y, explanations=e).head_.decision
    magnitudes = [abs(points) for row in card.points for points in row]
    assert max(magnitudes) <= most
    assert max(magnitudes) > most // 3


def test_small_points_and_fewer_bounds_cost_little(cancer):
    x, y, box, e = cancer
    small, fine = (
        GBFLClassifier(box, points=points, max_clauses=16, extra_rows=0).fit(x, y, explanations=e)
        for points in (10, None)
    )
    bounds = [
        sum((a.lo is not None) + (a.hi is not None) for clause in model.clauses_ for a in clause.atoms)
        for model in (small, fine)
    ]
    assert bounds[0] <= 46
    assert bounds[0] < bounds[1]
    assert small.consistency_.c_tb_all > fine.consistency_.c_tb_all - 3


def test_a_rounder_threshold_has_fewer_digits_and_costs_no_triplet(cancer):
    x, _, _, e = cancer
    grid = cut_grid(e.x, explained_cuts(e, np.median(x, axis=0), 32))
    triplets = triplets_side_by_side(e, e.label, 2, (1.0, 1.0, 1.0))
    boxes = list(promising_boxes(grid, (e.label - e.label.mean())[:, None], np.ones((len(x), 1)), SearchSettings()))[:3]
    clauses = tuple(clause_of(grid, box) for box in boxes)
    head = Head(clauses, Scorecard((2, 0), ((0, 3), (0, 1), (0, 1))))
    rounder = round_thresholds(head, triplets)

    def whole(head):
        answers = [right(head, points_of(points, e.label)).labels for points in (e.x, e.pp, e.pn)]
        return consistency(e.label, *answers, e.has_pp, e.has_pn).c_tb_all_right

    def digits(head):
        return [
            len(repr(bound).replace(".", "").strip("0"))
            for clause in head.clauses
            for atom in clause.atoms
            for bound in (atom.lo, atom.hi)
            if bound is not None
        ]

    assert whole(rounder) >= whole(head)
    assert all(new <= old for new, old in zip(digits(rounder), digits(head), strict=True))
    assert sum(digits(rounder)) < sum(digits(head))


def test_a_rule_list_is_flat(cancer):
    x, y, box, e = cancer
    head = GBFLClassifier(box, head="rule_list", max_clauses=12).fit(x, y, explanations=e).head_
    nodes = head.decision.nodes
    assert all(isinstance(nodes[node.then], Leaf) for node in nodes if isinstance(node, Split))
    assert 1 <= len(head.clauses) <= 12


def test_every_rule_of_a_list_and_its_default_decide_rows_of_the_table(cancer):
    x, y, box, _ = cancer
    for rows in (x, x[:120]):
        model = GBFLClassifier(box, head="rule_list").fit(rows, y[: len(rows)])
        leaves = sum(isinstance(node, Leaf) for node in model.head_.decision.nodes)
        assert np.bincount(model.answers(rows).leaves, minlength=leaves).min() >= 1


def test_a_rule_list_of_one_class_is_its_default():
    points = points_of(X, np.zeros(150, dtype=int))
    cuts = tuple(np.quantile(X[:, j], [0.3, 0.6]) for j in range(4))
    own = np.ones(150, dtype=bool)
    head = fit_rule_list(points, own, cut_grid(points.x, cuts), 5, SearchSettings())
    assert head.clauses == ()
    assert head.decision.nodes == (Leaf((1.0,)),)


def test_role_weights_move_the_fit_towards_what_counts():
    heavy_pn = GBFLClassifier(BOX, head="rules", max_clauses=3, extra_rows=0, role_weights=(1, 1, 20)).fit(X, Y)
    heavy_x = GBFLClassifier(BOX, head="rules", max_clauses=3, extra_rows=0, role_weights=(20, 1, 1)).fit(X, Y)
    assert heavy_pn.consistency_.c_pn_right >= heavy_x.consistency_.c_pn_right
    assert heavy_x.consistency_.fidelity_right >= heavy_pn.consistency_.fidelity_right


def test_made_up_rows_lie_between_their_neighbours():
    x = np.column_stack([X, np.round(X[:, 0])])
    rows = rows_between(x, 500, seed=1)
    assert rows.shape == (500, 5)
    assert (rows >= x.min(axis=0)).all()
    assert (rows <= x.max(axis=0)).all()
    assert (rows[:, 4] == np.round(rows[:, 4])).all()
    assert np.array_equal(rows, rows_between(x, 500, seed=1))
    assert not np.array_equal(rows, rows_between(x, 500, seed=2))


def test_little_data_is_explained_on_made_up_rows_too():
    model = GBFLClassifier(BOX, head="rules", max_clauses=4).fit(X, Y)
    assert len(model.extra_explanations_.x) == 2 * 2000, "once for each of the two methods"
    sizes = model.path_["clauses"].tolist()
    assert sizes == list(range(len(sizes)))
    assert 1 <= sizes[-1] <= 4
    one_method = GBFLClassifier(BOX, head="tree", explainer="greedy").fit(X, Y)
    assert len(one_method.extra_explanations_.x) == 2000
    assert GBFLClassifier(BOX, head="tree", mode="faithful").fit(X, Y).extra_explanations_ is None


def test_a_weight_counts_a_triplet_as_often_made_up_rows_too(cancer):
    _, _, _, e = cancer
    weight = np.repeat([2.0, 0.0], len(e.x))
    plain, weighed = triplet_rows(e, e.label, 2), triplet_rows(e, e.label, 2, extra=e, row_weight=weight)
    assert (weighed.target == 2 * plain.target).all()
    assert (weighed.weight == weight).all()
    side_by_side = triplets_side_by_side(e, e.label, 2, (1.0, 1.0, 1.0), e, weight)
    assert (side_by_side.counts == np.repeat(weight, 3)).all()
