"""Edits made to slip past the strict form of SQL: each once was proved although an engine answers otherwise."""

import pytest

from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.checking.strict.sql.cases import text_of, verdict

# IF first >= 1.5 AND second >= 0.5 THEN yes ELSE no
TWO = Program(
    ("first", "second"),
    ("no", "yes"),
    (Clause((Interval(0, 1.5), Interval(1, 0.5))),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)
TWINS = {
    "cut off after 63 bytes": ("postgres", "x" * 63 + "a", "x" * 63 + "b"),
    "cut off inside a letter": ("postgres", "é" * 31 + "aa", "é" * 31 + "ab"),
    "too long": ("mariadb", "x" * 64 + "a", "x" * 64 + "b"),
    "past U+FFFF": ("mariadb", "\U0001f600", "\U0001f601"),
}


@pytest.mark.parametrize("case", TWINS.values(), ids=TWINS)
def test_names_that_the_engine_does_not_keep_as_they_are_written(case):
    """PostgreSQL cuts names off, MariaDB writes ? for a letter it does not know: two features are then one column."""
    dialect, *names = case
    program = Program(tuple(names), TWO.classes, TWO.clauses, TWO.decision)
    options = {"outputs": "label", "types": "double"}
    text = text_of(TWO, dialect, **options)
    for feature, name in zip(TWO.features, names, strict=True):
        text = text.replace(feature, name)
    assert verdict(program, text, dialect, **options) == "unread"


def test_one_column_may_stand_for_two_names_in_postgres():
    if reason := availability("postgres"):
        pytest.skip(reason)
    _, one, other = TWINS["cut off after 63 bytes"]
    database = scratch("postgres")
    try:
        database.execute(f'CREATE TABLE data ("{"x" * 63}" DOUBLE PRECISION)')
        assert database.fetch(f'SELECT "{one}", "{other}" FROM data') == []
    finally:
        database.close()


def test_a_cast_to_a_type_without_null_is_not_read_in_clickhouse():
    """`CAST(x AS Float64) IS NULL` is never true there, and the cast of a NULL fails; toFloat64 keeps it."""
    program = Program(TWO.features, TWO.classes, (Clause((Interval(0, 1.5, if_missing=True),)),), TWO.decision)
    text = text_of(program, "clickhouse", outputs="label")
    assert "toFloat64(`first`)" in text
    assert verdict(program, text, "clickhouse", outputs="label") == "proved"
    edited = text.replace("toFloat64(`first`)", "CAST(`first` AS Float64)")
    assert verdict(program, edited, "clickhouse", outputs="label") == "unread"


def test_clickhouse_itself_takes_no_null_for_one_in_such_a_cast():
    if reason := availability("clickhouse"):
        pytest.skip(reason)
    database = scratch("clickhouse")
    try:
        database.execute("CREATE TABLE data (x Nullable(Float64)) ENGINE = Memory")
        database.execute("INSERT INTO data VALUES (NULL)")
        assert database.fetch("SELECT x IS NULL, CAST(x AS Float64) IS NULL FROM data") == [(1, 0)]
    finally:
        database.close()
