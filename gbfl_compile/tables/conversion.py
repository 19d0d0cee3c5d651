"""One value of a table as its kind compares it, whatever type or text it is written as."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any, assert_never

import numpy as np

from gbfl_compile.ir.kinds import plain_value
from gbfl_compile.ir.nodes import Kind

NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
"""A double as programs write it; in a column whose kind is not known it is a word."""
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}(:?\d{2})?)?")
TRUTH = {"true": 1.0, "false": 0.0}


def convert(value: Any, kind: Kind) -> float | str | None:
    """A value as its kind compares it; None where it is not one of its kind."""
    match kind:
        case "number":
            if isinstance(value, str):
                return float(value) if NUMBER.fullmatch(value) or INFINITE.fullmatch(value) else None
            return float(value) if is_number(value) or isinstance(value, bool | np.bool_) else None
        case "category":
            return text_of(value)
        case "boolean":
            if isinstance(value, str):
                return TRUTH.get(value.strip().lower(), {"1": 1.0, "0": 0.0}.get(value.strip()))
            return float(value) if value in (0, 1) else None
        case "date" | "timestamp":
            return _as_time(value, kind)
        case _:
            assert_never(kind)


def text_of(value: Any) -> str | None:
    """A category's text: as it is, or a number as it is written without a fraction where it has none.

    A double of 2^53 or more has no text: it may have been another whole number.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if not is_number(value):
        return str(value) if isinstance(value, datetime.date) else None
    if isinstance(value, int | np.integer):
        return str(value)
    if not abs(value) < 2**53:
        return None
    return str(int(value)) if value == int(value) else repr(float(value))


def _as_time(value: Any, kind: Kind) -> float | None:
    if isinstance(value, str):
        value = _moment(value.strip())
        if kind == "date" and value is not None:
            value = value.date() if value.time() == datetime.time() else None
    elif kind == "date" and isinstance(value, datetime.datetime):
        value = value.date() if value.time() == datetime.time() else None
    if not isinstance(value, datetime.date):
        return None
    if kind == "timestamp" and not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    plain = plain_value(kind, value, f"{value}")
    return None if plain is None else float(plain)


def is_moment(text: str, pattern: re.Pattern[str]) -> bool:
    return pattern.fullmatch(text.strip()) is not None and _moment(text.strip()) is not None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool)


def _moment(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
