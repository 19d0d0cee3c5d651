"""What several commands share: how a file is named, and the flags that mean the same everywhere."""

from __future__ import annotations

from pathlib import Path

import click

EQUAL, DIFFERENT, BAD_USAGE, COULD_NOT_RUN, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143
"""Exit codes. The last two are what a shell says of Ctrl-C and of SIGTERM."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end, by `kill` or a machine that goes down: it cleans up as after Ctrl-C."""


def code_of(stop: BaseException) -> int:
    """The exit code of a stop; click hides it behind an exception of its own."""
    return TERMINATED if isinstance(stop, Terminated) or isinstance(stop.__cause__, Terminated) else INTERRUPTED


def told_of(stop: BaseException) -> str:
    """A stop in a word."""
    return "terminated" if code_of(stop) == TERMINATED else "interrupted"


FILE = click.Path(path_type=Path, readable=False)
"""A path. Whether it can be read or written is found out, and said, by whoever does so."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
