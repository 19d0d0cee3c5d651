"""Finds where a deployed text contains a known difference: the line to show, and where to try edits first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date

from gbfl_compile.auditing.mend.text import DeployedText, Token, comparison, take_apart, text_in, value_of
from gbfl_compile.auditing.story import TextLine
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir.nodes import Interval, OneOf, Program

Span = tuple[int, int]
"""Where a piece of a text begins and ends."""


def spans_of(parts: DeployedText, changes: Sequence[Change], clauses: Sequence[int]) -> Iterator[Span]:
    """Where the text has what the changes say is deployed, or has a clause from which a condition was left out."""
    for change in changes:
        numbers, features = set(numbers_in(change.deployed)), set(_features_in(parts.program, change.deployed))
        days = _days_in(change.deployed)
        for place, token in enumerate(parts.tokens):
            if token.kind == "sign" and parts.feature_near(place) in features:
                first, last = comparison(parts, place, place)
                near = {value_of(each) for each in parts.tokens[first : last + 1] if each.kind == "number"}
                if near & numbers:
                    yield parts.tokens[first].start, parts.tokens[last].end
            elif token.kind == "number" and value_of(token) in numbers - set(numbers_in(change.approved)):
                yield token.start, token.end  # a parameter with a name of its own: 602 AS least_score
            elif token.kind == "text" and features and _is_in(text_in(token), change.deployed, days):
                yield token.start, token.end
        if re.match(r"leaf|split|every answer|the answer", change.where):
            labels = set(map(str, parts.program.classes))
            yield from (
                (each.start, each.end) for each in parts.tokens if each.kind == "text" and text_in(each) in labels
            )
        if change.deployed.startswith("nothing"):
            yield from _clauses_without(parts, change, clauses)


def _is_in(text: str, words: str, days: set[str]) -> bool:
    """Whether a text of the deployed item is what the words of a change are about."""
    return text in days or (text != "" and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", words) is not None)


def _days_in(words: str) -> set[str]:
    """The days in the words of a change, and those beside them: after the 4th is from the 5th on."""
    listed = set()
    for text in re.findall(r"\b\d{4}-\d\d-\d\d\b", words):
        with suppress(ValueError):  # no such day
            day = date.fromisoformat(text).toordinal()
            listed |= {each for each in (day - 1, day, day + 1) if 1 <= each <= date.max.toordinal()}
    return {date.fromordinal(each).isoformat() for each in listed}


def _clauses_without(parts: DeployedText, change: Change, clauses: Sequence[int]) -> Iterator[Span]:
    """The end of each condition before a THEN that has all the numbers and texts of a clause, but for one condition."""
    gone = set(_features_in(parts.program, change.approved))
    begins = 0
    for place, token in enumerate(parts.tokens):
        if token.word == "WHEN":
            begins = place
        if token.word != "THEN" or not place:
            continue
        has = _values_in(parts.tokens[begins:place])
        for number in clauses:
            if _values_of(parts.program, number, gone) <= has:
                yield parts.tokens[place - 1].end, parts.tokens[place - 1].end


def clause_in(parts: DeployedText) -> int | None:
    """The one clause that has the columns of a piece of text, and all of whose bounds and texts are in it."""
    has = _values_in(parts.tokens)
    features = {feature for token in parts.tokens if (feature := parts.feature(token)) is not None}
    clauses = parts.program.clauses
    fits = [
        number
        for number, clause in enumerate(clauses)
        if {atom.feature for atom in clause.atoms} == features and _values_of(parts.program, number, set()) <= has
    ]
    return fits[0] if len(fits) == 1 else None


def _values_in(tokens: Sequence[Token]) -> set[float | str]:
    numbers = {value_of(each) for each in tokens if each.kind == "number"}
    return numbers | {text_in(each) for each in tokens if each.kind == "text"}


def _values_of(program: Program, clause: int, without: set[int]) -> set[float | str]:
    """The bounds and texts of a clause, but for those of some features; dates are written in ways of their own."""
    values: set[float | str] = set()
    for atom in program.clauses[clause].atoms:
        if atom.feature in without:
            continue
        if isinstance(atom, OneOf) and program.kind(atom.feature) == "category":
            values |= set(atom.values)
        elif isinstance(atom, Interval) and program.kind(atom.feature) == "number":
            values |= {bound for bound in (atom.lo, atom.hi) if bound is not None}
    return values


def numbers_in(text: str) -> list[float]:
    """The numbers in the words of a change."""
    return [float(each) for each in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", text)]


def _features_in(program: Program, text: str) -> list[int]:
    return [f for f, name in enumerate(program.features) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]


WIDTH = 110


def line_at(name: str, text: str, place: int) -> TextLine:
    """The line of the text that has this place; of a long one, what is around it."""
    begins = text.rfind("\n", 0, place) + 1
    ends = text.find("\n", place)
    whole = text[begins : len(text) if ends < 0 else ends]
    line = whole.strip()
    if len(line) > WIDTH:
        middle = place - begins - (len(whole) - len(whole.lstrip()))
        first = max(0, min(middle - WIDTH // 2, len(line) - WIDTH))
        last = min(len(line), first + WIDTH)
        first += line[first:middle].find(" ") + 1 if first else 0
        last = last if last == len(line) or " " not in line[middle:last] else line.rindex(" ", middle, last)
        line = f"{'… ' if first else ''}{line[first:last].strip()}{' …' if last < len(line) else ''}"
    return TextLine(text.count("\n", 0, place) + 1, line, name or None)


def find_line(
    name: str, text: str, program: Program, columns: Mapping[str, int], changes: Sequence[Change]
) -> TextLine | None:
    """The line with the column of a changed condition, and with its deployed number if it has one."""
    parts = take_apart(program, text, columns)
    of_conditions = [change for change in changes if re.match("clause|no clause", change.where)]
    for begins, _ in spans_of(parts, of_conditions, ()):
        return line_at(name, text, begins)
    named = {feature for change in changes for feature in _features_in(program, change.deployed)}
    for place, token in enumerate(parts.tokens):
        if token.kind == "sign" and parts.feature_near(place) in named:
            return line_at(name, text, token.start)
    return None
