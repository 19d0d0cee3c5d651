"""A float32 library is called with the rows of a check: a bound that is one float32 off shows on one of them."""

import random
from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.auditing.scorer import witness_input
from gbfl_compile.backends.base import Predictor
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.checking.witnesses import find_witnesses
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split


def narrow_programs(count):
    """Trees of intervals a few float32 numbers wide: rows around the double bounds, rounded, may miss them."""
    choose = random.Random(7)
    for _ in range(count):
        clauses = []
        for _ in range(3):
            lo = np.float32(choose.uniform(-100, 100))
            hi = lo
            for _ in range(choose.randint(1, 3)):
                hi = np.nextafter(hi, np.float32(np.inf))
            inside = choose.uniform(float(lo), float(hi))
            clauses.append(Clause((Interval(choose.randrange(2), inside, float(hi), "both"),)))
        tree = split(0, leaf(1.0, 0.0), split(1, leaf(0.0, 1.0), split(2, leaf(1.0, 0.0), leaf(0.0, 1.0))))
        yield Program(("a", "b"), ("no", "yes"), tuple(clauses), tree)


def one_float32_off(program):
    """The program with one bound moved to the next float32, for each bound and direction."""
    for number, clause in enumerate(program.clauses):
        for end in ("lo", "hi"):
            for way in (-np.inf, np.inf):
                bound = float(np.nextafter(np.float32(getattr(clause.atoms[0], end)), np.float32(way)))
                atom = replace(clause.atoms[0], **{end: bound})
                if atom.lo <= atom.hi:
                    clauses = (*program.clauses[:number], Clause((atom,)), *program.clauses[number + 1 :])
                    yield replace(program, clauses=clauses)


def shows(program, mutant, rows):
    return bool((evaluate_many(program, rows).labels != evaluate_many(mutant, rows).labels).any())


def test_every_bound_one_float32_off_shows_on_a_witness():
    changed = 0
    for program in narrow_programs(12):
        rows = witness_input(program, "float32").rows
        for mutant in one_float32_off(program):
            around_both = np.concatenate([find_witnesses(each, dtype="float32").rows for each in (program, mutant)])
            if shows(program, mutant, around_both):
                changed += 1
                assert shows(program, mutant, rows), mutant
    assert changed > 50


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_check_and_audit_ask_the_same_rows(dtype):
    for program in narrow_programs(3):
        seen = []

        def answer(rows, seen=seen, program=program):
            seen.append(rows)
            return evaluate_many(program, rows)

        compare(expectation(program), Predictor("c", "", "", program.features, program.classes, answer, dtype))
        rows_asked = np.concatenate(seen)
        rows = witness_input(program, dtype).rows
        assert np.array_equal(np.unique(rows, axis=0), np.unique(rows_asked, axis=0), equal_nan=True)
