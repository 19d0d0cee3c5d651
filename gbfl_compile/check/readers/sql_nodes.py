"""sqlglot's nodes, handled with care: what they are, what they carry, and how a place is named in a refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.readers.sql_values import Value
from gbfl_compile.check.reading import Unread


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression stands: the engine, and what a name means there."""

    engine: Engine
    look_up: Callable[[Any], Value]
    follow: Callable[[Any, Scope], Value]
    """What an expression within this one is."""
    typed: dict[int, frozenset[str]] | None = None
    """Choices whose parts were all read before, and the kinds they have; kept where one text is followed many times."""


class Placed(Unread):
    """An Unread whose message has its SQL already."""


def kind(node: Any) -> str:
    """The name of a node's class."""
    return type(node).__name__


def refuse(node: Any, what: str) -> NoReturn:
    """Say what is not understood, with the SQL it stands in."""
    raise Placed(f"{what}: {snippet(node)}")


def snippet(node: Any) -> str:
    """The SQL of a node, short."""
    try:
        text = " ".join(str(node.sql()).split())
    except Exception:  # a node of broken text may not be writable again
        text = kind(node)
    return text if len(text) <= 100 else f"{text[:97]}..."


def only(node: Any, *expected: str) -> None:
    """Refuse a node that says more than is understood."""
    for key, value in node.args.items():
        if key not in expected and value not in (None, False, [], ()):
            refuse(node, f"{kind(node)} with {key!r}")


def operands(node: Any) -> list[Any]:
    """The operands of a chain of one operator; a chain may be long, so this does not recurse."""
    found: list[Any] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        while kind(part) == "Paren":
            part = part.this
        if kind(part) == kind(node):
            only(part, "this", "expression", "safe")
            waiting += (part.args["expression"], part.this)
        else:
            found.append(part)
    return found
