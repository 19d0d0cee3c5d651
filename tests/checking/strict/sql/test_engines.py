"""The strict form against the engines themselves: nothing is proved that an engine answers otherwise.

GBFL_STRICT_EDITS=5000 python -m pytest tests/checking/strict/sql/test_engines.py tries 5,000 edits per engine; 150 otherwise.
GBFL_STRICT_ENGINES=clickhouse,mariadb,spark asks the engines that take longer to start or to plan as well.
"""

import math
import os
import random
import struct

import numpy as np
import pytest

from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.arithmetic import decimal
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.checking.respelling import random_program
from tests.checking.strict.sql.cases import body_of, edited, everything, rows_of, strict, text_of, verdict

EDITS = int(os.environ.get("GBFL_STRICT_EDITS", "150"))
OPTIONS = {"key": "gbfl_row"}


ENGINES = ("sqlite", "duckdb", "postgres", "datafusion")
SLOW = tuple(filter(None, os.environ.get("GBFL_STRICT_ENGINES", "").split(",")))


@pytest.fixture(scope="module", params=(*ENGINES, *SLOW))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


def answers(database, program, query, rows, missing):
    database.insert("data", program.features, rows, missing=missing)
    return sorted(database.fetch(query))


def ways(database):
    return ("null", "nan") if database.holds_nan else ("null",)


def rows_for(database, program, choose):
    rows = rows_of(program, choose)
    return rows if database.holds_infinity else np.clip(rows, -1e308, 1e308)


def query_of(program, dialect, **options):
    return body_of(text_of(program, dialect, **OPTIONS, **options)).rstrip().rstrip(";")


def test_what_is_proved_is_what_the_engine_answers(database):
    choose = random.Random(f"{database.dialect} edited")
    run = 0
    for number in range(EDITS):
        if number % 30 == 0:
            program = random_program(
                choose, choose.choice(("tree", "list", "scorecard", "banded")), features=2, most_clauses=3
            )
            outputs = choose.choice(("label", everything(program)))
            query = query_of(program, database.dialect, outputs=outputs)
            rows = rows_for(database, program, choose)
            expected = [evaluate(program, row).label for row in rows.tolist()]
        text = edited(choose, query) if number % 30 else query
        if verdict(program, text, database.dialect, outputs=outputs, **OPTIONS) != "proved":
            continue
        for missing in ways(database):
            found = answers(database, program, text, rows, missing)
            assert [row[:2] for row in found] == list(enumerate(expected)), f"{missing}: {text}"
        run += 1
    assert run > EDITS // 30


def test_what_is_read_is_what_the_engine_answers(database):
    """Edits that are read and refuted are read as the engine runs them, too."""
    choose = random.Random(f"{database.dialect} read")
    read = 0
    for number in range(EDITS):
        if number % 30 == 0:
            program = random_program(
                choose, choose.choice(("tree", "list", "scorecard", "banded")), features=2, most_clauses=3
            )
            query = query_of(program, database.dialect, outputs="label")
            rows = rows_for(database, program, choose)
        text = edited(choose, query)
        try:
            (reading,) = strict(program, text, database.dialect, outputs="label", **OPTIONS)
        except Unread:
            continue
        expected = [run_reading(reading, row).label for row in rows.tolist()]
        for missing in ways(database):
            found = answers(database, program, text, rows, missing)
            assert [row[:2] for row in found] == list(enumerate(expected)), f"{missing}: {text}"
        read += 1
    assert read > EDITS // 30


NANS = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1)]
NANS += [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in ((0xFFF8 << 48) + 0xABC, (1 << 64) - 1)]

ATOMS = [
    Interval(0, lo, hi, closed, if_missing)
    for lo, hi in ((0.0, None), (None, 0.0), (-1.0, 2.0), (0.0, 0.0), (None, None), (5e-324, None), (None, -5e-324))
    for closed in (("both",) if lo == 0.0 == hi else ("left", "right", "both", "neither"))
    for if_missing in (False, True)
]


@pytest.mark.parametrize("inverted", [False, True], ids=["holds", "fails"])
def test_every_atom_answers_for_every_nan_and_zero(database, inverted):
    """NaNs of both signs and with payloads, both zeros, denormals and infinities, where the engine holds them."""
    values = [*NANS, 0.0, -0.0, 5e-324, -5e-324, 1.0, 2.0, -1.0, 1e308, -1e308]
    values += [math.inf, -math.inf] if database.holds_infinity else []
    rows = np.array([[value] for value in values if database.holds_nan or not math.isnan(value)])
    for atom in ATOMS:
        clauses = (Clause((atom,)),)
        program = Program(("x",), ("no", "yes"), clauses, split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
        query = query_of(program, database.dialect, outputs="label")
        if inverted:
            query = _inverted(program, database.dialect, query)
        assert verdict(program, query, database.dialect, outputs="label", **OPTIONS) == "proved"
        expected = list(enumerate(evaluate(program, row).label for row in rows.tolist()))
        for missing in ways(database):
            assert answers(database, program, query, rows, missing) == expected, query


def _inverted(program, dialect, query):
    """The same tree with its one clause asked the other way round."""
    from gbfl_compile.backends.sql import conditions as sql_conditions
    from gbfl_compile.backends.sql.engines import DIALECTS
    from gbfl_compile.backends.sql.text import identifier

    row, column = DIALECTS[dialect], {0: identifier(DIALECTS[dialect], "x")}
    holds = sql_conditions.clause_holds(row, program.clauses[0], column)
    fails = sql_conditions.clause_fails(row, program.clauses[0], column)
    assert f"WHEN {holds} THEN 'yes'" in query
    inverted = query.replace(f"WHEN {holds} THEN 'yes'", f"WHEN {fails} THEN 'no'")
    return inverted.replace("ELSE 'no'", "ELSE 'yes'")


def test_literals_that_are_read_are_the_doubles_of_the_engine(database):
    choose = random.Random(1)
    lexis = LEXIS[database.dialect]
    texts = []
    while len(texts) < 200:
        number = abs(choose.gauss(0, 1)) * 10.0 ** choose.choice((0, 0, 3, -3, 20, -20, 300, -300))
        text = choose.choice(
            (f"{number:.16e}", f"{number:.5e}", f"{number!r}e0" if "e" not in repr(number) else repr(number))
        )
        try:
            texts.append((text, decimal(lexis, text).value))
        except Unread:
            assert database.dialect == "sqlite"
    cast = "CAST({} AS DOUBLE PRECISION)" if database.dialect == "postgres" else "{}"
    for start in range(0, len(texts), 50):
        part = texts[start : start + 50]
        (row,) = database.fetch(
            "SELECT " + ", ".join(f"{cast.format(text)} AS c{i}" for i, (text, _) in enumerate(part))
        )
        assert list(row) == [number for _, number in part]


def test_an_overflow_that_is_refused_is_one(database):
    """The widths are checked because engines raise, wrap around or go on as doubles."""
    if database.dialect not in ("duckdb", "postgres"):
        pytest.skip("raises in DuckDB and PostgreSQL; others have wider integers")
    with pytest.raises(CannotRun):
        database.fetch("SELECT CASE WHEN 1 = 1 THEN 2147483647 ELSE 0 END + 1 AS x")
