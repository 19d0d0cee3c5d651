"""How names, labels and numbers are written on the page: on one line, short where repeated, never ambiguous."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gbfl_compile.ir.kinds import Value
from gbfl_compile.ir.nodes import Label
from gbfl_compile.ir.text import label_text, number_text, printable, value_text

LONGEST = 44
"""Characters of a name in a rule; the list of features gives the full name."""

LARGEST = 1e300
"""The largest figure accepted from a file: sums of a few larger ones would overflow."""

LONGEST_TEXT = 600
"""Characters shown of a text from a verdict or an audit."""


def shorten(text: str, longest: int = LONGEST) -> str:
    """The text, without its middle if it is long: names often differ at their ends.

    >>> shorten("mean_of_everything", 11)
    'mean_…thing'
    """
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names short enough for a rule; names that would look alike get their number."""
    short = [shorten(printable(name)) for name in names]
    occurrences = Counter(short)
    return tuple(f"{name} #{index}" if occurrences[name] > 1 else name for index, name in enumerate(short))


def class_names(classes: Sequence[Label]) -> tuple[str, ...]:
    """Class labels as they appear in tables."""
    return distinct([label_text(label) for label in classes])


def one_line(value: Any, longest: int = LONGEST_TEXT) -> str:
    """A value from a JSON file on one line: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return shorten(printable(text), longest)


def exact_label(label: Any) -> str:
    """A label where its type matters: 1, true and "1" are three labels."""
    return one_line(json.dumps(label, ensure_ascii=False, default=repr))


def exact_number(value: Any) -> str:
    """A value of a witness row with all its digits; null is missing, and hexadecimal text is the double it denotes."""
    if value is None:
        return "missing"
    if isinstance(value, str) and "0x" in value:
        try:
            return repr(float.fromhex(value))
        except (ValueError, OverflowError):
            return one_line(value)
    return repr(value) if isinstance(value, float) else one_line(value)


def count(number: int, noun: str) -> str:
    """`1 row`, `1,204 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(value: Any) -> str:
    """A percentage to one decimal, or a dash where there is none."""
    if not is_number(value):
        return "–"
    return f"{value:.1f} %" if abs(value) < 1e6 else f"{value:.3g} %"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(0.0004), duration(0.0312), duration(2.5)
    ('under 1 ms', '31 ms', '2.5 s')
    """
    if seconds < 0.001:
        return "under 1 ms"
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number, and not a truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= LARGEST  # False for NaN; integers of any size can be compared


def row_value(value: Value) -> str:
    """A value of a row as people read it."""
    if value is None or value != value:
        return "missing"
    match value:
        case bool():
            return str(value).lower()
        case str():
            return shorten(value_text(value), LONGEST_TEXT)
        case datetime.date():
            return str(value)
    return number_text(value) if math.isfinite(value) else ("+∞" if value > 0 else "−∞")


def signed_text(points: int) -> str:
    """Points with their sign; the minus is as wide as the plus."""
    return f"{points:+,d}".replace("-", "−") if points else "0"
