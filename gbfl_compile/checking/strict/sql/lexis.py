"""How each engine that is run here reads letters, quotes, numbers and NaN: one row per engine, the checker's own.

It shares nothing with the table the emitter writes by: a mistake there would then be a mistake here as well. Every
entry was seen on the engine itself; the dialects that are never run have no row, so nothing of theirs is ever proved.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread

Nan: TypeAlias = Literal["none", "greatest", "ieee", "total"]
"""none: NaN is stored as NULL or refused. greatest: every NaN is above +inf and equal to itself. ieee: a comparison
with NaN never holds. total: a NaN is above +inf or, with its sign bit set, below -inf; only NaNs of the same bits are
equal."""

NEVER_RUN = ("mysql", "snowflake", "bigquery", "databricks", "redshift", "trino", "tsql", "oracle")


@dataclass(frozen=True, slots=True)
class Lexis:
    """How the text of one engine is taken apart and what its words mean."""

    name: str
    engine: str
    """What people call it."""
    quote: Literal['"', "`"]
    """What surrounds a name."""
    nan: Nan
    double: str
    bigint: str
    """The types, as CAST spells them."""
    text: str = "VARCHAR"
    bigint_result: str = "BIGINT"
    """The types, as the result of a function is declared."""
    nan_test: str = ""
    """The function that says whether a double is NaN."""
    infinities: bool = False
    """Whether CAST('Infinity' AS <double>) may bound a comparison."""
    double_function: str = ""
    """A function that makes a column a double, beside CAST."""

    name_escapes: Mapping[str, str] = field(default_factory=dict)
    """What a backslash and this letter mean in a quoted name; empty where a backslash is a letter."""
    string_escapes: Mapping[str, str] = field(default_factory=dict)
    """The same for strings."""
    doubled_quotes: bool = True
    """Whether '' inside a string is a quote; where not, it ends one string and begins another."""
    escape_prefix: str = ""
    """A letter before the quote under which a backslash is an escape; a plain string may then hold none at all."""
    replaced: tuple[str, ...] = ()
    """Texts that are replaced before the query is read, even in strings and comments."""
    continued_comments: bool = False
    """Whether a backslash at its end lets a line comment go on in the next line."""
    dashes_need_blank: bool = False
    """Whether `--` begins a comment only before a blank; `--1` is arithmetic then."""
    tight_calls: bool = False
    """Whether `CAST (` with a blank may call a stored function of that name."""
    signs: tuple[str, ...] = ()
    """Operators beside those all engines share."""
    before_quotes: tuple[str, ...] = ()
    """Words that a catalog prints right before the quote of a literal: DATE'2024-02-29'."""
    bare_names: bool = False
    """Whether names come without quotes: catalogs print them so."""
    numbers: Literal["exponent", "any"] = "exponent"
    """Whether a decimal must have an exponent to be certain of its type."""

    negatives: bool = True
    """Whether a minus before a number belongs to it."""
    exponent: Literal["double", "numeric"] = "double"
    """What `1.5e0` is; a NUMERIC has to be cast before it is compared."""
    rounds_twice: bool = False
    """Whether some versions misread decimals that lie nearly half-way between two doubles."""
    booleans: bool = True
    """Whether TRUE and FALSE are values of their own."""
    least: str = "LEAST"
    greatest: str = "GREATEST"
    joins_by_bars: bool = True
    """Whether || joins texts."""
    lists: bool = False
    """Whether `[a, b][n]` looks a constant up."""
    fence: str = ""
    """What may close a stage to keep it a stage of its own."""
    lateral: bool = False
    """Whether a fenced stage may be written as CROSS JOIN LATERAL."""
    limits: tuple[str, ...] = ()
    """The statements that may come before a large query."""
    replaces_views: bool = True
    table_as: tuple[str, str] = ("CREATE TABLE", "AS")
    """What comes before and after the name of a table that is made of a query."""
    function: tuple[str, str, str, str] | None = None
    """What comes before a function's name, before and after its arguments, and after its result's type."""
    typed_arguments: bool = True
    longest_result: int | None = None
    """How many characters the text a function returns may have, where its type says so."""
    exact_names: bool = False
    """Whether names in quotes that differ in case alone are two names."""
    folds_accents: bool = False
    """Whether names that differ in accents alone are one name."""
    longest_name: int | None = None
    """How many letters of a name count; the rest is cut off, or the name refused."""
    names_in_bytes: bool = False
    """Whether bytes are counted instead."""
    basic_names: bool = False
    """Whether a letter past U+FFFF in a name becomes a question mark."""


_BACKSLASHES = {"\\": "\\", "n": "\n", "r": "\r"}

_ROWS = (
    Lexis(
        name="sqlite",
        engine="SQLite",
        quote="`",  # in double quotes a name no column has would be a string
        nan="none",  # NaN is stored as NULL
        replaced=("\r\n",),  # the sqlite3 shell drops the carriage return, in strings too
        double="REAL",
        bigint="INTEGER",
        rounds_twice=True,  # 3.40 and 3.51 misread some shortest decimals
        booleans=False,
        least="MIN",
        greatest="MAX",
        fence="LIMIT -1 OFFSET 0",
        replaces_views=False,
    ),
    Lexis(
        name="duckdb",
        engine="DuckDB",
        quote='"',
        nan="greatest",  # of either sign and any payload
        double="DOUBLE",
        bigint="BIGINT",
        lists=True,
        function=("CREATE MACRO", "(", ") AS", ""),
        typed_arguments=False,
    ),
    Lexis(
        name="postgres",
        exact_names=True,
        longest_name=63,
        names_in_bytes=True,
        engine="PostgreSQL",
        quote='"',
        nan="greatest",
        double="DOUBLE PRECISION",
        bigint="BIGINT",
        text="TEXT",
        escape_prefix="E",  # a backslash in a plain string depends on standard_conforming_strings
        exponent="numeric",
        fence="OFFSET 0",
        lateral=True,
        function=("CREATE FUNCTION", "(", ") RETURNS", "LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN"),
    ),
    Lexis(
        name="mariadb",
        engine="MariaDB",
        quote="`",
        nan="none",  # NaN is refused by its tables
        double="DOUBLE",
        bigint="SIGNED",
        text="VARCHAR(1000)",
        longest_result=1000,  # without strict mode the rest is cut off
        string_escapes=_BACKSLASHES,
        dashes_need_blank=True,
        tight_calls=True,
        booleans=False,
        joins_by_bars=False,  # || is OR
        fence="LIMIT 18446744073709551615",
        function=("CREATE FUNCTION", "(", ") RETURNS", "DETERMINISTIC NO SQL RETURN"),
        folds_accents=True,  # names are compared by utf8mb3_general_ci
        longest_name=64,
        basic_names=True,
    ),
    Lexis(
        name="clickhouse",
        exact_names=True,
        engine="ClickHouse",
        quote="`",
        nan="ieee",
        double="Float64",
        bigint="Int64",
        nan_test="isNaN",
        double_function="toFloat64",
        name_escapes={"\\": "\\", "`": "`"},
        string_escapes={**_BACKSLASHES, "'": "'"},
        doubled_quotes=False,
        limits=(
            "SET max_query_size = 100000000",
            "SET max_ast_elements = 10000000",
            "SET max_expanded_ast_elements = 10000000",
            "SET max_ast_depth = 10000",
        ),
        table_as=("CREATE TABLE", "ENGINE = MergeTree ORDER BY tuple() AS"),
        function=("CREATE FUNCTION", "AS (", ") ->", ""),
        typed_arguments=False,
    ),
    Lexis(
        name="spark",
        engine="Spark",
        quote="`",
        nan="greatest",
        double="DOUBLE",
        bigint="BIGINT",
        text="STRING",
        string_escapes={**_BACKSLASHES, "'": "'"},
        doubled_quotes=False,  # 'it''s' is two strings, joined
        replaced=("${",),  # spark.sql.variable.substitute is on by default
        continued_comments=True,
        limits=("SET spark.sql.codegen.wholeStage = false", "SET spark.sql.codegen.factoryMode = NO_CODEGEN"),
        function=("CREATE TEMPORARY FUNCTION", "(", ") RETURNS", "RETURN"),
    ),
    Lexis(
        name="datafusion",
        exact_names=True,
        engine="DataFusion",
        quote='"',
        nan="total",  # x < 5 holds for a NaN with its sign bit set, x = CAST('NaN' AS DOUBLE) misses payloads
        double="DOUBLE",
        bigint="BIGINT",
        nan_test="isnan",
        infinities=True,
    ),
)

LEXIS: Mapping[str, Lexis] = {row.name: row for row in _ROWS}


def lexis_of(dialect: str) -> Lexis:
    """The row of an engine, or Unread for one that is never run here."""
    if dialect in NEVER_RUN:
        raise Unread(f"the SQL of {dialect} is never run here, so nothing about it is proved")
    if dialect not in LEXIS:
        raise Unread(f"no engine is called {dialect!r}: the engines are {', '.join(LEXIS)}")
    return LEXIS[dialect]


def keeps_name(lexis: Lexis, name: str) -> bool:
    """Whether the engine knows a name as it is written, and not by a part of it or by other letters."""
    length = len(name.encode("utf-8")) if lexis.names_in_bytes else len(name)
    fits = lexis.longest_name is None or length <= lexis.longest_name
    return fits and not (lexis.basic_names and max(name, default="") > "\uffff")


def one_name(lexis: Lexis, name: str) -> str:
    """What two names share where the engine may take them for one. Rather too much than too little: see `stages`."""
    if not lexis.folds_accents:
        return name.casefold()
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).replace("ss", "s").rstrip()
