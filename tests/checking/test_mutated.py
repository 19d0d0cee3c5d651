"""Artifacts with one slip in them: refused, or shown a row on which they really differ, or really equal.

Whatever is read is run for real too: the row of a counterexample must give another answer there, and what is proved
must answer every witness as its source does, and z3 must call it equal as well.

GBFL_MUTANTS=2000 pytest tests/checking/test_mutated.py -s     prints the counts
"""

import random
import shutil
from collections import Counter

import numpy as np
import pytest

from gbfl_compile.checking.artifact import read_artifact
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.run import differing_rows
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from tests.backends.c.programs import needs_a_compiler
from tests.checking.mutants import loaded, mutant, report
from tests.checking.prove.second_opinion import rows_that_differ
from tests.checking.reader_artifacts import findings
from tests.counts import count

WITNESSES = 150
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node: apt-get install nodejs")
COPIES = 600
"""Of the row of a counterexample: C goes through a batch in blocks, and the last block is another place than the first."""
TARGETS = ["python", "onnx", pytest.param("c", marks=needs_a_compiler), pytest.param("js", marks=needs_node)]
z3_is_here = pytest.importorskip("z3", reason="z3 is not installed: pip install 'gbfl-compile[test]'")


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


def verdict(found):
    for kind in ("unread", "names", "undecided"):
        if kind in found:
            return kind
    if any(isinstance(one, tuple) for one in found):
        return "different"
    return "reasons" if "reasons" in found else "proved"


def as_given(rows, predictor):
    """Rows as the artifact can be given them."""
    rows = np.array(rows, dtype=np.float64)
    if predictor.dtype == "float32":
        with np.errstate(over="ignore"):
            rows = rows.astype(np.float32).astype(np.float64)
    return rows if predictor.holds_infinity else np.clip(rows, -np.finfo(float).max, np.finfo(float).max)


def differs_when_run(program, predictor, way, rows):
    """Which rows are answered otherwise; all, where two functions of the artifact contradict each other."""
    rows = as_given(rows, predictor)
    try:
        return differing_rows(program.has_exact_probabilities, evaluate_many(program, rows), way(rows))
    except BadInput:
        return np.ones(len(rows), dtype=bool)


def ways_of(reading, predictor):
    """How the functions a reading stands for are called."""
    if predictor.target != "c" or not predictor.other_ways:
        return [predictor.answer]
    ways = []
    if "_rows" in reading.place:
        ways.append(predictor.answer)
    if "_columns" in reading.place:
        ways.append(predictor.other_ways["columns"])
    return ways or [predictor.other_ways["one row at a time"]]


def check_by_running(each, found, predictor):
    """What was found of a mutant holds when it is run."""
    program = each.program
    if verdict(found) == "proved":
        rows = witnesses(program)
        rows = rows[:: max(1, len(rows) // WITNESSES)]
        for way in (predictor.answer, *predictor.other_ways.values()):
            assert not differs_when_run(program, predictor, way, rows).any(), "proved equal, and differs when run"
    for reading, example in (one for one in found if isinstance(one, tuple)):
        if not predictor.holds_infinity and np.isinf(example.row).any():
            continue  # MariaDB has no such row
        rows = [example.row] * COPIES
        differences = [differs_when_run(program, predictor, way, rows).any() for way in ways_of(reading, predictor)]
        assert any(differences), (example, "differs in the proof alone")


def fate(each, folder, database=None):
    """What became of a mutant; whatever was said of it is checked by z3 and by running it."""
    found = findings(each.program, each.target, each.files)
    outcome = verdict(found)
    if outcome == "proved":
        for reading in read_artifact(each.target, each.files, each.program).readings:
            assert rows_that_differ(as_reading(each.program), reading) is False, f"{each.what}: z3 says otherwise"
    if outcome in ("proved", "different"):
        predictor = loaded(each, folder, database)
        try:
            if predictor is None:
                return f"{outcome}, not taken by its engine"
            check_by_running(each, found, predictor)
        except CannotRun:  # a slip made SQL of it that this engine does not take
            return f"{outcome}, not taken by its engine"
        except AssertionError as error:
            raise AssertionError(f"{each.what}: {error}") from error
    return outcome


@pytest.mark.parametrize("target", TARGETS)
def test_a_slip_is_refused_or_shown_or_makes_no_difference(target, tmp_path):
    choose = random.Random(4)
    seen = Counter()
    tries = count("GBFL_MUTANTS", 100)
    for number in range(tries):
        folder = tmp_path / str(number)
        folder.mkdir()
        seen[fate(mutant(choose, target), folder)] += 1
    report(f"{target}: {dict(seen)}")
    assert seen["different"] > tries // 10, seen  # a slip in the sign or number of a rule is read, and shown
    assert seen["unread"] > tries // 4, seen  # one in the code around the rules is refused
    assert seen["proved"] >= tries // 50, seen  # some change nothing: a bound that another rule makes idle
    assert seen["undecided"] <= max(1, tries // 20), (
        seen
    )  # bands over points that were edited too: exit code 3, never equal


def test_a_slip_in_sql_is_refused_or_shown_or_makes_no_difference(database, tmp_path):
    choose = random.Random(f"slips for {database.dialect}")
    seen = Counter()
    tries = count("GBFL_MUTANTS", 60)
    for _ in range(tries):
        seen[fate(mutant(choose, f"sql:{database.dialect}"), tmp_path, database)] += 1
    report(f"sql:{database.dialect}: {dict(seen)}")
    assert seen["different"] > tries // 5, seen  # slips are in the rules and answers, and those are read
    assert seen["proved"] >= tries // 20, seen  # some change nothing
    assert seen["undecided"] <= max(1, tries // 15), (
        seen
    )  # bands over points that were edited too: exit code 3, never equal
