"""The engines: one Dialect row each, with what it relies on. Versions move; tests ask the engine itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gbfl_compile.backends.sql.dialect import (
    CLICKHOUSE_KINDS,
    DATAFUSION_KINDS,
    DUCKDB_KINDS,
    MARIADB_KINDS,
    POSTGRES_KINDS,
    SPARK_KINDS,
    SQLITE_KINDS,
    Dialect,
)

SQLITE = Dialect(
    name="sqlite",
    engine="SQLite",
    sqlglot="sqlite",
    substituted="\r\n",  # the sqlite3 shell drops the carriage return, in strings too
    double="REAL",
    bigint="INTEGER",
    missing="null",  # NaN is stored as NULL. CAST('nan' AS REAL) is 0.0: a guard would drop zeros
    identifier="`",  # a "name" that no column has is silently read as a string, a `name` is an error
    folds_case=True,
    unusable_aliases=frozenset({"true", "false"}),  # "no such column": true
    decimal_digits="seventeen",  # 3.40 misreads one in 15,000 shortest decimals and no %.16e of ordinary size
    widest_literal=(1e-60, 1e60),  # beyond, 3.40 and 3.51 misread %.16e too (74 and 3,399 of 20,000)
    booleans=False,  # TRUE is 1, and only since 3.23
    least="MIN",
    greatest="MAX",
    fence="LIMIT -1 OFFSET 0",  # a subselect with an OFFSET is not flattened; it runs as a co-routine
    fences_rows=True,  # a flattened CAST runs for each comparison
    shares_clauses=1000,  # tested once and multiplied, rather than tested for each class
    nesting=18,  # 3.40: 20 worked, 50 did not
    columns=1900,  # 2,000 is the limit
    replaces_views=False,
    schema_made_by="ATTACH ':memory:' AS {name}",
    kinds=SQLITE_KINDS,
)

DUCKDB = Dialect(
    name="duckdb",
    engine="DuckDB",
    sqlglot="duckdb",
    double="DOUBLE",
    bigint="BIGINT",
    missing="greatest",
    folds_case=True,
    lists=True,  # a look-up in a list of constants, where others need a balanced CASE
    shares_clauses=100,  # few columns at once: more are planned far more slowly
    macro="CREATE MACRO {name}({arguments}) AS",
    typed_arguments=False,
    kinds=DUCKDB_KINDS,
)

POSTGRES = Dialect(
    name="postgres",
    engine="PostgreSQL",
    sqlglot="postgres",
    double="DOUBLE PRECISION",
    bigint="BIGINT",
    text="TEXT",
    missing="greatest",
    longest_name=63,
    escape_prefix="E",  # with standard_conforming_strings off a plain 'a\b' would be an escape
    exponent_is_double=False,  # 1.5e0 is NUMERIC, and sums and comparisons of DECIMAL columns go wrong with it
    fence="OFFSET 0",  # pulled up, a sum would be computed anew for each output
    lateral=True,
    shares_clauses=1000,  # tested once and multiplied, rather than tested for each class
    columns=1600,  # 1,664 target list entries
    macro="CREATE FUNCTION {name}({arguments}) RETURNS {type} LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN",
    macro_arguments=100,
    kinds=POSTGRES_KINDS,
)

MARIADB = Dialect(
    name="mariadb",
    engine="MariaDB",
    sqlglot="mysql",
    double="DOUBLE",
    text="VARCHAR(1000)",
    longest_result=1000,
    bigint="SIGNED",  # as CAST spells it
    missing="null",  # NaN and infinities are refused. CAST('nan' AS DOUBLE) is 0.0: a guard would drop zeros
    identifier="`",
    longest_name=64,
    folds_case=True,
    string_escapes=True,
    booleans=False,
    concatenates=False,  # || is OR
    fence="LIMIT 18446744073709551615",  # a derived table with a LIMIT is not merged
    shares_clauses=1000,  # tested once and multiplied, rather than tested for each class
    columns=4000,
    nesting=100,
    macro="CREATE FUNCTION {name}({arguments}) RETURNS {type} DETERMINISTIC NO SQL RETURN",
    schema_made_by="CREATE DATABASE IF NOT EXISTS {name}",
    kinds=MARIADB_KINDS,
)

CLICKHOUSE = Dialect(
    name="clickhouse",
    engine="ClickHouse",
    sqlglot="clickhouse",
    double="Float64",
    bigint="Int64",
    cast="toFloat64({column})",  # CAST AS Float64 fails on NULL, and AS Nullable(Float64) slows every comparison
    missing="ieee",
    nan_test="isNaN",
    identifier="`",
    identifier_escapes=True,
    string_escapes=True,
    escaped_quote="\\'",
    nesting=100,
    terms=500,
    longest_query=250_000,  # max_query_size is 256 KiB
    raise_limits=(
        "SET max_query_size = 100000000",
        "SET max_ast_elements = 10000000",
        "SET max_expanded_ast_elements = 10000000",
        "SET max_ast_depth = 10000",
    ),
    table_as="CREATE TABLE {name} ENGINE = MergeTree ORDER BY tuple() AS",
    macro="CREATE FUNCTION {name} AS ({arguments}) ->",
    typed_arguments=False,
    schema_made_by="CREATE DATABASE IF NOT EXISTS {name}",
    kinds=CLICKHOUSE_KINDS,
    doubtful_not_in=True,  # transform_null_in
)

SPARK = Dialect(
    name="spark",
    engine="Spark",
    sqlglot="spark",
    substituted="${",  # spark.sql.variable.substitute is on by default
    double="DOUBLE",
    text="STRING",
    bigint="BIGINT",
    missing="greatest",
    identifier="`",
    folds_case=True,
    string_escapes=True,
    escaped_quote="\\'",
    nesting=100,
    whens=2000,  # 28 s to plan
    terms=50,
    brackets=False,  # its parser takes seconds for two hundred bracketed terms, and a tenth of that for plain ones
    added=1500,  # 900 CASEs take a minute to plan, 3,900 did not end in six
    longest_query=60_000,  # from here on compiling the query to Java takes longer than running it without
    raise_limits=("SET spark.sql.codegen.wholeStage = false", "SET spark.sql.codegen.factoryMode = NO_CODEGEN"),
    macro="CREATE TEMPORARY FUNCTION {name}({arguments}) RETURNS {type} RETURN",
    kinds=SPARK_KINDS,
)

DATAFUSION = Dialect(
    name="datafusion",
    engine="DataFusion",
    sqlglot="postgres",  # sqlglot has no DataFusion
    double="DOUBLE",
    bigint="BIGINT",
    missing="total",  # x < 5 holds for a NaN with its sign bit set, such as 0.0/0.0 on x86
    nan_test="isnan",
    nesting=18,  # 20 worked, 50 did not
    terms=1000,  # 2,000 terms took 41 s to plan
    kinds=DATAFUSION_KINDS,
)

_NEVER = "{} is not run here: the SQL is written and read back by sqlglot, no engine has executed it"

SNOWFLAKE = Dialect(
    name="snowflake",
    engine="Snowflake",
    sqlglot="snowflake",
    substituted="&",  # documented for SnowSQL
    double="DOUBLE",
    bigint="BIGINT",
    missing="greatest",  # documented: NaN is greater than any number and equal to itself
    string_escapes=True,
    exponent_is_double=False,  # a literal may be a NUMBER of 38 digits
    not_run=_NEVER.format("Snowflake"),
)

BIGQUERY = Dialect(
    name="bigquery",
    engine="BigQuery",
    sqlglot="bigquery",
    double="FLOAT64",
    bigint="INT64",
    missing="ieee",  # documented: comparisons with NaN are false, <> is true
    nan_test="IS_NAN",
    identifier="`",
    longest_name=300,
    folds_case=True,
    identifier_escapes=True,
    refused_in_names='\n\r!"$()*,./;?@[]^`{}~\\',  # documented for column names
    string_escapes=True,
    escaped_quote="\\'",
    whens=500,
    not_run=_NEVER.format("BigQuery"),
)

DATABRICKS = replace(
    SPARK,
    name="databricks",
    engine="Databricks",
    sqlglot="databricks",
    longest_query=1_000_000_000,
    raise_limits=(),
    kinds={},
    not_run=_NEVER.format("Databricks"),
)

REDSHIFT = replace(
    POSTGRES,
    name="redshift",
    engine="Redshift",
    sqlglot="redshift",
    longest_name=127,
    folds_case=True,  # names are lower case unless enable_case_sensitive_identifier is on
    escape_prefix="",
    string_escapes=True,
    lateral=False,
    fence="",
    shares_clauses=0,
    macro=None,
    kinds={},
    not_run=_NEVER.format("Redshift"),
)

TRINO = Dialect(
    name="trino",
    engine="Trino",
    sqlglot="trino",
    double="DOUBLE",
    bigint="BIGINT",
    missing="ieee",  # documented: as IEEE 754 has it
    nan_test="is_nan",
    folds_case=True,
    not_run=_NEVER.format("Trino"),
)

TSQL = Dialect(
    name="tsql",
    engine="SQL Server",
    sqlglot="tsql",
    substituted="$(",  # documented for sqlcmd
    double="FLOAT(53)",
    bigint="BIGINT",
    missing="null",  # float holds neither NaN nor infinities
    identifier="[",
    longest_name=128,
    folds_case=True,  # by the default collation
    string_prefix="N",
    refused_literals=(2.3e-308, 1.79e308),  # documented range of float
    booleans=False,
    concatenates=False,
    nesting=9,  # 10 levels
    replaces_views=False,
    selects_into=True,
    not_run=_NEVER.format("SQL Server"),
)

ORACLE = Dialect(
    name="oracle",
    engine="Oracle",
    sqlglot="oracle",
    substituted="&",  # documented for SQL*Plus
    double="BINARY_DOUBLE",
    bigint="NUMBER(19)",
    missing="greatest",  # documented for BINARY_DOUBLE
    longest_name=128,
    refused_in_names='"',
    exponent_is_double=False,  # 1.5e0 is a NUMBER
    refused_literals=(1e-120, 1e120),  # what NUMBER holds
    booleans=False,
    not_run=_NEVER.format("Oracle"),
)

DIALECTS: Mapping[str, Dialect] = {
    row.name: row
    for row in (
        SQLITE,
        DUCKDB,
        POSTGRES,
        MARIADB,
        replace(MARIADB, name="mysql", engine="MySQL", kinds={}, not_run=_NEVER.format("MySQL")),
        CLICKHOUSE,
        SPARK,
        DATAFUSION,
        SNOWFLAKE,
        BIGQUERY,
        DATABRICKS,
        REDSHIFT,
        TRINO,
        TSQL,
        ORACLE,
    )
}
