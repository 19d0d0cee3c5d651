"""A dbt model's template: what dbt would put into the SQL, and what is refused because only dbt knows it."""

from __future__ import annotations

import re

from gbfl_compile.checking.reading.nodes import Unread

CONFIG = re.compile(r"\{\{-?\s*config\((.*?)\)\s*-?\}\}", re.DOTALL)
SETTING = re.compile(r"""\s*(?:(\w+)\s*=\s*)?(?:'[^'{]*'|"[^"{]*"|[\w.]+|\[[^\]{]*\])\s*(?:,|$)""")
SETTINGS = {
    *("materialized", "unique_key", "schema", "database", "alias", "tags", "enabled", "incremental_strategy"),
    *("on_schema_change", "cluster_by", "partition_by", "indexes", "meta", "docs", "group", "access"),
}
"""What a dbt model may be configured with: hooks and headers run statements of their own."""
VALUES = {
    "materialized": {"table", "view", "incremental", "ephemeral", "materialized_view"},
    "enabled": {"true", "True"},
    "incremental_strategy": {"append", "merge", "delete+insert", "insert_overwrite", "microbatch"},
}
"""Values of settings that are dbt's own; others are macros of the project."""
THIS = re.compile(r"\{\{-?\s*this\s*-?\}\}")
TAG = re.compile(r"\s*\{#-.*?#\}|\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""What a template's reader takes first: a remark, or an expression in which a text may look like one."""
REF = re.compile(r"""\{\{-?\s*ref\(\s*(?:['"]\w+['"]\s*,\s*)?['"](\w+)['"]\s*\)\s*-?\}\}""")
SOURCE = re.compile(r"""\{\{-?\s*source\(\s*['"]\w+['"]\s*,\s*['"](\w+)['"]\s*\)\s*-?\}\}""")
INCREMENTAL = re.compile(r"\{%-?\s*if is_incremental\(\)\s*-?%\}((?:(?!\{%).)*)\{%-?\s*endif\s*-?%\}", re.DOTALL)
VARIABLE = re.compile(r"""\{\{-?\s*var\(\s*['"](\w+)['"]\s*,\s*('[\w ]*'|"[\w ]*"|-?[0-9.]+)\s*\)\s*-?\}\}""")
ASSIGNMENT = re.compile(r"""\{%-?\s*set\s+(\w+)\s*=\s*('[\w ]*'|"[\w ]*"|-?[0-9.]+)\s*-?%\}""")


SIGNS = re.compile(r"\{[{%#]|[}%#]\}")
"""What a template begins and ends with."""
REMARK, TEXT = r"--[^\n]*|/\*.*?\*/", r"""'(?:[^'{]|\{\{.*?\}\}|\{(?!\{))*'|"[^"]*"|`[^`]*`"""


def refuse_hidden_tags(content: str, parsed_as: str) -> None:
    """Refuse signs of a template that plain SQL does not see: in a remark, or in a text but for {{ … }} as a whole.

    Such a file is one thing to dbt and another to a database that it is given to as it is.
    """
    if not SIGNS.search(content):
        return
    has_hashes = parsed_as in ("mysql", "clickhouse")
    remarks = rf"{REMARK}|#[^\n]*" if has_hashes else REMARK
    texts = rf"{TEXT}|\[[^\]]*\]" if parsed_as in ("sqlite", "tsql") else TEXT
    spans = re.compile(rf"(?P<tag>{TAG.pattern})|(?P<remark>{remarks})|(?P<text>{texts})", re.DOTALL)
    hidden = [
        found["remark"] or re.sub(r"\{\{.*?\}\}", "", found["text"])
        for found in spans.finditer(content)
        if found["tag"] is None
    ]
    is_unclear = re.search(r"""\\['"`]|\$\w*\$|\"{3}|'{3}""" + ("|{#" if has_hashes else ""), content) is not None
    if is_unclear or any(map(SIGNS.search, hidden)):
        raise Unread("template markers inside a SQL comment or string: audit the compiled file")


def refuse_hooks(settings: str) -> None:
    place = 0
    while place < len(settings.rstrip()):
        match = SETTING.match(settings, place)
        if match is None or match[1] not in SETTINGS:
            name = settings[place:].strip() if match is None else match[1] or match[0]
            raise Unread(f"config({name[:60]}), which may do more than say where the rows go: audit the compiled file")
        value = match[0].partition("=")[2].strip(" ,'\"\n")
        if value not in VALUES.get(match[1], {value}):
            raise Unread(
                f"config({match[1]}={value}), which is not a materialization of dbt's own: audit the compiled file"
            )
        place = match.end()


def without_template(content: str) -> str:
    """The text with what dbt would put in it: names of tables, constants that the file itself sets."""
    content = THIS.sub("gbfl_this", SOURCE.sub(r"\1", REF.sub(r"\1", content)))
    content = VARIABLE.sub(lambda found: _bare(found[2]), content)
    settings = ASSIGNMENT.findall(content)
    if len({name for name, _ in settings}) == len(settings):
        head, *_ = re.split(r"\{\{", content, maxsplit=1)
        if len(ASSIGNMENT.findall(head)) != len(settings):
            raise Unread("a template that sets a constant after it has begun to use constants: audit the compiled file")
        content = ASSIGNMENT.sub("", content)
        for name, value in settings:
            content = re.sub(rf"\{{\{{-?\s*{name}\s*-?\}}\}}", _bare(value), content)
    if "{{" in content or "{%" in content:
        raise Unread("a template: audit the compiled file, which dbt writes to target/compiled")
    return content


def _bare(value: str) -> str:
    """What a template writes for a constant: a text without its quotes."""
    return value.strip("'\"")


def separate_models(content: str, parsed_as: str) -> str:
    """The template with other names for models and sources that are called as a stage of it is.

    dbt writes the schema before them: `{{ ref('loans') }}` is never the stage `loans`.
    """
    from sqlglot import exp, parse

    if not REF.search(content) and not SOURCE.search(content):
        return content
    trees = [tree for tree in parse(without_template(content), read=parsed_as) if tree is not None]
    stages = {stage.alias.casefold() for tree in trees for stage in tree.find_all(exp.CTE)}

    def rename(found: re.Match[str]) -> str:
        return f"gbfl_model_{found[1]}" if found[1].casefold() in stages else found[0]

    return SOURCE.sub(rename, REF.sub(rename, content))
