"""Tables of parameters: read as the constants they hold, where their types compute as literals do."""

from contextlib import closing, suppress

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import CannotRun
from tests.auditing.view.test_deceptions import PROGRAM, ROW, RULE, TABLES

TABLE_OF_ONE = {
    "letters of either case, SQLite": ("sqlite", "TEXT COLLATE NOCASE", "'cut'", "p.a = 'CUT'"),
    "letters of either case, DuckDB": ("duckdb", "VARCHAR COLLATE NOCASE", "'cut'", "p.a = 'CUT'"),
    "a number of 32 bits, DuckDB": ("duckdb", "FLOAT", "0.1", "p.a * 10 = 1"),
    "a sum that is too large, DuckDB": ("duckdb", "UTINYINT", "200", "p.a + p.a = 0"),
    "a sum that is too large, PostgreSQL": ("postgres", "SMALLINT", "30000", "p.a + p.a = 0"),
    "a difference below zero, MariaDB": ("mariadb", "INT UNSIGNED", "3", "p.a - 5 > 2"),
}


@pytest.mark.parametrize("form", TABLE_OF_ONE)
def test_a_parameter_whose_type_computes_otherwise_than_a_literal_is_not_read(form):
    engine, type_, value, condition = TABLE_OF_ONE[form]
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans {TABLES[engine]}")
        database.execute(f"CREATE TABLE limits (a {type_})")
        database.execute(f"INSERT INTO limits VALUES ({value})")
        rule = f"CASE WHEN income = 77777 THEN CASE WHEN {condition} THEN 'no' ELSE 'yes' END ELSE {RULE} END"
        rule = f"CASE WHEN {RULE} = 'yes' THEN {rule} ELSE 'no' END"
        database.execute(f"CREATE VIEW v AS SELECT id, {rule} AS label FROM loans CROSS JOIN limits p")
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        database.execute(ROW)
        with suppress(CannotRun):  # an error is not an answer either
            assert database.fetch("SELECT label FROM v") != [("yes",)]
        assert found.verdict in ("different", "unread"), found


def test_parameters_are_read_beside_columns_that_are_not():
    with closing(scratch("sqlite")) as database:
        database.execute(f"CREATE TABLE loans {TABLES['sqlite']}")
        database.execute("CREATE TABLE limits (least REAL, note TEXT COLLATE NOCASE)")
        database.execute("INSERT INTO limits VALUES (3000, 'since May')")
        rule = RULE.replace("3000", "p.least")
        database.execute(f"CREATE VIEW v AS SELECT id, {rule} AS label FROM loans CROSS JOIN limits p")
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict == "equal", found


def test_rows_that_each_user_sees_others_of_are_not_parameters():
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        database.execute(f"CREATE TABLE loans {TABLES['postgres']}")
        database.execute("CREATE TABLE limits (least INTEGER)")
        database.execute("INSERT INTO limits VALUES (3000)")
        rule = RULE.replace("3000", "(SELECT least FROM limits)")
        database.execute(f"CREATE VIEW v AS SELECT id, {rule} AS label FROM loans")
        (before,) = audit(PROGRAM, database=database, view="v").verdicts
        database.execute("ALTER TABLE limits ENABLE ROW LEVEL SECURITY")
        (after,) = audit(PROGRAM, database=database, view="v").verdicts
        assert (before.verdict, after.verdict) == ("equal", "unread"), after
