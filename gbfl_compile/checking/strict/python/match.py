"""Whether a function is one that is known: the same syntax tree, but for docstrings and the names of its locals."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

KNOWN = Path(__file__).parent / "known"

UNSAID = {"ctx", "kind", "type_comment", "type_ignores", "type_params"}
"""Fields without a meaning here; that there are no type parameters is checked below."""


@dataclass(slots=True)
class Names:
    """What each local of the known function is called in the one found, and the names that are not local there."""

    local: set[str]
    called: dict[str, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)


@cache
def known_functions(name: str) -> Mapping[str, ast.FunctionDef]:
    """The functions of one of the files in known/, by name: what our modules have around their rules."""
    source = (KNOWN / f"{name}.py.txt").read_text(encoding="utf-8")
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def same_function(known: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    """Whether `found` does what `known` does, read off their syntax trees."""
    names = Names(local_names(known))
    if known.name != other.name or other.decorator_list or other.returns or getattr(other, "type_params", None):
        return False
    if not _same(known.args, other.args, names) or not _same(without_docstring(known), without_docstring(other), names):
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


def _same(known: object, other: object, names: Names) -> bool:
    if isinstance(known, list) and isinstance(other, list):
        return len(known) == len(other) and all(_same(a, b, names) for a, b in zip(known, other, strict=True))
    if type(known) is not type(other):
        return False
    if isinstance(known, ast.Name) and isinstance(other, ast.Name):
        return _same_name(known.id, other.id, names)
    if isinstance(known, ast.arg) and isinstance(other, ast.arg):
        return other.annotation is None and _same_name(known.arg, other.arg, names)
    if isinstance(known, ast.AST):
        fields = [name for name in known._fields if name not in UNSAID]
        return all(_same(getattr(known, name, None), getattr(other, name, None), names) for name in fields)
    return known == other


def _same_name(known: str, other: str, names: Names) -> bool:
    if known not in names.local:
        names.shared.add(known)
        return known == other
    return names.called.setdefault(known, other) == other
