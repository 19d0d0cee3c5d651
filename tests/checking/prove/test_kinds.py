"""The prover is right about words and dates: judged by brute force over every value that any condition can tell apart."""

import itertools
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample, ProvedEqual
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause
from tests.counts import count
from tests.programs import atoms_of_kind, programs_of_kinds, values_of_kind

PAIRS = count("GBFL_PROOF_PAIRS", 1500)


@st.composite
def pairs(draw):
    """A program and another one that differs from it in one atom, if at all."""
    program = draw(programs_of_kinds(most_features=2))
    places = [(n, k) for n, clause in enumerate(program.clauses) for k in range(len(clause.atoms))]
    assume(places)
    number, place = draw(st.sampled_from(places))
    atoms = list(program.clauses[number].atoms)
    atoms[place] = draw(atoms_of_kind(atoms[place].feature, program.kind(atoms[place].feature)))
    clauses = (*program.clauses[:number], Clause(tuple(atoms)), *program.clauses[number + 1 :])
    return program, replace(program, clauses=clauses)


def differs(aspect, one, other):
    match aspect:
        case "labels":
            return one.label != other.label
        case "leaf":
            return one.leaf != other.leaf
        case "scores":
            return one.scores != other.scores
        case "probabilities":
            return one.scores != other.scores if one.scores else one.probabilities != other.probabilities


@settings(max_examples=PAIRS, deadline=None)
@given(pairs())
def test_the_prover_and_brute_force_agree(pair):
    program, other = pair
    features = range(len(program.features))
    pools = [dict.fromkeys([*values_of_kind(program, f), *values_of_kind(other, f)]) for f in features]
    rows = itertools.product(*pools)
    answers = [(evaluate(program, row), evaluate(other, row)) for row in rows]
    findings = prove(program, as_reading(other)).findings
    for aspect in ("labels", "leaf", "scores"):
        if aspect not in findings:
            continue
        is_different = any(differs(aspect, one, two) for one, two in answers)
        assert isinstance(findings[aspect], Counterexample if is_different else ProvedEqual)
        if is_different:
            row = findings[aspect].values
            assert differs(aspect, evaluate(program, row), evaluate(other, row))
