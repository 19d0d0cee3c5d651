"""Edits of one number of a text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gbfl_compile.auditing.mend.operands import FILLS, is_given_to
from gbfl_compile.auditing.mend.text import TWINS, DeployedText, Edit, value_of
from gbfl_compile.auditing.region import exact_text
from gbfl_compile.ir.nodes import Interval, Program, Scorecard


def _numbers(program: Program) -> set[float]:
    """The numbers of the program: bounds, points, and what the points to start with make necessary."""
    atoms = [atom for clause in program.clauses for atom in clause.atoms if isinstance(atom, Interval)]
    found = {bound for atom in atoms for bound in (atom.lo, atom.hi) if bound is not None}
    card = program.decision
    if isinstance(card, Scorecard):
        found |= {float(worth) for row in card.points for worth in row if worth}
        found |= {
            float(sign * (worth + more)) for worth in card.bias if worth for sign in (1, -1) for more in (-1, 0, 1)
        }
    return found


def other_numbers(parts: DeployedText) -> Iterator[Edit]:
    """Another number: a bound, points, what points must reach, or a parameter."""
    wanted = _numbers(parts.program)
    bounds = {
        (atom.feature, bound)
        for clause in parts.program.clauses
        for atom in clause.atoms
        if isinstance(atom, Interval)
        for bound in (atom.lo, atom.hi)
        if bound is not None
    }
    for place, token in enumerate(parts.tokens):
        value = value_of(token) if token.kind == "number" else math.nan
        if math.isnan(value):
            continue
        before = parts.tokens[place - 1] if place else token
        if is_given_to(parts, place, FILLS) or (value == 1 and _is_of_a_curve(parts, place)):
            continue
        compared = before.kind == "sign" or (place + 1 < len(parts.tokens) and parts.tokens[place + 1].kind == "sign")
        feature = parts.feature_near(place) if compared else None
        is_total = before.kind == "sign" and feature is None  # what points must reach
        near = _near(value) if is_total or (feature is None and value != int(value)) else set()
        for number in sorted((wanted | near) - {value}, key=lambda other: abs(other - value)):
            if feature is not None and (feature, number) not in bounds:
                continue
            new = _number_text(token.text, number)
            own = (
                number
                if feature is not None or not (compared or isinstance(parts.program.decision, Scorecard))
                else None
            )
            points, beside = (None, None) if compared else (number, _condition_before(parts, place))
            yield Edit(token.start, token.end, new, 1, feature, own, points, beside, is_total)
            if before.text in TWINS:
                yield Edit(before.start, token.end, f"{TWINS[before.text]} {new}", 3, feature, number)
        for worth in _worths(parts.program) if "." in token.text and not compared else ():
            for unit in (10, 100):  # points that were deployed as tenths or hundredths
                if worth / unit != value:
                    new, beside = _number_text(token.text, worth / unit), _condition_before(parts, place)
                    yield Edit(token.start, token.end, new, 1, None, None, worth, beside)


def _near(value: float) -> set[float]:
    """What a total may have to be compared with instead, or start with; one half is where a logistic curve turns."""
    steps = (1, -1, 2, -2) if value == int(value) else (1, -1, 0.5, -0.5, 2, -2)
    return {value + step for step in steps} | (set() if value == int(value) else {0.5})


def _is_of_a_curve(parts: DeployedText, place: int) -> bool:
    """Whether a 1 is one of those in `1 / (1 + exp(-points))`."""
    return any(token.word == "EXP" for token in parts.tokens[place : place + NEAR_EXP])


NEAR_EXP = 16
"""How many tokens after a 1 the exponential is looked for: engines write casts and parentheses in between."""


def _condition_before(parts: DeployedText, place: int) -> int | None:
    """The last feature that is compared before a number."""
    signs = [at for at in range(max(1, place - FAR), place) if parts.tokens[at].kind == "sign"]
    return parts.feature_near(signs[-1]) if signs else None


FAR = 8
"""How many tokens before points their condition is looked for."""


def _worths(program: Program) -> list[float]:
    """The points of a rule set, each once."""
    card = program.decision
    rows = card.points if isinstance(card, Scorecard) else ()
    return sorted({float(worth) for row in rows for worth in row if worth})


def _number_text(old: str, number: float) -> str:
    """A number in the form of the one it replaces."""
    if old[:2].lower() == "0x":
        return number.hex()
    text = exact_text(number)
    if "." in old and "." not in text and "e" not in text:
        text += ".0"
    return f"{text}e0" if re.search(r"[eE]0$", old) and "e" not in text else text
