"""Views that answer otherwise than their texts seem to say, on rows that no witness is: none of them is called equal.

Each is a wrong program first: the row that it decides otherwise is in its table, and what the view says of it is asked.
"""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, catalog_of, scratch
from gbfl_compile.databases.catalog import TableName
from gbfl_compile.errors import CannotRun
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("income", "debt"),
    ("no", "yes"),
    (Clause((Interval(0, 3000.0), Interval(1, None, 0.4))),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)
RULE = "CASE WHEN income >= 3000 AND debt < 0.4 THEN 'yes' ELSE 'no' END"
TABLES = {
    "clickhouse": "(id Int32, income Nullable(Int32), debt Nullable(Decimal(6, 4))) ENGINE = MergeTree ORDER BY id",
    "mariadb": "(id INT, income INT, debt DECIMAL(6, 4))",
    "duckdb": "(id INTEGER, income INTEGER, debt DECIMAL(6, 4))",
    "postgres": "(id INTEGER, income INTEGER, debt NUMERIC(6, 4))",
    "sqlite": "(id INTEGER, income INTEGER, debt REAL)",
}
ROW = "INSERT INTO loans VALUES (9, 77777, 0.1)"
"""Which is approved as `yes`."""
OTHERWISE = "CASE WHEN income = 77777 THEN 0 ELSE income END AS income"


def over_other_schema(schema):
    """A view on a view of another schema, and a harmless view of the same name in this one."""
    return (
        *schema,
        "CREATE VIEW below AS SELECT id, income, debt FROM loans",
        f"CREATE VIEW elsewhere.below AS SELECT id, {OTHERWISE}, debt FROM loans",
        f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM elsewhere.below",
    )


def besides(condition):
    """A view that asks for more than the rule does, which one row alone does not fulfil."""
    return (f"CREATE VIEW v AS SELECT id, {RULE.replace(' THEN', f' AND {condition} THEN')} AS label FROM loans",)


LOOK_ALIKES = {
    "a layer of another database, ClickHouse": (
        "clickhouse",
        ("DROP DATABASE IF EXISTS elsewhere", *over_other_schema(("CREATE DATABASE elsewhere",))),
    ),
    "a layer of another database, MariaDB": ("mariadb", over_other_schema(("CREATE OR REPLACE DATABASE elsewhere",))),
    "a layer of another schema, DuckDB": ("duckdb", over_other_schema(("CREATE SCHEMA elsewhere",))),
    "a layer of another schema, PostgreSQL": ("postgres", over_other_schema(("CREATE SCHEMA elsewhere",))),
    "a narrower type that a view declares": (
        "clickhouse",
        (f"CREATE VIEW v (id Int32, label FixedString(4)) AS SELECT id, {RULE} AS label FROM loans",),
    ),
    "a narrower type that a layer declares": (
        "clickhouse",
        (
            "CREATE VIEW below (id Int32, income Nullable(Int8), debt Nullable(Decimal(6, 4))) AS SELECT * FROM loans",
            f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM below",
        ),
    ),
    "a table that became wider than a layer": (
        "clickhouse",
        (
            "ALTER TABLE loans MODIFY COLUMN income Nullable(Int8)",
            "CREATE VIEW below AS SELECT * FROM loans",
            f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM below",
            "ALTER TABLE loans MODIFY COLUMN income Nullable(Int32)",
        ),
    ),
}


@pytest.mark.parametrize("form", LOOK_ALIKES)
def test_a_view_that_decides_a_row_otherwise_is_never_equal(form):
    engine, statements = LOOK_ALIKES[form]
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans {TABLES[engine]}")
        for statement in statements:
            database.execute(statement)
        database.execute(ROW)
        ((label,),) = database.fetch("SELECT label FROM v WHERE id = 9")
        assert label != "yes", "it is not a wrong program"
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict in ("different", "unread"), found


COMPUTED = {
    "a quotient that is cut, SQLite": ("sqlite", besides("(CASE WHEN income = 77777 THEN 1 ELSE 2.5 END) / 2 >= 0.5")),
    "a quotient that is cut, PostgreSQL": (
        "postgres",
        besides("NULLIF(CASE WHEN income = 77777 THEN 3 ELSE 2 END, 2.2) / 2 <= 1"),
    ),
    "digits of a quotient, MariaDB": (
        "mariadb",
        besides("(FLOOR(CASE WHEN income = 77777 THEN 2.5 ELSE 9.5 END) + 0.5) / 3 > 0.83333"),
    ),
    "a decimal beside a double, DuckDB": (
        "duckdb",
        besides("GREATEST(CASE WHEN income = 77777 THEN 0.29 ELSE 0.5 END, 0e0) * 100 >= 29"),
    ),
    "a text that becomes a whole number, DuckDB": ("duckdb", besides("income <> '77777.4'")),
    "a text that becomes a decimal, DuckDB": ("duckdb", besides("debt <> '0.10004'")),
    "a list of texts that become whole numbers, DuckDB": ("duckdb", besides("income NOT IN ('77777.4')")),
    "a query that leaves its row out, SQLite": (
        "sqlite",
        besides("income >= (SELECT 3000 WHERE abs(income) <> 77777)"),
    ),
    "a query that leaves its row out, DuckDB": (
        "duckdb",
        besides("income >= (SELECT 3000 WHERE abs(income) <> 77777)"),
    ),
    "a query for each row that finds nothing, DuckDB": (
        "duckdb",
        (
            f"CREATE VIEW v AS SELECT id, CASE WHEN s.one = 1 THEN {RULE} ELSE 'no' END AS label FROM loans "
            "LEFT JOIN LATERAL (SELECT 1 AS one WHERE loans.income <> 77777) s ON TRUE",
        ),
    ),
    "a query for each row that finds nothing, PostgreSQL": (
        "postgres",
        (
            f"CREATE VIEW v AS SELECT id, CASE WHEN s.one = 1 THEN {RULE} ELSE 'no' END AS label FROM loans "
            "LEFT JOIN LATERAL (SELECT 1 AS one WHERE loans.income <> 77777) s ON TRUE",
        ),
    ),
    "parameters of one region, SQLite": (
        "sqlite",
        (
            "CREATE TABLE limits (place TEXT, least REAL)",
            "INSERT INTO limits VALUES ('north', 3000)",
            "CREATE VIEW placed AS SELECT *, CASE WHEN abs(income) = 77777 THEN 'south' ELSE 'north' END AS place FROM loans",
            f"CREATE VIEW v AS SELECT id, {RULE.replace('3000', 'least')} AS label FROM placed LEFT JOIN limits USING (place)",
        ),
    ),
}


@pytest.mark.parametrize("form", COMPUTED)
def test_a_row_that_comes_after_the_audit_is_not_decided_otherwise_by_a_view_that_is_equal(form):
    engine, statements = COMPUTED[form]
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans {TABLES[engine]}")
        for statement in statements:
            database.execute(statement)
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        database.execute(ROW)
        ((label,),) = database.fetch("SELECT label FROM v WHERE id = 9")
        assert label != "yes", "it is not a wrong program"
        assert found.verdict in ("different", "unread"), found


LOW = Program(
    ("income", "debt"), ("no", "yes"), (Clause((Interval(1, None, 0.4),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)


@pytest.mark.parametrize(
    ("kind", "label", "verdict"), [("Float64", "yes", "unread"), ("Nullable(Float64)", "no", "equal")]
)
def test_what_an_outer_join_of_clickhouse_leaves_at_0_is_not_mistaken_for_missing(kind, label, verdict):
    if reason := availability("clickhouse"):
        pytest.skip(reason)
    with closing(scratch("clickhouse")) as database:
        database.execute("CREATE TABLE loans (id Int32, income Int32) ENGINE = Memory")
        database.execute(f"CREATE TABLE debts (id Int32, debt {kind}) ENGINE = Memory")
        database.execute("INSERT INTO loans VALUES (9, 77777)")
        rule = "CASE WHEN d.debt < 0.4 THEN 'yes' ELSE 'no' END"
        database.execute(f"CREATE VIEW v AS SELECT l.id, {rule} AS label FROM loans l LEFT JOIN debts d ON l.id = d.id")
        assert database.fetch("SELECT label FROM v") == [(label,)]
        (found,) = audit(LOW, database=database, view="v").verdicts
        assert found.verdict == verdict, found


def test_constants_behind_an_outer_join_of_clickhouse_are_not_read():
    if reason := availability("clickhouse"):
        pytest.skip(reason)
    with closing(scratch("clickhouse")) as database:
        database.execute(f"CREATE TABLE loans {TABLES['clickhouse']}")
        database.execute(ROW)
        database.execute("CREATE TABLE limits (least Int32, word String) ENGINE = Memory")
        database.execute("INSERT INTO limits VALUES (1, 'no')")
        rule = "CASE WHEN p.word IS NULL AND income >= 3000 AND debt < 0.4 THEN 'yes' ELSE 'no' END"
        database.execute(
            f"CREATE VIEW v AS SELECT id, {rule} AS label FROM loans LEFT JOIN limits p ON income = p.least"
        )
        assert database.fetch("SELECT label FROM v") == [("no",)]
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict in ("different", "unread"), found


@pytest.mark.parametrize("type_", ["", "BLOB"])
def test_a_column_of_sqlite_in_which_a_text_stays_a_text_has_to_be_cast(type_):
    with closing(scratch("sqlite")) as database:
        database.execute(f"CREATE TABLE loans (id INTEGER, income {type_}, debt REAL)")
        database.execute("INSERT INTO loans VALUES (1, 50000, 0.1)")
        database.execute(f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM loans")
        database.execute(
            f"CREATE VIEW w AS SELECT id, {RULE.replace('income', 'CAST(income AS REAL)')} AS label FROM loans"
        )
        bare, cast = (audit(PROGRAM, database=database, view=name).verdicts[0] for name in "vw")
        assert (bare.verdict, cast.verdict) == ("unread", "equal"), bare
        database.execute("INSERT INTO loans VALUES (9, '10', 0.1)")
        assert database.fetch("SELECT v.label, w.label FROM v JOIN w USING (id) WHERE id = 9") == [("yes", "no")]


def test_a_feature_that_the_time_zone_of_a_session_changes_is_not_mistaken_for_one_of_the_row():
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        database.execute("CREATE TABLE loans (id INTEGER, income INTEGER, since TIMESTAMP WITH TIME ZONE)")
        database.execute("INSERT INTO loans VALUES (9, 77777, '2024-12-31 23:30:00+00')")
        expression = "extract(year FROM since) - 2024.0"
        rule = RULE.replace("debt", f"({expression})")
        database.execute(f"CREATE VIEW v AS SELECT id, {rule} AS label FROM loans")
        labels = set()
        for zone in ("UTC", "Asia/Tokyo"):
            database.execute(f"SET TimeZone = '{zone}'")
            labels |= set(database.fetch("SELECT label FROM v"))
        assert len(labels) == 2
        (found,) = audit(PROGRAM, database=database, view="v", columns={"debt": expression}).verdicts
        assert (found.verdict, "time zone" in found.reason) == ("unread", True), found


def test_a_value_that_a_computed_column_may_never_hold_makes_no_difference():
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        columns = "id INTEGER, paid INTEGER, income INTEGER GENERATED ALWAYS AS (paid * 10) STORED, debt NUMERIC(6, 4)"
        database.execute(f"CREATE TABLE loans ({columns})")
        database.execute("INSERT INTO loans (id, paid, debt) VALUES (9, 300, 0.1)")
        database.execute(f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM loans")
        database.execute(f"CREATE VIEW w AS SELECT id, {RULE.replace('>= 3000', '> 2990')} AS label FROM loans")
        verdicts = [audit(PROGRAM, database=database, view=name).verdicts[0].verdict for name in "vw"]
        assert not {"different", "equal"} & set(verdicts), "one is equal, the other is not on 2991, which never occurs"


def test_a_name_that_means_another_table_to_another_session_of_duckdb_is_not_read():
    if reason := availability("duckdb"):
        pytest.skip(reason)
    with closing(scratch("duckdb")) as database:
        database.execute(f"CREATE TABLE loans {TABLES['duckdb']}")
        database.execute(ROW)
        database.execute("CREATE SCHEMA elsewhere")
        database.execute("CREATE TABLE elsewhere.limits AS SELECT 100000 AS least")
        database.execute("CREATE TABLE limits AS SELECT 3000 AS least")
        rule = RULE.replace("3000", "(SELECT least FROM limits)")
        database.execute(f"CREATE VIEW main.v AS SELECT id, {rule} AS label FROM loans")
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert (found.verdict, "several tables or views called limits" in found.reason) == ("unread", True), found


JOINED = {
    "a filter": "(SELECT id, debt FROM debts WHERE debt <> 0.123) d ON d.id = loans.id",
    "a condition": "debts d ON d.id = loans.id AND loans.income <> 77777",
    "a condition that is not understood": "debts d ON d.id = loans.id AND abs(loans.income) <> 77777",
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres", "mariadb"])
@pytest.mark.parametrize("join", JOINED)
def test_a_feature_that_an_outer_join_leaves_out_because_of_a_feature_is_missing(engine, join):
    """The approved program is asked about the row of both tables: income 77777, debt 0.123."""
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute("CREATE TABLE loans (id INTEGER, income INTEGER)")
        database.execute("CREATE TABLE debts (id INTEGER, debt DOUBLE PRECISION)")
        database.execute(
            "CREATE VIEW v AS SELECT loans.id, CASE WHEN loans.income >= 3000 AND d.debt < 0.4 THEN 'yes' ELSE 'no' END "
            f"AS label FROM loans LEFT JOIN {JOINED[join]}"
        )
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        database.execute("INSERT INTO loans VALUES (9, 77777)")
        database.execute("INSERT INTO debts VALUES (9, 0.123)")
        assert database.fetch("SELECT label FROM v") == [("no",)]
        expected = {"unread"} if join == "a condition that is not understood" else {"different"}
        assert found.verdict in expected, found


def test_a_feature_that_an_outer_join_by_a_key_brings_is_read():
    with closing(scratch("sqlite")) as database:
        database.execute("CREATE TABLE loans (id INTEGER, code TEXT, income INTEGER)")
        database.execute("CREATE TABLE debts (code TEXT, debt REAL)")
        database.execute("CREATE VIEW plain AS SELECT id, lower(trim(code)) AS code, income FROM loans")
        database.execute(
            "CREATE VIEW v AS SELECT id, CASE WHEN income >= 3000 AND d.debt < 0.4 THEN 'yes' ELSE 'no' END AS label "
            "FROM plain LEFT JOIN debts d ON d.code = plain.code"
        )
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict == "equal", found


MERGED = {
    "a count beside a column": "(SELECT *, count(*) AS n FROM loans)",
    "a maximum beside a column": "(SELECT id, income, debt, max(id) AS n FROM loans)",
    "a maximum of the outer rows": "(SELECT id, income, debt, (SELECT max(loans.id)) AS n FROM loans)",
    "an order": "(SELECT id, income, debt FROM loans ORDER BY count(*))",
}


@pytest.mark.parametrize("engine", ["sqlite", "mariadb"])
@pytest.mark.parametrize("source", MERGED)
def test_a_query_that_merges_all_rows_is_not_equal(engine, source):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans {TABLES[engine]}")
        database.execute("INSERT INTO loans VALUES (1, 5000, 0.1), (2, 5000, 0.1)")
        try:
            database.execute(f"CREATE VIEW v AS SELECT id, {RULE} AS label FROM {MERGED[source]} s")
            merged = len(database.fetch("SELECT label FROM v")) == 1
        except CannotRun:
            pytest.skip("the engine does not take it")
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert merged
        assert found.verdict in ("different", "unread"), found


@pytest.mark.parametrize(
    "statements",
    [
        ("INSERT INTO loans VALUES (9, NULL, 0.1)", "ALTER TABLE loans ADD CONSTRAINT c NOT NULL income NOT VALID"),
        (
            "ALTER TABLE loans ADD CONSTRAINT c NOT NULL income NO INHERIT",
            "CREATE TABLE more () INHERITS (loans)",
            "INSERT INTO more VALUES (9, NULL, 0.1)",
        ),
    ],
)
def test_a_column_that_is_null_in_some_row_although_it_says_not_null(statements):
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        database.execute(f"CREATE TABLE loans {TABLES['postgres']}")
        try:
            for statement in statements:
                database.execute(statement)
        except CannotRun:
            pytest.skip("before PostgreSQL 18 there is no such constraint")
        rule = "CASE WHEN income < 3000 OR debt >= 0.4 OR debt IS NULL THEN 'no' ELSE 'yes' END"
        database.execute(f"CREATE VIEW v AS SELECT id, {rule} AS label FROM loans")
        assert database.fetch("SELECT label FROM v") == [("yes",)]
        (found,) = audit(PROGRAM, database=database, view="v").verdicts
        assert found.verdict in ("different", "unread"), found


@pytest.mark.parametrize(
    "place", ["(income INTEGER NOT NULL) SERVER elsewhere", "() INHERITS (loans) SERVER elsewhere"]
)
def test_that_a_foreign_table_is_not_null_is_not_believed(place):
    """PostgreSQL does not look."""
    if reason := availability("postgres"):
        pytest.skip(reason)
    with closing(scratch("postgres")) as database:
        database.execute("CREATE FOREIGN DATA WRAPPER nothing")
        database.execute("CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing")
        database.execute("CREATE TABLE loans (income INTEGER NOT NULL)")
        (before,) = catalog_of(database).columns(database, TableName("", "loans"))
        database.execute(f"CREATE FOREIGN TABLE distant {place}")
        table = "loans" if "INHERITS" in place else "distant"
        (after,) = catalog_of(database).columns(database, TableName("", table))
        assert (before.nullable, after.nullable) == (False, True)
