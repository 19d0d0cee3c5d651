"""Witnesses of words and dates: texts that are easily mistaken for a listed one, and rows that can exist."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence

from gbfl_compile.ir.kinds import DAY, EARLIEST, LATEST, Codebook, codebook
from gbfl_compile.ir.nodes import Kind, Program

MOST_LOOKALIKES = 40
"""Texts tried per feature beside those that the program lists."""

STRANGERS = (
    "",
    " ",
    "other",
    "NULL",
    "None",
    "nan",
    "true",
    "1",
    "0",
    "\u00e1",
    "a\u0301",
    "a",
    "A",
    "a ",
    "\u00df",
    "ss",
)
"""Texts that engines, clients or collations take for another text or for a missing value."""


def with_lookalikes(program: Program) -> Codebook:
    """The program's texts and, after them, texts that a comparison which is not exact would take for one of them."""
    book = codebook(program)
    for feature, kind in enumerate(program.kinds):
        if kind != "category":
            continue
        own = book.texts[feature]
        others = dict.fromkeys(text for listed in own for text in _lookalikes(listed))
        others |= dict.fromkeys(STRANGERS)
        for text in [text for text in others if text not in own][:MOST_LOOKALIKES]:
            book = book.with_text(feature, text)
    return book


def _lookalikes(text: str) -> Iterator[str]:
    """The text in other letters, with blanks around it, in both normal forms, cut short, without its accents."""
    yield text + " "
    yield text.upper()
    yield text.lower()
    yield " " + text
    yield text.swapcase()
    yield unicodedata.normalize("NFC", text)
    yield unicodedata.normalize("NFD", text)
    yield "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))
    yield text[:-1]
    yield text + "\t"
    yield text.casefold()


def possible_rows(program: Program, rows: Sequence[Sequence[float]], book: Codebook) -> list[list[float]]:
    """The rows with values that the features can have: codes of texts, true or false, whole days and microseconds."""
    own = codebook(program)
    possible = []
    for number, row in enumerate(rows):
        values = []
        for feature, value in enumerate(row):
            known, every = len(own.texts[feature]), len(book.texts[feature])
            values.append(_possible(program.kind(feature), value, number, known, every))
        possible.append(values)
    return possible


def _possible(kind: Kind, value: float, number: int, known: int, every: int) -> float:
    if kind == "number" or math.isnan(value):
        return value
    if kind == "boolean":
        return 1.0 if value == 1.0 else 0.0
    if kind == "category":
        if 1 <= value <= known and value == int(value):
            return value
        return float(known + 1 + number % (every - known)) if every > known else 0.0
    first, last = (EARLIEST, LATEST) if kind == "date" else (EARLIEST * DAY, LATEST * DAY)
    first, last = max(first, -(2.0**53)), min(last, 2.0**53)
    whole = (math.floor, math.ceil)[number % 2]
    return float(whole(min(max(value, first), last)))
