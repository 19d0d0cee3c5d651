"""The float32 program answers every float32 row as the program itself does."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.intervals import LARGEST_FLOAT32, float32_at_or_above, float32_at_or_below, narrow, narrow_interval
from gbfl_compile.ir.nodes import Interval
from gbfl_compile.ir.validate import validate
from tests.programs import programs


def float32_pool(program, feature):
    """Each cut as the float32s around it, and the extremes of float32."""
    values = [0.0, -0.0, math.inf, -math.inf, math.nan, LARGEST_FLOAT32, -LARGEST_FLOAT32, 1e-45, -1e-45, 1.0]
    for clause in program.clauses:
        for atom in clause.atoms:
            if atom.feature == feature:
                for cut in (atom.lo, atom.hi):
                    if cut is not None:
                        values += around(cut)
    return values


def around(cut):
    with np.errstate(all="ignore"):
        least = np.float32(float32_at_or_above(cut))
        steps = [least, np.nextafter(least, np.float32(-np.inf)), np.nextafter(least, np.float32(np.inf))]
        return [float(step) for step in [*steps, np.nextafter(steps[1], np.float32(-np.inf))]]


@st.composite
def programs_with_float32_rows(draw, kinds=("tree", "scorecard"), rows=40):
    program = draw(programs(kinds))
    seed = draw(st.integers(0, 2**32 - 1))
    choose = np.random.default_rng(seed)
    columns = [choose.choice(float32_pool(program, f), rows) for f in range(len(program.features))]
    return program, np.column_stack(columns).astype(np.float32)


@settings(max_examples=100, deadline=None)
@given(programs_with_float32_rows())
def test_every_float32_row_gets_the_same_answer(case):
    program, rows = case
    doubles = rows.astype(np.float64)
    narrowed = validate(narrow(program))
    expected, found = evaluate_many(program, doubles), evaluate_many(narrowed, doubles)
    assert found.labels.tolist() == expected.labels.tolist()
    assert (found.probabilities == expected.probabilities).all()
    for clause in narrowed.clauses:
        for atom in clause.atoms:
            for cut in (atom.lo, atom.hi):
                assert cut is None or float(np.float32(cut)) == cut


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_bound_moves_to_the_next_float32(value):
    up, down = float32_at_or_above(value), float32_at_or_below(value)
    assert down <= value <= up
    assert up == float(np.float32(up))
    assert down == float(np.float32(down))
    with np.errstate(over="ignore"):
        after = float(np.nextafter(np.float32(down), np.float32(np.inf)))
    assert up == down or after == up


@pytest.mark.parametrize(
    ("atom", "narrowed"),
    [
        (Interval(0, 0.5, 2.0), Interval(0, 0.5, 2.0)),
        (Interval(0, 1e300), Interval(0, LARGEST_FLOAT32, None, "neither")),
        (Interval(0, None, -1e300, "right"), Interval(0, None, -LARGEST_FLOAT32, "neither")),
        (Interval(0, -1e300, None, "neither"), Interval(0, -LARGEST_FLOAT32, None, "left")),
        (Interval(0, None, 1e-300), Interval(0, None, float(np.float32(1e-45)))),
        (Interval(0, -1e-300), Interval(0, 0.0)),
    ],
)
def test_the_ends_of_float32(atom, narrowed):
    assert narrow_interval(atom) == narrowed


def test_an_interval_between_two_float32s_holds_no_float32_and_still_answers_for_missing():
    atom = narrow_interval(Interval(0, 1.00000001, 1.00000002, if_missing=True))
    assert atom.closed == "neither"
    assert np.nextafter(np.float32(atom.lo), np.float32(np.inf)) == np.float32(atom.hi)
    assert atom.if_missing
