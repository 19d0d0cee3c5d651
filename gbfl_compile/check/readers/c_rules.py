"""The rules in emitted C, followed statement by statement: one row, or one turn of a kernel's loop.

Followed are declarations, assignments, if, return, and the expressions of c_expressions. Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gbfl_compile.check.readers.c_expressions import (
    OPERATIONS,
    Locals,
    Seen,
    Setting,
    expression,
    fitting,
    refuse,
    target,
    truth_of,
    type_name,
)
from gbfl_compile.check.readers.c_match import Hole, is_local_name
from gbfl_compile.check.readers.c_values import Puzzling, Unclear, as_choice, either
from gbfl_compile.check.readers.choices import Value
from gbfl_compile.check.readers.flow import branched, one_after_another


def followed(setting: Setting, hole: Hole, given: Seen) -> tuple[Value, Locals]:
    """What the statements in a hole return, `FALL` where they do not, and the locals after them.

    Whatever is visible there may not be declared anew, known or not: what follows the hole means the first one.
    """
    visible: Locals = {name: Unclear() for name in hole.called.values()}
    types = _declared_types(setting, hole.nodes, {name for name in (*visible, *given) if isinstance(name, str)})
    return _answer(replace(setting, types={**types, **setting.types}), hole.nodes, {**visible, **given})


def _declared_types(setting: Setting, statements: Sequence[Any], taken: set[str]) -> dict[str, str]:
    """The type of each local that is declared anywhere in the statements: one name, one type, nothing shadowed."""
    types: dict[str, str] = {}
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        match type(node).__name__:
            case "Decl":
                if not is_local_name(node.name, setting.prefix) or node.name in taken:
                    refuse(node, f"a local may not be called {node.name}")
                if node.storage or node.funcspec or node.align or node.bitsize or set(node.quals) - {"const"}:
                    refuse(node, f"{node.name} is declared in a way that is not understood")
                found = type_name(node)
                if types.setdefault(node.name, found) != found:
                    refuse(node, f"{node.name} has two types")
            case "Compound":
                waiting += node.block_items or []
            case "If":
                waiting += [side for side in (node.iftrue, node.iffalse) if side is not None]
    return types


def _answer(setting: Setting, statements: Sequence[Any], given: Seen) -> tuple[Value, Locals]:
    parts: list[Value] = []
    known = dict(given)
    for statement in statements:
        try:
            part, known = _statement(setting, statement, known)
        except Puzzling:
            refuse(statement, "arithmetic that is not understood")
        if part is not None:
            parts.append(part)
    return one_after_another(parts), known


def _statement(setting: Setting, statement: Any, known: Locals) -> tuple[Value | None, Locals]:
    match type(statement).__name__:
        case "EmptyStatement":
            return None, known
        case "Cast" if type_name(statement.to_type) == "void" and type(statement.expr).__name__ == "ID":
            return None, known
        case "Decl" if statement.name in known:
            refuse(statement, f"{statement.name} is declared within the reach of another {statement.name}")
        case "Decl":
            value = Unclear() if statement.init is None else expression(setting, statement.init, known)
            known[statement.name] = fitting(setting, statement, setting.types[statement.name], value)
            return None, known
        case "Assignment":
            _assign(setting, statement, known)
            return None, known
        case "Return" if statement.expr is not None:
            return as_choice(expression(setting, statement.expr, known)), known
        case "Compound":
            return _inner(_answer(setting, statement.block_items or [], known), known)
        case "If":
            asked = truth_of(setting, statement.cond, known)
            sides = [_side(setting, side, known) for side in (statement.iftrue, statement.iffalse)]
            return branched(asked, sides[0], sides[1], either)
        case kind:
            refuse(statement, f"a statement that is not understood: {kind}")


def _side(setting: Setting, statement: Any, known: Locals) -> tuple[Value, Locals]:
    return _inner(_answer(setting, [] if statement is None else [statement], known), known)


def _inner(after: tuple[Value, Locals], before: Locals) -> tuple[Value, Locals]:
    """What a block declared is gone after it."""
    return after[0], {name: value for name, value in after[1].items() if name in before}


def _assign(setting: Setting, node: Any, known: Locals) -> None:
    name = target(setting, node.lvalue, known)
    if name not in known:
        refuse(node, "an assignment to something that is not known here")
    value = expression(setting, node.rvalue, known)
    if node.op != "=":
        if node.op[:-1] not in OPERATIONS:
            refuse(node, f"an assignment that is not understood: {node.op}")
        value = OPERATIONS[node.op[:-1]](known[name], value)
    known[name] = fitting(setting, node, setting.types.get(name if isinstance(name, str) else str(name[0]), ""), value)
