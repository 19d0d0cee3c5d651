"""What dbt makes of a model and its schema.yml, as far as understood. Hooks and other templates are refused."""

from __future__ import annotations

import re

from gbfl_compile.check.reading import Unread

_WORD = r"(?:'[A-Za-z_][A-Za-z0-9_]*'|\"[A-Za-z_][A-Za-z0-9_]*\")"

TEMPLATE = re.compile(
    r"\{\{ (?:(?P<config>config\(materialized=(?:'(?:view|table|ephemeral)'|\"(?:view|table|ephemeral)\")\))"
    rf"|(?P<source>ref\({_WORD}\)|source\({_WORD}, {_WORD}\))"
    r"|(?P<brace>'\{')) \}\}"
)
"""The templates that are understood: nothing but literals in them, for anything else is a program of its own."""

SOURCE = "gbfl_dbt_source"
"""What a table is called here; dbt knows its name."""

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


def without_templates(text: str) -> str:
    """What dbt makes of a model: config of a plain kind, ref, source and a quoted brace."""
    if "{" in TEMPLATE.sub("", text):  # any brace at all: two that stand apart could meet
        raise Unread("a template that is not understood")
    if SOURCE in text.lower():  # a stage of this name would be taken for the table
        raise Unread(f"the name {SOURCE}, which stands for the table here")

    def made(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "source":
                return SOURCE
            case "brace":
                return "{"
            case _:
                return ""

    return TEMPLATE.sub(made, text)


def refuse_other_schemas(content: bytes) -> None:
    """Refuse a schema.yml that could say more than names and tests: a hook there changes rows."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise Unread("schema.yml: is not UTF-8") from None
    if not SCHEMA.fullmatch(text.replace("\r\n", "\n")):
        raise Unread("schema.yml: says more than the columns and their tests, which could change rows (config, hooks)")
