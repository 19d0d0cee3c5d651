"""What commands share: how a file is named, the flags that mean the same everywhere, and how they end.

Ctrl-C, SIGTERM and SIGHUP end a command in order: an exception is raised once, cleaning up is not disturbed. Python
raises for Ctrl-C only; the others would end the process at once and leave unfinished files behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import click

from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import sweep

EQUAL, DIFFERENT, BAD_USAGE, COULD_NOT_RUN, INTERRUPTED, NOBODY_READS = 0, 1, 2, 3, 130, 141
"""Exit codes. After a signal it is 128 plus the signal's number; so it is, as in other programs, when the reader of a
pipe closed it early."""

FILE = click.Path(path_type=Path, readable=False)
"""A path. Whether it can be read or written is found out, and reported, by the code that does so."""

WRITTEN = click.Path(path_type=Path, readable=False)
"""The path of a file that is written. It may not be one of those that are read: see `spare_what_is_read`."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
quiet = click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
seed = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")

target_settings = click.option(
    "--set", "settings", multiple=True, metavar="TARGET.OPTION=VALUE", help="An option of one target; may be repeated."
)

Command = Callable[..., int]


def spare_what_is_read(command: click.Command) -> None:
    """Make a command refuse to overwrite a file that it reads."""
    run = command.callback
    assert run is not None  # noqa: S101 - every command of ours does something
    written = [option.name for option in command.params if option.type is WRITTEN and option.name]
    read = [option.name for option in command.params if option.type is FILE and option.name]

    @wraps(run)
    def run_sparing(*arguments: Any, **options: Any) -> Any:
        inputs = [options[name] for name in read]
        for name in written:
            refuse_overwriting(options[name], *inputs)
        return run(*arguments, **options)

    command.callback = run_sparing


def refuse_overwriting(written: Path | None, *read: Path | tuple[Path, ...] | None) -> None:
    """Refuse to write to a file that is read, also under another name."""
    every = [path for each in read if each is not None for path in (each if isinstance(each, tuple) else (each,))]
    if written is not None and written.is_file() and any(each.is_file() and written.samefile(each) for each in every):
        raise BadInput(f"{written}: is read by this command and would be lost: name another file to write")


def output_options(command: Command) -> Command:
    """`--quiet` and `--out` for a command whose only results are its printed text and its exit code."""
    out = click.option("--out", "-o", "printed_to", type=WRITTEN, help="Write what would be printed to this file.")
    return out(quiet_option(command))


def quiet_option(command: Command) -> Command:
    """`--quiet`, which prints nothing but errors."""

    @wraps(command)
    def run(*arguments: Any, print_nothing: bool, printed_to: Path | None = None, **options: Any) -> int:
        from gbfl_compile.cli import screen

        with screen.output_to(printed_to, quiet=print_nothing):
            return command(*arguments, **options)

    return click.option("--quiet", "-q", "print_nothing", is_flag=True, help="Print nothing but errors.")(run)


def column_mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    """`--column FEATURE=COLUMN`, each time it was given."""
    mapping = {}
    for pair in pairs:
        feature, equals, column = pair.partition("=")
        if not equals or not feature or not column:
            raise BadInput(f"--column {pair!r}: write it as FEATURE=COLUMN")
        mapping[feature] = column
    return mapping


def kind_mapping(pairs: tuple[str, ...]) -> dict[str, str]:
    """`--kind COLUMN=KIND`, each time it was given; the name may hold an equals sign."""
    mapping = {}
    for pair in pairs:
        column, equals, kind = pair.rpartition("=")
        if not equals or not column or not kind:
            raise BadInput(f"--kind {pair!r}: write it as COLUMN=KIND")
        mapping[column] = kind
    return mapping


def names_in(text: str | None) -> tuple[str, ...]:
    """The names between commas, read as a line of CSV: a name with a comma is quoted."""
    import csv

    if text is None:
        return ()
    names = next(csv.reader([text]), [])
    if not all(names):
        raise BadInput(f"{text!r}: there is an empty name between two commas")
    return tuple(names)


def target_options(targets: Sequence[str], settings: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """`c.dtype=float32` goes to target c, `sql.form=view` to every sql:… target, `sql:duckdb.form=view` to that one."""
    options: dict[str, dict[str, str]] = {target: {} for target in targets}
    for setting in settings:
        path, equals, value = setting.partition("=")
        family, dot, option = path.partition(".")
        matching = [target for target in targets if family in (target, target.partition(":")[0])]
        if not equals or not dot or not option:
            family, example = targets[0].partition(":")[0], setting if equals and not dot else "OPTION=VALUE"
            raise BadInput(f"--set {setting!r}: write it as TARGET.OPTION=VALUE, such as --set {family}.{example}")
        if not matching:
            raise BadInput(f"--set {setting!r}: {family!r} is not among the targets {', '.join(targets)}")
        for target in matching:
            options[target][option] = value
    return options


PATIENCE = 5.0
"""Seconds that cleaning up is left alone. A signal after that ends the process at once."""


AGAIN_SECONDS = 0.01


class Termination(KeyboardInterrupt):
    """The process received a signal to end. Code that handles Ctrl-C handles this as well."""


def stop_name(stop: BaseException) -> str:
    """A stop in a word; click hides it behind an exception of its own."""
    return "terminated" if isinstance(stop, Termination) or isinstance(stop.__cause__, Termination) else "interrupted"


class Interrupts:
    """The signals received since the command began."""

    def __init__(self) -> None:
        self.first: int | None = None
        """The first signal's number; the exit code is then 128 more, as shells have it."""
        self._since = 0.0

    def take(self, number: int, _: FrameType | None) -> None:
        """The handler: the first signal raises; those that follow closely repeat the same request."""
        if self.first is None:
            self.first, self._since = number, time.monotonic()
            raise KeyboardInterrupt if number == signal.SIGINT else Termination
        if time.monotonic() - self._since > PATIENCE:
            sweep()
            os._exit(128 + self.first)

    def was_swallowed(self) -> None:
        """Raise it again in a moment: Python dropped it, as it does in some of its own callbacks."""
        number, self.first = self.first, None
        if number is not None:
            again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()


@contextlib.contextmanager
def in_order() -> Iterator[Interrupts]:
    """Handle the signals for as long as the block takes, then as before. A signal that is ignored stays ignored."""
    interrupts = Interrupts()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, interrupts.take)
    report_unraisable = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            interrupts.was_swallowed()
        else:
            report_unraisable(unraisable)

    sys.unraisablehook = hook
    try:
        yield interrupts
    finally:
        sys.unraisablehook = report_unraisable
        for number, handler in before.items():
            signal.signal(number, handler)


def refuse_swapped(command: str, first: Path, second: Path) -> None:
    """Refuse two files in the wrong order, with the order in which they are taken."""
    from gbfl_compile.files.formats import ORDER, file_kind, shell_command

    if file_kind(second) in ORDER[command] and file_kind(first) not in ORDER[command]:
        out = ("-o", "scored.csv") if command == "score" else ()
        turned = shell_command("gbfl", command, str(second), str(first), *out)
        raise BadInput(f"{first}: is in the place of {second}; the other way round: {turned}")
