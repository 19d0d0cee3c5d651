"""The errors a user can meet, and the exit code each one means on the command line."""

from __future__ import annotations


class GbflError(Exception):
    """Something the user can mend. The message names the thing and the way out, on one line."""

    exit_code = 2


class BadInput(GbflError, ValueError):
    """What was given cannot be used: a file, a program, a row, an option."""


class CannotRun(GbflError, RuntimeError):
    """What was asked for needs something that is not here: a library, a compiler, an engine."""

    exit_code = 3
