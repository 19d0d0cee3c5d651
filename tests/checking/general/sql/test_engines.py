"""The SQL reader against the engines themselves: what it reads is what the engine answers, row by row.

GBFL_SQL_TEXTS=1000 python -m pytest tests/checking/general/sql/test_engines.py tries 1,000 texts per engine; CI tries 10.
"""

import contextlib
import random
import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from gbfl_compile.backends import emit
from gbfl_compile.checking.general.sql import read_sql
from gbfl_compile.checking.general.sql.engines import ENGINES, number
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.nodes import Scorecard
from tests.checking.general.sql.edits import mutated, respelled
from tests.checking.general.sql.views import assert_view_is_proved, catalog_text
from tests.checking.respelling import CUTS, random_program
from tests.counts import count
from tests.programs import programs

TEXTS = count("GBFL_SQL_TEXTS", 10)


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


def rows_for(choose, features, count=60):
    """Cuts, their neighbours, infinities, zeros and missing values."""
    pool = [value for cut in CUTS for value in (cut, np.nextafter(cut, np.inf), np.nextafter(cut, -np.inf))]
    pool += [np.nan] * (len(pool) // 4) + [np.inf, -np.inf, 0.0, -0.0]
    return np.array([[choose.choice(pool) for _ in range(features)] for _ in range(count)])


def assert_engine_agrees(database, text, readings, rows):
    """The first reading has NULL for what is missing, the last one NaN."""
    ways = [("null", readings[0])]
    if database.holds_nan:
        ways.append(("nan", readings[-1]))
    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    for missing, reading in ways:
        database.insert("data", reading.features, rows, missing=missing)
        body = "\n".join(line for line in text.split("\n") if not line.startswith("--")).rstrip().rstrip(";")
        found = {row[0]: row[1] for row in database.fetch(body)}
        expected = {number: run_reading(reading, row).label for number, row in enumerate(rows.tolist())}
        assert found == expected, f"missing as {missing}:\n{text}"


def texts(choose, dialect, change):
    """Random programs, emitted and changed, until there are enough."""
    for _ in range(TEXTS):
        program = random_program(choose, choose.choice(("tree", "list")))
        try:
            text = emit(program, f"sql:{dialect}", "m", {"outputs": "label", "key": "gbfl_row"}).files["m.sql"].decode()
        except BadInput:
            continue
        made = change(choose, text, dialect)
        if made is not None:
            yield program, made


def test_a_respelled_text_is_proved_and_answers_as_it_was_read(database):
    choose = random.Random(database.dialect)
    for program, text in texts(choose, database.dialect, respelled):
        readings = read_sql(text, database.dialect)
        for reading in readings:
            proof = prove(program, reading)
            assert type(proof.labels).__name__ == "ProvedEqual", text
        assert_engine_agrees(database, text, readings, rows_for(choose, len(program.features)))


def test_a_mutated_text_answers_as_it_was_read(database):
    choose = random.Random(f"{database.dialect} mutated")
    read = 0
    for program, text in texts(choose, database.dialect, mutated):
        try:
            readings = read_sql(text, database.dialect)
        except Unread:
            continue
        try:
            assert_engine_agrees(database, text, readings, rows_for(choose, len(program.features)))
        except CannotRun:  # the slip made it SQL that this engine does not take
            continue
        read += 1
    assert read > TEXTS // 3


def test_a_number_sqlite_is_trusted_with_is_the_one_it_reads():
    """SQLite 3.40 reads 16.174532293615 as the next double: numbers that close to the middle are refused."""
    engine, choose = ENGINES["sqlite"], random.Random(1)
    trusted = {}
    while len(trusted) < 100 * TEXTS:
        size = 10.0 ** choose.randint(-60, 60) if choose.random() < 0.5 else 10.0 ** choose.randint(-7, 22)
        text = f"{abs(choose.gauss(0, 1)) * size:.{choose.choice((3, 9, 13, 14, 16))}e}"
        try:
            trusted[text] = number(engine, text)
        except Unread:
            continue
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for text, expected in trusted.items():
            assert connection.execute(f"SELECT {text}").fetchone() == (expected,), text
    with pytest.raises(Unread, match="SQLite"):
        number(engine, "16.174532293615e0")


def test_a_view_is_proved_from_its_catalog(database):
    @settings(
        max_examples=max(8, TEXTS // 3),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @seed(7)
    @given(programs())
    def check(program):
        if isinstance(program.decision, Scorecard):  # its sums are compared in stages of the strict form
            return
        try:
            assert_view_is_proved(database, program)
        except BadInput as refused:
            assert "one in" in str(refused)  # noqa: PT017 - names that are one column to the engine

    check()


def test_a_slip_in_a_view_is_found_from_its_catalog(database):
    """A slip may hit a place that no row reaches, and is then rightly proved: of a dozen, most do not."""
    choose = random.Random(3)
    answers = []
    while len(answers) < 12:
        program = random_program(choose, "tree")
        text, layout = catalog_text(database, program, {"outputs": "label"})
        slipped = text.replace(">=", ">", 1)
        if slipped != text:
            (proof, *_) = [prove(program, reading) for reading in read_sql(slipped, database.dialect, layout)]
            answers.append(proof.answer)
    assert set(answers) <= {"counterexample", "proved"}
    assert answers.count("counterexample") >= 3
