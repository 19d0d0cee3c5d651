"""A feature that is multiplied, divided or moved by constants is read as the engine computes it, or it is not read."""

import math
import random
from contextlib import closing
from decimal import Decimal

import pytest

from gbfl_compile.checking.general.sql import TextLayout, read_deployed
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases import availability, scratch

COLUMNS = {
    "sqlite": ("INTEGER", "REAL", "NUMERIC(12,2)"),
    "duckdb": ("INTEGER", "DOUBLE", "DECIMAL(12,2)"),
    "postgres": ("INTEGER", "DOUBLE PRECISION", "NUMERIC(12,2)"),
    "mariadb": ("INT(11)", "DOUBLE", "DECIMAL(12,2)"),
    "clickhouse": ("Nullable(Int32)", "Nullable(Float64)", "Nullable(Decimal(12, 2))"),
}
CONSTANTS = ("12", "12.0", "100", "100.0", "0.01", "30", "1000", "7", "3", "0.1")
SCALES = {"+": lambda x, c: x - c, "-": lambda x, c: x + c, "*": lambda x, c: x / c, "/": lambda x, c: x * c}


@pytest.fixture(params=sorted(COLUMNS))
def engine(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    return request.param


def conditions():
    """(condition on x, about where its bound is), of one operation or two."""
    choose = random.Random(7)
    for _ in range(120):
        text, bound = "x", choose.choice([2, 3, 36, 45, 3500, 0.36, 0.45, 12, 250])
        place, steps = (
            float(bound),
            [(choose.choice("+-*/"), choose.choice(CONSTANTS)) for _ in range(choose.choice([1, 1, 2]))],
        )
        for sign, number in reversed(steps):
            place = SCALES[sign](place, float(number))
        for sign, number in steps:
            text = f"({text} {sign} {number})"
        yield f"{text} {choose.choice(['<', '<=', '>', '>='])} {bound}", place


def held(declared, value):
    """A number as a column of the type holds it."""
    if "INT" in declared.upper():
        return int(value)
    return round(Decimal(value), 2) if "(12" in declared else value


def answers(database, engine, declared, pairs):
    """The values of a table, and for each what the engine says of each condition."""
    near = {
        held(declared, each) for _, place in pairs for each in (place, place - 1, place + 1, place - 0.01, place + 0.01)
    }
    near |= {held(declared, math.nextafter(place, way)) for _, place in pairs for way in (-math.inf, math.inf)}
    values = sorted(each for each in near if abs(each) < 10**6)
    database.execute(f"CREATE TABLE data (id INT, x {declared}){' ENGINE = Memory' if engine == 'clickhouse' else ''}")
    rows = ", ".join(f"({number}, {value!s})" for number, value in enumerate([*map(repr_of, values), "NULL"]))
    database.execute(f"INSERT INTO data VALUES {rows}")
    shown = ", ".join(f"CASE WHEN {text} THEN 1 ELSE 0 END AS c{number}" for number, (text, _) in enumerate(pairs))
    listed = [row[1:] for row in sorted(database.fetch(f"SELECT id, {shown} FROM data"))]
    return [*map(float, values), math.nan], listed


def repr_of(value):
    return str(value) if isinstance(value, Decimal) else repr(value)


def read(engine, declared, condition):
    """What is read of a condition on a column of this type."""
    text = f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data"
    layout = TextLayout(("x",), ("no", "yes"), ((0, "x"),), (("label", "label"),), types={0: declared.lower()})
    return read_deployed(text, engine, layout).readings


def test_what_is_read_is_what_the_engine_answers(engine):
    pairs, count = list(conditions()), 0
    for declared in COLUMNS[engine]:
        with closing(scratch(engine)) as database:
            values, listed = answers(database, engine, declared, pairs)
        for number, (condition, _) in enumerate(pairs):
            try:
                reading, *_ = read(engine, declared, condition)
            except Unread:
                continue
            count += 1
            labels = [run_reading(reading, [value]).label == "yes" for value in values]
            assert labels == [row[number] == 1 for row in listed], (declared, condition)
    assert count > len(pairs), f"only {count} of {3 * len(pairs)} are read"


@pytest.mark.parametrize("declared", ["INTEGER", "REAL", "NUMERIC", "a type of the user's"])
def test_a_bound_that_depends_on_how_a_quotient_is_made_is_not_read(declared):
    """PostgreSQL divides whole numbers without a rest: 25 / 12 > 2 is false."""
    with pytest.raises(Unread):
        read("postgres", declared, "x / 12 > 2")
    assert read("postgres", "DOUBLE PRECISION", "x / 12 > 2")


def test_numbers_that_are_no_bound_are_not_read():
    for condition in ("x * 0 < 1", "x / 12 = 2", "x * x < 4", "12 / x < 3", "x * 1e300 < 1", "x * NULL < 1"):
        with pytest.raises(Unread):
            read("postgres", "NUMERIC(12,2)", condition)


WHOLE = {
    "sqlite": ("INTEGER",),
    "duckdb": ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    "postgres": ("SMALLINT", "INTEGER", "BIGINT"),
    "mariadb": ("TINYINT(4)", "SMALLINT(6)", "INT(11)", "BIGINT(20)"),
    "clickhouse": ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
}
ENDS = sorted(
    {sign * 2**bits + less for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for less in (-1, 0)}
)


def answer_of(database, engine, declared, condition, value):
    """What the engine says of one value; None where its column cannot hold it, or the engine refuses to compute."""
    storage = " ENGINE = Memory" if engine == "clickhouse" else ""
    database.execute("DROP TABLE IF EXISTS data")
    database.execute(f"CREATE TABLE data (x {declared}){storage}")
    try:
        database.execute(f"INSERT INTO data VALUES ({value})")
        rows = database.fetch(f"SELECT x, CASE WHEN {condition} THEN 1 ELSE 0 END AS c FROM data")
    except Exception:
        return None
    return rows[0][1] == 1 if int(rows[0][0]) == value else None


@pytest.mark.parametrize("condition", ["x * 1000 >= 5000", "x + 1 >= 3", "x - 100 <= 7", "x * 1000000 * 1000000 > 5"])
def test_whole_numbers_at_the_ends_of_their_types_are_read_as_the_engine_computes_them(engine, condition):
    """In ClickHouse a product that outgrows 64 bits is some other number; other engines refuse to compute it."""
    for declared in WHOLE[engine]:
        try:
            reading, *_ = read(engine, declared, condition)
        except Unread:
            continue
        with closing(scratch(engine)) as database:
            for value in ENDS:
                answer = answer_of(database, engine, declared, condition, value)
                assert answer in (None, run_reading(reading, [float(value)]).label == "yes"), (declared, value)
