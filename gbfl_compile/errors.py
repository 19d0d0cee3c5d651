"""The errors a user can meet, and the exit code each one means on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_MESSAGE = 1_500
"""Characters. A message quotes what it was given, and that may be a name of a million letters."""


def in_short(message: str) -> str:
    """The message, without its middle where it is too long to be read."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    ends = LONGEST_MESSAGE // 2 - 50
    return f"{message[:ends]} … ({len(message) - 2 * ends} characters) … {message[-ends:]}"


class GbflError(Exception):
    """Something the user can mend. The message names the thing and the way out, on one line."""

    exit_code = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(in_short(message))


class BadInput(GbflError, ValueError):
    """What was given cannot be used: a file, a program, a row, an option."""


class NotANumber(BadInput):
    """A value of a feature that is not a number, and a hint what it was meant to be; the hint may be empty."""

    def __init__(self, place: str, value: object, hint: str) -> None:
        super().__init__(f"{place}: {value!r} is not a number{hint}")
        self.value, self.hint = value, hint


class CannotRun(GbflError, RuntimeError):
    """The request needs something that is not installed here: a library, a compiler, an engine."""

    exit_code = 3


class ConnectionLost(CannotRun):
    """The database connection is gone; nothing can be concluded about what was being read."""


class TimeLimitReached(CannotRun):
    """Something was stopped because it did not finish within its time limit."""


LONGEST_COMPARED = 100
"""Letters: comparing longer names takes long, and nobody types them."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`; did you mean 'income'?`, or nothing where no name is near: capitals and blanks count least.

    >>> did_you_mean("Income", ["age", "income"]), did_you_mean("x", ["age"])
    ("; did you mean 'income'?", '')
    """
    plain = {_plain(each): each for each in names if len(each) <= LONGEST_COMPARED}
    if len(name) > LONGEST_COMPARED:
        return ""
    near = [_plain(name)] if _plain(name) in plain else get_close_matches(_plain(name), plain, 1)
    return f"; did you mean {plain[near[0]]!r}?" if near else ""


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")
