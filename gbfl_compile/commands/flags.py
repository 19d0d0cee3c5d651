"""What several commands share: how a file is named, and the flags that mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

EQUAL, DIFFERENT, BAD_USAGE, COULD_NOT_RUN, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes. After a signal it is 128 and the signal's number, whatever a command says."""

FILE = click.Path(path_type=Path, readable=False)
"""A path. Whether it can be read or written is found out, and said, by whoever does so."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
seed = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of everything drawn."
)

Command = Callable[..., int]


def printed(command: Command) -> Command:
    """`--quiet` and `--out` for a command that has nothing to give but what it prints, and its exit code."""

    @wraps(command)
    def told(*arguments: Any, print_nothing: bool, printed_to: Path | None, **options: Any) -> int:
        from gbfl_compile import screen

        with screen.said_to(printed_to, quiet=print_nothing):
            return command(*arguments, **options)

    for option in (
        click.option("--quiet", "-q", "print_nothing", is_flag=True, help="Print nothing but errors."),
        click.option("--out", "-o", "printed_to", type=FILE, help="Write what would be printed to this file."),
    ):
        told = option(told)
    return told


def silenced(command: Command) -> Command:
    """`--quiet` for a command that has an `--out` of its own."""

    @wraps(command)
    def told(*arguments: Any, print_nothing: bool, **options: Any) -> int:
        from gbfl_compile import screen

        with screen.said_to(None, quiet=print_nothing):
            return command(*arguments, **options)

    option = click.option("--quiet", "-q", "print_nothing", is_flag=True, help="Print nothing but errors.")
    return option(told)
