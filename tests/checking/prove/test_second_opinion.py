"""Two provers that share nothing give the same answer."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample, ProvedEqual
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import narrow
from tests.checking.prove.second_opinion import programs_differ, rows_that_differ
from tests.checking.prove.test_kinds import pairs
from tests.checking.respelling import mutated, random_program, respelled
from tests.counts import count

pytest.importorskip("z3")
PAIRS = count("GBFL_Z3_PAIRS", 60)
WORD_PAIRS = count("GBFL_Z3_WORD_PAIRS", 300)
CUTS = (-1e308, -2.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.0000000000000002, 1.0000000000000004, 2.0, 1e308)


@pytest.mark.parametrize(("dtype", "pairs"), [("float64", PAIRS), ("float32", PAIRS // 2)])
def test_z3_and_the_prover_agree(dtype, pairs):
    choose = random.Random(17)
    found = []
    for number in range(pairs):
        kind = ("tree", "list", "scorecard")[number % 3]
        program = random_program(choose, kind, features=3, most_clauses=6, cuts=CUTS)
        source = program if dtype == "float64" else narrow(program)
        reading = respelled(choose, source) if number % 2 else mutated(choose, source)
        reading = replace(reading, dtype=dtype)
        labels = prove(program, reading).labels
        other = rows_that_differ(as_reading(program), reading)
        assert other is not None
        assert isinstance(labels, ProvedEqual if other is False else Counterexample), (program, reading, other)
        if other is not False:
            assert evaluate(program, other).label != run_reading(reading, other).label
        found.append(other is False)
    assert any(found)
    assert not all(found)


def test_z3_and_the_prover_agree_on_words_and_dates():
    found = []

    @settings(
        max_examples=WORD_PAIRS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(pairs())
    def compare(pair):
        program, other = pair
        labels = prove(program, as_reading(other)).labels
        is_different = programs_differ(program, other)
        assert is_different is not None
        assert isinstance(labels, Counterexample if is_different else ProvedEqual), pair
        found.append(is_different)

    compare()
    assert found.count(True) >= WORD_PAIRS // 10
    assert found.count(False) >= WORD_PAIRS // 10
