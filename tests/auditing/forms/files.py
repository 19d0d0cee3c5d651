"""Files with SQL as people keep them: scripts, migrations, dbt models, functions, habits of engines that are not run here.

{T} is the rule of the tree, {O} that of the program with one clause.
"""

RUN = "sqlite duckdb postgres mariadb"
EVERY = f"{RUN} clickhouse snowflake bigquery tsql oracle redshift databricks trino"
DBT = "postgres duckdb snowflake bigquery"

FILES = (
    ("query", EVERY, "-- credit policy 7\nSELECT id, {T} AS label\nFROM applications;\n"),
    (
        "replaced view",
        "duckdb postgres mariadb snowflake oracle",
        "CREATE OR REPLACE VIEW d AS SELECT id, {T} AS label FROM applications;",
    ),
    (
        "migration",
        f"{RUN} snowflake bigquery",
        "DROP VIEW IF EXISTS d;\nCREATE VIEW d AS SELECT id, {T} AS label FROM applications;",
    ),
    (
        "transaction",
        "sqlite postgres",
        "BEGIN;\nDROP VIEW IF EXISTS d;\nCREATE VIEW d AS SELECT id, {T} AS label FROM applications;\nCOMMIT;",
    ),
    (
        "grants",
        "postgres mariadb",
        "CREATE VIEW d AS SELECT id, {T} AS label FROM applications;\nGRANT SELECT ON d TO analyst;",
    ),
    (
        "owner",
        "postgres",
        "SET search_path TO risk;\nCREATE VIEW d AS SELECT id, {T} AS label FROM applications;\nALTER VIEW d OWNER TO risk;",
    ),
    ("view with columns", f"{RUN} snowflake oracle", "CREATE VIEW d (id, label) AS SELECT id, {T} FROM applications"),
    (
        "table and view",
        RUN,
        "CREATE TABLE applications (id INTEGER PRIMARY KEY, income INTEGER, debt DOUBLE PRECISION, age INTEGER);\n"
        "CREATE VIEW d AS SELECT id, {T} AS label FROM applications;",
    ),
    (
        "two views",
        f"{RUN} snowflake",
        "CREATE VIEW stg AS SELECT id, income, debt, age FROM raw;\nCREATE VIEW d AS SELECT id, {T} AS label FROM stg;",
    ),
    ("insert", f"{RUN} snowflake bigquery tsql oracle", "INSERT INTO d (id, label) SELECT id, {T} FROM applications"),
    ("cleared", "postgres mariadb", "TRUNCATE TABLE d;\nINSERT INTO d (id, label) SELECT id, {T} FROM applications;"),
    (
        "upsert",
        "postgres sqlite",
        "INSERT INTO d (id, label) SELECT id, {T} FROM applications WHERE true ON CONFLICT (id) DO UPDATE SET label = excluded.label;",
    ),
    (
        "update",
        "sqlite postgres tsql oracle",
        "UPDATE applications SET label = {T}, decided_at = CURRENT_TIMESTAMP WHERE label IS NULL",
    ),
    (
        "updates",
        "sqlite postgres mariadb tsql",
        "UPDATE applications SET label = 'decline';\nUPDATE applications SET label = 'refer' WHERE age >= 25 AND debt <= 0.6;\n"
        "UPDATE applications SET label = 'approve' WHERE income >= 30000 AND debt < 0.4;",
    ),
    (
        "table of a query",
        "duckdb postgres sqlite",
        "DROP TABLE IF EXISTS d;\nCREATE TABLE d AS SELECT id, {T} AS label FROM applications;",
    ),
    ("select into", "tsql postgres", "SELECT id, {T} AS label INTO d FROM applications"),
    (
        "merge",
        "snowflake bigquery tsql oracle",
        "MERGE INTO d USING (SELECT id, {T} AS label FROM applications) s ON (d.id = s.id) "
        "WHEN MATCHED THEN UPDATE SET d.label = s.label WHEN NOT MATCHED THEN INSERT (id, label) VALUES (s.id, s.label)",
    ),
    (
        "generated column",
        "postgres mariadb",
        "CREATE TABLE applications (id integer primary key, income integer, debt double precision, age integer, "
        "label varchar(20) GENERATED ALWAYS AS ({T}) STORED);",
    ),
    (
        "generated column added",
        "postgres",
        "ALTER TABLE applications ADD COLUMN label text GENERATED ALWAYS AS ({T}) STORED;",
    ),
    (
        "function and view",
        "postgres",
        "CREATE FUNCTION decide(income integer, debt double precision, age integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT {T} $$;\n"
        "CREATE VIEW d AS SELECT id, decide(income, debt, age) AS label FROM applications;",
    ),
    (
        "PL/pgSQL function",
        "postgres",
        "CREATE OR REPLACE FUNCTION decide(p_income integer, p_debt double precision, p_age integer) RETURNS text AS $$\nBEGIN\n"
        "  IF p_income >= 30000 AND p_debt < 0.4 THEN RETURN 'approve';\n  ELSIF p_age >= 25 AND p_debt <= 0.6 THEN RETURN 'refer';\n"
        "  END IF;\n  RETURN 'decline';\nEND;\n$$ LANGUAGE plpgsql;",
    ),
    (
        "MariaDB function",
        "mariadb",
        "CREATE FUNCTION decide(p_income DOUBLE, p_debt DOUBLE, p_age DOUBLE) RETURNS VARCHAR(20) DETERMINISTIC\nBEGIN\n"
        "  IF p_income >= 30000 AND p_debt < 0.4 THEN RETURN 'approve'; END IF;\n"
        "  IF p_age >= 25 AND p_debt <= 0.6 THEN RETURN 'refer'; END IF;\n  RETURN 'decline';\nEND",
    ),
    ("macro", "duckdb", "CREATE OR REPLACE MACRO decide(income, debt, age) AS {T};"),
    (
        "macro and view",
        "duckdb",
        "CREATE MACRO decide(income, debt, age) AS {T};\nCREATE VIEW d AS SELECT id, decide(income, debt, age) AS label FROM applications;",
    ),
    (
        "BigQuery function",
        "bigquery",
        "CREATE TEMP FUNCTION decide(income FLOAT64, debt FLOAT64, age FLOAT64) AS ({T});\n"
        "SELECT id, decide(income, debt, age) AS label FROM applications;",
    ),
    (
        "BigQuery view",
        "bigquery",
        "CREATE OR REPLACE VIEW `p.risk.d` OPTIONS(description='policy') AS SELECT * EXCEPT (status), {T} AS label FROM `p.risk.applications`",
    ),
    (
        "SCHEMABINDING",
        "tsql",
        "CREATE VIEW dbo.d WITH SCHEMABINDING AS SELECT a.id, {T} AS label FROM dbo.applications a WITH (NOLOCK)",
    ),
    (
        "batches",
        "tsql",
        "USE risk\nGO\nSET NOCOUNT ON\nGO\nALTER VIEW dbo.d AS SELECT id, {T} AS label FROM dbo.applications\nGO\n",
    ),
    ("CROSS APPLY", "tsql", "SELECT a.id, s.label FROM applications a CROSS APPLY (SELECT {T} AS label) s"),
    (
        "secure view",
        "snowflake",
        "CREATE OR REPLACE SECURE VIEW d COPY GRANTS AS SELECT id, {T} AS label FROM applications",
    ),
    (
        "late binding",
        "redshift",
        "CREATE OR REPLACE VIEW d AS SELECT id, {T} AS label FROM applications WITH NO SCHEMA BINDING",
    ),
    (
        "dbt",
        DBT,
        "{{ config(materialized='table', tags=['risk']) }}\n{# policy 7 #}\nwith source as (select * from {{ ref('risk', 'stg') }}),\n"
        "final as (select id, {T} as label from source)\nselect * from final",
    ),
    (
        "dbt incremental",
        DBT,
        "{{ config(materialized='incremental') }}\nselect id, {T} as label from {{ source('bank', 'applications') }}\n"
        "{% if is_incremental() %}\nwhere updated_at > (select max(updated_at) from {{ this }})\n{% endif %}",
    ),
    (
        "dbt variables",
        DBT,
        "{% set most = 0.4 %}\nselect id, CASE WHEN income >= {{ var('min_income', 30000) }} AND debt < {{ most }} THEN 'approve' "
        "WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END as label from {{ ref('stg') }}",
    ),
    ("copy", "duckdb", "COPY (SELECT id, {T} AS label FROM applications) TO 'scored.parquet' (FORMAT parquet)"),
)

SLIPS = (
    ("income >= 30000", "income > 30000"),
    ("debt < 0.4", "debt <= 0.4"),
    ("debt <= 0.6", "debt < 0.6"),
    ("'decline'", "'refer'"),
    ("age >= 25", "age >= 24"),
    ("30000", "30001"),
)
"""Edits, of which at least two can be made to every file: each gives some row another label."""


def file_forms():
    """(name, dialect, the file with the rule, the same with each slip)."""
    from tests.auditing.forms.corpus import EQUAL

    for number, (name, dialects, text) in enumerate(FILES):
        for place, dialect in enumerate(dialects.split()):
            right = text.replace("{T}", EQUAL["tree"][0])
            wrong = [right.replace(old, new) for old, new in SLIPS if old in right]
            yield name, dialect, right, wrong[(number + place) % len(wrong)]
