"""How SQL engines differ, as data: one frozen row per engine (`engines`), the reason beside each entry.

The emitter knows no engine by name. Tests ask each engine itself whether its row is right; the rows of engines that
were never run here say so in `not_run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gbfl_compile.backends.sql.spellings import Spelling
from gbfl_compile.ir.nodes import Kind

Missing: TypeAlias = Literal["null", "greatest", "ieee", "total"]
"""How NaN compares. null: the engine has none. greatest: above +inf and equal to itself, so `x >= 1` holds.
ieee: every comparison fails but `<>`. total: a NaN is above +inf or, with its sign bit set, below -inf, and NaNs of
different bits differ."""

Form: TypeAlias = Literal["expression", "select", "view", "table", "dbt", "macro"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine spells things, what NaN does in it and what its limits are."""

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
    """How a column is converted to double; a NULL stays NULL."""
    bigint_column: str = "BIGINT"
    """The type of 64-bit integers, as a function's result spells it."""
    text: str = "VARCHAR"
    """The type of strings of any length."""
    nan_test: str = ""
    """For ieee and total: the function that says whether a value is NaN."""

    identifier: Literal['"', "`", "["] = '"'
    longest_name: int = 255
    """In bytes of UTF-8. PostgreSQL truncates a longer one without an error, so it is refused here."""
    folds_case: bool = False
    """Whether quoted names that differ only in case are the same name. Other Unicode foldings are then uncertain."""
    unusable_aliases: frozenset[str] = frozenset()
    """Names, in lower case, that a column of a table may have but not one of a subselect, however they are quoted."""
    substituted: str = ""
    """What common clients replace in the text before the engine sees it, even in strings and comments."""
    refused_in_names: str = ""
    """Characters that no quoting allows in a name."""
    identifier_escapes: bool = False
    """Whether a backslash in a quoted name is an escape."""
    string_escapes: bool = False
    """Whether a backslash in a string is an escape."""
    escaped_quote: str = "''"
    """A quote inside a string. Spark reads 'it''s' as two strings; MariaDB can be set not to read \\' as a quote."""
    string_prefix: str = ""
    """The prefix that makes a string literal Unicode."""
    escape_prefix: str = ""
    """The prefix under which backslash escapes work under any server settings."""

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
    """Whether a view puts its fence in a LATERAL subselect: a filter on the view then still reaches the table."""
    fences_rows: bool = False
    """Whether a rule set is faster when the columns are cast in a fenced stage, once per row."""
    shares_clauses: int = 0
    """How many clauses to compute per stage, where that is faster than repeating them for each class; 0: never."""

    nesting: int = 200
    """How many CASEs deep an expression may go."""
    whens: int = 5000
    """How many WHENs one CASE may have."""
    terms: int = 5000
    """How many terms a balanced sum may have in one expression; more are added in a further stage."""
    brackets: bool = True
    """Whether sums are balanced by brackets; where reading them is slow, sums are kept short instead (`terms`)."""
    added: int = 100_000
    """How many terms all sums of a rule set may have in total; more are refused."""
    columns: int = 1000
    """How many columns a stage may have."""
    longest_query: int = 1_000_000_000
    """In bytes."""
    raise_limits: tuple[str, ...] = ()
    """Statements that lift the engine's own limits for a large query."""

    replaces_views: bool = True
    """Whether CREATE OR REPLACE VIEW exists."""
    table_as: str = "CREATE TABLE {name} AS"
    selects_into: bool = False
    """Whether a table is created by SELECT … INTO it."""
    macro: str | None = None
    """How a function of the features is created, or None where SQL cannot create one."""
    typed_arguments: bool = True
    """Whether the function's arguments name their type."""
    macro_arguments: int = 1000
    schema_made_by: str | None = "CREATE SCHEMA IF NOT EXISTS {name}"
    """How a schema is created in a scratch database, when an artifact that names one is run."""
    longest_result: int = 2**31 - 1
    """Characters of a text that a function can return."""

    kinds: Mapping[Kind, Spelling] = field(default_factory=dict)
    """How words, booleans, dates and timestamps are written; a kind that is not there is refused."""
    doubtful_not_in: bool = False
    """Whether a setting lets NULL NOT IN ('a', 'b') hold."""
    not_run: str | None = None
    """Why no test ran this dialect, or None."""
