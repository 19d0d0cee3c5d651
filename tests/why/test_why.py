"""What is said of a row is so: sufficient is sufficient and smallest, nearest is nearest, against brute force."""

import itertools
import json
import math
from unittest import mock

from hypothesis import assume, given, settings

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.regions import ANYTHING
from gbfl_compile.why.boxes import Steps, cell_of, cells, other_class, row_in
from gbfl_compile.why.changes import changes
from gbfl_compile.why.sufficient import sufficient
from gbfl_compile.why.words import account, as_json, lines
from tests.programs import programs_with_rows

MOST_ROWS = 3_000
COUNT = 80


def every_row(program):
    """A row of every cell there is, the missing value's included."""
    pools = [[*(min(max(0.0, cell.least), cell.most) for cell in ranges), None] for ranges in cells(program)]
    assume(math.prod(len(pool) for pool in pools) <= MOST_ROWS)
    return [list(row) for row in itertools.product(*pools)]


def inside(values, value):
    return values.missing if value is None else values.least <= value <= values.most


def plain(row):
    return [None if value is None or math.isnan(value) else value for value in row]


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_a_box_of_one_class_is_told_from_one_of_two(made):
    program, rows = made
    points = every_row(program)
    ranges = cells(program)
    for row in rows:
        label = program.classes.index(evaluate(program, row).label)
        for kept in itertools.chain.from_iterable(
            itertools.combinations(range(len(row)), size) for size in range(len(row) + 1)
        ):
            box = {f: cell_of(ranges[f], plain(row)[f]) for f in kept}
            others = [
                point
                for point in points
                if all(inside(box.get(f, ANYTHING), value) for f, value in enumerate(point))
                and evaluate(program, point).label != program.classes[label]
            ]
            found = other_class(program, box, label, Steps(100_000))
            assert (found is None) == (not others)
            if found is not None:
                shown = row_in(found, plain(row))
                assert evaluate(program, shown).label != program.classes[label]
                assert all(inside(box.get(f, ANYTHING), value) for f, value in enumerate(shown))


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_what_is_sufficient_is_and_no_fewer_features_are(made):
    program, rows = made
    points = every_row(program)
    ranges = cells(program)
    for row in rows:
        label = evaluate(program, row).label
        found = sufficient(program, row)
        conditions = dict(found.conditions)
        assert all(inside(values, plain(row)[f]) for f, values in conditions.items())
        for point in points:
            if all(inside(values, point[f]) for f, values in conditions.items()):
                assert evaluate(program, point).label == label
        assert found.smallest
        own = [cell_of(ranges[f], value) for f, value in enumerate(plain(row))]
        for fewer in itertools.combinations(range(len(row)), max(0, len(conditions) - 1)):
            if len(conditions) > 0:
                same = [p for p in points if all(cell_of(ranges[f], p[f]) == own[f] for f in fewer)]
                assert any(evaluate(program, point).label != label for point in same)


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_out_of_steps_it_is_still_sufficient_and_says_that_fewer_may_do(made):
    program, rows = made
    points = every_row(program)
    with mock.patch.multiple("gbfl_compile.why.sufficient", STEPS=0, FEW_STEPS=20):
        found = [sufficient(program, row) for row in rows]
    for row, one in zip(rows, found, strict=True):
        assert not one.smallest or not one.conditions
        for point in points:
            if all(inside(values, point[f]) for f, values in one.conditions):
                assert evaluate(program, point).label == evaluate(program, row).label


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_nothing_nearer_changes_the_class(made):
    program, rows = made
    pools = [[v for cell in ranges for v in (cell.least, cell.most)] for ranges in cells(program)]
    for row in rows:
        label = evaluate(program, row).label
        found = changes(program, row)
        for change in found.found:
            tried = list(row)
            for feature, value in change.values:
                assert value != row[feature]
                tried[feature] = value
            assert evaluate(program, tried).label == change.label != label
        single = {change.values[0] for change in found.found if len(change.values) == 1}
        for feature, pool in enumerate(pools):
            if math.isnan(row[feature]):
                continue
            flips = [v for v in pool if evaluate(program, [*row[:feature], v, *row[feature + 1 :]]).label != label]
            down, up = [v for v in flips if v < row[feature]], [v for v in flips if v > row[feature]]
            expected = {(feature, max(down))} if down else set()
            expected |= {(feature, min(up))} if up else set()
            assert {pair for pair in single if pair[0] == feature} == expected


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=3))
def test_an_account_can_always_be_told(made):
    program, rows = made
    for row in rows:
        told = account(program, row)
        assert all("\n" not in line for line in lines(told))
        form = as_json(told)
        json.dumps(form, allow_nan=False)
        assert form["label"] == evaluate(program, row).label
        if form["start"] is not None and form["against"] is not None:
            scores = dict(zip(program.classes, form["scores"], strict=True))
            lead = form["start"] + sum(one["points"] for one in form["because"])
            assert lead == scores[form["label"]] - scores[form["against"]]
