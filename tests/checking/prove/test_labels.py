"""Large rule sets one slip away: the label is shown to differ where splitting boxes alone would look for long."""

import random
from dataclasses import replace

import pytest

from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.cells import cells_of, row_in
from gbfl_compile.checking.prove.findings import Counterexample, OutOfTime, Steps
from gbfl_compile.checking.prove.labels import adder_of, find_other_label, walk_to_other_label
from gbfl_compile.checking.prove.points import sum_of
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard
from tests.engines.sizes import clause

FEATURES = tuple(f"f{i}" for i in range(10))


def rule_set(choose, count, classes):
    points = tuple(tuple(choose.randrange(-4000, 4000) for _ in range(classes)) for _ in range(count))
    clauses = tuple(clause(choose) for _ in range(count))
    return Program(FEATURES, tuple(range(classes)), clauses, Scorecard((0,) * classes, points, 12))


def one_point_off(choose, reading):
    scored = reading.decision
    place = choose.randrange(len(scored.terms))
    terms = list(scored.terms)
    condition, points = terms[place]
    terms[place] = (condition, (points[0] + 1, *points[1:]))
    return replace(reading, decision=replace(scored, terms=tuple(terms)))


def other_ties(_, reading):
    return replace(reading, decision=replace(reading.decision, tie_to="higher"))


def adders(program, reading):
    """The cells of both sides, and both sides as the searches take them."""
    source = as_reading(program)
    cells = cells_of((source, reading))
    classes = len(program.classes)
    sides = [
        adder_of(sum_of(cells, Steps(10**6), side.decision), classes, side.decision.tie_to)
        for side in (source, reading)
    ]
    return cells, sides


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("slip", [one_point_off, other_ties])
def test_a_slip_that_only_a_tie_shows_is_shown(slip, classes):
    for seed in range(4):
        choose = random.Random(seed)
        program = rule_set(choose, 300, classes)
        labels = prove(program, slip(choose, as_reading(program)), budget_seconds=60.0).labels
        assert isinstance(labels, Counterexample)
        assert evaluate(program, labels.row).label != labels.target.label


def test_splitting_boxes_alone_does_not_find_it_as_soon():
    choose = random.Random(12)
    program = rule_set(choose, 300, 2)
    cells, sides = adders(program, other_ties(choose, as_reading(program)))
    with pytest.raises(OutOfTime):
        find_other_label(cells, Steps(300), *sides, None)
    assert walk_to_other_label(cells, Steps(300), *sides, {}) is not None


def test_what_a_walk_finds_differs():
    found = 0
    for seed in range(30):
        choose = random.Random(seed)
        program = rule_set(choose, choose.choice((1, 5, 40)), choose.choice((2, 3, 4)))
        reading = choose.choice((one_point_off, other_ties))(choose, as_reading(program))
        cells, sides = adders(program, reading)
        box = walk_to_other_label(cells, Steps(10**6), *sides, {})
        if box is not None:
            found += 1
            row = row_in(cells, box)
            assert evaluate(program, row).label != run_reading(reading, row).label
    assert found > 10


def test_a_walk_finds_nothing_where_nothing_differs():
    program = rule_set(random.Random(1), 40, 3)
    cells, sides = adders(program, as_reading(program))
    assert walk_to_other_label(cells, Steps(10**6), *sides, {}) is None


def test_points_too_large_for_doubles_are_left_to_splitting():
    clauses = (Clause((Interval(0, 0.0),)), Clause((Interval(1, 0.0),)))
    program = Program(("a", "b"), (0, 1), clauses, Scorecard((0, 0), ((0, 2**60), (0, -(2**60))), 0))
    cells, sides = adders(program, other_ties(None, as_reading(program)))
    assert walk_to_other_label(cells, Steps(10**6), *sides, {}) is None
    labels = prove(program, other_ties(None, as_reading(program))).labels
    assert isinstance(labels, Counterexample)
