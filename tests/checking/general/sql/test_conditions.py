"""What the SQL reader says of a condition is what the engine answers, or it says nothing: a thousand spellings, asked.

GBFL_CONDITIONS=2000 pytest tests/checking/general/sql/test_conditions.py asks all of them; 300 otherwise.
"""

import math
import random

import numpy as np
import pytest

from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import CannotRun
from tests.checking.general.sql.conditions import computed_conditions, conditions
from tests.counts import count

LAYOUT = TextLayout(("age", "income"), ("no", "yes"), ((0, "age"), (1, "income")), (("label", "label"),))
TOGETHER = 25
"""Conditions in one query."""

VALUES = (-math.inf, -3.0, -2.0, -1.0, -0.5, -0.0, 0.0, 5e-324, 0.1, 0.30000000000000004, 0.3, 0.5, 1.0, 2.0, 2.5, 3.0)
VALUES += (3.5, 4.0, 5.0, 7.0, 10.0, 16.0, 18.0, 100.0, 1000.0, 2147483648.0, 9007199254740992.0, 9007199254740994.0)
VALUES += (1e300, math.inf, math.nan)
ROWS = np.array([[age, income] for age in VALUES for income in (1.0, -4.0, math.nan)])


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres", "datafusion"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


def case(condition):
    return f"CASE WHEN {condition} THEN 'yes' ELSE 'no' END"


def read_ones(dialect, wanted, among):
    """The conditions that are read, with their readings."""
    found = []
    for condition in random.Random(0).sample(among, len(among))[:wanted]:
        try:
            found.append((condition, read_sql(f"SELECT {case(condition)} AS label FROM data", dialect, LAYOUT)))
        except Unread:
            continue
    return found


def answers(database, conditions):
    """The answers to each condition, row by row; None to those the engine does not take."""
    if not conditions:
        return []
    columns = ", ".join(f"{case(condition)} AS c{number}" for number, condition in enumerate(conditions))
    try:
        rows = sorted(database.fetch(f"SELECT gbfl_row, {columns} FROM data"))
    except CannotRun:
        if len(conditions) == 1:
            return [None]
        half = len(conditions) // 2
        return [*answers(database, conditions[:half]), *answers(database, conditions[half:])]
    return [[row[1 + number] for row in rows] for number in range(len(conditions))]


def test_a_condition_means_to_the_reader_what_it_means_to_the_engine(database):
    assert_read_as_answered(database, read_ones(database.dialect, count("GBFL_CONDITIONS", 300), conditions()))


def test_what_is_computed_from_constants_comes_to_what_the_engine_computes(database):
    among = computed_conditions()
    assert_read_as_answered(database, read_ones(database.dialect, count("GBFL_CONDITIONS", len(among) // 2), among))


ONE_OF_TWO = "CASE WHEN age > 3 THEN {} ELSE {} END"
TYPES_OF_THEIR_OWN = (
    ONE_OF_TWO.format(1, 2.5) + " / 2 >= 0.5",
    ONE_OF_TWO.format(1, "1.0") + " / 2 = 0",
    "COALESCE(CASE WHEN age > 3 THEN 1 END, 2.5) / 2 >= 0.5",
    "IIF(age > 3, 1, 2.5) / 2 >= 0.5",
    "(CASE WHEN age > 3 THEN 1 ELSE 0 END + CASE WHEN income > 0 THEN 0.5 ELSE 0 END) / 2 >= 0.5",
    "(CASE WHEN age > 3 THEN 1 ELSE 0 END + CASE WHEN income > 0 THEN 0.5 ELSE 0 END) * (age > 3) / 2 >= 0.5",
)
"""In SQLite a choice or a sum is a whole number for some rows and a double for others, and 1 / 2 is 0."""


def test_a_number_of_sqlite_has_the_type_of_its_own_row():
    if reason := availability("sqlite"):
        pytest.skip(reason)
    database = scratch("sqlite")
    try:
        read = read_ones("sqlite", len(TYPES_OF_THEIR_OWN), TYPES_OF_THEIR_OWN)
        assert len(read) >= 4
        assert_read_as_answered(database, read)
    finally:
        database.close()


def assert_read_as_answered(database, read):
    rows = ROWS if database.holds_infinity else np.clip(ROWS, -np.finfo(float).max, np.finfo(float).max)
    taken = 0
    for missing, which in (("null", 0), ("nan", -1))[: 1 + database.holds_nan]:
        database.insert("data", ("age", "income"), rows, missing=missing)
        for start in range(0, len(read), TOGETHER):
            part = read[start : start + TOGETHER]
            for (condition, readings), found in zip(part, answers(database, [c for c, _ in part]), strict=True):
                if found is None:
                    continue  # more is read than an engine takes
                taken += 1
                expected = [run_reading(readings[which], row).label for row in rows.tolist()]
                assert found == expected, f"{condition}, missing as {missing}"
    assert taken > len(read) // 2
