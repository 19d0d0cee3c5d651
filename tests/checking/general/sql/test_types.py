"""Types in SQL texts: arms and items that no row reaches count too, and users may have defined types of those names.

Each text here but those that are proved was once taken for the program it is not.
"""

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

CLAUSES = (Clause((Interval(0, 30000.0),)), Clause((Interval(1, None, 0.4),)))
LOANS = Program(
    ("income", "debt_share"),
    ("no", "yes"),
    CLAUSES,
    split(0, split(1, leaf(0.05, 0.95), leaf(0.7, 0.3)), leaf(0.9, 0.1)),
)
POINTS = Program(("income", "debt_share"), ("no", "yes"), CLAUSES, Scorecard((0, 0), ((0, 3), (0, 5)), 0))


def proof(program, dialect, old, new, **options):
    """What is said of an artifact in which one text was replaced."""
    text = emit(program, f"sql:{dialect}", "model", options).files["model.sql"].decode()
    head, body = text.split("\nWITH ", 1) if "\nWITH " in text else text.rsplit("-- ", 1)
    assert old in body, body
    changed = head + ("\nWITH " if "\nWITH " in text else "-- ") + body.replace(old, new, 1)
    return prove_artifact(program, f"sql:{dialect}", {"model.sql": changed.encode()})


TREE = {"outputs": "label"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.4e0", "CASE WHEN FALSE THEN CAST(1 AS FLOAT) ELSE 0.4 END"),
        ("0.4e0", "CASE WHEN 1 = 1 THEN 0.4 ELSE CAST(1 AS REAL) END"),
        ("0.4e0", "CASE WHEN 1 = 1 THEN 0.4 WHEN FALSE THEN CAST(1 AS REAL) END"),
        ("0.4e0", "CASE 1 WHEN 2 THEN CAST(1 AS REAL) ELSE 0.4 END"),
        ("0.4e0", 'CASE WHEN FALSE THEN "other" ELSE 0.4 END'),
        ("0.4e0", "CASE WHEN FALSE THEN 'a' ELSE 0.4 END"),
        ("0.4e0", "CASE WHEN FALSE THEN CAST(NULL AS VARCHAR) ELSE 0.4 END"),
        ("0.4e0", "CASE WHEN FALSE THEN 100000000000000000000000.0 ELSE 0.4000000000000000 END"),
        ("0.4e0", "COALESCE(0.4, CAST(1 AS REAL))"),
        ("0.4e0", 'COALESCE(0.4, "other")'),
        ("0.4e0", "COALESCE(NULLIF('a', 'a'), 0.4)"),
        ("0.4e0", "IF(FALSE, CAST(1 AS REAL), 0.4)"),
        ("0.4e0", "NULLIF(0.4, CAST(1 AS REAL))"),
    ],
)
def test_what_no_row_comes_to_has_a_say_in_the_type_of_what_is_chosen(old, new):
    assert proof(LOANS, "duckdb", old, new, **TREE).answer == "unread"


@pytest.mark.parametrize("arm", ["CAST(1 AS FLOAT)", "CAST(1 AS DOUBLE)", "1.5", "'a'"])
def test_points_stay_whole_numbers(arm):
    wrapped = f'CASE WHEN FALSE THEN {arm} ELSE "gbfl_points_1" END AS "score_yes"'
    found = proof(POINTS, "duckdb", '"gbfl_points_1" AS "score_yes"', wrapped, outputs="label,score")
    assert found.answer == "unread"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.4e0", "CASE WHEN FALSE THEN 1e0 ELSE 0.4 END"),  # a double, as it should be
        ("0.4e0", "CASE WHEN FALSE THEN NULL ELSE 0.4 END"),
        ("0.4e0", "COALESCE(NULL, 0.4, 1)"),
    ],
)
def test_parts_that_agree_on_a_type_are_read(old, new):
    assert proof(LOANS, "duckdb", old, new, **TREE).answer in ("proved", "read as equal")


def test_a_number_in_a_choice_is_compared_as_its_type_has_it():
    """Beside a double 0.1 is a double, and so is what it is compared with: then the two are one."""
    layout = TextLayout(("age",), ("no", "yes"), ((0, "age"),), (("label", "label"),))
    query = "SELECT CASE WHEN CASE WHEN age > 3 THEN {} ELSE 1e0::float8 END > {} THEN 'yes' ELSE 'no' END AS label FROM data"
    longer = "0.0999999999999999999999"
    (reading,) = read_sql(query.format("0.1", longer), "postgres", layout)[:1]
    (same,) = read_sql(query.format("0.1::float8", f"{longer}::float8"), "postgres", layout)[:1]
    assert reading == same


@pytest.mark.parametrize("dialect", ["sqlite", "mariadb", "clickhouse", "postgres", "tsql"])
def test_an_arm_of_32_bits_is_not_overlooked(dialect):
    layout = TextLayout(("age",), ("no", "yes"), ((0, "age"),), (("label", "label"),))
    type_ = {"sqlite": "BLOB", "clickhouse": "Float32", "mariadb": "FLOAT"}.get(dialect, "REAL")
    for chosen in (f"CASE WHEN 1 = 2 THEN CAST(1 AS {type_}) ELSE 0.5 END", f"COALESCE(0.5, CAST(1 AS {type_}))"):
        with pytest.raises(Unread):
            read_sql(f"SELECT CASE WHEN age > {chosen} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, layout)


def test_isnull_gives_its_second_part_the_type_of_its_first():
    layout = TextLayout(("age",), ("no", "yes"), ((0, "age"),), (("label", "label"),))
    query = "SELECT CASE WHEN {}(age, 5) > 3 THEN 'yes' ELSE 'no' END AS label FROM data"
    assert read_sql(query.format("COALESCE"), "tsql", layout)
    with pytest.raises(Unread, match="COALESCE"):
        read_sql(query.format("ISNULL"), "tsql", layout)


@pytest.mark.parametrize("type_", ['"double"', "double", '"float8"', '"real"', "string", "nvarchar", 'public."double"'])
@pytest.mark.parametrize("cast", ["CAST({} AS {})", "({})::{}"])
def test_a_type_of_postgres_is_its_own(type_, cast):
    old = 'CAST("debt_share" AS DOUBLE PRECISION)'
    assert proof(LOANS, "postgres", old, f"CAST({cast.format(old, type_)} AS DOUBLE PRECISION)").answer == "unread"


@pytest.mark.parametrize("type_", ["DOUBLE PRECISION", "double   precision", "float8", "float"])
def test_the_doubles_of_postgres_are_read(type_):
    old = 'CAST("debt_share" AS DOUBLE PRECISION)'
    assert proof(LOANS, "postgres", old, f'"debt_share"::{type_}').answer in ("proved", "read as equal")


def test_a_text_is_not_made_a_double_of_a_user():
    assert proof(LOANS, "postgres", "CAST(0.4e0 AS DOUBLE PRECISION)", "double '0.4'").answer == "unread"
    assert proof(LOANS, "postgres", "CAST(0.4e0 AS DOUBLE PRECISION)", "float8 '0.4'").answer in (
        "proved",
        "read as equal",
    )


@pytest.mark.parametrize("place", ['"debt_share" {}', "RETURNS {}"])
def test_functions_of_postgres_take_and_give_types_of_its_own(place):
    text = emit(LOANS, "sql:postgres", "model", {"form": "macro"}).files["model.sql"].decode()
    old = place.format("double precision" if "double precision" in text else "DOUBLE PRECISION")
    old = old if old in text else place.format("text" if "RETURNS text" in text else "TEXT")
    assert old in text, text
    assert prove_artifact(LOANS, "sql:postgres", {"model.sql": text.encode()}).answer in ("proved", "read as equal")
    for type_ in ('"double"', "double", '"text"', "string"):
        files = {"model.sql": text.replace(old, place.format(type_), 1).encode()}
        assert prove_artifact(LOANS, "sql:postgres", files).answer == "unread"


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "mariadb", "spark", "trino", "snowflake"])
def test_a_type_in_quotes_may_be_a_users(dialect):
    text = emit(LOANS, f"sql:{dialect}").files["model.sql"].decode()
    quote = "`" if dialect in ("sqlite", "mariadb", "spark") else '"'
    type_ = "REAL" if dialect == "sqlite" else "DOUBLE"
    assert f" AS {type_})" in text, text
    quoted = text.replace(f" AS {type_})", f" AS {quote}{type_}{quote})", 1)
    assert prove_artifact(LOANS, f"sql:{dialect}", {"model.sql": quoted.encode()}).answer == "unread"


def test_columns_may_be_called_like_types():
    program = Program(("double", "text"), ("no", "yes"), CLAUSES, LOANS.decision)
    for dialect in ("postgres", "duckdb"):
        for form in ("select", "view", "macro"):
            files = emit(program, f"sql:{dialect}", "model", {"form": form, "table": "data"}).files
            assert prove_artifact(program, f"sql:{dialect}", files).answer in ("proved", "read as equal")


def test_a_refusal_is_plain_text():
    text = emit(LOANS, "sql:duckdb").files["model.sql"].decode()
    found = prove_artifact(LOANS, "sql:duckdb", {"model.sql": text.replace("SELECT", "SELECT WHEN", 1).encode()})
    assert found.answer == "unread"
    assert "WHEN" in found.reason
    assert "\x1b" not in found.reason
