"""Names and labels in C source: whatever they are called, none can end a comment, a string or a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

PLAIN_IN_COMMENT = re.compile(r"[A-Za-z0-9 _.,:;()<>=+%-]")
PLAIN_IN_STRING = re.compile(r"[A-Za-z0-9 _.,:;()<>=+-]")

LONGEST_ENUMERATOR = 40

HEADERS_OF_C = frozenset(
    {
        *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
        *("setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib"),
        *("stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype", "gbfl", "python"),
    }
)
"""Names an artifact may not have here: its header would stand in for one that C programs include."""


def comment(text: str) -> str:
    """Text for the inside of a comment; what could mean anything to a compiler is named by its code point.

    >>> comment("a */ ??/ b")
    'a {2a}{2f} {3f}{3f}{2f} b'
    """
    return "".join(c if PLAIN_IN_COMMENT.fullmatch(c) else f"{{{ord(c):x}}}" for c in text)


def string(text: str) -> str:
    r"""A string literal with the UTF-8 bytes of `text`; three octal digits end where they end, unlike \x.

    >>> string('say "hi"?')
    '"say \\042hi\\042\\077"'
    """
    letters = ((chr(byte), byte) for byte in text.encode("utf-8"))
    return '"' + "".join(c if PLAIN_IN_STRING.fullmatch(c) else f"\\{byte:03o}" for c, byte in letters) + '"'


def enumerators(prefix: str, features: tuple[str, ...]) -> list[str]:
    """A C name for each feature: its own where that is safe and single, its number where not."""
    cleaned = [re.sub(r"[^A-Za-z0-9]+", "_", feature).strip("_")[:LONGEST_ENUMERATOR] for feature in features]
    times: dict[str, int] = {}
    for name in cleaned:
        times[name] = times.get(name, 0) + 1
    return [
        f"{prefix}_x_{name}" if name and times[name] == 1 else f"{prefix}_feature_{index}"
        for index, name in enumerate(cleaned)
    ]


def rows_of(items: Sequence[str], width: int = 16) -> list[str]:
    """The items of a table, so many a line."""
    return [", ".join(items[at : at + width]) for at in range(0, len(items), width)]
