"""Known files with holes, matched token by token: anything else in the text, or anything that fits no hole, is refused.

A template is C with these signs in it:

    @NAME@                  filled in before anything is matched, and so are @REAL@, @BITS@ and @LANE@
    $kind:key               a hole; `KINDS` says what may be in it. A key seen before has to have the same value
    $each:key{ ... $}       the tokens between, any number of times, each time with keys of their own
    $when:flag{ ... $}      the tokens between, for artifacts of that kind only
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c.conditions import Misfit, Source, nested_ifs, rule
from gbfl_compile.checking.strict.c.lexer import (
    Real,
    Tokens,
    count,
    real,
    string,
    template_tokens,
    unsigned_literal,
    whole,
)

Fit: TypeAlias = tuple[Any, int]
"""What is in a hole, and where the tokens after it begin."""

Kind: TypeAlias = Callable[[Sequence[str], int, Source], Fit]
Element: TypeAlias = Callable[[str, Source], Any]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LETTER = re.compile(r"'[a-z]'")
INT_TYPES = re.compile(r"int(8|16|32|64)_t")
UINT_TYPES = re.compile(r"uint(8|16|32)_t")
DEEPEST_TABLE = 3


def _single(what: str, value: Callable[[str], Any]) -> Kind:
    """A hole of one token."""

    def fit(words: Sequence[str], at: int, source: Source) -> Fit:
        content = value(words[at])
        if content is None:
            raise Misfit(at, what)
        return content, at + 1

    return fit


def _local(letter: str) -> Kind:
    """A local variable that is called by a letter and a number: the number."""
    pattern = re.compile(rf"{letter}(0|[1-9][0-9]{{0,8}})")

    def number(word: str) -> int | None:
        match = pattern.fullmatch(word)
        return None if match is None else int(match[1])

    return _single(f"{letter} and a number", number)


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda word: word if pattern.fullmatch(word) else None


def _integer(words: Sequence[str], at: int, source: Source) -> Fit:
    """A signed number: `7`, `-7` or `INT64_C(-7)`."""
    end = at + 1 + (words[at] == "-")
    if words[at] == "INT64_C":
        end = at + 4 + (words[at + 2] == "-")
    number = whole(" ".join(words[at:end]))
    if number is None:
        raise Misfit(at, "a whole number of at most 64 bits")
    return number, end


def _node(words: Sequence[str], at: int, source: Source) -> Fit:
    """An answer, or the name of the step that has it."""
    if re.fullmatch(r"n(0|[1-9][0-9]{0,8})", words[at]):
        return words[at], at + 1
    return KINDS["number"](words, at, source)


def _end(words: Sequence[str], at: int) -> int:
    """The end of the declaration: nothing in a table is a semicolon."""
    try:
        return words.index(";", at)
    except ValueError:
        raise Misfit(at, "a table and a semicolon") from None


class Elements(dict[str, Any]):
    """What the elements of one table mean, each text read once: tables of thousands have few different ones."""

    def __init__(self, element: Element, at: int, source: Source) -> None:
        super().__init__()
        self.element, self.at, self.source = element, at, source

    def __missing__(self, text: str) -> Any:
        value = self[text] = self.element(text, self.source)
        if value is None:
            raise Misfit(self.at, f"a table of numbers of its type: it has {text[:40]}")
        return value


def _table(element: Element) -> Kind:
    """A table in braces, down to elements of one kind: tuples of tuples. Every brace is there, and no extra comma."""

    def fit(words: Sequence[str], at: int, source: Source) -> Fit:
        end = _end(words, at)
        text = " ".join(words[at:end])
        depth = (len(text) - len(text.lstrip("{ "))) // 2
        opening, closing = "{ " * depth, " }" * depth
        if not 1 <= depth <= DEEPEST_TABLE or not text.startswith(opening) or not text.endswith(closing):
            raise Misfit(at, "a table in braces")
        elements = Elements(element, at, source)
        return read_nested(text[len(opening) : -len(closing)], depth, elements), end

    def read_nested(text: str, depth: int, elements: Elements) -> tuple[Any, ...]:
        pieces = text.split(f"{' }' * (depth - 1)} , {'{ ' * (depth - 1)}")
        if depth > 1:
            return tuple([read_nested(piece, depth - 1, elements) for piece in pieces])
        return tuple(map(elements.__getitem__, pieces))

    return fit


def _texts(words: Sequence[str], at: int, source: Source) -> Fit:
    """Strings in braces."""
    end = _end(words, at)
    inner = words[at + 1 : end - 1]
    texts = tuple(string(word) for word in inner[::2] if word[:1] == '"')
    commas = set(inner[1::2]) <= {","} and len(inner) % 2 == 1
    if words[at] != "{" or words[end - 1] != "}" or not commas or len(texts) != len(inner[::2]) or None in texts:
        raise Misfit(at, "strings in braces")
    return texts, end


def _sized_texts(words: Sequence[str], at: int, source: Source) -> Fit:
    """Strings, each with a number, in braces within braces."""
    end = _end(words, at)
    inner = words[at + 1 : end - 1]
    rows = [inner[start : start + 6] for start in range(0, len(inner), 6)]
    shaped = all(row[0] == "{" and [*row[2:3], *row[4:5]] == [",", "}"] for row in rows)
    commas = all(row[5:] == [","] for row in rows[:-1]) and bool(rows) and len(rows[-1]) == 5
    if words[at] != "{" or words[end - 1] != "}" or not shaped or not commas:
        raise Misfit(at, "strings with their lengths in braces")
    texts = tuple((string(row[1]) if row[1][:1] == '"' else None, unsigned_literal(row[3])) for row in rows)
    if any(None in each for each in texts):
        raise Misfit(at, "strings with their lengths in braces")
    return texts, end


def _whole_of(bits: int) -> Element:
    def element(text: str, source: Source) -> int | None:
        number = whole(text)
        return number if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None

    return element


def _number(text: str, kind: Real) -> float | None:
    number = real(text.removeprefix("- "), kind)
    return -number if number is not None and text.startswith("- ") else number


def _cut(text: str, source: Source) -> float | None:
    """Where a bin begins; a table of none has a single 0."""
    return {"GBFL_INFINITY": math.inf, "0": 0.0}.get(text, _number(text, source.real))


KINDS: Mapping[str, Kind] = {
    "number": _single("a number from 0 on", count),
    "integer": _integer,
    "mask": _single("an unsigned number", unsigned_literal),
    "double": _single("a double", lambda word: real(word, "double")),
    "text": _single("a string", lambda word: string(word) if word[:1] == '"' else None),
    "name": _single("a name", _matching(NAME)),
    "letter": _single("a letter", _matching(LETTER)),
    "int_type": _single("a type of whole numbers", _matching(INT_TYPES)),
    "uint_type": _single("a type of numbers from 0 on", _matching(UINT_TYPES)),
    **{letter: _local(letter) for letter in "cxnsh"},
    "node": _node,
    "one_row": lambda words, at, source: rule(words, at, source, "x[i]"),
    "lanes": lambda words, at, source: rule(words, at, source, "xi"),
    "tree": nested_ifs,
    "int32s": _table(_whole_of(32)),
    "int64s": _table(_whole_of(64)),
    "masks": _table(lambda text, source: unsigned_literal(text)),
    "flags": _table(lambda text, source: {"0": 0, "1": 1}.get(text)),
    "doubles": _table(lambda text, source: _number(text, "double")),
    "cuts": _table(_cut),
    "letters": _table(lambda text, source: text if LETTER.fullmatch(text) else None),
    "texts": _texts,
    "sized_texts": _sized_texts,
}
"""What may be in a hole, by the name of its kind."""


KNOWN = Path(__file__).parent / "known"

PADDING = [""] * 12
"""After the last token, so that no hole has to ask whether there are any left: an empty one fits nowhere."""

Contents: TypeAlias = dict[str, Any]
"""What was in the holes, by key; for an `$each` a list of such."""


@dataclass(frozen=True, slots=True)
class FixedToken:
    """Tokens that must occur exactly."""

    words: list[str]


@dataclass(frozen=True, slots=True)
class Hole:
    """A place for one kind of content."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Each:
    """A part that may be repeated."""

    key: str
    items: tuple[Item, ...]


Item: TypeAlias = FixedToken | Hole | Each


def known_text(file: str, values: Mapping[str, str]) -> str:
    """A known file with what is between @ signs filled in."""
    text = (KNOWN / file).read_text(encoding="ascii")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


@lru_cache(maxsize=64)
def template(files: tuple[str, ...], name: str, real: Real, flags: frozenset[str]) -> tuple[Item, ...]:
    """The known files, one after another, for a model of this name and type. The type is one of the flags."""
    bits = "64" if real == "double" else "32"
    values = {"NAME": name, "REAL": real, "BITS": bits, "LANE": f"int{bits}_t"}
    words = (word for file in files for word in template_tokens(known_text(file, values)))
    return tuple(_items(words, flags | {real}))


def _items(words: Iterator[str], flags: frozenset[str]) -> list[Item]:
    """The items up to the `$}` that ends them."""
    items: list[Item] = []
    run: list[str] = []
    for word in words:
        if word[0] != "$":
            run.append(word)
            continue
        if run:
            items.append(FixedToken(run))
            run = []
        kind, _, key = word.removesuffix("{").partition(":")
        if word == "$}":
            return items
        inner = _items(words, flags) if word[-1] == "{" else []
        if kind == "$when":
            items += inner if key in flags else []
        else:
            items.append(Each(key, tuple(inner)) if kind == "$each" else Hole(kind[1:], key))
    return [*items, FixedToken(run)]


def match(items: Sequence[Item], file: Tokens, source: Source, contents: Contents) -> None:
    """Fill `contents` with what the holes hold; every token of the file is matched, or the file is refused."""
    words = [*file.words, *PADDING]
    end = len(file.words)
    try:
        at = _match(items, words, 0, source, contents)
        if at == end:
            return
        source.misfits.append(Misfit(at, "the end of the file"))
    except Misfit as misfit:
        source.misfits.append(misfit)
    furthest = max(source.misfits, key=lambda misfit: misfit.at)
    word = words[furthest.at] or "the end of the file"
    raise Unread(f"line {file.line(furthest.at)}: found {word[:60]}, known here is {furthest.expected[:80]}")


def _match(items: Sequence[Item], words: list[str], at: int, source: Source, contents: Contents) -> int:
    for item in items:
        match item:
            case FixedToken(run):
                if words[at : at + len(run)] != run:
                    raise _first_difference(run, words, at)
                at += len(run)
            case Hole(kind, key):
                value, after = KINDS[kind](words, at, source)
                if contents.setdefault(key, value) != value:
                    raise Misfit(at, f"{key} as it was before")
                at = after
            case Each(key, inner):
                at = _repeat(inner, words, at, source, contents.setdefault(key, []))
    return at


def _repeat(items: Sequence[Item], words: list[str], at: int, source: Source, rounds: list[Contents]) -> int:
    """Matches the items as often as possible; where they no longer match, something else may follow."""
    while True:
        contents: Contents = {}
        try:
            at = _match(items, words, at, source, contents)
        except Misfit as misfit:
            source.misfits.append(misfit)
            return at
        rounds.append(contents)


def _first_difference(run: Sequence[str], words: Sequence[str], at: int) -> Misfit:
    for place, word in enumerate(run, at):
        if words[place] != word:
            return Misfit(place, word)
    raise AssertionError("the runs are the same")
