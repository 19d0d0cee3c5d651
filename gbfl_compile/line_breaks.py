"""Long lines for a narrow terminal: broken between conditions, not within them, and indented further below."""

from __future__ import annotations

import re
import textwrap

HANGING = " " * 8

BREAKS = re.compile(r"(?= AND | OR | THEN )|(?<=[,;:])(?= )(?![^()]*\))")
"""Where a line is best broken; not within brackets."""

HELD = "\0"
"""In place of a space at which a line is not broken; a printable line never holds it."""


def broken(line: str, width: int) -> list[str]:
    """The parts of a printable line, none wider than `width` unless a word is.

    >>> broken("IF 18 <= age < 30 AND income >= 52000 THEN no (1.00, 2 rows)", 36)
    ['IF 18 <= age < 30', '        AND income >= 52000', '        THEN no (1.00, 2 rows)']
    """
    start = HANGING + " " * (len(line) - len(line.lstrip()))
    parts = textwrap.wrap(
        _held_together(line, 2 * width // 3),
        width,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(HELD, " ") for part in parts]


def _held_together(line: str, longest: int) -> str:
    """The line, its short parts made unbreakable."""
    body = line.lstrip()
    held = (part[:1] + part[1:].replace(" ", HELD) if len(part) <= longest else part for part in BREAKS.split(body))
    return line[: len(line) - len(body)] + "".join(held)
