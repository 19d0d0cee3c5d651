"""The dbt templates of the strict form: a plain config and the table's ref or source."""

from __future__ import annotations

import re

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.lexer import Token

_PLAIN = r"[\w .:+-]+"
_LABELS = rf'\[(?:"{_PLAIN}"|[\w.+-]+)(?:, (?:"{_PLAIN}"|[\w.+-]+))*\]'

SCHEMA = re.compile(
    r"version: 2\n+models:\n"
    r"  - name: \w+\n"
    r"(?:    description: [A-Za-z][A-Za-z0-9 ,.;-]*\n)?"
    r"    columns:\n"
    r"(?:      - name: \w+\n"
    r"        data_tests:\n"
    r"          - not_null\n"
    rf"(?:          - accepted_values:\n              values: {_LABELS}\n              quote: (?:true|false)\n)?"
    r")+\n*"
)
"""A schema.yml that says names and tests, and nothing that dbt would run on the rows."""


_WORD = r"'([A-Za-z_][A-Za-z0-9_]*)'"
_TEMPLATE = re.compile(
    r"\{\{ (?:"
    r"(?P<config>config\(materialized='(?:view|table)'\))"
    rf"|ref\((?P<model>{_WORD})\)"
    rf"|source\((?P<schema>{_WORD}), (?P<table>{_WORD})\)"
    r") \}\}"
)


def template(text: str, at: int) -> tuple[Token | None, int]:
    """The template at a brace; anything but literals in it is a program of its own and refused."""
    line = text.count("\n", 0, at) + 1
    found = _TEMPLATE.match(text, at)
    if found is None:
        raise Unread(f"line {line}: a template that is none of the strict form")
    if found["config"] is not None:
        return None, found.end()
    if found["model"] is not None:
        return Token("source", found["model"].strip("'"), line), found.end()
    return Token("source", found["table"].strip("'"), line, schema=found["schema"].strip("'")), found.end()


def refuse_other_schemas(content: bytes) -> None:
    """Refuse a schema.yml that could say more than names and tests: a hook there changes rows."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Unread("schema.yml: is not UTF-8") from None
    if not SCHEMA.fullmatch(text.replace("\r\n", "\n")):
        raise Unread("schema.yml: says more than the columns and their tests, which could change rows (config, hooks)")
