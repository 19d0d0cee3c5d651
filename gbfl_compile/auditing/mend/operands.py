"""Edits of whole conditions: a condition of the program for one on its feature, and arguments exchanged.

ifnull(age, 31) <= 30   ->   (age <= 30 OR age IS NULL)
hour BETWEEN 1 AND 5    ->   hour >= 1 AND hour < 5
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from gbfl_compile.auditing.mend.text import ENDS, DeployedText, Edit, atom_sql, operand_end
from gbfl_compile.ir.nodes import Atom

FILLS = ("COALESCE", "IFNULL", "NVL", "ISNULL")
AROUND = (*FILLS, "CAST")
"""Functions that are part of the condition on the column they are given."""

MOST_ARGUMENTS = 40


def begins_at(parts: DeployedText, place: int) -> int:
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


def operand_around(parts: DeployedText, place: int) -> tuple[int, int]:
    """The first and last token of the condition that a column is in, both ends of a BETWEEN included."""
    tokens = parts.tokens
    first = begins_at(parts, place)
    while first > 1 and tokens[first - 1].text == "(" and tokens[first - 2].word in AROUND:
        first = begins_at(parts, first - 2)
    after = operand_end(parts, first)
    if after < len(tokens) and tokens[after].word == "AND" and _is_between(parts, first, after):
        after = operand_end(parts, after + 1)
    return first, after - 1


def _is_between(parts: DeployedText, first: int, after: int) -> bool:
    """Whether the AND after these tokens is that of a BETWEEN."""
    return any(
        token.word == "BETWEEN" and token.depth == parts.tokens[first].depth for token in parts.tokens[first:after]
    )


def is_given_to(parts: DeployedText, place: int, functions: Sequence[str]) -> bool:
    """Whether a token is an argument of one of these functions, by itself."""
    tokens, at = parts.tokens, place - 1
    while at > 0 and tokens[at].depth >= tokens[place].depth:
        at -= 1
    beside = tokens[place - 1].text in (",", "(", "-")
    return beside and at > 0 and tokens[at].text == "(" and tokens[at - 1].word in functions


def operand_before(parts: DeployedText, place: int) -> int:
    """The first token of the condition before an AND or OR, both ends of a BETWEEN included."""
    tokens, first = parts.tokens, begins_at(parts, place)
    if first > 1 and tokens[first - 1].word == "AND":
        outer = begins_at(parts, first - 1)
        if _is_between(parts, outer, first - 1):
            return outer
    return first


def whole_conditions(parts: DeployedText, changed: Sequence[int]) -> Iterator[Edit]:
    """A condition of a changed clause in the place of one on the same feature."""
    clauses = [parts.program.clauses[number] for number in changed]
    atoms: dict[int, list[Atom]] = {}
    for clause in clauses:
        for atom in clause.atoms:
            atoms.setdefault(atom.feature, []).append(atom)
    seen = set()
    for place, token in enumerate(parts.tokens):
        feature = parts.feature(token)
        if feature not in atoms or feature is None:
            continue
        first, last = operand_around(parts, place)
        if (first, last) in seen:
            continue
        seen.add((first, last))
        begins, ends = parts.tokens[first].start, parts.tokens[last].end
        for atom in atoms[feature]:
            if (new := atom_sql(parts, atom)) != parts.text[begins:ends]:
                yield Edit(begins, ends, new, 5, feature)


def null_safe_signs(parts: DeployedText) -> Iterator[Edit]:
    """`<>` for IS DISTINCT FROM, and `=` for IS NOT DISTINCT FROM, which differ only where a value is missing."""
    tokens = parts.tokens
    for place, token in enumerate(tokens):
        for words, sign in ((("IS", "DISTINCT", "FROM"), "<>"), (("IS", "NOT", "DISTINCT", "FROM"), "=")):
            after = place + len(words)
            if after >= len(tokens) or tuple(each.word for each in tokens[place:after]) != words:
                continue
            begins, ends = tokens[begins_at(parts, place)].start, tokens[operand_end(parts, after) - 1].end
            new = f"{parts.text[begins : token.start]}{sign}{parts.text[tokens[after - 1].end : ends]}"
            yield Edit(begins, ends, new, 2, parts.feature_near(place))


def exchanged_arguments(parts: DeployedText) -> Iterator[Edit]:
    """Two arguments of a call in each other's place, each of which is a column of a feature."""
    tokens = parts.tokens
    for place, token in enumerate(tokens):
        if token.text != "(" or not place or tokens[place - 1].kind != "name" or tokens[place - 1].word in AROUND:
            continue
        inside, ends = token.depth + 1, place + 1
        while ends < len(tokens) and tokens[ends].depth >= inside:
            ends += 1
        commas = [at for at in range(place + 1, ends) if tokens[at].text == "," and tokens[at].depth == inside]
        edges = [place, *commas, ends]
        arguments = [(first + 1, last - 1) for first, last in pairwise(edges) if last > first + 1]
        own = [each for each in arguments if _is_one_feature(parts, *each)]
        for (a, b), (c, d) in combinations(own[:MOST_ARGUMENTS], 2):
            pieces = [parts.text[tokens[x].start : tokens[y].end] for x, y in ((a, b), (c, d))]
            between = parts.text[tokens[b].end : tokens[c].start]
            yield Edit(tokens[a].start, tokens[d].end, f"{pieces[1]}{between}{pieces[0]}", 3)


def _is_one_feature(parts: DeployedText, first: int, last: int) -> bool:
    """Whether an argument is a feature's column, with no sign and no call around it."""
    pieces = parts.tokens[first : last + 1]
    return sum(parts.feature(each) is not None for each in pieces) == 1 and all(
        each.kind in ("name", "other") and each.text != "(" for each in pieces
    )
