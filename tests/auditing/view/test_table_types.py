"""A view is run on a copy of its own table: values that the columns cannot hold are not used against it."""

import time
from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.verdict import verdict_lines
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.auditing.view.cases import make_view

ENGINES = ("sqlite", "duckdb", "postgres")


def opened(name):
    if reason := availability(name):
        pytest.skip(reason)
    return scratch(name)


@pytest.fixture(params=ENGINES)
def database(request):
    made = opened(request.param)
    yield made
    made.close()


def below(feature, bound, if_missing=False):
    """yes below the bound, no at the bound and above."""
    clause = Clause((Interval(0, None, bound, "left", if_missing),))
    return Program((feature,), ("no", "yes"), (clause,), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))


YOUNG, LOW_DEBT = below("age", 65.5), below("debt", 0.35)


def audit(database, program, table, condition, *rows, more="", **options):
    database.execute(f"CREATE TABLE loans (id INTEGER, {table})")
    for row in rows:
        database.execute(f"INSERT INTO loans VALUES ({row})")
    label = f"CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label"
    database.execute(f"CREATE VIEW scores AS SELECT id, {label}{more} FROM loans")
    return audit_view(AuditInput(program, **options), database, "scores", "view scores")


@pytest.mark.parametrize("kind", ["INTEGER", "BIGINT", "SMALLINT NOT NULL", "DECIMAL(10, 2)", "DECIMAL(5, 1) NOT NULL"])
def test_exact_numbers_with_a_fractional_threshold_are_equal(database, kind):
    found = audit(database, YOUNG, f"age {kind}", "age < 65.5", "1, 40", "2, 70")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0), found
    assert not found.is_proved
    assert (found.proof_assumes is None) == ("DECIMAL" not in kind or database.dialect == "sqlite")


KINDS = (
    "INTEGER",
    "BIGINT",
    "SMALLINT NOT NULL",
    "DECIMAL(10, 2)",
    "DECIMAL(18, 4) NOT NULL",
    "DECIMAL(38, 10)",
    "REAL",
)


@pytest.mark.parametrize("kind", KINDS)
def test_an_emitted_view_is_proved_and_run_whatever_numbers_its_columns_hold(database, kind):
    """It casts them to doubles, and the strict reader has checked that it does."""
    database.execute(f"CREATE TABLE data (age {kind})")
    make_view(database, YOUNG)
    found = audit_view(AuditInput(YOUNG), database, "scores", "view scores")
    assert (found.verdict, found.is_proved, found.execution.different) == ("equal", True, 0), found
    assert found.evidence() == f"proved; 0 different of {found.execution.rows} witnesses"
    database.execute("DROP VIEW scores")
    make_view(database, below("age", 66.5))
    found = audit_view(AuditInput(YOUNG), database, "scores", "view scores")
    assert (found.verdict, found.execution.different > 0) == ("different", True), found


@pytest.mark.parametrize(("dialect", "kind"), [("postgres", "NUMERIC"), ("duckdb", "HUGEINT")])
def test_numbers_of_any_length_are_run_as_far_as_doubles_go(dialect, kind):
    with closing(opened(dialect)) as database:
        database.execute(f"CREATE TABLE data (age {kind})")
        make_view(database, YOUNG)
        found = audit_view(AuditInput(YOUNG), database, "scores", "view scores")
        assert (found.verdict, found.is_proved, found.execution.different) == ("equal", True, 0), found


@pytest.mark.parametrize("condition", ["age <= 65", "age < 66", "NOT age >= 66"])
def test_a_view_that_is_equal_on_every_integer_is_equal(database, condition):
    kind = "INTEGER NOT NULL" if condition.startswith("NOT") else "INTEGER"
    found = audit(database, YOUNG, f"age {kind}", condition, "1, 40")
    if database.dialect == "sqlite":
        assert found.verdict == "unread", "an INTEGER column of SQLite can hold 65.2, and this one does not"
        assert "STRICT" in found.reason
    else:
        answer = (found.verdict, found.proof.answer, found.execution.different)
        assert answer == ("equal", "read as equal", 0), found


def test_a_fraction_in_an_integer_column_of_sqlite_makes_its_views_different():
    with closing(opened("sqlite")) as sqlite:
        assert audit(sqlite, YOUNG, "age INTEGER", "age <= 65", "1, 40", "2, 65.2").verdict == "different"


def test_a_wrong_integer_bound_is_different_and_shown_by_an_integer(database):
    found = audit(database, YOUNG, "age INTEGER", "age < 65", "1, 40")
    assert (found.verdict, found.region.row) == ("different", {"age": 65.0})
    assert found.execution.different > 0


def test_null_is_not_used_against_a_column_that_is_not_null(database):
    condition = "age < 65.5" if database.dialect == "sqlite" else "age < CAST(65.5 AS DOUBLE PRECISION)"
    program = below("age", 65.5, if_missing=True)
    found = audit(database, program, "age INTEGER NOT NULL", condition, "1, 40")
    assert (found.verdict, found.execution.different) == ("equal", 0), found


def test_a_difference_that_a_check_constraint_rules_out_is_not_reported(database):
    found = audit(database, YOUNG, "age INTEGER NOT NULL CHECK (age < 60)", "age < 62", "1, 40")
    assert (found.verdict, found.execution.different) == ("unread", 0)
    assert "constraints refuse" in found.reason


def test_a_text_column_of_sqlite_is_never_equal_without_a_cast():
    database = opened("sqlite")
    found = audit(database, YOUNG, "age TEXT", "age < 65.5", "1, '10'", "2, '70'")
    assert found.verdict == "different"
    database.execute("DROP VIEW scores")
    database.execute("DROP TABLE loans")
    found = audit(database, YOUNG, "age TEXT", "CAST(age AS REAL) < 65.5", "1, '10'", "2, '70'")
    assert (found.verdict, found.execution.different) == ("equal", 0)
    database.close()


def test_a_text_column_that_happens_to_pass_is_unread():
    database = opened("sqlite")
    found = audit(database, YOUNG, "age TEXT CHECK (age IN ('10', '70'))", "age < 65.5", "1, '10'", "2, '70'")
    assert (found.verdict, found.execution.different) == ("unread", 0), found
    database.close()


@pytest.mark.parametrize("kind", ["FLOAT", "REAL"])
def test_duckdb_narrows_a_literal_to_the_column(kind):
    database = opened("duckdb")
    found = audit(database, LOW_DEBT, f"debt {kind}", "debt < 0.35")
    assert (found.verdict, found.proof.answer) == ("different", "counterexample")
    assert found.region.row == {"debt": 0.3499999940395355}
    database.execute("DROP VIEW scores")
    database.execute("DROP TABLE loans")
    found = audit(database, LOW_DEBT, f"debt {kind}", "CAST(debt AS DOUBLE) < 0.35")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0)
    assert found.proof_assumes is None
    database.close()


def test_rows_of_the_table_itself_are_run(database):
    """A view with a rule of its own for one customer, far from every threshold."""
    rows = [f"{number}, {number}" for number in range(20)]
    found = audit(database, YOUNG, "age INTEGER", "age < 66 AND id <> 7", *rows)
    assert found.verdict == "different"
    assert (found.execution.rows, found.execution.different) == (20, 1)
    assert found.execution.first["row"] == {"age": "7.0"}


def test_a_column_called_reason_or_leaf_in_its_owners_words_is_not_compared(database):
    more = (
        ", CASE WHEN age < 66 THEN 'young' ELSE 'old' END AS reason, CASE WHEN age < 66 THEN 'A' ELSE 'B' END AS leaf"
    )
    found = audit(database, YOUNG, "age INTEGER", "age < 65.5", "1, 40", more=more)
    assert (found.verdict, found.execution.different) == ("equal", 0)
    assert set(found.other_columns) == {"reason", "leaf"}
    assert "not compared: " in "\n".join(verdict_lines(found, ""))


def test_a_feature_computed_from_another_column_is_unread_and_not_different(database):
    database.execute("CREATE TABLE loans (id INTEGER, debt_pct DOUBLE PRECISION)")
    database.execute("INSERT INTO loans VALUES (1, 40)")
    label = "CASE WHEN debt < 0.35 THEN 'yes' ELSE 'no' END AS label"
    inner = "SELECT id, debt_pct / 100.0 AS debt FROM loans"
    database.execute(f"CREATE VIEW scores AS SELECT id, {label} FROM ({inner}) q")
    found = audit_view(AuditInput(LOW_DEBT), database, "scores", "view scores")
    assert (found.verdict, found.execution) == ("unread", None)
    assert "has no column 'debt'" in found.not_executed
    assert "--scored" in found.not_executed


def test_a_column_that_is_gone_is_not_read_as_a_text_in_double_quotes():
    database = opened("sqlite")
    database.execute("CREATE TABLE loans (age_years REAL)")
    database.execute("INSERT INTO loans VALUES (9)")
    database.execute(
        """CREATE VIEW scores AS SELECT CASE WHEN "age" < 65.5 THEN 'yes' ELSE 'no' END AS label FROM loans"""
    )
    found = audit_view(AuditInput(YOUNG), database, "scores", "view scores")
    assert found.verdict == "unread"
    assert "loans has no column 'age', only age_years" in found.reason
    database.close()


@pytest.mark.parametrize("state", ["as its table is", "stale", "never filled"])
def test_a_materialized_view_is_unread_and_says_how_to_compare_its_rows(state):
    database = opened("postgres")
    database.execute("CREATE TABLE loans (age DOUBLE PRECISION)")
    database.execute("INSERT INTO loans VALUES (40)")
    query = "SELECT CASE WHEN age < 65.5 THEN 'yes' ELSE 'no' END AS label FROM loans"
    database.execute(f"CREATE MATERIALIZED VIEW scores AS {query}{' WITH NO DATA' if state == 'never filled' else ''}")
    if state == "stale":
        database.execute("UPDATE loans SET age = 70")
    found = audit_view(AuditInput(YOUNG), database, "scores", "view scores")
    assert (found.verdict, found.proof) == ("unread", None)
    assert "materialized" in found.reason
    assert "--scored scores" in found.reason
    database.close()


def test_a_cast_that_a_user_made_is_never_equal():
    database = opened("postgres")
    body = "RETURN CASE WHEN $1 THEN 0.0 ELSE 90.0 END"
    database.execute(f"CREATE FUNCTION years(boolean) RETURNS double precision LANGUAGE sql IMMUTABLE {body}")
    database.execute("CREATE CAST (boolean AS double precision) WITH FUNCTION years(boolean)")
    found = audit(database, YOUNG, "age boolean", "CAST(age AS double precision) < 65.5", "1, true", "2, false")
    assert found.verdict == "different"
    database.execute("DROP VIEW scores")
    database.execute("DROP TABLE loans")
    found = audit(database, YOUNG, "age double precision NOT NULL", "age < 65.5", "1, 40")
    assert (found.verdict, "the cast boolean to double precision" in found.reason) == ("unread", True)
    database.close()


def test_a_view_that_never_ends_on_a_witness_is_stopped():
    database = opened("duckdb")
    database.execute("CREATE TABLE loans (age DOUBLE)")
    database.execute("INSERT INTO loans VALUES (1), (2)")
    steps = "SELECT age, 0 FROM loans UNION ALL SELECT age + 1, n + 1 FROM r WHERE age < 100"
    label = "CASE WHEN age < 65.5 THEN 'yes' ELSE 'no' END AS label"
    database.execute(f"CREATE VIEW scores AS WITH RECURSIVE r(age, n) AS ({steps}) SELECT {label} FROM r WHERE n = 0")
    began = time.monotonic()
    found = audit_view(AuditInput(YOUNG, time_limit=1.0), database, "scores", "view scores")
    assert time.monotonic() - began < 30.0, "far longer than the limit, for busy machines"
    assert found.verdict in ("unread", "not run")
    assert "not done within 1 s" in found.not_executed
    assert database.fetch("SELECT 1") == [(1,)]
    database.close()


@pytest.mark.parametrize("layer", [True, False], ids=["in a layer", "at once"])
@pytest.mark.parametrize("first", ["loans", "main.loans"])
def test_two_tables_of_one_name_are_not_mistaken_for_one(first, layer):
    """The age is taken from a copy in another schema, in which everybody is five years older."""
    database = opened("duckdb")
    database.execute("CREATE TABLE loans (id INTEGER, age DOUBLE)")
    database.execute("INSERT INTO loans VALUES (1, 63), (2, 20)")
    database.execute("CREATE SCHEMA old")
    database.execute("CREATE TABLE old.loans AS SELECT id, age + 5 AS age FROM main.loans")
    joined = f"SELECT a.id, b.age FROM {first} a JOIN old.loans b ON a.id = b.id"
    if layer:
        database.execute(f"CREATE VIEW joined AS {joined}")
    source = "joined" if layer else f"({joined}) q"
    database.execute(
        "CREATE VIEW scores AS SELECT id, CASE WHEN age < CAST(65.5 AS DOUBLE) THEN 'yes' ELSE 'no' END AS label "
        f"FROM {source}"
    )
    found = audit_view(AuditInput(YOUNG), database, "scores", "view scores")
    database.close()
    assert found.verdict == "unread"
    assert "several" in found.reason


@pytest.mark.parametrize("types", ["any", "double"])
@pytest.mark.parametrize(("declared", "verdict"), [("REAL", "equal"), ("DOUBLE", "equal"), ("", "not equal")])
def test_texts_among_the_numbers_of_sqlite_are_not_numbers(types, declared, verdict):
    """SQLite keeps a text in a REAL column, and without a CAST it is above every number."""
    database = opened("sqlite")
    database.execute(f"CREATE TABLE loans (id INTEGER, age {declared})")
    texts = ("abc", "1_000", "\uff11", "nan", "0x10")
    for number, text in enumerate(texts):
        database.execute(f"INSERT INTO loans VALUES ({number}, '{text}')")
    database.execute("INSERT INTO loans VALUES (9, 40), (10, '50')")
    options = {"form": "view", "table": "loans", "view": "scores", "types": types}
    text = emit(YOUNG, "sql:sqlite", "m", options).files["m.sql"].decode()
    database.execute("\n".join(line for line in text.split("\n") if not line.startswith("--")))
    found = audit_view(AuditInput(YOUNG, mends=False), database, "scores", "view scores")
    database.close()
    if verdict == "equal" or types == "any":
        assert (found.verdict, found.execution.different) == ("equal", 0), found.reason
        assert f"{len(texts)} more of its rows have a value that the program does not accept" in found.executed
    else:
        assert found.verdict in ("different", "unread"), "the text '50' is above every number"
        assert not found.execution.different or found.verdict == "different"


def test_a_column_of_sqlite_without_a_type_is_proved_only_where_it_is_cast():
    """There is no text in it now, but there may be one tomorrow."""
    for types, verdict in (("any", "equal"), ("double", "unread")):
        database = opened("sqlite")
        database.execute("CREATE TABLE loans (id INTEGER, age)")
        database.execute("INSERT INTO loans VALUES (1, 40)")
        options = {"form": "view", "table": "loans", "view": "scores", "types": types}
        text = emit(YOUNG, "sql:sqlite", "m", options).files["m.sql"].decode()
        database.execute("\n".join(line for line in text.split("\n") if not line.startswith("--")))
        found = audit_view(AuditInput(YOUNG, mends=False), database, "scores", "view scores")
        database.close()
        assert found.verdict == verdict, found.reason


def test_a_decimal_of_clickhouse_may_be_larger_than_its_digits():
    """Sums, products and casts between decimals go up to what the integer below holds."""
    with closing(opened("clickhouse")) as database:
        database.execute("CREATE TABLE loans (id Int32, debt Decimal(4, 2)) ENGINE = Memory")
        database.execute("INSERT INTO loans SELECT 1, 50")
        database.execute("CREATE VIEW scores AS SELECT id, 'yes' AS label FROM loans")
        found = audit_view(AuditInput(below("debt", 200.0)), database, "scores", "it")
        assert found.verdict == "different", found
        database.execute("INSERT INTO loans SELECT 2, CAST(toDecimal32(50, 2) * 6 AS Decimal(4, 2))")
        assert database.fetch("SELECT debt > 200, label FROM loans JOIN scores USING (id) WHERE id = 2") == [(1, "yes")]
