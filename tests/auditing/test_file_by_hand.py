"""A .sql file that people wrote, without our header, is read, and run where its engine starts here."""

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.auditing.forms.corpus import DIFFERENT, EQUAL, TREE

TEXTS = {
    "a query": "SELECT id, {R} AS label FROM applications",
    "a view with a filter": "CREATE OR REPLACE VIEW v AS SELECT id, {R} AS label FROM applications WHERE status = 'A';\n"
    "COMMENT ON VIEW v IS 'scores';",
    "insert": "INSERT INTO scores (id, label) SELECT id, {R} AS label FROM applications",
    "update": "UPDATE applications SET label = {R} WHERE status = 'new'",
    "dbt": "{{ config(materialized='table') }}\nwith a as (select * from {{ ref('stg') }}) select id, {R} as label from a",
    "a join": "SELECT a.id, {R} AS label FROM applications a JOIN feats f ON f.id = a.id",
}


def audited(folder, text, dialect):
    file = folder / "deployed.sql"
    file.write_text(text)
    (found,) = audit(TREE, file=file, dialect=dialect).verdicts
    return found


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "snowflake", "tsql", "bigquery", "oracle"])
@pytest.mark.parametrize("name", TEXTS)
def test_a_file_by_hand_is_called_what_it_is(tmp_path, name, dialect):
    found = audited(tmp_path, TEXTS[name].replace("{R}", EQUAL["tree"][0]), dialect)
    runs = dialect in ("sqlite", "duckdb") and availability(dialect) is None and name != "a join"
    assert found.verdict == ("equal" if runs else "not run"), found
    assert found.proof.answer == "read as equal"
    assert "no NaN" in found.proof_assumes
    for slip in DIFFERENT["tree"]:
        assert audited(tmp_path, TEXTS[name].replace("{R}", slip), dialect).verdict in ("different", "unread")


IN_BRACKETS = ("(((SELECT * FROM applications)) LIMIT 1)", "(((SELECT * FROM applications)) TABLESAMPLE (10))")


@pytest.mark.parametrize("dialect", ["snowflake", "bigquery", "redshift", "databricks", "duckdb", "postgres"])
@pytest.mark.parametrize("source", IN_BRACKETS)
def test_rows_that_brackets_around_a_query_leave_out_are_not_overlooked(tmp_path, dialect, source):
    text = f"SELECT id, {EQUAL['tree'][0]} AS label FROM "
    found = audited(tmp_path, text + source, dialect)
    assert found.proof.answer == "unread" or "LIMIT 1" in found.row_effects, found
    plain = audited(tmp_path, f"{text}((SELECT * FROM applications))", dialect)
    assert (plain.proof.answer, plain.row_effects) == ("read as equal", ()), plain


SELECT = "SELECT id, {R} AS label FROM applications"
DO_MORE = {
    "a feature that is set before it is used": ("mariadb", "UPDATE applications SET income = income * 2, label = {R}"),
    "a label that is set twice": ("sqlite", "UPDATE applications SET label = {R}, label = 'no'"),
    "some rows only": ("mariadb", "UPDATE applications SET label = {R} ORDER BY id LIMIT 5"),
    "another answer for rows that are there": (
        "postgres",
        f"INSERT INTO s {SELECT} ON CONFLICT (id) DO UPDATE SET label = 'no'",
    ),
    "a duplicate": ("mariadb", f"INSERT INTO s {SELECT} ON DUPLICATE KEY UPDATE label = 'no'"),
    "dropped afterwards": ("sqlite", f"CREATE VIEW v AS {SELECT}; DROP VIEW v"),
    "no rows": ("postgres", f"CREATE TABLE s AS {SELECT} WITH NO DATA"),
    "an engine that adds up": ("clickhouse", f"CREATE TABLE s ENGINE = SummingMergeTree ORDER BY id AS {SELECT}"),
    "a hook": ("sqlite", "{{ config(post_hook=\"update s set label = 'no'\") }} " + SELECT),
    "a hook of a template": ("sqlite", "{{ config(post_hook=\"update {{ this }} set label = 'no'\") }} " + SELECT),
    "a hook in a dictionary": ("sqlite", "{{ config({'post_hook': 'delete from s'}) }} " + SELECT),
    "another rule in later runs": (
        "sqlite",
        "SELECT id, CASE {% if is_incremental() %} WHEN age > 99 THEN 'no' {% endif %} WHEN 1 = 1 THEN {R} END AS label "
        "FROM applications",
    ),
    "more rows in later runs": (
        "sqlite",
        SELECT + " {% if is_incremental() %} UNION ALL SELECT id, 'no' FROM old {% endif %}",
    ),
    "another bound in later runs": (
        "sqlite",
        "WITH p AS (SELECT 0 AS t {% if is_incremental() %} WHERE 1 = 0 {% endif %}) "
        "SELECT id, CASE WHEN (SELECT t FROM p) = 0 THEN {R} ELSE 'no' END AS label FROM applications",
    ),
    "a condition in later runs": (
        "sqlite",
        "SELECT id, CASE WHEN 1 = 1 {% if is_incremental() %} AND age < 99 {% endif %} THEN {R} ELSE 'no' END AS label "
        "FROM applications",
    ),
    **{
        f"what a template would leave out, but SQL does not: {opening!r}": (
            dialect,
            f"SELECT id, CASE WHEN 1 = 1 {opening} AND age <> 77 {closing} THEN {{R}} ELSE 'no' END AS label FROM a",
        )
        for dialect, opening, closing in (
            ("sqlite", "/* {# */", "/* #} */"),
            ("postgres", "AND (5 # 4) = 1 /* {# */", "/* #} */"),
            ("sqlite", "-- {% set x = 1 -%}\n", "\n"),
            ("sqlite", "AND 'a' <> '{#'", "AND 'a' <> '#}'"),
            ("postgres", "AND 'a' <> $${#$$", "AND 'a' <> $$#}$$"),
            ("mariadb", "# {#\n", "\n# #}\n"),
            ("sqlite", "/* {{ config(tags='*/", "/*') }} */"),
        )
    },
    **{
        f"a view that another schema has too, {dialect}": (
            dialect,
            f"CREATE VIEW a.below AS SELECT * FROM applications; CREATE VIEW v AS {SELECT.replace('applications', 'b.below')}",
        )
        for dialect in ("postgres", "snowflake")
    },
    "a view that the file makes in the default schema": (
        "postgres",
        f"CREATE VIEW below AS SELECT * FROM applications; CREATE VIEW v AS {SELECT.replace('applications', 'b.below')}",
    ),
    **{
        f"{what}, {dialect}": (dialect, f"CREATE VIEW {made} AS SELECT * FROM applications; CREATE VIEW v AS {query}")
        for what, made, read, dialects in (
            ("a view of a schema in which nothing is looked up", "a.below", "below", ("postgres", "snowflake", "tsql")),
            ("a view whose name is another one in quotes", "below", '"Below"', ("postgres", "snowflake", "oracle")),
            ("a view whose name is another one by its case", "below", "Below", ("mariadb", "bigquery", "clickhouse")),
        )
        for dialect in dialects
        for query in (SELECT.replace("applications", read),)
    },
    "two tables that differ by case": (
        "postgres",
        "UPDATE \"T\" SET label = 'decline'; UPDATE \"t\" SET label = 'refer' WHERE {R} = 'refer'; "
        "UPDATE \"t\" SET label = 'approve' WHERE {R} = 'approve'",
    ),
    "a function of another dataset": (
        "bigquery",
        "CREATE FUNCTION a.double(x FLOAT64) AS (x); SELECT id, {R} AS label FROM applications WHERE b.double(1.0) > 0",
    ),
    "names that are looked up elsewhere first": ("postgres", f"SET search_path TO own, pg_catalog; {SELECT}"),
}


@pytest.mark.parametrize("form", DO_MORE)
def test_a_file_that_does_more_than_its_query_is_never_equal(tmp_path, form):
    dialect, text = DO_MORE[form]
    found = audited(tmp_path, text.replace("{R}", EQUAL["tree"][0]), dialect)
    assert found.verdict in ("different", "unread"), found


def test_a_filter_of_later_runs_is_stated(tmp_path):
    text = SELECT + " {% if is_incremental() %} WHERE id > (SELECT max(id) FROM {{ this }}) {% endif %}"
    head = "{{ config(materialized='incremental', unique_key=['id'], tags=[\"a\"], enabled=true) }}\n"
    found = audited(tmp_path, head + text.replace("{R}", EQUAL["tree"][0]), "sqlite")
    passes = "rows that an incremental run passes: WHERE id > (SELECT max(id) FROM {{ this }})"
    assert (found.verdict, found.row_effects) == ("equal", (passes,)), found


def test_a_filter_of_a_file_is_stated(tmp_path):
    found = audited(tmp_path, TEXTS["a view with a filter"].replace("{R}", EQUAL["tree"][0]), "sqlite")
    assert found.row_effects == ("WHERE status = 'A'",)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2",
        "DELETE FROM applications",
        "{% for x in y %} SELECT 1 {% endfor %}",
        "SELECT id, decide(income) AS label FROM applications",
    ],
)
def test_a_file_that_is_not_understood_says_what_else_would_give_evidence(tmp_path, text):
    (tmp_path / "unclear.sql").write_text(text)
    (found,) = audit(TREE, file=tmp_path / "unclear.sql", dialect="sqlite", label="label").verdicts
    assert (found.verdict, "--scored TABLE --label label" in found.other_command) == ("unread", True)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "snowflake"])
def test_a_file_that_computes_a_feature_is_read_with_its_expression_and_the_mapping_is_stated(tmp_path, dialect):
    file, columns = tmp_path / "deployed.sql", {"debt": "owed / (income + 1)"}
    rule = EQUAL["tree"][0].replace("debt", "(owed / (income + 1))")
    file.write_text(f"SELECT id, {rule} AS label FROM applications")
    (found,) = audit(TREE, file=file, dialect=dialect, columns=columns).verdicts
    runs = dialect != "snowflake" and availability(dialect) is None
    assert found.verdict == ("equal" if runs else "not run"), found
    assert found.feature_columns == columns
    file.write_text(f"SELECT id, {rule.replace('+ 1', '+ 2')} AS label FROM applications")
    assert audit(TREE, file=file, dialect=dialect, columns=columns).verdict in ("different", "unread")


CLEAN = "SELECT id, CASE WHEN income IS NULL THEN 5000 ELSE income END AS income FROM"
RICH = "SELECT id, CASE WHEN income >= 3000 THEN 'yes' ELSE 'no' END AS label FROM"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"WITH clean AS ({CLEAN} {{{{ ref('loans') }}}}) {RICH} clean", "equal"),
        (f"WITH loans AS ({CLEAN} {{{{ ref('loans') }}}}) {RICH} loans", "equal"),
        (f"WITH loans AS ({CLEAN} {{{{ source('raw', 'loans') }}}}) {RICH} loans", "equal"),
        (f"WITH clean AS ({CLEAN} {{{{ ref('loans') }}}}) {RICH} {{{{ ref('clean') }}}}", "different"),
        (f"WITH Clean AS ({CLEAN} {{{{ ref('loans') }}}}) {RICH} {{{{ ref('clean') }}}}", "different"),
    ],
)
def test_a_model_that_is_called_as_a_stage_is_called_is_another_one(tmp_path, text, verdict):
    clause = Clause((Interval(0, 3000.0, if_missing=True),))
    program = Program(("income",), ("no", "yes"), (clause,), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    (tmp_path / "model.sql").write_text(text)
    (found,) = audit(program, file=tmp_path / "model.sql", dialect="sqlite").verdicts
    assert found.verdict == verdict, found
