"""Comparisons one after the other without brackets: refused, by the words of the text.

In `a = b IS NULL` engines need not agree which comes first, and sqlglot puts brackets of its own there: its nodes do
not tell whether they stand in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gbfl_compile.check.reading import Unread

COMPARES = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>", "IS", "IN", "BETWEEN", "LIKE", "ISNULL", "NOTNULL"}

BEGINS = {"AND", "OR", "XOR", "&&", "||", "WHEN", "THEN", "ELSE", "AS", "SELECT", "FROM", "WITH", "RETURN", ","}
"""Words after which another condition begins, or none."""


def refuse_chains(tokens: Sequence[Any]) -> None:
    """Refuse two comparisons in one condition, within the same brackets or the same CASE."""
    compared, between = [0], [False]
    for place, token in enumerate(tokens):
        word = _word(token)
        if word in ("(", "[", "CASE"):
            compared.append(0)
            between.append(False)
        elif word in (")", "]", "END") and len(compared) > 1:
            compared.pop()
            between.pop()
        elif word == "AND" and between[-1]:
            between[-1] = False  # x BETWEEN 1 AND 5 is one condition
        elif word in BEGINS and not (word == "FROM" and place and _word(tokens[place - 1]) == "DISTINCT"):
            compared[-1], between[-1] = 0, False
        elif word in COMPARES and not _is_a_function(tokens, place):
            compared[-1] += 1
            between[-1] = word == "BETWEEN"
            if compared[-1] > 1:
                raise Unread(f"a comparison beside another, without brackets: {_beside(tokens, place)}")


def _word(token: Any) -> str:
    """The word a token is; a text or a quoted name is none."""
    kind = token.token_type.name
    return "" if kind == "IDENTIFIER" or kind.endswith("STRING") else str(token.text).upper()


def _is_a_function(tokens: Sequence[Any], place: int) -> bool:
    """`isNull(x)`."""
    return _word(tokens[place]) == "ISNULL" and place + 1 < len(tokens) and _word(tokens[place + 1]) == "("


def _beside(tokens: Sequence[Any], place: int) -> str:
    return " ".join(str(token.text) for token in tokens[max(0, place - 4) : place + 2])
