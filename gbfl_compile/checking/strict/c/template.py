"""Known files with holes, matched token by token: what is not said in the file, or fits no hole, is refused.

A template is C with these signs in it:

    @NAME@                  filled in before anything is matched, and so are @REAL@, @BITS@ and @LANE@
    $kind:key               a hole; `holes` says what may be in it. A key seen before has to have the same value
    $each:key{ ... $}       the tokens between, any number of times, each time with keys of their own
    $when:flag{ ... $}      the tokens between, for artifacts of that kind only
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c.holes import KINDS
from gbfl_compile.checking.strict.c.lexer import Tokens, template_tokens
from gbfl_compile.checking.strict.c.literals import Real
from gbfl_compile.checking.strict.c.source import Misfit, Source

KNOWN = Path(__file__).parent / "known"

PADDING = [""] * 12
"""After the last token, so that no hole has to ask whether there are any left: an empty one fits nowhere."""

Contents: TypeAlias = dict[str, Any]
"""What was in the holes, by key; for an `$each` a list of such."""


@dataclass(frozen=True, slots=True)
class FixedToken:
    """Tokens that have to be there as they are."""

    words: list[str]


@dataclass(frozen=True, slots=True)
class Hole:
    """A place for something of one kind."""

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Each:
    """A part that is there any number of times."""

    key: str
    items: tuple[Item, ...]


Item: TypeAlias = FixedToken | Hole | Each


def known_text(file: str, values: Mapping[str, str]) -> str:
    """A known file with what stands between @ signs filled in."""
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
    """As often as the items match. The first time that they do not is no fault: something else may follow."""
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
