"""Files as people keep them are read, and one with a slip in it is never called equal."""

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import ENGINES, availability
from tests.auditing.forms.corpus import TREE
from tests.auditing.forms.files import file_forms
from tests.counts import shorten

EVERY = list(file_forms())
FORMS = EVERY[:: max(1, len(EVERY) // shorten(len(EVERY)))]


@pytest.fixture
def audit_text(tmp_path):
    def audit_text(text, dialect):
        (tmp_path / "deployed.sql").write_text(text)
        (found,) = audit(TREE, file=tmp_path / "deployed.sql", dialect=dialect).verdicts
        return found

    return audit_text


@pytest.mark.parametrize(
    ("dialect", "right", "wrong"), [each[1:] for each in FORMS], ids=[" ".join(each[:2]) for each in FORMS]
)
def test_a_file_is_read_and_one_with_a_slip_is_different(audit_text, dialect, right, wrong):
    found = audit_text(right, dialect)
    if found.verdict == "unread" and dialect in ENGINES and (reason := availability(dialect)):
        pytest.skip(f"types that the file declares are those of its engine: {reason}")
    assert found.verdict in ("equal", "not run"), found
    assert found.proof.answer == "read as equal", found
    found = audit_text(wrong, dialect)
    if "WHERE label IS NULL" in wrong:  # a filter on the label itself may leave out the very rows that show it
        assert found.verdict in ("different", "unread"), found
    else:
        assert found.verdict == "different", found


@pytest.mark.parametrize(
    "text",
    [
        # what another statement makes of the label or of the features is not passed over
        "CREATE VIEW stg AS SELECT id, income * 2 AS income, debt, age FROM raw; CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
        "CREATE TABLE stg AS SELECT id, coalesce(income, 99999) AS income, debt, age FROM raw; CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
        "CREATE VIEW d AS SELECT id, {T} AS label FROM applications; CREATE VIEW e AS SELECT id, 'approve' AS label FROM applications",
        "UPDATE applications SET label = {T}; UPDATE applications SET label = 'approve' WHERE age = 99",
        "UPDATE applications SET label = {T}; UPDATE applications SET income = income + 1",
        "UPDATE applications SET income = income + 1; UPDATE applications SET label = {T}",
        "INSERT INTO d (label, id) SELECT id, {T} FROM applications",
        "INSERT INTO d (id, label) SELECT id, {T} FROM applications WHERE true ON CONFLICT (id) DO UPDATE SET label = 'approve'",
        "INSERT INTO d (id, label) SELECT id, {T} FROM applications WHERE true ON CONFLICT (id) DO UPDATE SET label = d.label",
        "CREATE VIEW d (label, id) AS SELECT {T}, id FROM applications; UPDATE applications SET debt = 0",
        "CREATE TABLE applications (id INTEGER, income TEXT, debt DOUBLE PRECISION, age INTEGER); CREATE VIEW d AS SELECT id, {T} AS label FROM applications",
        "{% set cut = 1 %}{% set cut = 30000 %}SELECT id, {T} AS label FROM applications",
        "SET sql_mode = 'x'; SELECT id, {T} AS label FROM applications",
    ],
)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "snowflake"])
def test_what_other_statements_do_to_labels_and_features_is_not_passed_over(audit_text, text, dialect):
    from tests.auditing.forms.corpus import EQUAL

    found = audit_text(text.replace("{T}", EQUAL["tree"][0]), dialect)
    assert found.verdict in ("unread", "different"), found


VIEW = "CREATE VIEW d AS SELECT id, {T} AS label FROM applications"
MERGE = "MERGE INTO d USING (SELECT id, {T} AS label{more} FROM applications) s{names} ON ({on}) WHEN MATCHED THEN UPDATE SET d.label = s.label"
OTHER_LABELS = {
    "a comment that is executed": (
        "mariadb",
        VIEW + "; /*!50001 CREATE OR REPLACE VIEW d AS SELECT 'approve' AS label */;",
    ),
    "another one": ("mariadb", VIEW + "; /*M!100001 CREATE OR REPLACE VIEW d AS SELECT 'approve' AS label */;"),
    "a label in the filter": ("sqlite", "UPDATE applications SET checked = 1 WHERE label = {T}"),
    "a label that is compared": ("sqlite", "UPDATE applications SET flag = label = {T}"),
    "a join of several rows": ("mariadb", "UPDATE applications a JOIN f ON f.id = a.id SET label = {T}"),
    "another place": (
        "sqlite",
        "CREATE TABLE d (id INTEGER, label TEXT, x TEXT); INSERT INTO d SELECT id, 'approve', {T} AS label FROM applications",
    ),
    "an object that is kept": (
        "sqlite",
        "CREATE VIEW stg AS SELECT id, income * 2 AS income, debt, age FROM raw; CREATE VIEW IF NOT EXISTS stg AS "
        "SELECT id, income, debt, age FROM raw; CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
    ),
    "a view that is kept": ("sqlite", VIEW.replace("VIEW", "VIEW IF NOT EXISTS")),
    "one name in two schemas": (
        "snowflake",
        "CREATE VIEW a.stg AS SELECT id, income * 2 AS income, debt, age FROM raw; CREATE VIEW b.stg AS "
        "SELECT id, income, debt, age FROM raw; CREATE VIEW d AS SELECT id, {T} AS label FROM a.stg",
    ),
    "one function twice": (
        "bigquery",
        "CREATE TEMP FUNCTION f(income FLOAT64, debt FLOAT64, age FLOAT64) AS ('approve'); CREATE TEMP FUNCTION "
        "f(income FLOAT64, debt FLOAT64, age FLOAT64) AS ({T}); SELECT id, f(income, debt, age) AS label FROM applications",
    ),
    "other names of a source": (
        "tsql",
        MERGE.replace("{more}", ", 'approve'").replace("{names}", " (id, old, label)").replace("{on}", "d.id = s.id"),
    ),
    "other rows": ("snowflake", MERGE.replace("{more}", "").replace("{names}", "").replace("{on}", "d.id = s.id + 1")),
    "rows with a label": (
        "oracle",
        MERGE.replace("{more}", "").replace("{names}", "").replace("{on}", "d.id = s.id") + " WHERE d.label IS NULL",
    ),
    "a mask": ("snowflake", "CREATE VIEW d (id, label MASKING POLICY hide) AS SELECT id, {T} FROM applications"),
    "a policy": ("snowflake", VIEW.replace("VIEW d", "VIEW d WITH ROW ACCESS POLICY p ON (id)")),
    "values by name": (
        "mariadb",
        "CREATE TABLE d (label varchar(20), x varchar(20)) AS SELECT {T} AS x, 'approve' AS label FROM applications",
    ),
    "a table behind": (
        "clickhouse",
        VIEW.replace("VIEW d", "MATERIALIZED VIEW m TO d (id Int32, label FixedString(3))"),
    ),
    "a short label": (
        "mariadb",
        "CREATE TABLE d (id INTEGER, label VARCHAR(3)); INSERT INTO d (id, label) SELECT id, {T} FROM applications",
    ),
    "a padded label": (
        "postgres",
        "CREATE TABLE applications (id integer, income integer, debt double precision, age integer, "
        "label char(30) GENERATED ALWAYS AS ({T}) STORED)",
    ),
    "32 bits are not 64": (
        "mariadb",
        "CREATE TABLE applications (id INT, income DOUBLE, debt REAL, age INT); CREATE VIEW d AS SELECT id, {T} AS label "
        "FROM applications".replace("{T}", "{T<0.40000000000000005}"),
    ),
    "a filter that writes": (
        "postgres",
        "CREATE TABLE d AS SELECT id, {T} AS label FROM applications; "
        "WITH u AS (UPDATE d SET label = 'approve' RETURNING 1) DELETE FROM log",
    ),
    "other names of a view": (
        "mariadb",
        "ALTER VIEW d (label, x) AS SELECT 'approve', {T} AS label FROM applications",
    ),
    "one label for a partition": (
        "databricks",
        "INSERT INTO d PARTITION (label = 'approve') SELECT id, {T} AS label FROM applications",
    ),
    "a column that is kept": (
        "postgres",
        "ALTER TABLE applications ADD COLUMN IF NOT EXISTS label text GENERATED ALWAYS AS ({T}) STORED",
    ),
    "another database": (
        "mariadb",
        "USE a; CREATE VIEW stg AS SELECT id, income, debt, age FROM raw; USE b; "
        "CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
    ),
    "another schema": (
        "postgres",
        "CREATE VIEW stg AS SELECT id, income, debt, age FROM raw; SET search_path TO b; "
        "CREATE VIEW d AS SELECT id, {T} AS label FROM stg",
    ),
    "no commit": ("sqlite", "BEGIN; UPDATE applications SET label = {T};"),
    "another case": ("postgres", 'UPDATE applications SET "LABEL" = {T}'),
    "another case of a conflict": (
        "postgres",
        'INSERT INTO d (id, label) SELECT id, {T} FROM applications ON CONFLICT (id) DO UPDATE SET "LABEL" = excluded.label',
    ),
    "a constant that is set too late": (
        "duckdb",
        "SELECT id, {T<3000{{ z }}} AS label FROM applications {% set z = '0' %}",
    ),
    "a text that looks like a remark": (
        "duckdb",
        "{{ config(alias=\"{#\") }} SELECT id, 'approve' AS label FROM applications "
        '/* {{ config(alias="#}") }} SELECT id, {T} AS label FROM applications {# #} -- */',
    ),
    "a way to keep rows that is not dbt's": (
        "duckdb",
        "{{ config(materialized='our_own') }} SELECT id, {T} AS label FROM applications",
    ),
    "a model that is not built": ("duckdb", "{{ config(enabled=false) }} SELECT id, {T} AS label FROM applications"),
    "an end that is up to a setting": (
        "redshift",
        VIEW + "; COMMENT ON VIEW d IS 'a\\'; CREATE OR REPLACE VIEW d AS SELECT 'approve' AS label; --'",
    ),
}


@pytest.mark.parametrize("name", OTHER_LABELS)
def test_a_file_that_leaves_other_labels_than_its_query_gives_is_never_read_as_equal(audit_text, name):
    from tests.auditing.forms.corpus import EQUAL

    dialect, text = OTHER_LABELS[name]
    rule = EQUAL["tree"][0]
    text = text.replace("{T<0.40000000000000005}", rule.replace("debt < 0.4", "debt < 0.40000000000000005"))
    text = text.replace("{T<3000{{ z }}}", rule.replace("30000", "3000{{ z }}"))
    found = audit_text(text.replace("{T}", rule), dialect)
    assert found.verdict in ("unread", "different"), found
    assert found.proof.answer != "read as equal", found


def test_an_insert_without_names_states_where_its_labels_go(audit_text):
    from tests.auditing.forms.corpus import EQUAL

    found = audit_text(f"INSERT INTO d SELECT id, {EQUAL['tree'][0]} AS label FROM applications", "sqlite")
    assert found.verdict == "equal", found
    assert found.row_effects == ("INSERT without names of columns: the labels go to column 2 of d",)


def test_the_body_of_a_function_is_read_before_it_is_made(audit_text, tmp_path):
    """A file is data: a function that does more than compute is never made, in no database."""
    written = tmp_path / "written.txt"
    body = f"BEGIN COPY (SELECT 1) TO '{written}'; RETURN 'decline'; END"
    text = f"CREATE FUNCTION decide(income integer, debt double precision, age integer) RETURNS text LANGUAGE plpgsql AS $$ {body} $$;"
    assert audit_text(text, "postgres").verdict == "unread"
    assert not written.exists()
