"""The strict form of SQL: what is read here was accounted for token by token, and only that may be called proved.

`read_strict` takes the text of an artifact, `read_strict_view` a view as its database's catalog prints it. Both are
given what the text should read and answer (`ExpectedText`), and raise Unread on whatever is not in the strict form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gbfl_compile.checking.reading.nodes import Reading, Unread, one_file
from gbfl_compile.checking.strict.sql.catalogs import catalog_of, refuse_declared_conversions
from gbfl_compile.checking.strict.sql.cursor import Cursor
from gbfl_compile.checking.strict.sql.cursor import ExpectedText as ExpectedText
from gbfl_compile.checking.strict.sql.cursor import expected_from as expected_from
from gbfl_compile.checking.strict.sql.cursor import expected_of as expected_of
from gbfl_compile.checking.strict.sql.forms import artifact
from gbfl_compile.checking.strict.sql.lexer import dbt_template, refuse_other_schemas, tokens_of
from gbfl_compile.checking.strict.sql.lexis import lexis_of
from gbfl_compile.checking.strict.sql.normal import reading
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Label, Program

LARGEST = 20_000_000
"""Characters of a text: more than any artifact has."""


def read_strict(text: str, dialect: str, expected: ExpectedText) -> tuple[Reading, ...]:
    """What an artifact answers: one reading, which holds for NULL and for every NaN alike."""
    lexis = lexis_of(dialect)
    if len(text) > LARGEST:
        raise Unread(f"more than {LARGEST} characters")
    template = dbt_template if expected.form == "dbt" else None
    try:
        tokens = tokens_of(text, lexis, template, comments=expected.form != "expression")
        at = Cursor(tokens, lexis, expected)
        return (reading(lexis, expected, artifact(at), at.book),)
    except RecursionError:
        raise Unread("nested too deeply") from None


def read_strict_files(
    dialect: str,
    files: Mapping[str, bytes],
    program: Program,
    options: Mapping[str, str],
    labels: tuple[Label, ...] | None = None,
) -> tuple[Reading, ...]:
    """The reading of the one .sql file; a dbt model's schema.yml may name columns and tests, and nothing else.

    `labels` is how the text should write the classes, where that is not by their names.
    """
    name, content = one_file({name: content for name, content in files.items() if name != "schema.yml"}, ".sql")
    try:
        text = content.decode("utf-8")
        expected = expected_from(text, program, options)
        readings = read_strict(text, dialect, replace(expected, classes=labels or expected.classes))
    except UnicodeDecodeError:
        raise Unread(f"{name}: is not UTF-8") from None
    except (Unread, BadInput) as error:
        raise Unread(f"{name}: {error}") from error.__cause__
    if "schema.yml" in files:
        refuse_other_schemas(files["schema.yml"])
    return readings


def refuse_conversions(definition: str, dialect: str, expected: ExpectedText) -> None:
    """Refuse a view that declares other types than its query gives: ClickHouse converts what comes out."""
    if dialect == "clickhouse":
        refuse_declared_conversions(definition, expected)


def read_strict_view(definition: str, dialect: str, expected: ExpectedText) -> tuple[Reading, ...]:
    """What a view answers, from its definition as the catalog of its database prints it."""
    lexis, catalog, read = catalog_of(dialect)
    try:
        at = Cursor(tokens_of(definition, lexis), lexis, replace(expected, form="view"), catalog)
        return (reading(lexis, expected, read(at), at.book),)
    except RecursionError:
        raise Unread("nested too deeply") from None
