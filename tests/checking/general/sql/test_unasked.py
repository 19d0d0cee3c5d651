"""Every node of a statement is read: an unused column can drop rows, change what a name means or hide a NULL."""

import math

import numpy as np
import pytest

from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases import availability, scratch

NAMES = TextLayout(("age", "income"), ("no", "yes"), ((0, "age"), (1, "income")), (("label", "label"),))
LABEL = "CASE WHEN age >= 1.5 THEN 'yes' ELSE 'no' END AS label"
STAGES = (
    "SELECT {label} FROM (SELECT age, {hidden} AS zz FROM data) s",
    "WITH s AS (SELECT age, {hidden} AS zz FROM data) SELECT {label} FROM s",
    "WITH s AS (SELECT age, {hidden} AS zz FROM data) SELECT {label} FROM data",
    "SELECT {label}, {hidden} AS zz FROM data",
)


def label_where(condition):
    return f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data"


def assert_unread(text, dialect):
    with pytest.raises(Unread):
        read_sql(text, dialect, NAMES)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("dialect", "hidden"),
    [
        ("postgres", "generate_series(1, CASE WHEN age = 12345 THEN 0 ELSE 1 END)"),
        ("postgres", "unnest(ARRAY[1])"),
        ("postgres", "(SELECT 1 FROM other)"),
        ("postgres", "age + generate_series(1, 0)"),
        ("postgres", "CASE WHEN age > 3 THEN my_function(age) END"),
        ("postgres", "regexp_split_to_table('a', 'b')"),
        ("postgres", "CAST(age AS my_type)"),
        ("duckdb", "unnest(CASE WHEN age = 12345 THEN [] ELSE [1] END)"),
        ("duckdb", "count(*)"),
        ("duckdb", "row_number() OVER ()"),
        ("clickhouse", "arrayJoin(if(ifNull(age, 0) = 12345, emptyArrayUInt8(), [1]))"),
        ("datafusion", "unnest(make_array())"),
        ("sqlite", "max(age)"),
        ("sqlite", "count(*)"),
        ("sqlite", "group_concat(age)"),
        ("spark", "explode(array())"),
    ],
)
def test_a_column_that_is_not_used_drops_no_rows(dialect, hidden, stage):
    assert_unread(stage.format(label=LABEL, hidden=hidden), dialect)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mariadb", "spark"])
@pytest.mark.parametrize(
    "harmless",
    [
        "id",
        "'a text'",
        "CAST(id AS VARCHAR(20))",
        "income * 2 + id",
        "CASE WHEN id > 3 AND income IS NULL THEN 'a' ELSE name END",
        "COALESCE(name, 'nobody')",
        "CONCAT(name, '!')",
    ],
)
def test_a_harmless_column_is_passed_over(dialect, harmless, stage):
    if dialect == "sqlite" and harmless.startswith("CAST"):
        harmless = "CAST(id AS TEXT)"
    if dialect == "mariadb" and harmless.startswith("CAST"):
        harmless = "CAST(id AS CHAR)"
    reading = read_sql(stage.format(label=LABEL, hidden=harmless), dialect, NAMES)[0]
    assert [run_reading(reading, [age, 0.0]).label for age in (1.0, 1.5, math.nan)] == ["no", "yes", "no"]


@pytest.mark.parametrize("dialect", list(ENGINES))
def test_a_stage_is_not_named_before_it_is_defined(dialect):
    """To SQLite `loans` in the stage t is the stage that follows."""
    assert_unread(
        "WITH t AS (SELECT age FROM loans), loans AS (SELECT CASE WHEN age = 12345 THEN 0 ELSE age END AS age FROM data)"
        f" SELECT {LABEL} FROM t",
        dialect,
    )
    assert_unread(f"WITH data AS (SELECT age FROM data) SELECT {LABEL} FROM data", dialect)
    assert_unread(
        "WITH t AS (WITH u AS (SELECT age FROM loans) SELECT age FROM u), loans AS (SELECT income AS age FROM data)"
        f" SELECT {LABEL} FROM t",
        dialect,
    )


@pytest.mark.parametrize("dialect", ["duckdb", "spark", "postgres"])
def test_an_alias_within_lateral_is_not_mistaken_for_the_column_outside(dialect):
    assert_unread(
        "SELECT s.label FROM data CROSS JOIN LATERAL (SELECT CASE WHEN data.age = 12345 THEN 0 ELSE data.age END AS age,"
        f" {LABEL}) s",
        dialect,
    )


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "datafusion", "clickhouse", "snowflake"])
@pytest.mark.parametrize("test", ["IS NULL", "IS NOT NULL", "= 'ab'"])
def test_a_text_joined_with_null_is_null(dialect, test):
    assert_unread(label_where(f"('a' || CASE WHEN age = 12345 THEN NULL ELSE 'b' END) {test}"), dialect)


def test_clickhouse_does_not_keep_null_in_a_type_that_is_not_nullable():
    for type_ in ("VARCHAR", "String", "Float64", "Int64"):
        value = "'b'" if type_ in ("VARCHAR", "String") else "1"
        assert_unread(
            label_where(f"CAST(CASE WHEN age = 12345 THEN NULL ELSE {value} END AS {type_}) IS NULL"), "clickhouse"
        )


POINTS = [
    "age = 0 OR age = 1 OR age = 2 OR age = 3",
    "age = 3 OR (age = 1 OR (age = 2 OR age = 0))",
    "(age >= 0 AND age <= 0) OR (age >= 1 AND age <= 1) OR (age >= 2 AND age <= 2) OR (age >= 3 AND age <= 3)",
    "NOT (age <> 0 AND age <> 1 AND age <> 2 AND age <> 3)",
    "(age = 0 AND income > 1) OR (age = 1 AND income > 1) OR (age = 2 AND income > 1) OR (age = 3 AND income > 1)",
    "age IN (0, 1, 2, 3)",
    "CASE WHEN age = 0 THEN TRUE WHEN age = 1 THEN TRUE WHEN age = 2 THEN TRUE WHEN age = 3 THEN TRUE ELSE FALSE END",
]


@pytest.mark.parametrize("dialect", ["clickhouse", "datafusion"])
@pytest.mark.parametrize("condition", POINTS)
def test_zero_among_other_values_is_looked_up_by_its_bits(dialect, condition):
    assert_unread(label_where(condition), dialect)


@pytest.mark.parametrize("dialect", ["clickhouse", "datafusion"])
def test_nan_in_a_list_is_found_by_its_bits(dialect):
    assert_unread(label_where("age IN (CAST('NaN' AS DOUBLE), 5)"), dialect)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("items", ["'12345.5', 2", "'12345.5', '2'", "2, NULL, '1.5'"])
def test_a_text_in_an_array_has_the_type_of_the_array(dialect, items):
    assert_unread(label_where(f"age = ANY (ARRAY[{items}])"), dialect)


@pytest.mark.parametrize(
    "condition", ["age >= 18", "age < 18", "age < 18 AND age <> CAST('NaN' AS DOUBLE)", "age <> 3"]
)
def test_a_nan_of_datafusion_may_have_either_sign(condition):
    if condition == "age <> 3":  # holds for a NaN of either sign
        null, nan = (
            run_reading(one, [math.nan, 0.0]).label for one in read_sql(label_where(condition), "datafusion", NAMES)
        )
        assert (null, nan) == ("no", "yes")
    else:
        assert_unread(label_where(condition), "datafusion")


def test_a_guarded_comparison_of_datafusion_is_read():
    text = label_where("age < 18 AND NOT isnan(age)")
    (reading,) = read_sql(text, "datafusion", NAMES)
    if reason := availability("datafusion"):
        pytest.skip(reason)
    database = scratch("datafusion")
    values = [1.0, 18.0, math.nan, -math.inf, -math.nan, math.copysign(math.nan, -1.0)]
    database.insert("data", ["age", "income"], np.array([[value, 0.0] for value in values]), missing="nan")
    found = [row[1] for row in sorted(database.fetch(text.replace("SELECT ", "SELECT gbfl_row, ", 1)))]
    assert found == [run_reading(reading, [value, 0.0]).label for value in values]
    database.close()
