"""Whether a C function is one that is known: the same syntax tree, but for the names of its locals and some holes.

A known function is C with these names in it:

    P_leaf_of    the artifact's own prefix: model_leaf_of
    N_classes    a whole number, the same wherever the name stands
    F_worth      a floating-point number        S_digest, C_kind    a string, a character
    H_body       as a statement: any statements; alone in an initialiser: any initialiser
    REAL         the type of the model's numbers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gbfl_compile.check.readers.c_numbers import integer, is_unsigned, real
from gbfl_compile.check.readers.c_source import TYPES

Scope = tuple[tuple[str, str], ...]
"""(known, found) names of locals, innermost last."""

UNSAID = {"coord", "__weakref__"}


@dataclass(frozen=True, slots=True)
class Hole:
    """What was found in a hole, and what the locals that are visible there are called."""

    nodes: Sequence[Any]
    called: Mapping[str, str]


@dataclass(slots=True)
class Found:
    """What the names of a known function stand for in the one found."""

    prefix: str
    real: str
    constants: Mapping[str, int] = field(default_factory=dict)
    """The artifact's enumerators."""
    numbers: dict[str, int] = field(default_factory=dict)
    reals: dict[str, float] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    holes: dict[str, Hole] = field(default_factory=dict)


def attempt(found: Found) -> Found:
    """A copy to try a form on: where it does not fit, nothing has changed."""
    return Found(
        found.prefix,
        found.real,
        found.constants,
        dict(found.numbers),
        dict(found.reals),
        dict(found.texts),
        dict(found.holes),
    )


def same(known: Any, found: Any, into: Found) -> bool:
    """Whether `found` is the declaration `known`; what its names stand for goes into `into`."""
    return _same(known, found, (), into) is not None


def same_within(known: Any, found: Any, scope: Scope, into: Found) -> bool:
    """The same for a statement, where the locals in `scope` are visible."""
    return _same(known, found, scope, into) is not None


def _same(known: Any, found: Any, scope: Scope, into: Found) -> Scope | None:
    """The scope after the two, or None where they are not the same."""
    if isinstance(known, list) and isinstance(found, list):
        return _same_lists(known, found, scope, into)
    if not hasattr(known, "coord"):
        return scope if _same_words(known, found, into) else None
    kind = type(known).__name__
    if kind == "ID" and known.name[:2] in ("N_", "F_", "S_", "C_"):
        return scope if _fills(known.name, found, into) else None
    if type(found).__name__ != kind:
        return None
    match kind:
        case "ID":
            return scope if _same_name(known.name, found.name, scope, into) else None
        case "Compound":
            return _within(_same_lists(known.block_items or [], found.block_items or [], scope, into), scope)
        case "For" | "FuncDef" | "FuncDecl":
            inner = _same_fields(known, found, scope, into)
            # the parameters of a definition are seen by its body, and by nothing after it
            return inner if kind == "FuncDecl" else _within(inner, scope)
        case "InitList" if _is_hole(known.exprs):
            into.holes[known.exprs[0].name] = Hole(found.exprs, dict(scope))
            return scope
        case _:
            return _same_fields(known, found, scope, into)


def _within(inner: Scope | None, scope: Scope) -> Scope | None:
    return None if inner is None else scope


def _same_fields(known: Any, found: Any, scope: Scope, into: Found) -> Scope | None:
    """Field by field in the order they are said in; a declaration's name is known from its type on."""
    declared = type(known).__name__ == "Decl" and known.name is not None and not _is_global(known.name)
    if declared:
        if not _is_local(found.name, into):
            return None
        scope = (*scope, (known.name, found.name))
    for name in known.__slots__:
        if name in UNSAID or (name == "name" and declared):
            continue
        if name == "declname":
            if not _same_declname(known.declname, found.declname, scope, into):
                return None
            continue
        after = _same(getattr(known, name), getattr(found, name), scope, into)
        if after is None:
            return None
        scope = after
    return scope


def _same_declname(known: str | None, found: str | None, scope: Scope, into: Found) -> bool:
    if known is None or found is None:
        return known is found
    return _same_name(known, found, scope, into)


def _same_lists(known: list[Any], found: list[Any], scope: Scope, into: Found) -> Scope | None:
    """Item by item; a hole takes all that comes before what follows it."""
    at = 0
    for number, item in enumerate(known):
        if _is_hole([item]):
            end = _end_of_hole(known[number + 1 :], found, at, scope, into)
            into.holes[item.name] = Hole(found[at:end], dict(scope))
            at = end
            continue
        after = _same(item, found[at], scope, into) if at < len(found) else None
        if after is None:
            return None
        scope = after
        at += 1
    return scope if at == len(found) else None


def _end_of_hole(following: list[Any], found: list[Any], at: int, scope: Scope, into: Found) -> int:
    if not following:
        return len(found)
    while at < len(found) and _same(following[0], found[at], scope, attempt(into)) is None:
        at += 1
    return at


def _is_hole(items: Sequence[Any]) -> bool:
    return len(items) == 1 and type(items[0]).__name__ == "ID" and items[0].name.startswith("H_")


def _same_words(known: Any, found: Any, into: Found) -> bool:
    """Names, operators and literals; no attribute, alignment or storage may come on top."""
    if isinstance(known, str) and isinstance(found, str):
        return _translated(known, into) == found
    return bool(known == found)


def _translated(known: str, into: Found) -> str:
    if known == "REAL":
        return into.real
    return f"{into.prefix}_{known[2:]}" if known.startswith("P_") else known


def _same_name(known: str, found: str, scope: Scope, into: Found) -> bool:
    """Both mean the same local, or neither means a local and they are the same name."""
    for pair in reversed(scope):
        if known == pair[0] or found == pair[1]:
            return pair == (known, found)
    return _translated(known, into) == found


def _is_global(known: str) -> bool:
    return known.startswith("P_")


TAKEN = {"linux", "unix", "i386", "offsetof"}
"""Names that compilers or headers give a meaning of their own."""


def _is_local(name: str | None, into: Found) -> bool:
    """Whether a local may be called so: nothing global, no macro."""
    return is_local_name(name, into.prefix)


def is_local_name(name: str | None, prefix: str) -> bool:
    """A small first letter keeps clear of macros, and the prefixes of what is global."""
    if name is None or not name[0].islower() or name in TAKEN or name in TYPES.split():
        return False
    return not name.startswith((f"{prefix}_", "gbfl_"))


def _fills(name: str, found: Any, into: Found) -> bool:
    match name[0]:
        case "N":
            number = integer(found, into.constants)
            if type(found).__name__ == "Constant" and is_unsigned(str(found.value)):
                return False
            return number is not None and into.numbers.setdefault(name[2:], number) == number
        case "F":
            value = real(found)
            return value is not None and into.reals.setdefault(name[2:], value) == value
        case _:
            wanted = "string" if name[0] == "S" else "char"
            if type(found).__name__ != "Constant" or str(found.type) != wanted:
                return False
            text = str(found.value)
            return into.texts.setdefault(name[2:], text) == text
