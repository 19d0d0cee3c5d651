"""Views that were emitted are proved from what the catalog of their database makes of them, whatever their columns are.

ClickHouse and MariaDB are asked where they are installed, and skipped with the reason where not.
"""

import random
from dataclasses import replace

import pytest

from gbfl_compile.checking.artifact import prove_readings
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import expected_of, read_strict_view, refuse_conversions
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput, CannotRun
from tests.backends.sql.programs import EACH, REASONED, TREE, hostile_program
from tests.checking.respelling import random_program
from tests.checking.strict.sql.cases import SMALL, everything, text_of
from tests.checking.strict.sql.test_emitted import NUMBERS, POINTS, TRUTHS, long_list

CATALOG = {
    "sqlite": "SELECT sql FROM sqlite_master WHERE name = 'scored'",
    "duckdb": "SELECT sql FROM duckdb_views() WHERE view_name = 'scored'",
    "postgres": "SELECT pg_get_viewdef('scored'::regclass, {pretty})",
    "mariadb": "SELECT view_definition FROM information_schema.views WHERE table_name = 'scored'",
    "clickhouse": "SELECT create_table_query FROM system.tables WHERE name = 'scored'",
}
WHERE = {
    "clickhouse": "SELECT currentDatabase()",
    "mariadb": "SELECT DATABASE()",
}
DOUBLE = {"sqlite": "REAL", "postgres": "DOUBLE PRECISION", "clickhouse": "Nullable(Float64)"}
OTHERS = {
    "sqlite": ("INTEGER", "NUMERIC", "TEXT", ""),
    "duckdb": ("INTEGER", "BIGINT", "DECIMAL(18, 4)", "FLOAT"),
    "postgres": ("integer", "bigint", "numeric", "numeric(18, 4)", "real", "smallint"),
    "mariadb": ("INTEGER", "BIGINT", "DECIMAL(18, 4)", "FLOAT"),
    "clickhouse": ("Int32", "Int64", "Nullable(Decimal(18, 4))", "Float32", "Float64"),
}


@pytest.fixture(scope="module", params=tuple(CATALOG))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


def definitions(database, program, kind, options):
    """A view made of the program, as its catalog prints it, and what it is expected to read."""
    options = {"form": "view", "table": "people", "view": "scored", **options}
    text = text_of(program, database.dialect, **options)
    expected = expected_of(program, options)
    columns = [f"{database.quote(name)} {kind}" for _, name in expected.columns] or ["one INTEGER"]
    columns += [f"{database.quote(key)} {kind}" for key in expected.keys]
    engine = " ENGINE = Memory" if database.dialect == "clickhouse" else ""
    database.execute(f"CREATE TABLE {database.quote('people')} ({', '.join(columns)}){engine}")
    try:
        for statement in filter(str.strip, text.split("\n;\n")):
            database.execute(statement)
        try:
            for pretty in ("false", "true") if database.dialect == "postgres" else ("",):
                ((found,),) = database.fetch(CATALOG[database.dialect].format(pretty=pretty))
                yield found, _in_its_place(database, expected, kind)
        finally:
            database.execute(f"DROP VIEW {database.quote('scored')}")
    finally:
        database.execute(f"DROP TABLE {database.quote('people')}")


def _in_its_place(database, expected, kind):
    known = kind == DOUBLE.get(database.dialect, "DOUBLE")
    schema = str(database.fetch(WHERE[database.dialect])[0][0]) if database.dialect in WHERE else ""
    doubles = frozenset(column for _, column in expected.columns) if known else frozenset()
    types = tuple((column, kind) for column in (*(name for _, name in expected.columns), *expected.keys))
    return replace(expected, schema=schema, doubles=doubles, types=types)


def assert_proved(database, program, kind, **options):
    for found, expected in definitions(database, program, kind, options):
        readings = read_strict_view(found, database.dialect, expected)
        proof = prove_readings(program, readings, 10.0)
        assert proof.answer == "proved", found


def double(database):
    return DOUBLE.get(database.dialect, "DOUBLE")


PROGRAMS = {
    **EACH,
    "64-bit points": POINTS,
    "truth values": TRUTHS,
    "numbers as labels": NUMBERS,
    "a long list": long_list(),
    "hostile names": hostile_program(),
    "reasons of a tree": replace(
        REASONED["tree"], metadata={"reasons": {"0": 'say "hi", it\'s back\\slash\\', "1": "größe"}}
    ),
    "reasons of rules": replace(REASONED["rules"], metadata={"reasons": {"0": "it''s \\' \\n", "1": "-- /* $$"}}),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_view_is_proved_from_its_catalog(database, program):
    for options in ({"outputs": "label"}, {"outputs": everything(program)}, {"types": "double"}, {"key": "id"}):
        assert_proved(database, program, double(database), **options)


def test_a_view_on_columns_of_other_types_is_proved_where_they_are_cast(database):
    for kind in OTHERS[database.dialect]:
        for program in (TREE, EACH["three classes"]):
            assert_proved(database, program, kind, outputs=everything(program))


def test_views_of_random_programs_are_proved(database):
    choose = random.Random(database.dialect)
    proved = 0
    for _ in range(12):
        program = random_program(choose, choose.choice(("tree", "list", "scorecard", "banded")))
        options = {"outputs": choose.choice(("label", everything(program)))}
        try:
            assert_proved(database, program, double(database), **options)
        except BadInput:
            continue
        proved += 1
    assert proved > 6


def test_a_view_without_casts_on_other_columns_is_proved_only_where_the_catalog_shows_casts(database):
    """`types=double` on a column that is not a double: PostgreSQL casts it by itself and prints that, others do not."""
    for kind in OTHERS[database.dialect]:
        try:
            found = list(definitions(database, SMALL, kind, {"outputs": "label", "types": "double"}))
        except CannotRun:  # a text is not compared with a number
            continue
        for definition, expected in found:
            if database.dialect == "postgres" and kind != "real":  # a REAL has an operator of its own
                readings = read_strict_view(definition, database.dialect, expected)
                assert "age::double precision" in definition.replace("(", "").replace(")", "")
                assert prove_readings(SMALL, readings, 5.0).answer == "proved"
            else:
                with pytest.raises(Unread, match="not known to be a double"):
                    read_strict_view(definition, database.dialect, expected)


EDITS = {
    "another bound": ("1.5", "2.5"),
    "another sign": (">=", ">"),
    "another label": ("'no'", "'yes'"),
    "another table": ("people", "persons"),
    "a filter": ("gbfl_rows AS (", "gbfl_rows AS (SELECT 1), gbfl_more AS ("),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_view_is_refused_or_refuted(database, edit):
    for found, expected in definitions(database, SMALL, double(database), {"outputs": "label"}):
        old, new = edit
        changed = found.replace(old, new).replace(old.lower(), new.lower())
        assert changed != found
        try:
            readings = read_strict_view(changed, database.dialect, expected)
        except Unread:
            continue
        assert prove_readings(SMALL, readings, 5.0).answer == "counterexample"


def test_an_operator_of_another_schema_is_refused():
    expected = replace(
        expected_of(SMALL, {"outputs": "label", "table": "people", "view": "scored"}), doubles=frozenset(("age",))
    )
    text = " SELECT CASE WHEN ((age {} (1.5)::double precision) AND (age <> 'NaN'::double precision)) THEN 'yes'::text ELSE 'no'::text END AS label FROM people;"
    assert prove_readings(SMALL, read_strict_view(text.format(">="), "postgres", expected), 5.0).answer == "proved"
    with pytest.raises(Unread):
        read_strict_view(text.format("OPERATOR(public.>=)"), "postgres", expected)


POSTGRES_EDITS = {
    "a cast to real": ("(1.5)::double precision", "(1.5)::real"),
    "a narrow cast of the column": ("(age >=", "((age)::real >="),
    "a user's type": ("'yes'::text", "'yes'::own"),
    "an integer that is cut": ("'yes'::text", "('yes'::text)::character(1)"),
    "a minus before a cast": ("(1.5)::double precision", "(-1.5)::double precision"),
    "a string for a bound": ("(1.5)::double precision", "'1.5'::double precision"),
    "no cast": ("(1.5)::double precision", "1.5"),
    "another column": ("(age >=", "(people.other >="),
    "another table's column": ("(age >=", "(others.age >="),
    "a column of the row": ("(age >=", "((people.*).age >="),
}


@pytest.mark.parametrize("edit", POSTGRES_EDITS.values(), ids=POSTGRES_EDITS)
def test_other_ways_to_write_a_view_of_postgres_are_refused(edit):
    expected = replace(
        expected_of(SMALL, {"outputs": "label", "table": "people", "view": "scored"}), doubles=frozenset(("age",))
    )
    text = " SELECT CASE WHEN ((age >= (1.5)::double precision) AND (age <> 'NaN'::double precision)) THEN 'yes'::text ELSE 'no'::text END AS label FROM people;"
    assert edit[0] in text
    with pytest.raises(Unread):
        read_strict_view(text.replace(*edit), "postgres", expected)


CLICKHOUSE = "CREATE VIEW db.scored (`label` String, `p_no` Float64, `p_yes` Float64, `leaf` UInt8) AS SELECT multiIf(age >= 1.5, 'yes', 'no') AS label, multiIf(age >= 1.5, 0., 1.) AS p_no, multiIf(age >= 1.5, 1., 0.) AS p_yes, multiIf(age >= 1.5, 0, 1) AS leaf FROM db.people"

KEYED = "CREATE VIEW db.scored (`id` {}, `label` String) AS SELECT id, multiIf(age >= 1.5, 'yes', 'no') AS label FROM db.people"


@pytest.mark.parametrize(
    ("declared", "own", "kept"),
    [
        ("Nullable(Float64)", "Nullable(Float64)", True),
        ("DateTime64(3, 'UTC')", "DateTime64(3, 'UTC')", True),
        ("Int8", "Int64", False),
        ("Nullable(Int64)", "Int64", False),
        ("Decimal(9, 2)", "Decimal(9, 3)", False),
        ("Int64", "", False),
    ],
)
def test_a_key_column_of_a_clickhouse_view_is_declared_as_in_its_table(declared, own, kept):
    """A view that declares Int8 gives 44 where its table has 300."""
    options = {"outputs": "label", "key": "id", "table": "people", "view": "scored", "schema": "db", "types": "double"}
    expected = replace(expected_of(SMALL, options), types=(("id", own),) if own else ())
    if kept:
        assert read_strict_view(KEYED.format(declared), "clickhouse", expected)
    else:
        with pytest.raises(Unread, match="key column"):
            read_strict_view(KEYED.format(declared), "clickhouse", expected)


DECLARED = {
    "String": True,
    "Nullable(String)": True,
    "FixedString(3)": False,
    "Enum8('no' = 1, 'yes' = 2)": False,
    "LowCardinality(String)": False,
    "Int8": False,
}


@pytest.mark.parametrize("declared", DECLARED)
def test_what_a_clickhouse_view_declares_is_read_whatever_its_query_is(declared):
    """FixedString(3) gives 'no' and a NUL: the query alone does not show it."""
    options = {"outputs": "label", "key": "id", "table": "people", "view": "scored", "schema": "db"}
    expected = replace(expected_of(SMALL, options), types=(("id", "Int64"),))
    text = (
        f"CREATE VIEW db.scored (`id` Int64, `label` {declared}) DEFINER = me SQL SECURITY DEFINER AS SELECT % == {{}}"
    )
    if DECLARED[declared]:
        refuse_conversions(text, "clickhouse", expected)
    else:
        with pytest.raises(Unread, match="declares 'label'"):
            refuse_conversions(text, "clickhouse", expected)


CLICKHOUSE_EDITS = {
    "a label of one letter": ("`label` String", "`label` FixedString(1)"),
    "float32 probabilities": ("`p_no` Float64", "`p_no` Float32"),
    "a leaf that is a truth value": ("`leaf` UInt8", "`leaf` Bool"),
    "columns swapped": ("`p_no` Float64, `p_yes` Float64", "`p_yes` Float64, `p_no` Float64"),
    "no columns declared": (" (`label` String, `p_no` Float64, `p_yes` Float64, `leaf` UInt8)", ""),
    "IEEE's NaN": ("age >= 1.5, 'yes'", "isNaN(age), 'yes'"),
    "a float32 literal": ("age >= 1.5, 'yes'", "age >= toFloat32(1.5), 'yes'"),
    "another database": ("FROM db.people", "FROM other.people"),
    "FINAL": ("FROM db.people", "FROM db.people FINAL"),
    "PREWHERE": ("FROM db.people", "FROM db.people PREWHERE age > 0."),
}


@pytest.mark.parametrize("edit", [("", ""), *CLICKHOUSE_EDITS.values()], ids=["as it is", *CLICKHOUSE_EDITS])
def test_other_ways_to_write_a_view_of_clickhouse_are_refused(edit):
    options = {
        "outputs": "label,probabilities,leaf",
        "table": "people",
        "view": "scored",
        "schema": "db",
        "types": "double",
    }
    expected = expected_of(SMALL, options)
    if not edit[0]:
        assert prove_readings(SMALL, read_strict_view(CLICKHOUSE, "clickhouse", expected), 5.0).answer == "proved"
        return
    assert edit[0] in CLICKHOUSE
    with pytest.raises(Unread):
        read_strict_view(CLICKHOUSE.replace(*edit), "clickhouse", expected)
