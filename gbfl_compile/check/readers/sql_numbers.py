"""Number literals as an engine reads them. What is not certain to be one and the same double is refused."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal, InvalidOperation, Overflow
from fractions import Fraction

from gbfl_compile.check.readers.sql_engines import Engine
from gbfl_compile.check.reading import Unread

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LONGEST = 900
"""Characters of a number. The exact decimal of the smallest double has 751 digits."""

WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
}

_EXACT = Context(prec=LONGEST, Emax=10_000, Emin=-10_000)


def number(engine: Engine, text: str) -> int | float | Decimal:
    """A literal as it stands in the text: a whole number, a double, or a decimal."""
    if len(text) > LONGEST or not NUMBER.fullmatch(text) or not text.isascii():
        raise Unread(f"{_short(text)} is not a number that is understood")
    if text.isdigit():
        return int(text)
    exact = _decimal(text)
    written = engine.exponent if "e" in text.lower() else engine.point
    return nearest(engine, exact) if written == "double" else exact


def _decimal(text: str) -> Decimal:
    try:
        return _EXACT.create_decimal(text)
    except (InvalidOperation, Overflow):
        raise Unread(f"{_short(text)} is not a number that is understood") from None


def as_double(engine: Engine, value: int | float | Decimal) -> float:
    """A number where a double is asked for."""
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        if abs(value) > 2**53:
            raise Unread(f"{value} is no double: engines compare it in different ways")
        return float(value)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - NaN and infinities are no literals
    significant = len("".join(map(str, digits)).strip("0")) or 1
    if significant > engine.most_digits or -exponent > engine.most_scale:
        raise Unread(f"{_short(str(value))} is a decimal: what double {engine.name} makes of it is not certain")
    return nearest(engine, value)


def nearest(engine: Engine, value: Decimal) -> float:
    """The double nearest to a decimal, where the engine is certain to find it."""
    found = float(value)
    if math.isinf(found) or (found == 0.0 and value != 0):
        raise Unread(f"{_short(str(value))} is beyond every double")
    if engine.sloppy and found != 0.0:
        _refuse_what_sqlite_misreads(value, found)
    return found + 0.0


def _refuse_what_sqlite_misreads(value: Decimal, found: float) -> None:
    """Of ordinary size, and not half-way between two doubles: those every version reads right.

    SQLite 3.40 rounds twice: it reads 16.174532293615, 0.4999 of a step from the nearest double, as the next one.
    """
    digits = len("".join(map(str, value.as_tuple().digits)).strip("0")) or 1
    size = abs(found)
    away = abs(Fraction(value) - Fraction(found)) / Fraction(math.ulp(found))
    short = digits <= 15 and 1e-7 <= size <= 1e22 and away <= Fraction(499, 1000)
    close = digits <= 17 and 1e-60 <= size <= 1e60 and away <= Fraction(46, 100)
    if not short and not close:
        raise Unread(f"{_short(str(value))}: some versions of SQLite read another double, write it as %.16e")


def text_as_double(engine: Engine, text: str) -> float:
    """CAST('…' AS DOUBLE)."""
    word = WORDS.get(text.lower())
    if word is not None:
        return word if engine.words else 0.0
    if not NUMBER.fullmatch(text) or len(text) > LONGEST:
        raise Unread(f"the text {_short(text)!r} cast to a double")
    exact = _decimal(text)
    digits = len("".join(map(str, exact.as_tuple().digits)).strip("0")) or 1
    if engine.texts_are_cast == "never" or (engine.texts_are_cast == "short" and digits > 15):
        raise Unread(f"the text {text!r} cast to a double: some versions of {engine.name} read another one")
    return nearest(engine, exact)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
