"""Traps of the engines' own lexers: each was seen on the engine, and each is read as that engine reads it or refused."""

import pytest

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.lexer import dbt_template, tokens_of
from gbfl_compile.checking.strict.sql.lexis import LEXIS
from tests.checking.strict.sql.cases import LABELS, RUN, SMALL, text_of, verdict

ENGINES = pytest.mark.parametrize("dialect", RUN)


def pieces(text, dialect, **how):
    return [(token.kind, token.text) for token in tokens_of(text, LEXIS[dialect], **how)[:-1]]


def is_refused(text, dialect, **how):
    with pytest.raises(Unread):
        pieces(text, dialect, **how)
    return True


@ENGINES
def test_a_quote_in_a_block_comment_is_refused(dialect):
    """DuckDB then rewrites a no-break space inside later strings."""
    for mark in ("it's", 'a "b', "a `b", "a $$ b", "a \\ b", "a -- b"):
        assert is_refused(f"/* {mark} */ 'a\u00a0b'", dialect)
    assert pieces("/* its */ 'a\u00a0b'", dialect) == [("text", "a\u00a0b")]


@ENGINES
def test_comments_that_are_code_are_refused(dialect):
    """MariaDB runs /*! and /*M!, DataFusion runs /*!, and /*+ is a hint."""
    for comment in ("/*! 1 */", "/*!50000 1 */", "/*M! 1 */", "/*M!100000 1 */", "/*+ hint */"):
        assert is_refused(comment, dialect)


@ENGINES
def test_nested_comments_are_refused(dialect):
    """SQLite and MariaDB end such a comment at the first */, the other five at the second."""
    assert is_refused("/* a /* b */ 1 */ 2", dialect)
    assert is_refused("/*/ 1 */", dialect)
    assert is_refused("/* a", dialect)


@ENGINES
def test_a_carriage_return_ends_no_line_here(dialect):
    """It ends a line comment in PostgreSQL, DuckDB and Spark alone."""
    for end in ("\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1a"):
        assert is_refused(f"-- a{end}1\n2", dialect)
        assert is_refused(f"/* a{end}1 */ 2", dialect)
        assert is_refused(f"1{end}2", dialect)
    assert pieces("-- a\n2", dialect) == [("whole", "2")]


def test_a_comment_of_spark_goes_on_after_a_backslash():
    assert is_refused("-- a \\\n1", "spark")
    assert pieces("-- a \\\n1", "duckdb") == [("whole", "1")]


@pytest.mark.parametrize("text", ["'${x}'", "-- ${x}\n1", "`${x}`", "/* ${x} */ 1"])
def test_spark_replaces_variables_everywhere(text):
    assert is_refused(text, "spark")


def test_two_dashes_need_a_blank_in_mariadb():
    assert is_refused("1 --1", "mariadb")
    assert pieces("1 -- 1\n", "mariadb") == [("whole", "1")]
    assert pieces("1 --\n2", "mariadb") == [("whole", "1"), ("whole", "2")]
    assert pieces("1 --1\n", "sqlite") == [("whole", "1")]


@pytest.mark.parametrize("word", ["CAST", "EXP", "LEAST", "greatest", "Concat"])
def test_a_blank_before_a_bracket_may_call_a_stored_function_in_mariadb(word):
    assert is_refused(f"{word} (1)", "mariadb")
    assert is_refused(f"{word}/**/(1)", "mariadb")
    assert pieces(f"{word} (1)", "duckdb")[0] == ("word", word)


@ENGINES
def test_strings_side_by_side_are_refused(dialect):
    """Joined in Spark and MariaDB, an alias in SQLite and DataFusion, an error in ClickHouse."""
    for two in ("'yes' 'no'", "'yes'\n'no'", "'yes''no'"):
        text = text_of(SMALL, dialect, **LABELS).replace("THEN 'yes'", f"THEN {two}")
        assert verdict(SMALL, text, dialect, **LABELS) == "unread"


@ENGINES
def test_a_comment_in_an_expression_is_refused(dialect):
    """At its end it would swallow what the expression is put before."""
    options = {"form": "expression"}
    text = text_of(SMALL, dialect, **options)
    assert verdict(SMALL, text, dialect, **options) == "proved"
    for comment in (" -- a", " /* a */", " -- a\n"):
        assert verdict(SMALL, text.rstrip() + comment, dialect, **options) == "unread"


def test_backslashes_are_read_as_each_engine_reads_them():
    assert pieces(r"'a\b'", "sqlite") == [("text", "a\\b")]
    assert pieces(r"'a\\b'", "duckdb") == [("text", "a\\\\b")]
    assert pieces(r"'a\\b'", "mariadb") == [("text", "a\\b")]
    assert pieces(r"'a\'b'", "spark") == [("text", "a'b")]
    assert pieces(r"'a\nb'", "clickhouse") == [("text", "a\nb")]
    assert pieces(r"E'a\\b'", "postgres") == [("text", "a\\b")]
    assert is_refused(r"'a\b'", "postgres")  # standard_conforming_strings decides what it is
    for escape in (r"'\x41'", r"'\u0041'", r"'\101'", r"'\%'", r"'\0'"):
        for dialect in ("mariadb", "clickhouse", "spark"):
            assert is_refused(escape, dialect)
    assert is_refused(r"'a\'b'", "mariadb")  # a setting takes the escape away


def test_quotes_are_read_as_each_engine_reads_them():
    for dialect in ("sqlite", "duckdb", "postgres", "mariadb", "datafusion"):
        assert pieces("'it''s'", dialect) == [("text", "it's")]
    for dialect in ("clickhouse", "spark"):
        assert is_refused("'it''s'", dialect)
    assert pieces('"a""b"', "postgres") == [("name", 'a"b')]
    assert pieces("`a``b`", "mariadb") == [("name", "a`b")]
    assert pieces(r"`a\`b\\c`", "clickhouse") == [("name", "a`b\\c")]
    assert is_refused('"age"', "sqlite")  # a string where no column has the name


@ENGINES
def test_other_strings_and_names_are_refused(dialect):
    quote = LEXIS[dialect].quote
    for text in (
        "N'a'",
        "X'41'",
        "U&'a'",
        "_utf8'a'",
        "B'1'",
        "$$a$$",
        "$1",
        ":x",
        "?",
        "@x",
        "#a",
        "[a]b{c}",
        "a\u00a0b",
        "größe",
        "\ufeff1",
        "a\\b",
        "1_000",
        "0x10",
        "1e5x",
        "1.2.3",
        "~1",
        "1 % 2",
        "1 ^ 2",
        "1 !> 2",
        "1 :: 2",
        quote * 2,
        f"{quote}a",
        "'a",
        "'a\0b'",
        "'a\ud800b'",
    ):
        assert is_refused(text, dialect)


def test_dbt_templates_are_literals():
    assert pieces("{{ ref('people') }}", "duckdb", template=dbt_template) == [("source", "people")]
    (token, _) = tokens_of("{{ source('raw', 'people') }}", LEXIS["duckdb"], dbt_template)
    assert (token.schema, token.text) == ("raw", "people")
    assert pieces("'{{ '{' }}{{ '{' }} 7*7 }}'", "duckdb", template=dbt_template) == [("text", "{{ 7*7 }}")]
    for text in (
        "{{ 7*7 }}",
        "{{ ref('a' ~ 'b') }}",
        '{{ ref("people") }}',
        "{{ ref('a', 'b') }}",
        "{{ var('x') }}",
        "{% set x = 1 %}",
        "{# no #}",
        "'{{ x }}'",
        "'{'",
        "{{ '{' }}",
        "-- {{ x }}\n1",
        "/* {# */ 1",
        "1 {{ config(materialized='view') }}",
        "{{ config(materialized='view', pre_hook='DELETE FROM people') }}",
        "{{ config(materialized='incremental') }}",
    ):
        assert is_refused(text, "duckdb", template=dbt_template)
    assert is_refused("{{ ref('people') }}", "duckdb")


SIZES = ("0.1e0", "1e0", "0.25e0", "1.5000000000000000e+00", "1E5", "123456.0e0", "1.0000000000000001e-01", "5e-1")


@pytest.mark.parametrize("text", SIZES)
def test_literals_are_the_doubles_sqlite_reads(text):
    import sqlite3
    from contextlib import closing

    from gbfl_compile.checking.strict.sql.arithmetic import decimal

    with closing(sqlite3.connect(":memory:")) as connection:
        (found,) = connection.execute(f"SELECT {text}").fetchone()
    assert decimal(LEXIS["sqlite"], text).value == found


def test_a_literal_that_sqlite_misreads_is_refused():
    """SQLite 3.40 reads 47.36882144582734 as another double than the nearest."""
    for text in ("47.36882144582734e0", "16.174532293615e0", "1.7e-300", "1.7e300"):
        old, options = "1.5e0", {**LABELS}
        edited = text_of(SMALL, "sqlite", **options).replace(old, text)
        assert verdict(SMALL, edited, "sqlite", **options) == "unread"
