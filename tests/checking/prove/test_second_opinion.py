"""Two provers that share nothing give the same answer."""

import random
from dataclasses import replace

import pytest

from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample, ProvedEqual
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.float32 import narrow
from tests.checking.prove.second_opinion import rows_that_differ
from tests.checking.respelling import mutated, random_program, respelled
from tests.counts import count

pytest.importorskip("z3")
PAIRS = count("GBFL_Z3_PAIRS", 60)
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
