"""Edits that change how a text is put together and none of its conditions: answers exchanged, and what an OR joins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from gbfl_compile.auditing.mend.text import ENDS, JOINS, DeployedText, Edit, Token, operand_end, text_in


def structure_edits(parts: DeployedText) -> Iterator[Edit]:
    """All of them."""
    yield from _exchanges_of_answers(parts)
    yield from _parentheses(parts)
    yield from _other_groups(parts)


def _exchanges_of_answers(parts: DeployedText) -> Iterator[Edit]:
    """Two labels of one CASE in each other's place: `THEN 'no' ELSE 'yes'` for `THEN 'yes' ELSE 'no'`."""
    labels = {str(label) for label in parts.program.classes}
    answers: list[tuple[Token, int]] = []
    depth = None  # of the THEN or ELSE whose answer may follow, in parentheses as DuckDB writes it
    for token in parts.tokens:
        if token.word in ("THEN", "ELSE"):
            depth = token.depth
        elif token.text != "(":
            if depth is not None and token.kind == "text" and text_in(token) in labels:
                answers.append((token, depth))
            depth = None
    for (first, outer), (second, other) in pairwise(answers):
        if text_in(first) != text_in(second) and outer == other:
            new = f"{second.text}{parts.text[first.end : second.start]}{first.text}"
            yield Edit(first.start, second.end, new, 3)


def _parentheses(parts: DeployedText) -> Iterator[Edit]:
    """Parentheses around an OR whose condition AND would otherwise split: `a OR b AND c` for `(a OR b) AND c`."""
    tokens = parts.tokens
    for place, token in enumerate(tokens):
        if token.word != "WHEN" and token.text != "(":
            continue
        depth = token.depth + (token.text == "(")
        starts = [place + 1]
        at = place + 1
        while at < len(tokens) and tokens[at].depth >= depth and tokens[at].word not in ("THEN", "CASE"):
            if tokens[at].depth == depth and tokens[at].word in JOINS:
                starts.append(at + 1)
            at += 1
        joins = [tokens[start - 1].word for start in starts[1:]]
        if "OR" not in joins or "AND" not in joins or at >= len(tokens):
            continue
        ends = [*(start - 2 for start in starts[1:]), at - 1]
        for first, last in combinations(range(len(starts)), 2):
            if "OR" in joins[first:last] and last - first < len(joins):
                begins, over = tokens[starts[first]].start, tokens[ends[last]].end
                yield Edit(begins, over, f"({parts.text[begins:over]})", 3)


def _other_groups(parts: DeployedText) -> Iterator[Edit]:
    """`(a OR b) AND c` for `a OR (b AND c)`: the same slip as an engine writes it that puts all parentheses."""
    tokens = parts.tokens
    for place, token in enumerate(tokens):
        if token.word != "OR" or place + 1 >= len(tokens) or not place:
            continue
        first, last = _begins(parts, place), operand_end(parts, place + 1) - 1
        sides = [(first, place - 1), (place + 1, last)]
        for (begin, end), other, is_left in ((sides[0], sides[1], True), (sides[1], sides[0], False)):
            if tokens[begin].text != "(" or tokens[end].text != ")" or tokens[begin].depth != tokens[end].depth:
                continue
            ands = [at for at in range(begin, end) if tokens[at].word == "AND" and tokens[at].depth == token.depth + 1]
            if not ands:
                continue
            at = ands[-1] if is_left else ands[0]
            near, rest = (
                ((at + 1, end - 1), (begin + 1, at - 1)) if is_left else ((begin + 1, at - 1), (at + 1, end - 1))
            )
            texts = [parts.text[tokens[a].start : tokens[b].end] for a, b in (near, other, rest)]
            yield Edit(tokens[first].start, tokens[last].end, f"(({texts[0]} OR {texts[1]}) AND {texts[2]})", 3)


def _begins(parts: DeployedText, place: int) -> int:
    """The first token of the operand that ends before a place."""
    tokens, first = parts.tokens, place
    depth = tokens[place].depth
    while first > 0:
        token = tokens[first - 1]
        if token.depth < depth or (token.depth == depth and token.word in (*ENDS, "CASE")):
            break
        if token.depth == depth - 1 or (token.text == "(" and token.depth < depth):
            break
        first -= 1
    return first
