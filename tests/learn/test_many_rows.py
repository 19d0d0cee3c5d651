"""With more rows than a head is searched on: clauses of some, numbers of all, and what is held does not grow."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from gbfl_compile import GBFLClassifier
from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.nodes import Leaf, Program
from gbfl_compile.learn import clauses, recipe
from gbfl_compile.learn.black_box import as_black_box
from gbfl_compile.learn.chunks import explain_in_chunks
from gbfl_compile.learn.clauses import mine
from gbfl_compile.learn.explanations import domain_of
from gbfl_compile.learn.greedy import explain_greedily
from gbfl_compile.learn.grid import grid_of
from gbfl_compile.learn.heads.logistic import loss_of
from gbfl_compile.learn.heads.triplet_rows import triplet_rows
from gbfl_compile.learn.options import recipe_of
from gbfl_compile.learn.recipe import fit_head
from gbfl_compile.learn.searched_rows import searched_rows
from gbfl_compile.learn.tuning import consistent_rows

X, _ = make_classification(2500, 6, n_informative=4, n_classes=2, random_state=3)
DOMAIN = domain_of(X)
SLOPES = np.random.default_rng(1).normal(size=(6, 3))


def two(rows):
    return 1 / (1 + np.exp(-3 * (rows @ SLOPES[:, 0] + np.sin(2 * rows[:, 1]))))


def three(rows):
    weights = np.exp(3 * np.tanh(rows @ SLOPES))
    return weights / weights.sum(axis=1, keepdims=True)


EXPLAINED = {box: explain_in_chunks(explain_greedily, as_black_box(box, X), X, DOMAIN) for box in (two, three)}


def fitted(box, head, **parameters):
    e = EXPLAINED[box]
    return fit_head(recipe_of(GBFLClassifier(box, head=head, **parameters)), e, e.label, DOMAIN, 2 + (box is three))


def test_rows_are_drawn_by_class_and_stand_for_all():
    label = np.repeat([0, 1, 2], [9000, 950, 50])
    rows, weight = searched_rows(label, 1000)
    assert len(rows) <= 1000
    assert (np.diff(rows) > 0).all()
    for one, count in enumerate((9000, 950, 50)):
        assert weight[label[rows] == one].sum() == pytest.approx(count, rel=1e-12)
    assert (label[rows] == 2).sum() == 50  # a rare class is not thinned out
    again, _ = searched_rows(label, 1000)
    assert (again == rows).all()


@pytest.mark.parametrize("box", [two, three])
@pytest.mark.parametrize("head", ["tree", "rule_list"])
def test_a_trees_leaves_count_all_rows(monkeypatch, box, head):
    monkeypatch.setattr(recipe, "SEARCHED_ROWS", 600)
    found, e, n_classes = fitted(box, head).head, EXPLAINED[box], 2 + (box is three)
    program = Program(DOMAIN.features, tuple(range(n_classes)), found.clauses, found.decision)
    mass = np.zeros((sum(isinstance(node, Leaf) for node in found.decision.nodes), n_classes))
    for points, label, there in ((e.x, e.label, True), (e.pp, e.label, e.has_pp), (e.pn, e.pn_label, e.has_pn)):
        leaves = evaluate_many(program, points).leaves
        for row in np.flatnonzero(np.broadcast_to(there, len(points))):
            mass[leaves[row], label[row]] += 1
    leaves = [node for node in found.decision.nodes if isinstance(node, Leaf)]
    for leaf, own in zip(leaves, mass, strict=True):
        assert own.any()
        assert leaf.probabilities == tuple(own / own.sum())


@pytest.mark.parametrize("box", [two, three])
@pytest.mark.parametrize("max_clauses", [8, 70])  # 70 do not fit into one word
def test_a_rule_sets_weights_are_those_of_all_rows(monkeypatch, box, max_clauses):
    monkeypatch.setattr(recipe, "SEARCHED_ROWS", 600)
    n_classes = 2 + (box is three)
    rows = triplet_rows(EXPLAINED[box], EXPLAINED[box].label, n_classes)

    def loss(head):
        points = np.column_stack([clause_column(clause, rows.points) for clause in head.clauses]) @ np.array(
            head.decision.points
        )
        scores = np.ldexp((points + np.array(head.decision.bias)).astype(np.float64), -head.decision.scale)
        return loss_of(scores[:, 1:] - scores[:, :1] if n_classes == 2 else scores, rows)[0]

    on_all = fitted(box, "rules", max_clauses=max_clauses).head
    monkeypatch.setattr(recipe, "fitted_to_all", lambda head, *rest: head)
    on_some = fitted(box, "rules", max_clauses=max_clauses).head
    assert on_all.clauses == on_some.clauses
    assert loss(on_all) < loss(on_some)


@pytest.mark.parametrize("head", ["tree", "rules", "rule_list"])
def test_searched_on_a_third_of_the_rows_a_head_is_nearly_as_consistent(monkeypatch, head):
    """Nearly: within 5 points of a hundred, on a third. It is 20,000 rows of more in earnest."""
    e = EXPLAINED[two]
    right = consistent_rows(fitted(two, head).head, e, DOMAIN.features, 2)
    monkeypatch.setattr(recipe, "SEARCHED_ROWS", 900)
    assert consistent_rows(fitted(two, head).head, e, DOMAIN.features, 2) > right - 0.05 * len(X)


def test_clauses_merged_as_they_come_are_those_merged_at_once(monkeypatch):
    e = EXPLAINED[three]
    grid = grid_of(X, DOMAIN.lower, DOMAIN.upper, 5, "quantile")
    at_once = mine(e, DOMAIN, grid, 1)
    monkeypatch.setattr(clauses, "BLOCK_ROWS", 7)
    assert mine(e, DOMAIN, grid, 1) == at_once
    assert at_once.let_go == 0


def test_the_clauses_of_most_rows_stay_where_there_is_not_room_for_all(monkeypatch):
    e = EXPLAINED[three]
    grid = grid_of(X, DOMAIN.lower, DOMAIN.upper, 4, "quantile")
    whole = mine(e, DOMAIN, grid, 1)
    monkeypatch.setattr(clauses, "BLOCK_ROWS", 100)
    few = mine(e, DOMAIN, grid, 1, most_clauses=60)
    assert len(whole.clauses) > 120
    assert len(few.clauses) == 60
    assert few.let_go >= len(whole.clauses) - 60
    often = sorted(zip(whole.clauses, whole.sources, strict=True), key=lambda pair: -len(pair[1]))[:10]
    assert {clause for clause, _ in often} <= set(few.clauses)
    for clause, rows in often[:3]:  # these were never let go
        assert few.sources[few.clauses.index(clause)] == rows
