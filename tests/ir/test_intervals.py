"""The algebra of value sets, against the living definition."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.ir.evaluate import atom_holds, clause_holds
from gbfl_compile.ir.intervals import (
    NOTHING_KNOWN,
    always_holds,
    both,
    never_holds,
    outside,
    values_of,
    with_failed,
    with_held,
    within,
)
from tests.programs import CUTS, clauses, intervals

values = st.sampled_from((*CUTS, math.inf, -math.inf, math.nan, 0.5, 1.5)) | st.floats()


def contains(region, value):
    return region.missing if math.isnan(value) else region.least <= value <= region.most


@settings(max_examples=500, deadline=None)
@given(intervals(0), values)
def test_the_values_of_an_atom_are_those_it_holds_on(atom, value):
    assert contains(values_of(atom), value) == atom_holds(atom, value)
    assert any(contains(piece, value) for piece in outside(atom)) != atom_holds(atom, value)


@settings(max_examples=500, deadline=None)
@given(intervals(0), intervals(0), values)
def test_both_is_and_and_within_is_implication(a, b, value):
    assert contains(both(values_of(a), values_of(b)), value) == (atom_holds(a, value) and atom_holds(b, value))
    if within(values_of(a), values_of(b)):
        assert atom_holds(b, value) or not atom_holds(a, value)


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.tuples(clauses(2), st.booleans()), max_size=5), clauses(2), st.lists(values, min_size=2, max_size=2))
def test_what_the_facts_decide_is_so(path, question, row):
    facts = NOTHING_KNOWN
    for clause, holds in path:
        facts = with_held(clause, facts) if holds else with_failed(clause, facts)
    if all(clause_holds(clause, row) == holds for clause, holds in path):
        assert all(contains(facts.values(feature), row[feature]) for feature in (0, 1))
        if always_holds(question, facts):
            assert clause_holds(question, row)
        if never_holds(question, facts):
            assert not clause_holds(question, row)
