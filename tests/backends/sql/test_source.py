"""A column that an engine would misread without a word is refused by name before anything is made."""

import pytest

from gbfl_compile.backends.sql.score import score_in_database
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split

TREE = split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
ATOMS = {
    "number": Interval(0, 2.0),
    "boolean": OneOf(0, ("true",)),
    "date": Interval(0, 9.0),
    "timestamp": Interval(0, 9.0),
}


def program(kind):
    kinds = () if kind == "number" else (kind,)
    return Program(("f",), ("no", "yes"), (Clause((ATOMS[kind],)),), TREE, kinds=kinds)


@pytest.fixture
def sqlite():
    database = scratch("sqlite")
    yield database
    database.close()


READ = {
    "number": ["3", "'38.50'", "' 12'", "'1e5'", "'123456789012345678'", "2.5", "NULL"],
    "boolean": ["1", "0", "'1'", "NULL"],
    "date": ["'2024-02-29'", "'2024-02-29 00:00:00'", "NULL"],
    "timestamp": ["'2024-02-29 12:30:00'", "'2024-02-29 12:30:00.25'", "NULL"],
}
MISREAD = [
    *(("number", value) for value in ("'?'", "''", "'12abc'", "'2013-01-02'", "'inf'", "x'31'")),
    *(("boolean", value) for value in ("'true'", "'no'")),
    *(("date", value) for value in ("'29.02.2024'", "''", "'2024-2-9'", "19783", "'2024-02-29T00:00:00'")),
    *(("timestamp", value) for value in ("'2024-02-29'", "'2024-02-29T12:30:00'", "'2024-02-29 12:30'", "17")),
    ("timestamp", "'2024-02-29 12:30:00+02:00'"),
]


@pytest.mark.parametrize("kind", READ)
def test_what_sqlite_reads_is_scored(kind, sqlite):
    sqlite.execute("CREATE TABLE people (f)")
    for value in READ[kind]:
        sqlite.execute(f"INSERT INTO people VALUES ({value})")
    assert score_in_database(program(kind), sqlite, "people", "scored").rows == len(READ[kind])


@pytest.mark.parametrize("declared", ["", "TEXT"])
@pytest.mark.parametrize(("kind", "value"), MISREAD)
def test_what_sqlite_would_misread_is_refused(kind, value, declared, sqlite):
    sqlite.execute(f"CREATE TABLE people (f {declared})")
    sqlite.execute(f"INSERT INTO people VALUES ({value})")
    with pytest.raises(BadInput, match=f"the column 'f' has the value .* does not read as a {kind}: score a view"):
        score_in_database(program(kind), sqlite, "people", "scored")
    assert sqlite.fetch("SELECT COUNT(*) FROM sqlite_master") == [(1,)]


def test_a_column_of_another_type_is_named():
    if reason := availability("duckdb"):
        pytest.skip(reason)
    database = scratch("duckdb")
    try:
        database.execute("CREATE TABLE people AS SELECT '2024-02-29 12:30:00' AS f")
        with pytest.raises(
            BadInput, match="the column 'f' cannot be read as a timestamp, score a view that casts it: "
        ):
            score_in_database(program("timestamp"), database, "people", "scored")
    finally:
        database.close()
