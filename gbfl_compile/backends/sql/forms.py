"""The forms an artifact comes in: one expression, a query, a view, a table, a dbt model or a function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from gbfl_compile.backends.sql.conditions import argument_type, exact_column
from gbfl_compile.backends.sql.decisions import rule_expressions, rule_stages, tree_items, tree_stages
from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.options import Layout, Output
from gbfl_compile.backends.sql.text import (
    Item,
    Stage,
    identifier,
    item,
    item_lines,
    label_type,
    qualified_name,
    query_lines,
    with_commas,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Program, Scorecard, Tree
from gbfl_compile.ir.text import leaf_reasons, rule_reasons

BRACE = "{{ '{' }}"
"""An opening brace in a dbt model, where a bare one could begin a template."""


def statements(program: Program, chosen: Layout) -> list[list[str]]:
    """The statements of a form, line by line."""
    name = qualified_name(chosen.dialect, chosen.schema, chosen.view)
    match chosen.form:
        case "expression":
            return [_expression(program, chosen)]
        case "select":
            return [_query(program, chosen)]
        case "view":
            return [[f"CREATE {_replacing(chosen)}VIEW {name} AS", *_query(program, chosen)]]
        case "table":
            return [_table(program, chosen, name)]
        case "dbt":
            return [_dbt_model(program, chosen)]
        case "macro":
            return _functions(program, chosen)
        case _:
            assert_never(chosen.form)


def _replacing(chosen: Layout) -> str:
    if not chosen.replace:
        return ""
    if not chosen.dialect.replaces_views:
        raise BadInput(f"{chosen.dialect.engine} has no CREATE OR REPLACE VIEW: drop the view and leave replace out")
    return "OR REPLACE "


def _table(program: Program, chosen: Layout, name: str) -> list[str]:
    if not chosen.dialect.selects_into:
        return [chosen.dialect.table_as.format(name=name), *_query(program, chosen)]
    lines = _query(program, chosen)
    last = max(number for number, line in enumerate(lines) if line.startswith("FROM "))
    return [*lines[:last], f"INTO {name}", *lines[last:]]


def _query(program: Program, chosen: Layout, source: str | None = None) -> list[str]:
    dialect = _dialect_for_form(chosen)
    columns = {feature: identifier(dialect, name) for feature, name in chosen.names.items()}
    features = [item(name, _column(program, chosen, feature)) for feature, name in chosen.names.items()]
    fenced = dialect.fences_rows and isinstance(program.decision, Scorecard)
    rows = Stage("gbfl_rows", tuple(features) or (item("gbfl_one", "1"),), (), fenced)
    match program.decision:
        case Tree():
            stages = tree_stages(dialect, program, program.decision, columns, chosen.outputs)
        case Scorecard():
            stages = rule_stages(dialect, program, program.decision, chosen.names, chosen.outputs)
        case _:
            assert_never(program.decision)
    widest = max(len(stage.items) + len(stage.carried) for stage in (rows, *stages)) + len(chosen.keys)
    if widest > dialect.columns:
        raise BadInput(f"a stage of {widest} columns: {dialect.engine} takes {dialect.columns}, ask for fewer outputs")
    table = source or qualified_name(dialect, chosen.schema, chosen.table)
    return query_lines(dialect, (rows, *stages), chosen.keys, table)


def _dialect_for_form(chosen: Layout) -> Dialect:
    """The dialect as this form uses it: only views are filtered later, and LATERAL stages do not share clauses."""
    if not chosen.dialect.lateral:
        return chosen.dialect
    if chosen.form in ("view", "dbt"):
        return replace(chosen.dialect, shares_clauses=0)
    return replace(chosen.dialect, lateral=False)


def _column(program: Program, chosen: Layout, feature: int) -> str:
    """A column of the table as the rules compare it: a number as a double."""
    return _exact_column(program, chosen, feature, identifier(chosen.dialect, chosen.columns[feature]))


def _exact_column(program: Program, chosen: Layout, feature: int, column: str) -> str:
    kind = program.kind(feature)
    return column if chosen.typed and kind == "number" else exact_column(chosen.dialect, kind, column)


def _items(program: Program, chosen: Layout, columns: Mapping[int, str]) -> list[Item]:
    """The outputs as self-contained expressions of the columns."""
    match program.decision:
        case Tree():
            return list(tree_items(chosen.dialect, program, program.decision, columns, chosen.outputs))
        case Scorecard():
            return rule_expressions(chosen.dialect, program, program.decision, columns, chosen.outputs)
        case _:
            assert_never(program.decision)


def _expression(program: Program, chosen: Layout) -> list[str]:
    """One expression alone, or several with their names, for a SELECT list."""
    items = _items(program, chosen, {feature: _column(program, chosen, feature) for feature in chosen.columns})
    if len(items) == 1:
        return list(items[0].lines)
    return with_commas([item_lines(chosen.dialect, each) for each in items])


def _functions(program: Program, chosen: Layout) -> list[list[str]]:
    """One function per output, of the features in use."""
    dialect = chosen.dialect
    if dialect.macro is None:
        raise BadInput(f"{dialect.engine} has no SQL functions here: use form=expression")
    if len(chosen.names) > dialect.macro_arguments:
        raise BadInput(
            f"{len(chosen.names)} arguments: {dialect.engine} takes {dialect.macro_arguments}, use form=view"
        )
    if any(output.kind == "reason" for output in chosen.outputs) and _longest_reason(program) > dialect.longest_result:
        raise BadInput(f"a reason may be longer than the {dialect.longest_result} characters that a function returns")
    columns = {feature: identifier(dialect, name) for feature, name in chosen.names.items()}
    arguments = [
        f"{name} {argument_type(dialect, program.kind(feature))}" if dialect.typed_arguments else name
        for feature, name in columns.items()
    ]
    inside = {feature: _exact_column(program, chosen, feature, name) for feature, name in columns.items()}
    functions = []
    for output, body in zip(chosen.outputs, _items(program, chosen, inside), strict=True):
        head = dialect.macro.format(
            name=qualified_name(dialect, chosen.schema, function_name(chosen, output)),
            arguments=", ".join(arguments),
            type=output_type(dialect, program, output),
        )
        functions.append([head, *body.lines])
    return functions


def _longest_reason(program: Program) -> int:
    """No reason has more characters: of a tree the longest sentence, of a rule set all that can be said at once."""
    if isinstance(program.decision, Tree):
        return max(len(text) for text in leaf_reasons(program, program.decision))
    return sum(len(text) for text in rule_reasons(program))


def function_name(chosen: Layout, output: Output) -> str:
    """`model` returns the label, `model_p_yes` a probability."""
    return chosen.view if output.kind == "label" else f"{chosen.view}_{output.name}"


def output_type(dialect: Dialect, program: Program, output: Output) -> str:
    """The SQL type of an output."""
    match output.kind:
        case "label":
            return label_type(dialect, program.classes[0])
        case "probabilities":
            return dialect.double
        case "score" | "leaf":
            return dialect.bigint_column
        case "reason":
            return dialect.text
        case _:
            assert_never(output.kind)


def _dbt_model(program: Program, chosen: Layout) -> list[str]:
    for name in (chosen.table, chosen.schema, chosen.view):
        if name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise BadInput(f"form=dbt: {name!r} cannot name a dbt model or source: use letters, digits and _")
    source = dbt_source(chosen.schema, chosen.table)
    lines = [line.replace("{", BRACE) for line in _query(program, chosen, "gbfl_source")]
    return [
        line.replace("FROM gbfl_source", f"FROM {source}") if line.lstrip() == "FROM gbfl_source" else line
        for line in lines
    ]


def dbt_source(schema: str, table: str) -> str:
    """How a dbt model names its table: ref without a schema, source with one."""
    return f"{{{{ source('{schema}', '{table}') }}}}" if schema else f"{{{{ ref('{table}') }}}}"


def dbt_schema(program: Program, chosen: Layout) -> dict[str, object]:
    """The values of schema.yml."""
    labels = program.classes
    plain = all(re.fullmatch(r"[\w .:+-]+", str(label)) for label in labels)  # dbt puts them between bare quotes
    return {
        "model": chosen.view,
        "outputs": [{"name": output.name, "kind": output.kind} for output in chosen.outputs],
        "labels": [_yaml(label) for label in labels] if plain else [],
        "quoted": isinstance(labels[0], str),
    }


def _yaml(label: object) -> str:
    return f'"{label}"' if isinstance(label, str) else str(label).lower()


def script_text(parts: Sequence[Sequence[str]], closing: bool) -> str:
    """Statements in order, each ended by a line `;`."""
    return "\n;\n".join("\n".join(lines) for lines in parts) + ("\n;\n" if closing else "\n")
