"""What several commands share: how a file is named, and the flags that mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from gbfl_compile.errors import BadInput

EQUAL, DIFFERENT, BAD_USAGE, COULD_NOT_RUN, INTERRUPTED, NOBODY_READS = 0, 1, 2, 3, 130, 141
"""Exit codes. After a signal it is 128 and the signal's number, whatever a command says; so it is, as in other
programs, where a pipe was closed by its reader before all was said."""

FILE = click.Path(path_type=Path, readable=False)
"""A path. Whether it can be read or written is found out, and said, by whoever does so."""

WRITTEN = click.Path(path_type=Path, readable=False)
"""The path of a file that is written. It may not be one of those that are read: see `spare_what_is_read`."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
seed = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of everything drawn."
)

Command = Callable[..., int]


def spare_what_is_read(command: click.Command) -> None:
    """Have a command refuse to write over a file that it was given to read."""
    told = command.callback
    assert told is not None  # noqa: S101 - every command of ours does something
    written = [option.name for option in command.params if option.type is WRITTEN and option.name]
    read = [option.name for option in command.params if option.type is FILE and option.name]

    @wraps(told)
    def sparing(*arguments: Any, **options: Any) -> Any:
        given = [options[name] for name in read]
        for name in written:
            refuse_overwriting(options[name], *given)
        return told(*arguments, **options)

    command.callback = sparing


def refuse_overwriting(written: Path | None, *read: Path | tuple[Path, ...] | None) -> None:
    """Refuse a file that is read as the place of what is written, under whichever name."""
    every = [path for each in read if each is not None for path in (each if isinstance(each, tuple) else (each,))]
    if written is not None and written.is_file() and any(each.is_file() and written.samefile(each) for each in every):
        raise BadInput(f"{written}: is read by this command and would be lost: name another file to write")


def printed(command: Command) -> Command:
    """`--quiet` and `--out` for a command that has nothing to give but what it prints, and its exit code."""

    @wraps(command)
    def told(*arguments: Any, print_nothing: bool, printed_to: Path | None, **options: Any) -> int:
        from gbfl_compile import screen

        with screen.said_to(printed_to, quiet=print_nothing):
            return command(*arguments, **options)

    for option in (
        click.option("--quiet", "-q", "print_nothing", is_flag=True, help="Print nothing but errors."),
        click.option("--out", "-o", "printed_to", type=WRITTEN, help="Write what would be printed to this file."),
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
