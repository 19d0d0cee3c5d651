"""Witnesses alone, run natively: of the slips that change an answer, how many they expose. No proof is used here.

GBFL_DIFFERENT=1000 pytest tests/checking/witnesses/test_kill_rate.py -s     that many such slips per target; prints the counts
"""

import math
import random

import pytest

from gbfl_compile.checking.run import compare, expectation
from tests.backends.c.programs import needs_a_compiler
from tests.checking.mutants import loaded, mutant, report
from tests.checking.reader_artifacts import findings
from tests.checking.test_mutated import database, verdict  # noqa: F401 - a fixture
from tests.counts import count

LEAST_EXPOSED = 0.995
"""The least share that witnesses expose."""
DIFFERENT = count("GBFL_DIFFERENT", 25)


def has_a_missing_value(row):
    return any(math.isnan(value) for value in row)


@pytest.mark.parametrize("target", ["python", "onnx", pytest.param("c", marks=needs_a_compiler)])
def test_witnesses_alone_expose_nearly_every_slip(target, tmp_path):
    different, missed, missed_missing = not_exposed(target, tmp_path, None)
    assert not missed_missing
    assert len(missed) <= (1 - LEAST_EXPOSED) * different, missed


def test_witnesses_alone_expose_nearly_every_slip_in_a_database(database, tmp_path):  # noqa: F811 - the fixture
    different, missed, missed_missing = not_exposed(f"sql:{database.dialect}", tmp_path, database)
    assert not missed_missing
    assert len(missed) <= (1 - LEAST_EXPOSED) * different, missed


def not_exposed(target, folder, database):  # noqa: F811
    """How many slips that change an answer were tried, and those not exposed; those that need a missing value apart."""
    choose = random.Random(f"kill {target}")
    different = about_missing = 0
    missed, missed_missing, tried = [], [], 0
    while different < DIFFERENT:
        tried += 1
        each = mutant(choose, target)
        found = findings(each.program, target, each.files)
        if verdict(found) != "different":
            continue
        place = folder / str(tried)
        place.mkdir()
        predictor = loaded(each, place, database)
        ran = None if predictor is None else compare(expectation(each.program), predictor)
        if ran is None or ran.verdict == "not run":
            continue  # its engine does not take it, so it answers nothing
        different += 1
        missing = any(has_a_missing_value(one[1].row) for one in found if isinstance(one, tuple))
        about_missing += missing
        if ran.verdict == "equal":
            (missed_missing if missing else missed).append(each.what)
    report(
        f"{target}: of {tried} edits {different} differ, {about_missing} by a missing value: "
        f"missed {len(missed) + len(missed_missing)}, {len(missed_missing)} of them by a missing value"
    )
    return different, missed, missed_missing
