"""Explanations of a row are true: sufficient is sufficient and smallest, nearest is nearest, against brute force."""

import itertools
import json
import math
import random
from unittest import mock

from hypothesis import assume, given, settings

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import ANYTHING
from gbfl_compile.why.account import account, as_json, lines
from gbfl_compile.why.boxes import Steps, cell_of, cells, other_class, prepare, row_in
from gbfl_compile.why.changes import changes
from gbfl_compile.why.sufficient import sufficient
from tests.engines.sizes import rule_list, rule_set
from tests.programs import programs_with_rows

MOST_ROWS = 3_000
COUNT = 80


def every_row(program):
    """One row per combination of cells, including the missing value."""
    pools = [[*(min(max(0.0, cell.least), cell.most) for cell in ranges), None] for ranges in cells(program)]
    assume(math.prod(len(pool) for pool in pools) <= MOST_ROWS)
    return [list(row) for row in itertools.product(*pools)]


def inside(values, value):
    return values.missing if value is None else values.least <= value <= values.most


def plain(row):
    return [None if value is None or math.isnan(value) else value for value in row]


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_a_box_with_one_class_is_distinguished_from_one_with_two(program_and_rows):
    program, rows = program_and_rows
    points = every_row(program)
    ranges = cells(program)
    for row in rows:
        label = program.classes.index(evaluate(program, row).label)
        for fixed in itertools.chain.from_iterable(
            itertools.combinations(range(len(row)), size) for size in range(len(row) + 1)
        ):
            box = {f: cell_of(ranges[f], plain(row)[f]) for f in fixed}
            others = [
                point
                for point in points
                if all(inside(box.get(f, ANYTHING), value) for f, value in enumerate(point))
                and evaluate(program, point).label != program.classes[label]
            ]
            result = other_class(prepare(program), box, label, Steps(100_000))
            assert (result is None) == (not others)
            if result is not None:
                shown = row_in(result, plain(row))
                assert evaluate(program, shown).label != program.classes[label]
                assert all(inside(box.get(f, ANYTHING), value) for f, value in enumerate(shown))


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_sufficient_conditions_suffice_and_no_smaller_set_does(program_and_rows):
    program, rows = program_and_rows
    points = every_row(program)
    ranges = cells(program)
    for row in rows:
        label = evaluate(program, row).label
        result = sufficient(program, row)
        conditions = dict(result.conditions)
        assert all(inside(values, plain(row)[f]) for f, values in conditions.items())
        for point in points:
            if all(inside(values, point[f]) for f, values in conditions.items()):
                assert evaluate(program, point).label == label
        assert result.smallest
        own = [cell_of(ranges[f], value) for f, value in enumerate(plain(row))]
        for fewer in itertools.combinations(range(len(row)), max(0, len(conditions) - 1)):
            if len(conditions) > 0:
                same = [p for p in points if all(cell_of(ranges[f], p[f]) == own[f] for f in fewer)]
                assert any(evaluate(program, point).label != label for point in same)


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_out_of_steps_the_conditions_still_suffice_and_are_not_called_smallest(program_and_rows):
    program, rows = program_and_rows
    points = every_row(program)
    with mock.patch.multiple("gbfl_compile.why.sufficient", STEPS=0, FEW_STEPS=20):
        result = [sufficient(program, row) for row in rows]
    for row, one in zip(rows, result, strict=True):
        assert not one.smallest or not one.conditions
        for point in points:
            if all(inside(values, point[f]) for f, values in one.conditions):
                assert evaluate(program, point).label == evaluate(program, row).label


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_nothing_nearer_changes_the_class(program_and_rows):
    program, rows = program_and_rows
    pools = [[v for cell in ranges for v in (cell.least, cell.most)] for ranges in cells(program)]
    for row in rows:
        label = evaluate(program, row).label
        result = changes(program, row)
        for change in result.nearest:
            tried = list(row)
            for feature, value in change.values:
                assert value != row[feature]
                tried[feature] = value
            assert evaluate(program, tried).label == change.label != label
        single = {change.values[0] for change in result.nearest if len(change.values) == 1}
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
def test_every_account_can_be_written(program_and_rows):
    program, rows = program_and_rows
    for row in rows:
        reasons = account(program, row)
        assert all("\n" not in line for line in lines(reasons))
        form = as_json(reasons)
        json.dumps(form, allow_nan=False)
        assert form["label"] == evaluate(program, row).label
        if form["start"] is not None and form["against"] is not None:
            scores = dict(zip(program.classes, form["scores"], strict=True))
            lead = form["start"] + sum(one["points"] for one in form["because"])
            assert lead == scores[form["label"]] - scores[form["against"]]


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_a_change_of_two_features_is_found_where_there_is_one(program_and_rows):
    """Against every pair of cell ends, for rows whose class no single feature changes."""
    program, rows = program_and_rows
    pools = [[v for cell in ranges for v in (cell.least, cell.most)] for ranges in cells(program)]
    assume(sum(len(a) * len(b) for a, b in itertools.combinations(pools, 2)) <= MOST_ROWS)
    for row in rows:
        result = changes(program, row)
        if result.searched != 2 or any(map(math.isnan, row)):
            continue
        label = evaluate(program, row).label
        flips = []
        for (f, one), (g, other) in itertools.combinations(enumerate(pools), 2):
            for v, w in itertools.product(one, other):
                tried = list(row)
                tried[f], tried[g] = v, w
                if evaluate(program, tried).label != label:
                    flips.append(((f, v), (g, w)))
        pairs = [change for change in result.nearest if len(change.values) == 2]
        assert bool(pairs) == bool(flips)
        if not flips:
            assert not result.nearest or not result.smallest


@settings(max_examples=COUNT, deadline=None)
@given(programs_with_rows(rows=2))
def test_a_change_of_many_features_changes_the_class_and_is_not_called_the_smallest(program_and_rows):
    """With the searches for one and two features switched off, since they nearly always find something."""
    program, rows = program_and_rows
    with (
        mock.patch("gbfl_compile.why.changes._first_flip", return_value=None),
        mock.patch("gbfl_compile.why.changes.too_many", return_value=True),
    ):
        result = [changes(program, row) for row in rows]
    for row, one in zip(rows, result, strict=True):
        assert one.smallest == all(len(change.values) <= 1 for change in one.nearest)
        for change in one.nearest:
            tried = list(row)
            for feature, value in change.values:
                tried[feature] = value
            assert evaluate(program, tried).label == change.label != evaluate(program, row).label


def test_hundreds_of_clauses_are_explained_within_the_steps():
    """Sufficient conditions suffice, on rows that are otherwise random; the work is counted, not timed."""
    choose = random.Random(0)
    for program in (rule_set(300), rule_list(300)):
        row = [choose.gauss(0, 1) for _ in program.features]
        label = evaluate(program, row).label
        result = sufficient(program, row)
        assert result.conditions
        for _ in range(500):
            other = [choose.gauss(0, 3) for _ in program.features]
            for feature, values in result.conditions:
                low, high = max(values.least, -9.0), min(values.most, 9.0)
                other[feature] = min(max(choose.uniform(low, high), values.least), values.most)
            assert evaluate(program, other).label == label
        assert any("gives" in line for line in lines(account(program, row)))
