"""Whether a function is one that is known: the same syntax tree, but for docstrings and the names of its locals."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

UNSAID = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}
"""Fields that say nothing of their own; type parameters are compared by their absence below."""


@dataclass(slots=True)
class Names:
    """What each local of the known function is called in the one found, and the names that are not local there."""

    local: set[str]
    called: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


def functions(source: str) -> dict[str, ast.FunctionDef]:
    """The functions of a known source, by name."""
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def same_function(known: ast.FunctionDef, found: ast.FunctionDef) -> bool:
    """Whether `found` does what `known` does, read off their syntax trees."""
    names = Names(local_names(known))
    if known.name != found.name or found.decorator_list or found.returns or getattr(found, "type_params", None):
        return False
    if not _same(known.args, found.args, names) or not _same(without_docstring(known), without_docstring(found), names):
        return False
    called = list(names.called.values())
    return len(set(called)) == len(called) and not set(called) & names.shared


def without_docstring(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function but for its docstring."""
    if ast.get_docstring(function, clean=False) is None:
        return function.body
    return function.body[1:]


def local_names(function: ast.FunctionDef) -> set[str]:
    """What a function assigns, and its parameters."""
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _same(known: object, found: object, names: Names) -> bool:
    if isinstance(known, list) and isinstance(found, list):
        return len(known) == len(found) and all(_same(a, b, names) for a, b in zip(known, found, strict=True))
    if type(known) is not type(found):
        return False
    if isinstance(known, ast.Name) and isinstance(found, ast.Name):
        return _same_name(known.id, found.id, names)
    if isinstance(known, ast.arg) and isinstance(found, ast.arg):
        return found.annotation is None and _same_name(known.arg, found.arg, names)
    if isinstance(known, ast.AST):
        fields = [name for name in known._fields if name not in UNSAID]
        return all(_same(getattr(known, name, None), getattr(found, name, None), names) for name in fields)
    return known == found


def _same_name(known: str, found: str, names: Names) -> bool:
    if known not in names.local:
        names.shared.add(known)
        return known == found
    return names.called.setdefault(known, found) == found
