"""Kinds of features in C: the table in which `NAME_code` looks up a text, and names for classes and codes.

A hash leads to a place in a table that is at most half full; from there on, place after place up to an empty one, a
text is compared byte by byte. No two texts are taken for each other, whatever their hashes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gbfl_compile.backends.c.expressions import LONGEST_ENUMERATOR, Real, comment, rows_of, string, used_features
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Program

FIRST_HASH, HASH_FACTOR = 2166136261, 16777619
"""FNV-1a of 32 bits."""

UNITS = {
    "number": "a number",
    "category": "a category: its code",
    "boolean": "a boolean: 1 or 0",
    "date": "a date: days since 1970-01-01",
    "timestamp": "a timestamp: microseconds since 1970-01-01 UTC",
}


def require_exact(program: Program, real: Real) -> None:
    """Refuse float32 for a program that compares timestamps: a float holds no microseconds."""
    if real == "double" or not program.kinds:
        return
    for feature in used_features(program):
        if program.kinds[feature] == "timestamp":
            name = program.features[feature]
            raise BadInput(f"target c: {name!r} is a timestamp, and no float32 holds microseconds: use dtype=float64")


def kind_values(program: Program, name: str, labels: Sequence[str]) -> dict[str, Any]:
    """What the templates say about kinds; nothing where all features are numbers."""
    if not program.kinds:
        return {"kinds": [], "codes": None}
    classes = _unique_names(f"{name}_class_is_", [(label,) for label in labels])
    return {
        "kinds": rows_of([f"'{kind[0]}'" for kind in program.kinds]),
        "units": [UNITS[kind] for kind in program.kinds],
        "class_names": [own or f"{name}_class_{number}" for number, own in enumerate(classes)],
        "class_texts": [comment(label[:LONGEST_ENUMERATOR]) for label in labels],
        "codes": _code_values(program, name) if "category" in program.kinds else None,
    }


def _code_values(program: Program, name: str) -> dict[str, Any]:
    book = codebook(program).texts
    texts: list[tuple[int, int, str]] = []
    slots: list[int] = []
    places = []
    for feature, kind in enumerate(program.kinds):
        if kind != "category":
            places.append("0u, 0u, 0u")
            continue
        table = slots_of(book[feature])
        places.append(f"{len(texts)}u, {len(slots)}u, {len(table) - 1}u")
        texts += [(feature, code, text) for code, text in enumerate(book[feature], 1)]
        slots += table
    names = _unique_names(f"{name}_code_of_", [(program.features[feature], text) for feature, _, text in texts])
    return {
        "texts": [f"{string(text)}, {len(text.encode('utf-8'))}u" for _, _, text in texts] or ['"", 0u'],
        "slots": slots,
        "slot_rows": rows_of([str(slot) for slot in slots]),
        "slot_type": next(f"uint{bits}_t" for bits in (8, 16, 32) if max(slots) < 1 << bits),
        "places": places,
        "names": [
            (own or f"{name}_feature_{feature}_code_{code}", code, comment(text[:LONGEST_ENUMERATOR]))
            for own, (feature, code, text) in zip(names, texts, strict=True)
        ],
    }


def slots_of(texts: Sequence[str]) -> list[int]:
    """A table of codes in which each text is found from its hash on, before an empty place (0)."""
    size = 1
    while texts and size < 2 * len(texts):
        size *= 2
    slots = [0] * size
    for code, text in enumerate(texts, 1):
        slot = text_hash(text.encode("utf-8")) % size
        while slots[slot]:
            slot = (slot + 1) % size
        slots[slot] = code
    return slots


def text_hash(text: bytes) -> int:
    """FNV-1a.

    >>> hex(text_hash(b"foobar"))
    '0xbf9cf968'
    """
    value = FIRST_HASH
    for byte in text:
        value = (value ^ byte) * HASH_FACTOR % 2**32
    return value


def _unique_names(prefix: str, words: Iterable[tuple[str, ...]]) -> list[str | None]:
    """A C name for each group of words, None where it would be empty or another group's too."""
    cleaned = [tuple(_clean(word) for word in group) for group in words]
    names = [prefix + "_".join(group) if all(group) else None for group in cleaned]
    times = Counter(names)
    return [name if times[name] == 1 else None for name in names]


def _clean(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", word).strip("_")[:LONGEST_ENUMERATOR]
