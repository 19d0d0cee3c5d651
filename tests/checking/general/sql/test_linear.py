"""A feature that is multiplied, divided or moved by constants is read as the engine computes it, or it is not read."""

import math
import random
from contextlib import closing
from decimal import Decimal

import pytest

from gbfl_compile.checking.general.sql import TextLayout, read_deployed
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.general.sql.linear import threshold_of
from gbfl_compile.checking.general.sql.values import Column, Constant, LinearFeature, Step
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


FACTORS = ("0.1", "0.3", "0.7", "3", "7", "3.0", "1e-1", "7e0")


def back_and_forth():
    """Conditions whose steps undo one another, so that each rounding shows at the bound."""
    choose = random.Random(11)
    for _ in range(150):
        first, second, bound = choose.choice(FACTORS), choose.choice(FACTORS), choose.randint(1, 40)
        steps = choose.choice(
            [f"x * {first} / {first}", f"x / {first} * {first}", f"x * {second} / {first}", f"x / {first} * {second}"]
        )
        place = {"x * ": float(first) / float(second), "x / ": float(first) / float(second)}[steps[:4]] * bound
        place = bound if steps.count(first) == 2 else place
        number = choose.choice([bound, f"{bound}.0", f"{bound}e0"])
        yield f"{steps} {choose.choice(['<', '<=', '>', '>='])} {number}", place
    yield "x * 0.01 / 7 >= 0.571428571", 400.0
    yield "x * 1.0 / 7 >= 0.571428571", 4.0


def test_steps_that_are_computed_in_numbers_of_several_kinds(engine):
    """DuckDB: x * 0.1 is a decimal and its quotient a double, so x * 0.1 / 0.1 >= 3 is false of 3."""
    pairs, count = list(back_and_forth()), 0
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
    assert count, "none is read"


def test_a_quotient_of_which_most_digits_are_taken_away():
    """PostgreSQL rounds 666666666.66… after its eighth digit, and 0.66666667 is what is left of it."""
    with pytest.raises(Unread):
        read("postgres", "INTEGER", "x / 3.0 - 666666666 <= 0.666666669")
    assert read("postgres", "INTEGER", "x / 4.0 - 66666 <= 0.6")


def test_a_quotient_of_decimals_in_clickhouse():
    """15 / CAST(7 AS Decimal(9, 2)) is 2 or 2.14 there; such a constant comes from a column of a table."""
    for declared, number in (("int32", Decimal("7.00")), ("decimal(12, 2)", 7)):
        value = LinearFeature(Column(0), (Step("/", number),), declared)
        with pytest.raises(Unread, match="quotient of decimals"):
            threshold_of(ENGINES["clickhouse"], value, ">", Constant(2.141))
    whole = LinearFeature(Column(0), (Step("/", 7),), "int32")
    assert threshold_of(ENGINES["clickhouse"], whole, ">", Constant(2.141)) == (">=", 15)


@pytest.mark.parametrize("declared", ["FLOATING POINT", "DOUBLE INTEGER", "REALTEXT"])
def test_sqlite_names_a_type_by_its_own_rules(declared):
    """To SQLite FLOATING POINT is an INTEGER, for the INT in it: 25 / 12 > 2 is false there."""
    with pytest.raises(Unread):
        read("sqlite", declared, "x / 12 > 2")
    assert read("sqlite", "DOUBLE PRECISION", "x / 12 > 2")


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
