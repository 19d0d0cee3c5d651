"""What is refused, with the SQL that it is about."""

from __future__ import annotations

from typing import Any

from gbfl_compile.checking.general.sql.parsing import ParsedNode, snippet
from gbfl_compile.checking.reading.nodes import Unread


class AllNull(Unread):
    """A choice that is NULL for every row, of a type that is not seen."""


class NullNode(ParsedNode):
    """The same, with its SQL."""


def with_text(error: Unread, node: Any) -> ParsedNode:
    """An Unread with the SQL that it is about."""
    if isinstance(error, ParsedNode):
        return error
    sort = NullNode if isinstance(error, AllNull) else ParsedNode
    return sort(f"{error}: {snippet(node)}")
