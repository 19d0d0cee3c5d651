"""What a SQL engine does its own way, as data: one frozen row an engine (`sql_engines`), the reason beside each entry.

The emitter knows no engine by name. What an engine relies on is measured by tests that ask the engine itself; the
rows of engines that were never run here say so in `not_run`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Missing: TypeAlias = Literal["null", "greatest", "ieee"]
"""How NaN compares. null: the engine has none. greatest: above +inf and equal to itself, so `x >= 1` takes it.
ieee: every comparison fails but `<>`."""

Form: TypeAlias = Literal["expression", "select", "view", "table", "dbt", "macro"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine spells things, what NaN does in it and how much it can take."""

    name: str
    """The part of the target after `sql:`."""
    engine: str
    """What people call it."""
    sqlglot: str
    """The dialect sqlglot reads it as."""

    double: str
    """The type of 64-bit floating point numbers."""
    bigint: str
    """The type of 64-bit integers, as CAST spells it."""
    missing: Missing
    cast: str = "CAST({column} AS {type})"
    """How a column is made a double; a NULL stays NULL."""
    bigint_column: str = "BIGINT"
    """The type of 64-bit integers, as a function's result spells it."""
    text: str = "VARCHAR"
    """The type of strings of any length."""
    nan_test: str = ""
    """For ieee: the function that says whether a value is NaN."""

    identifier: Literal['"', "`", "["] = '"'
    longest_name: int = 255
    """In bytes of UTF-8. PostgreSQL cuts a longer one off without an error, so it is refused here."""
    folds_case: bool = False
    """Whether quoted names that differ in case alone are the same name."""
    refused_in_names: str = ""
    """Characters no quoting can write."""
    identifier_escapes: bool = False
    """Whether a backslash in a quoted name is an escape."""
    string_escapes: bool = False
    """Whether a backslash in a string is an escape."""
    escaped_quote: str = "''"
    """A quote inside a string. Spark reads 'it''s' as two strings; MariaDB can be set not to read \\' as a quote."""
    string_prefix: str = ""
    """What makes a string literal Unicode."""
    escape_prefix: str = ""
    """The prefix under which backslash escapes are certain, whatever the server's settings."""

    exponent_is_double: bool = True
    """Whether `1.5e0` is a double; where it is a decimal (NUMERIC) it is cast."""
    decimal_digits: Literal["shortest", "seventeen"] = "shortest"
    widest_literal: tuple[float, float] = (0.0, float("inf"))
    """The magnitudes whose decimal spelling the engine reads exactly; others are products of powers of two."""
    refused_literals: tuple[float, float] = (0.0, float("inf"))
    """The magnitudes the type can hold; others are refused."""
    booleans: bool = True
    """Whether TRUE is a value; where not, it is 1."""
    least: str = "LEAST"
    greatest: str = "GREATEST"
    concatenates: bool = True
    """Whether || joins strings; where not, CONCAT does."""
    lists: bool = False
    """Whether `[a, b][1]` is a quick constant look-up."""

    fence: str = ""
    """What keeps an engine from copying a stage's expression to each place that uses it."""
    lateral: bool = False
    """Whether the fence of a view stands in a LATERAL subselect: a filter on the view then still reaches the table."""
    fences_rows: bool = False
    """Whether a rule set is quicker when the columns are cast in a fenced stage, once a row."""
    shares_clauses: int = 0
    """Up to so many clauses, computing each once in a stage is quicker than repeating it for each class."""

    nesting: int = 200
    """How many CASEs deep an expression may go."""
    whens: int = 5000
    """How many WHENs one CASE may have."""
    terms: int = 5000
    """How many terms a balanced sum may have in one expression; more are added up in a further stage."""
    brackets: bool = True
    """Whether sums are balanced by brackets; where reading them is slow, sums are kept short instead (`terms`)."""
    added: int = 100_000
    """How many terms all sums of a rule set may have together; more are refused."""
    columns: int = 1000
    """How many columns a stage may have."""
    longest_query: int = 1_000_000_000
    """In bytes."""
    raise_limits: tuple[str, ...] = ()
    """Statements that lift the engine's own limits for a large query."""

    replaces_views: bool = True
    """Whether CREATE OR REPLACE VIEW is there."""
    table_as: str = "CREATE TABLE {name} AS"
    selects_into: bool = False
    """Whether a table is made by SELECT … INTO it."""
    macro: str | None = None
    """How a function of the features is made, or None where SQL cannot make one."""
    typed_arguments: bool = True
    """Whether the function's arguments name their type."""
    macro_arguments: int = 1000
    schema_made_by: str | None = "CREATE SCHEMA IF NOT EXISTS {name}"
    """How a schema is made in a scratch database, when an artifact that names one is run."""

    not_run: str | None = None
    """Why no test ran this dialect, or None."""
    large_integers: str = "compared as doubles"
    """What happens to a BIGINT beyond 2^53 where types=any; with types=double nothing is cast."""
    decimals: str = "converted to double, correctly rounded"
    """What happens to a DECIMAL column where types=any."""
