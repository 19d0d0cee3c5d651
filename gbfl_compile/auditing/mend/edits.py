"""Small edits of a text: another sign, number, label, column or grouping; conditions or branches added or removed.

Which of them mends the text is not known here: `mend` reads each edited text again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from gbfl_compile.auditing.mend.numbers import other_numbers
from gbfl_compile.auditing.mend.operands import (
    FILLS,
    begins_at,
    exchanged_arguments,
    null_safe_signs,
    whole_conditions,
)
from gbfl_compile.auditing.mend.text import (
    ENDS,
    JOINS,
    TWINS,
    DeployedText,
    Edit,
    Token,
    atom_sql,
    bound_literal,
    clause_sql,
    comparison,
    intervals,
    operand_end,
    text_in,
    text_literal,
)
from gbfl_compile.ir.nodes import Atom, Interval, Leaf, OneOf, Split, Tree

SIGNS = {"<": (">=", ">"), "<=": (">", ">="), ">": ("<=", "<"), ">=": ("<", "<="), "=": ("<>", "<=", ">=", "<", ">")}
SIGNS |= {"<>": ("=",), "!=": ("=",)}
TRUTHS = {"TRUE": "FALSE", "FALSE": "TRUE"}


def edits_of(parts: DeployedText, changed: Sequence[int]) -> Iterator[Edit]:
    yield from _other_signs(parts)
    yield from other_numbers(parts)
    yield from _other_texts(parts)
    yield from _other_moments(parts)
    yield from _other_names(parts)
    yield from _exchanges_of_answers(parts)
    yield from _parentheses(parts)
    yield from _other_groups(parts)
    yield from _conditions_out(parts)
    yield from _conditions_in(parts, changed)
    yield from _missing_values(parts)
    yield from null_safe_signs(parts)
    yield from whole_conditions(parts, changed)
    yield from exchanged_arguments(parts)
    yield from _branches(parts, changed)


def _other_signs(parts: DeployedText) -> Iterator[Edit]:
    for place, token in enumerate(parts.tokens):
        if token.kind == "sign":
            feature = parts.feature_near(place)
            if token.text in TWINS:
                yield Edit(token.start, token.end, TWINS[token.text], 0, feature, total=feature is None)
            for sign in SIGNS.get(token.text, ()):
                yield Edit(token.start, token.end, sign, 4, feature)


def _other_texts(parts: DeployedText) -> Iterator[Edit]:
    """Another label, or another of the texts in the program's rules."""
    labels = [str(label) for label in parts.program.classes]
    words = [
        value
        for clause in parts.program.clauses
        for atom in clause.atoms
        if isinstance(atom, OneOf)
        for value in atom.values
    ]
    for place, token in enumerate(parts.tokens):
        if token.kind != "text":
            continue
        own, feature = text_in(token), _feature_of_text(parts, place)
        for other in labels if own in labels else dict.fromkeys(words):
            if other != own:
                yield Edit(token.start, token.end, text_literal(other), 2, None if own in labels else feature)
        for other in dict.fromkeys(words):
            if own in words and other != own:
                yield Edit(token.end, token.end, f", {text_literal(other)}", 3, feature)
    yield from _texts_out(parts, words)


def _feature_of_text(parts: DeployedText, place: int) -> int | None:
    """The feature that a text is compared with; texts of a list have it before the list."""
    while place > 1 and parts.tokens[place - 1].text == "," and parts.tokens[place - 2].kind == "text":
        place -= 2
    return parts.feature_near(place)


def _texts_out(parts: DeployedText, words: Sequence[str]) -> Iterator[Edit]:
    """Remove a text that no rule has from its list."""
    for place, token in enumerate(parts.tokens[1:-1], start=1):
        before, after = parts.tokens[place - 1], parts.tokens[place + 1]
        if token.kind != "text" or text_in(token) in words:
            continue
        if before.text == ",":
            yield Edit(before.start, token.end, "", 1)
        elif after.text == ",":
            yield Edit(token.start, parts.tokens[place + 2].start, "", 1)


def _other_moments(parts: DeployedText) -> Iterator[Edit]:
    """Another day or time of the program, and TRUE for FALSE."""
    for place, token in enumerate(parts.tokens):
        feature = parts.feature_near(place)
        if feature is None or not parts.program.kinds:
            continue
        if token.kind == "text":
            for atom in intervals(parts.program):
                for bound in (atom.lo, atom.hi) if atom.feature == feature else ():
                    new = None if bound is None else bound_literal(parts.program, atom.feature, bound)
                    if new is not None and new.startswith("'") and new != token.text:
                        yield Edit(token.start, token.end, new, 1, feature)
        elif token.word in TRUTHS and parts.program.kinds[feature] == "boolean":
            yield Edit(token.start, token.end, TRUTHS[token.word], 1, feature)


def _other_names(parts: DeployedText) -> Iterator[Edit]:
    for token in parts.tokens:
        feature = parts.feature(token)
        if feature is None:
            continue
        for other in sorted(set(parts.columns.values()) - {feature}):
            spelled = parts.spelling(other).rpartition(".")[2]
            yield Edit(token.start, token.end, spelled, 4, other)


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
        first, last = begins_at(parts, place), operand_end(parts, place + 1) - 1
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


def _conditions_out(parts: DeployedText) -> Iterator[Edit]:
    """A condition left out, with the AND or OR before or after it; AND for OR; no NOT."""
    tokens = parts.tokens
    for place, token in enumerate(tokens):
        if token.word in JOINS and place + 1 < len(tokens):
            last = tokens[operand_end(parts, place + 1) - 1]
            yield Edit(tokens[place - 1].end, last.end, "", 5, parts.feature_near(place + 1))
            first = place
            while (
                first > 0
                and tokens[first - 1].depth >= token.depth
                and not (tokens[first - 1].depth == token.depth and tokens[first - 1].word in (*ENDS, "CASE", "("))
            ):
                first -= 1
            yield Edit(tokens[first].start, tokens[place + 1].start, "", 5, parts.feature_near(place - 1))
            yield Edit(token.start, token.end, "OR" if token.word == "AND" else "AND", 5)
        if token.word == "NOT" and place + 1 < len(tokens):
            yield Edit(token.start, tokens[place + 1].start, "", 5)


def _conditions_in(parts: DeployedText, changed: Sequence[int]) -> Iterator[Edit]:
    """One more condition before a THEN: one that the program has."""
    clauses = [parts.program.clauses[number] for number in changed] or parts.program.clauses
    atoms = dict.fromkeys(atom for clause in clauses for atom in clause.atoms)
    for place, token in enumerate(parts.tokens):
        if token.word != "THEN" or not place:
            continue
        at = parts.tokens[place - 1].end
        for atom in atoms:
            for part in _ways(atom):
                yield Edit(at, at, f" AND {atom_sql(parts, part)}", 6, atom.feature)


def _ways(atom: Atom) -> Iterator[Atom]:
    """The condition, and each of its two ends alone."""
    yield atom
    if isinstance(atom, Interval) and atom.lo is not None and atom.hi is not None:
        yield Interval(atom.feature, atom.lo, None, "left" if atom.lo_closed else "neither", atom.if_missing)
        yield Interval(atom.feature, None, atom.hi, "right" if atom.hi_closed else "neither", atom.if_missing)


def _missing_values(parts: DeployedText) -> Iterator[Edit]:
    """A filled-in missing value as it is, and a missing value that passes."""
    tokens = parts.tokens
    for place, token in enumerate(tokens):
        if token.word in FILLS and place + 3 < len(tokens) and tokens[place + 1].text == "(":
            inside = [each for each in tokens[place + 2 :] if each.depth > tokens[place + 1].depth]
            comma = next((each for each in inside if each.text == ","), None)
            closing = next(
                (each for each in tokens[place + 2 :] if each.depth == tokens[place + 1].depth and each.text == ")"),
                None,
            )
            if comma is not None and closing is not None:
                yield Edit(token.start, closing.end, parts.text[tokens[place + 2].start : comma.start], 2)
        if token.kind == "sign" and 0 < place < len(tokens) - 1:
            feature = parts.feature_near(place)
            if feature is not None:
                first, last = comparison(parts, place, place)
                own = parts.text[tokens[first].start : tokens[last].end]
                new = f"({own} OR {parts.spelling(feature)} IS NULL)"
                yield Edit(tokens[first].start, tokens[last].end, new, 6, feature)


def _branches(parts: DeployedText, changed: Sequence[int]) -> Iterator[Edit]:
    """Two branches of a CASE swapped, one removed, or one of the program's inserted."""
    tokens = parts.tokens
    starts = [place for place, token in enumerate(tokens) if token.word == "WHEN"]
    segments = []
    for place in starts:
        level, at = 0, place + 1
        while at < len(tokens):
            word = tokens[at].word
            if level == 0 and word in ("WHEN", "ELSE", "END"):
                break
            level += (word == "CASE") - (word == "END")
            at += 1
        segments.append((tokens[place].start, tokens[at - 1].end, at))
    for (begins, ends, after), (other, other_ends, _) in pairwise(sorted(segments)):
        if after < len(tokens) and tokens[after].start == other:
            first, gap, second = parts.text[begins:ends], parts.text[ends:other], parts.text[other:other_ends]
            yield Edit(begins, other_ends, f"{second}{gap}{first}", 3, exchanged=(first, second))
    for place, (_, _, after) in zip(starts, segments, strict=True):
        then = next((at for at in range(place + 1, after) if tokens[at].word == "THEN"), None)
        for number in changed if then is not None and then > place + 1 else ():
            text = clause_sql(parts, parts.program.clauses[number])
            if then is not None:
                yield Edit(tokens[place + 1].start, tokens[then - 1].end, text, 7)
    for begins, _, after in segments:
        if after < len(tokens):
            yield Edit(begins, tokens[after].start, "", 6)
    for begins, _, after in segments:
        for text in _rules(parts, changed):
            yield Edit(begins, begins, f"{text} ", 6)
            if after < len(tokens):
                yield Edit(tokens[after].start, tokens[after].start, f"{text} ", 6)


def _rules(parts: DeployedText, changed: Sequence[int]) -> Iterator[str]:
    """The program's rules as branches, those first that are known to have changed."""
    tree = parts.program.decision
    if not isinstance(tree, Tree):
        return
    for node in tree.nodes:
        answer = tree.nodes[node.then] if isinstance(node, Split) else None
        if not isinstance(node, Split) or not isinstance(answer, Leaf) or node.clause not in changed:
            continue
        text = clause_sql(parts, parts.program.clauses[node.clause])
        yield f"WHEN {text} THEN {text_literal(str(parts.program.classes[answer.winner]))}"
