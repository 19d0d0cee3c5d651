"""SQL texts made to be taken for the program they are not: each was once read and proved, and is refused now."""

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.general.sql.bodies import Body
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

EVERY = tuple(ENGINES)
ANSWERS = split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))


def asking(feature="age", labels=("no", "yes"), features=None):
    """IF feature >= 1 THEN the second label ELSE the first."""
    return Program(features or (feature, "income"), labels, (Clause((Interval(0, 1.0, None),)),), ANSWERS)


def points(*worth):
    clauses = (Clause((Interval(0, 1.0, None),)), Clause((Interval(1, None, 2.0),)))
    return Program(("age", "income"), ("no", "yes"), clauses, Scorecard((0, 0), tuple((0, each) for each in worth), 0))


def quote(dialect):
    return "`" if dialect in ("sqlite", "mariadb", "mysql", "clickhouse", "spark", "databricks", "bigquery") else '"'


def emitted(program, dialect, **options):
    return dict(emit(program, f"sql:{dialect}", "model", {"table": "data", **options}).files)


def text_of(program, dialect, **options):
    return emitted(program, dialect, **options)["model.sql"].decode()


def taken_apart(text):
    """Header and query."""
    lines = text.rstrip().rstrip(";").split("\n")
    first = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:first]) + "\n", "\n".join(lines[first:])


def changed(text, old, new, count=-1):
    assert old in text, text
    return text.replace(old, new, count)


def assert_refused(program, dialect, text, **others):
    files = {"model.sql": text.encode(), **{name.replace("_", "."): content for name, content in others.items()}}
    proof = prove_artifact(program, f"sql:{dialect}", files)
    assert proof.answer == "unread", text
    return proof.reason


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mariadb"])
def test_a_star_does_not_hide_a_column_of_the_same_name(dialect):
    program, q = asking(), quote(dialect)
    header, query = taken_apart(text_of(program, dialect))
    for columns in (f"'yes' AS {q}label{q}, *", f"*, 'yes' AS {q}label{q}"):
        assert_refused(program, dialect, f"{header}SELECT {columns} FROM ({query}) m;")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mariadb"])
def test_the_column_called_label_is_the_label(dialect):
    program, q = asking(), quote(dialect)
    header, query = taken_apart(text_of(program, dialect))
    named = changed(header, '["label", "label"]', '["label", "lab"]')
    columns = f"{q}label{q} AS {q}lab{q}, 'yes' AS {q}label{q}, {q}p_no{q}, {q}p_yes{q}"
    assert_refused(program, dialect, f"{named}SELECT {columns} FROM ({query}) m;")


def test_what_comes_out_beside_the_answers_is_a_column_of_the_table():
    program = asking()
    header, query = taken_apart(text_of(program, "postgres", outputs="label"))
    for column in ("0.5e0 AS p_yes", '"label" AS "LABEL"', "'yes'", "CASE WHEN 1 = 1 THEN 'yes' END AS answer"):
        assert_refused(program, "postgres", f'{header}SELECT "label", {column} FROM ({query}) m;')
    kept = text_of(program, "postgres", key="id,income")
    assert prove_artifact(program, "sql:postgres", {"model.sql": kept.encode()}).answer in ("proved", "read as equal")
    assert_refused(program, "postgres", changed(kept, '"id"', '"age" AS "id"'))


def test_a_header_does_not_give_a_class_the_column_of_another():
    program = asking()
    header, query = taken_apart(text_of(program, "duckdb"))
    swapped = changed(
        header,
        '["probabilities", "p_no"], ["probabilities", "p_yes"]',
        '["probabilities", "p_yes"], ["probabilities", "p_no"]',
    )
    text = f'{swapped}SELECT "label", "p_no" AS "p_yes", "p_yes" AS "p_no" FROM ({query}) m;'
    assert "p_yes, p_no" in assert_refused(program, "duckdb", text)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mariadb", "clickhouse"])
def test_a_feature_is_not_read_from_the_column_of_another(dialect):
    program, q = asking(), quote(dialect)
    header, query = taken_apart(text_of(program, dialect))
    text = changed(header, '[0, "age"]', '[0, "income"]') + changed(query, f"{q}age{q}", f"{q}income{q}")
    assert "another feature's name" in assert_refused(program, dialect, text)


@pytest.mark.parametrize("dialect", EVERY)
@pytest.mark.parametrize("end", ["\r", "\f", "\v", "\0", "\u2028", "\u2029", "\x85"])
def test_a_comment_ends_where_every_engine_has_it_end(dialect, end):
    program = asking()
    header, query = taken_apart(text_of(program, dialect))
    assert_refused(program, dialect, f"{header}-- rules{end}DROP TABLE data;\n{query}")
    assert_refused(program, dialect, f"{header}{query}\n-- rules{end}DROP TABLE data;\n")


@pytest.mark.parametrize("dialect", EVERY)
@pytest.mark.parametrize("between", ["\u00a0", "\u3000", "/* a /* b */"])
def test_spaces_and_comments_are_those_of_every_engine(dialect, between):
    header, query = taken_apart(text_of(asking(), dialect))
    assert_refused(asking(), dialect, header + changed(query, "FROM", f"{between} FROM", 1))


@pytest.mark.parametrize(
    ("dialect", "label", "cast"),
    [
        ("postgres", "y" * 64, "CAST('{}' AS NAME)"),
        ("tsql", "y" * 31, "CAST('{}' AS VARCHAR)"),
        ("redshift", "y" * 257, "CAST('{}' AS VARCHAR)"),
        ("tsql", "größe", "'{}'"),
        ("tsql", "größe", "CAST(N'{}' AS VARCHAR(20))"),
    ],
)
def test_a_label_is_not_cut_or_spelled_otherwise(dialect, label, cast):
    program = asking(labels=("no", label))
    header, query = taken_apart(text_of(program, dialect))
    written = f"N'{label}'" if f"N'{label}'" in query else f"'{label}'"
    assert_refused(program, dialect, header + changed(query, written, cast.format(label)))


def test_line_ends_of_windows_are_read():
    text = text_of(asking(), "duckdb", outputs="label").replace("\n", "\r\n")
    assert prove_artifact(asking(), "sql:duckdb", {"model.sql": text.encode()}).answer in ("proved", "read as equal")


@pytest.mark.parametrize("label", ["a\rb", "a\u2028b", "a\fb", "größe"])
def test_a_label_may_hold_what_may_not_be_outside_quotes(label):
    program = asking(labels=("no", label))
    assert prove_artifact(program, "sql:duckdb", emitted(program, "duckdb")).answer in ("proved", "read as equal")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "mariadb"])
@pytest.mark.parametrize(
    ("name", "other"), [("risk", "ris\u212a"), ("straße", "strasse"), ("é", "É"), ("size", "ſize")]
)
def test_names_are_one_only_but_for_a_to_z(dialect, name, other):
    program, q = asking(name), quote(dialect)
    header, query = taken_apart(text_of(program, dialect))
    assert_refused(program, dialect, header + changed(query, f"{q}{name}{q}", f"{q}{other}{q}", 1))


def test_postgres_is_not_queried_for_the_case_of_a_foreign_letter():
    program = asking("é")
    header, query = taken_apart(text_of(program, "postgres"))
    assert_refused(program, "postgres", header + changed(query, '"é"', "É", 1))


def test_bytes_of_another_character_set_are_not_mistaken_for_letters():
    program = asking(labels=("no", "größe"))
    text = text_of(program, "mariadb")
    header, query = taken_apart(text)
    for introducer in ("_latin1", "_ascii"):
        assert_refused(program, "mariadb", header + changed(query, "'größe'", f"{introducer}'größe'"))


@pytest.mark.parametrize("engine", ["Null", "SummingMergeTree", "ReplacingMergeTree()", "Buffer(a, b)"])
def test_a_clickhouse_table_keeps_its_rows(engine):
    text = text_of(asking(), "clickhouse", form="table")
    assert_refused(asking(), "clickhouse", changed(text, "ENGINE = MergeTree", f"ENGINE = {engine}"))


def test_a_mariadb_table_keeps_its_rows():
    text = text_of(asking(), "mariadb", form="table")
    for engine in ("BLACKHOLE", "SPIDER"):
        made = changed(text, "CREATE TABLE `model` AS", f"CREATE TABLE `model` ENGINE={engine} AS")
        assert_refused(asking(), "mariadb", made)


@pytest.mark.parametrize("form", ["view", "table"])
def test_what_is_made_only_where_nothing_was_is_refused(form):
    text = text_of(asking(), "duckdb", form=form, replace="no")
    assert_refused(asking(), "duckdb", changed(text, f"CREATE {form.upper()}", f"CREATE {form.upper()} IF NOT EXISTS"))


def missing_is_low():
    return Program(("age",), ("no", "yes"), (Clause((Interval(0, None, 1.0, "left", True),)),), ANSWERS)


def test_a_name_that_postgres_would_cut_is_refused():
    program, long = asking(), "x" * 63
    header, query = taken_apart(text_of(program, "postgres"))
    inner = f'WITH "{long}b" AS (SELECT \'yes\' AS "label", 0.5e0 AS "p_no", 0.5e0 AS "p_yes" FROM "data")'
    text = f'{header}WITH "{long}a" AS ({query}) SELECT * FROM ({inner} SELECT * FROM "{long}a") z;'
    assert "63 bytes" in assert_refused(program, "postgres", text)


@pytest.mark.parametrize(
    ("dialect", "type_", "worth"),
    [
        ("duckdb", "TINYINT", 100),
        ("duckdb", "UTINYINT", 200),
        ("duckdb", "UINTEGER", 100),
        ("duckdb", "UBIGINT", 100),
        ("postgres", "SMALLINT", 30000),
        ("mariadb", "UNSIGNED", 100),
    ],
)
def test_points_of_narrow_or_unsigned_types_are_refused(dialect, type_, worth):
    program = points(worth, worth)
    header, query = taken_apart(text_of(program, dialect))
    narrow = f"THEN CAST({worth} AS {type_}) ELSE CAST(0 AS {type_}) END"
    assert_refused(program, dialect, header + changed(query, f"THEN {worth} ELSE 0 END", narrow))


def test_a_double_with_sizes_rounds():
    program = Program(("age",), ("no", "yes"), (Clause((Interval(0, 1.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    text = emit(program, "sql:mariadb", "m", {}).files["m.sql"].decode()
    assert "AS DOUBLE)" in text
    with pytest.raises(Unread):
        read_sql(text.replace("AS DOUBLE)", "AS DOUBLE(10,0))"), "mariadb")


CONDITIONS = {
    "clickhouse": [
        "age NOT BETWEEN 1 AND 5",  # false for NaN, where NOT (age BETWEEN 1 AND 5) is true
        "age NOT IN (1, NULL)",  # the NULL is passed over
        "age IN (0, 1)",  # -0.0 is not found
        "CASE age WHEN NULL THEN TRUE ELSE FALSE END",  # finds a NULL
        "CASE age WHEN 0 THEN TRUE ELSE FALSE END",
        "age IS DISTINCT FROM age",  # false for NaN
        "3 NOT IN (age, income)",  # a NULL of the row is passed over
        "CASE age WHEN age THEN TRUE ELSE FALSE END",  # finds a NULL
        "age NOTNULL OR income > 0",  # age, under the name NOTNULL
        "NOT age ISNULL",
    ],
    "datafusion": [
        "age >= CAST(0.1 AS FLOAT)",  # 32 bits
        "age >= 0.1::float",
        "age > 3 /*! AND age > 5 */",  # no comment there
        "age IN (0, 1, 2, 3, 4, 5)",  # in a longer list -0.0 is not found
        "CASE age WHEN 0 THEN TRUE ELSE FALSE END",
        "NULLIF(age, 0) IS NULL",
        "(age > 3) IS DISTINCT FROM TRUE AND income > 0",  # from (TRUE AND income > 0)
        "(age > 3) IS DISTINCT FROM TRUE IS NULL",
        "NOT age > ANY (ARRAY[1, NULL])",  # the NULL is passed over
    ],
    "sqlite": [
        "age >= CAST('\u0663' AS REAL)",  # a digit to Python, and 0.0 to SQLite
        "age < 3 AND 'ab' = CAST('ab' AS STRING)",  # 0: a name that SQLite does not know is a number's
    ],
}


@pytest.mark.parametrize(("dialect", "condition"), [(d, c) for d, conditions in CONDITIONS.items() for c in conditions])
def test_a_condition_that_an_engine_takes_otherwise_is_refused(dialect, condition):
    with pytest.raises(Unread):
        read_sql(f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT)


LAYOUT = TextLayout(("age", "income"), ("no", "yes"), ((0, "age"), (1, "income")), (("label", "label"),))


@pytest.mark.parametrize("dialect", EVERY)
@pytest.mark.parametrize(
    "condition",
    [
        "(age > 3) = (income > 0) IS NULL",
        "(age > 3) IS NULL IS NULL",
        "age BETWEEN 1 AND 5 = TRUE",
        "age IN (1) = TRUE",
    ],
)
def test_which_of_two_comparisons_comes_first_is_not_guessed(dialect, condition):
    """Engines do not agree, and sqlglot would put brackets where the text has none."""
    with pytest.raises(Unread):
        read_sql(f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT)


@pytest.mark.parametrize("dialect", sorted(set(EVERY) - {"snowflake", "oracle", "datafusion"}))
@pytest.mark.parametrize(
    "condition", ["age IS NOT NULL", "NOT (age BETWEEN 1 AND 5) AND income > 0", "age > 1 OR age < 0"]
)
def test_one_comparison_after_another_is_read(dialect, condition):
    """Not where names are AGE and INCOME, nor where NaN has a sign."""
    assert read_sql(f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT)


@pytest.mark.parametrize("dialect", ["mariadb", "mysql"])
def test_a_table_of_mariadb_is_filled_by_the_names_of_its_columns(dialect):
    """Columns that the query does not have stay NULL, and two exchanged names exchange their values."""
    program, text = asking(), text_of(asking(), dialect, form="table")
    columns = "CREATE TABLE `model` (`label` VARCHAR(20), `p_no` DOUBLE, `p_yes` DOUBLE) AS"
    typed = changed(text, "CREATE TABLE `model` AS", columns)
    assert prove_artifact(program, f"sql:{dialect}", {"model.sql": typed.encode()}).answer in (
        "proved",
        "read as equal",
    )
    assert_refused(program, dialect, changed(typed, "AS `label`", "AS `answer`"))
    swapped = typed.replace("AS `p_no`", "AS `?`").replace("AS `p_yes`", "AS `p_no`").replace("AS `?`", "AS `p_yes`")
    assert_refused(program, dialect, swapped)


@pytest.mark.parametrize("kept", ["CHAR", "CHAR(3)"])
def test_a_label_is_not_kept_as_a_char(kept):
    """Without a size it is one letter there, and with one it loses the spaces at its end."""
    text = text_of(asking(), "mariadb", form="macro")
    assert_refused(asking(), "mariadb", changed(text, "RETURNS VARCHAR(1000)", f"RETURNS {kept}"))


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("clickhouse", "inf"), ("clickhouse", "nan"), ("oracle", "UID"), ("oracle", "ROWNUM"), ("mariadb", "utc_date")],
)
def test_a_column_whose_name_is_the_engines_own_word_keeps_its_quotes(dialect, name):
    program, q = asking(name), quote(dialect)
    text = text_of(program, dialect)
    assert prove_artifact(program, f"sql:{dialect}", {"model.sql": text.encode()}).answer in ("proved", "read as equal")
    header, query = taken_apart(text)
    assert_refused(program, dialect, header + changed(query, f"{q}{name}{q}", name, 1))


def test_sql_server_joins_lines_within_a_text():
    """It would answer "ab"."""
    program = asking(labels=("no", "a\\\nb"))
    assert_refused(program, "tsql", text_of(program, "tsql"))


@pytest.mark.parametrize("dialect", ["mysql", "tsql"])
def test_a_stage_that_differs_from_a_table_by_its_case(dialect):
    header, query = taken_apart(text_of(asking(), dialect))
    opens, closes = ("[", "]") if dialect == "tsql" else ("`", "`")
    columns = ", ".join(f"{opens}{name}{closes}" for name in ("label", "p_no", "p_yes"))
    stage = (
        f"{header}WITH {opens}DATA{closes} AS (SELECT * FROM ({query}) m) SELECT {columns} FROM {opens}{{}}{closes};"
    )
    stage = stage.replace("DATA", "STAGE")
    assert_refused(asking(), dialect, stage.format("stage"))
    assert prove_artifact(asking(), f"sql:{dialect}", {"model.sql": stage.format("STAGE").encode()}).answer in (
        "proved",
        "read as equal",
    )


@pytest.mark.parametrize("dialect", ["trino", "tsql", "duckdb"])
def test_a_long_decimal_need_not_become_the_nearest_double(dialect):
    query = "SELECT CASE WHEN age >= {} THEN 'yes' ELSE 'no' END AS label FROM data"
    assert read_sql(query.format("0.123456789012345"), dialect, LAYOUT)
    with pytest.raises(Unread, match="decimal"):
        read_sql(query.format("0.12345678901234567"), dialect, LAYOUT)
    assert read_sql(query.format("0.12345678901234567e0"), dialect, LAYOUT)


@pytest.mark.parametrize("more", ["INTO answers", "LIMIT -1", "FROM data", "OFFSET 0"])
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "tsql"])
def test_an_expression_is_nothing_more(dialect, more):
    """Put into a query, SELECT … INTO would make a table."""
    assert_refused(asking(), dialect, text_of(asking(), dialect, form="expression").rstrip() + f" {more}\n")


@pytest.mark.parametrize("label", ["'a${x}'", "'''a'", "'a''b'", '"a""b"'])
def test_texts_that_spark_changes_are_not_read(label):
    """`${x}` is replaced by a variable, and a doubled quote is a quote in one version and nothing in another."""
    layout = TextLayout(("age",), ("no", "yes"), ((0, "age"),), (("label", "label"),))
    text = f"SELECT CASE WHEN `age` > 1.0 THEN {label} ELSE 'no' END AS `label` FROM `data`"
    with pytest.raises(Unread, match="Spark"):
        read_sql(text, "spark", layout)


@pytest.mark.parametrize(
    ("engine", "body"),
    [
        ("mariadb", "RETURN income >= 1 /*! + 1 */;"),
        ("postgres", "BEGIN RETURN income\u00a0>= 1; END"),
    ],
)
def test_the_body_of_a_function_is_held_to_what_every_text_is_held_to(engine, body):
    with pytest.raises(Unread):
        Body(ENGINES[engine], body)
