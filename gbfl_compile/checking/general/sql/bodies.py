"""The statements of a function's body, in a closed grammar: declarations, assignments, IF, searched CASE, RETURN.

PL/pgSQL and MariaDB's language share it but for `:=` and SET. Everything else is refused, with its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.parsing import folded_name, tokens_of
from gbfl_compile.checking.reading.nodes import Unread


@dataclass(frozen=True, slots=True)
class Assign:
    """name := expression, or its declaration with a type."""

    name: str
    text: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Return:
    """RETURN expression."""

    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """IF, or a searched CASE."""

    arms: tuple[tuple[str, tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


Statement: TypeAlias = Assign | Return | Choice


class Body:
    """The tokens of a body, and where its parser is."""

    def __init__(self, engine: Engine, text: str) -> None:
        self.engine, self.place = engine, 0
        tokens = tokens_of(engine, text)
        # to sqlglot DECLARE is a command, which takes all up to the semicolon
        if tokens and tokens[0].text.upper() == "DECLARE":
            start = tokens[0].start
            text = f"{text[:start]}{' ' * len('DECLARE')}{text[start + len('DECLARE') :]}"
            tokens = tokens_of(engine, text)
            self.declares = True
        else:
            self.declares = False
        self.text, self.tokens = text, tokens

    def block(self) -> tuple[Statement, ...]:
        """All of the body."""
        found: list[Statement] = []
        while self.declares and self.word() != "BEGIN":
            found.append(self._declaration())
        if self.word() == "BEGIN":
            self.take("BEGIN")
            while self.word() == "DECLARE" and self.engine.parsed_as == "mysql":
                self.take("DECLARE")
                found.append(self._declaration())
            found += self._statements("END")
            self.take("END")
        else:
            found += [self._statement()]
        while self.word() == ";":
            self.place += 1
        if self.place != len(self.tokens):
            self.fail("after its end")
        return tuple(found)

    def word(self, ahead: int = 0) -> str:
        """The word here; a text or a quoted name is not a word."""
        if self.place + ahead >= len(self.tokens):
            return ""
        token = self.tokens[self.place + ahead]
        name = token.token_type.name
        return "" if name == "IDENTIFIER" or name.endswith("STRING") else str(token.text).upper()

    def take(self, word: str) -> None:
        """Go past this word."""
        if self.word() != word:
            self.fail(f"where {word} belongs")
        self.place += 1

    def fail(self, why: str) -> None:
        """Say where the body is not understood."""
        if self.place >= len(self.tokens):
            raise Unread(f"ends {why}")
        token = self.tokens[self.place]
        raise Unread(f"line {token.line}: {token.text} {why}: declarations, assignments, IF, CASE and RETURN are read")

    def _name(self) -> str:
        token = self.tokens[self.place] if self.place < len(self.tokens) else None
        if token is None or token.token_type.name not in ("VAR", "IDENTIFIER"):
            self.fail("where a name belongs")
        assert token is not None  # noqa: S101 - `fail` raises
        self.place += 1
        return folded_name(self.engine, str(token.text), token.token_type.name == "IDENTIFIER")

    def _text_until(self, *words: str) -> str:
        """The text of an expression up to one of these words, outside brackets and CASE."""
        start, depth = self.place, 0
        while self.place < len(self.tokens):
            word = self.word()
            if depth == 0 and word in words:
                break
            if word == ";":
                self.fail("within an expression")
            depth += {"(": 1, ")": -1, "CASE": 1, "END": -1}.get(word, 0)
            self.place += 1
        if self.place >= len(self.tokens) or self.place == start:
            self.fail(f"without {' or '.join(words)}")
        first, last = self.tokens[start], self.tokens[self.place - 1]
        return str(self.text[first.start : last.end + 1])

    def _declaration(self) -> Assign:
        name = self._name()
        is_constant = self.word() == "CONSTANT" and self.engine.parsed_as == "postgres"
        self.place += is_constant
        type_ = self._text_until(":=", "=", "DEFAULT", ";")
        if self.word() == ";":
            self.place += 1
            return Assign(name, "NULL", type_)
        self.place += 1
        text = self._text_until(";")
        self.take(";")
        return Assign(name, text, type_)

    def _statements(self, *ends: str) -> tuple[Statement, ...]:
        found: list[Statement] = []
        while self.word() not in ends:
            if self.word() == "NULL" and self.word(1) == ";" and self.engine.parsed_as == "postgres":
                self.place += 2
                continue
            found.append(self._statement())
        return tuple(found)

    def _statement(self) -> Statement:
        word = self.word()
        if word == "RETURN":
            self.place += 1
            text = self._text_until(";") if ";" in [token.text for token in self.tokens[self.place :]] else self._rest()
            self.place += self.word() == ";"
            return Return(text)
        if word in ("IF", "CASE"):
            return self._choice(word)
        is_set = word == "SET" and self.engine.parsed_as == "mysql"
        if not (is_set or self.engine.parsed_as == "postgres") or self.word(1 + is_set) not in ("=", ":="):
            self.fail("as a statement")
        self.place += is_set
        name = self._name()
        self.place += 1
        text = self._text_until(";")
        self.take(";")
        return Assign(name, text)

    def _rest(self) -> str:
        """The last expression of a body without a semicolon."""
        first, last = self.tokens[self.place], self.tokens[-1]
        self.place = len(self.tokens)
        return str(self.text[first.start : last.end + 1])

    def _choice(self, word: str) -> Choice:
        self.place += 1
        arms, otherwise = [], None
        more = ("ELSIF", "ELSEIF") if word == "IF" else ("WHEN",)
        if word == "CASE":
            self.take("WHEN")
        while True:
            test = self._text_until("THEN")
            self.take("THEN")
            arms.append((test, self._statements(*more, "ELSE", "END")))
            if self.word() not in more:
                break
            self.place += 1
        if self.word() == "ELSE":
            self.place += 1
            otherwise = self._statements("END")
        elif word == "CASE":
            self.fail("in a CASE without ELSE, which fails for some rows")
        self.take("END")
        self.take(word)
        self.take(";")
        return Choice(tuple(arms), otherwise or ())
