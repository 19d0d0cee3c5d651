"""A deployed text as tokens, with the columns of the program's features among them; the program's conditions as SQL."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gbfl_compile.auditing.region import exact_text
from gbfl_compile.ir.nodes import Atom, Clause, Interval, OneOf, Program
from gbfl_compile.ir.text import bound_text

TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")*\"|`[^`]*`|[^\W\d]\w*)"
    r"|(?P<number>0[xX][0-9a-fA-F.]+[pP][+-]?\d+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<sign><=|>=|<>|!=|==|=|<|>)|(?P<other>\S)",
    re.DOTALL,
)
JOINS = ("AND", "OR")
ENDS = (*JOINS, "THEN", "WHEN", "ELSE", "END", "WHERE", "GROUP", "ORDER", "AS")
TWINS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
NEAR = 5
"""How many tokens away the column of a comparison is looked for."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text."""

    kind: str
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        """Just after it."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """As a keyword."""
        return self.text.upper()


@dataclass(frozen=True, slots=True)
class DeployedText:
    """A text, taken apart, and the program it should be."""

    program: Program
    text: str
    columns: Mapping[str, int]
    """The feature of each column, names in small letters."""
    tokens: tuple[Token, ...] = field(default=())

    def feature_near(self, place: int) -> int | None:
        """The feature whose column is nearest to a token."""
        for away in range(1, NEAR):
            for at in (place - away, place + away):
                if 0 <= at < len(self.tokens) and (found := self.feature(self.tokens[at])) is not None:
                    return found
        return None

    def feature(self, token: Token) -> int | None:
        """The feature that a token names."""
        return self.columns.get(token.text.strip('"`').casefold()) if token.kind == "name" else None

    def spelling(self, feature: int) -> str:
        """A feature's column as the text writes it elsewhere, with its table's alias."""
        for place, token in enumerate(self.tokens):
            if self.feature(token) == feature:
                if place > 1 and self.tokens[place - 1].text == "." and self.tokens[place - 2].kind == "name":
                    return f"{self.tokens[place - 2].text}.{token.text}"
                return token.text
        return next((name for name, each in self.columns.items() if each == feature), self.program.features[feature])


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of the text replaced by another."""

    start: int
    end: int
    new: str
    cost: int
    feature: int | None = None
    """The feature it is about, where that is seen."""
    number: float | None = None
    """The number it puts in."""
    points: float | None = None
    """The same, where it is compared with nothing and may be points."""
    beside: int | None = None
    """The feature of the condition that the points are for."""
    total: bool = False
    """Whether it is about what points must reach."""
    exchanged: tuple[str, str] | None = None
    """The two branches, where it does nothing but put the second before the first."""

    def apply(self, text: str) -> str:
        """The text with it."""
        return f"{text[: self.start]}{self.new}{text[self.end :]}"


def take_apart(program: Program, text: str, columns: Mapping[str, int]) -> DeployedText:
    """The text as tokens; comments are not tokens."""
    tokens, depth = [], 0
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind == "comment":
            continue
        depth -= match[0] == ")"
        tokens.append(Token(kind, match[0], match.start(), depth))
        depth += match[0] == "("
    return DeployedText(program, text, columns, tuple(tokens))


def comparison(parts: DeployedText, first: int, last: int) -> tuple[int, int]:
    """The tokens from the column or number before to the one after."""
    tokens = parts.tokens

    def is_part(token: Token) -> bool:
        return token.kind in ("name", "number", "sign", "text") and token.word not in (
            *ENDS,
            "CASE",
            "IS",
            "NOT",
            "IN",
            "IF",
            "ELIF",
            "ELSIF",
            "RETURN",
        )

    for _ in range(3):
        if first > 0 and (is_part(tokens[first - 1]) or tokens[first - 1].text in (".", "::")):
            first -= 1
        if (
            last + 1 < len(tokens)
            and is_part(tokens[last + 1])
            and "sign" in (tokens[last].kind, tokens[last + 1].kind)
        ):
            last += 1
    if first > 0 and tokens[first].text == ".":  # with the name of its table
        first -= 1
    return first, last


def value_of(token: Token) -> float:
    try:
        return float.fromhex(token.text) if token.text[:2].lower() == "0x" else float(token.text)
    except ValueError:
        return math.nan


def text_in(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def intervals(program: Program) -> Iterator[Interval]:
    for clause in program.clauses:
        yield from (atom for atom in clause.atoms if isinstance(atom, Interval))


def bound_literal(program: Program, feature: int, bound: float) -> str:
    kind = program.kinds[feature] if program.kinds else "number"
    return exact_text(bound) if kind == "number" else text_literal(bound_text(bound, kind))


def atom_sql(parts: DeployedText, atom: Atom) -> str:
    """A condition of the program as SQL."""
    name = parts.spelling(atom.feature)
    text = _interval_sql(parts.program, name, atom) if isinstance(atom, Interval) else _set_sql(parts, name, atom)
    return f"({text} OR {name} IS NULL)" if atom.if_missing else text


def _interval_sql(program: Program, name: str, atom: Interval) -> str:
    listed = []
    if atom.lo is not None:
        listed.append(f"{name} {'>=' if atom.lo_closed else '>'} {bound_literal(program, atom.feature, atom.lo)}")
    if atom.hi is not None:
        listed.append(f"{name} {'<=' if atom.hi_closed else '<'} {bound_literal(program, atom.feature, atom.hi)}")
    return " AND ".join(listed) or f"{name} IS NOT NULL"


def _set_sql(parts: DeployedText, name: str, atom: OneOf) -> str:
    if parts.program.kinds[atom.feature] == "boolean":
        return f"{name} = {'FALSE' if atom.negated else 'TRUE'}"
    listed = ", ".join(map(text_literal, atom.values))
    if len(atom.values) == 1:
        return f"{name} {'<>' if atom.negated else '='} {listed}"
    return f"{name} {'NOT IN' if atom.negated else 'IN'} ({listed})"


def clause_sql(parts: DeployedText, clause: Clause) -> str:
    return " AND ".join(atom_sql(parts, atom) for atom in clause.atoms)


def operand_end(parts: DeployedText, place: int) -> int:
    """The token after an operand that begins at a place."""
    depth, at = parts.tokens[place].depth, place
    while at < len(parts.tokens):
        token = parts.tokens[at]
        if token.depth < depth or (token.depth == depth and (token.word in ENDS or token.text in (",", ")", ":", "{"))):
            if token.text == ")" and token.depth == depth and at > place:
                at += 1
                continue
            return at
        at += 1
    return at
