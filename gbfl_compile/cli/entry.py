"""The commands in the order they are used in, and how one ends.

Each command imports what it needs when it runs, so that `gbfl --help` costs next to nothing.
Exit codes: 0 equal or done, 1 different, 2 bad usage or input, 3 could not run; 130 after Ctrl-C, 143 after SIGTERM,
129 after SIGHUP, 141 where nobody reads on (`| head`). However a command ends, nothing half-written stays behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from gbfl_compile.cli.artifacts import check, compile_, score, sizes
from gbfl_compile.cli.audit import audit, audit_evidence, audit_log
from gbfl_compile.cli.demo import demo
from gbfl_compile.cli.flags import (
    BAD_USAGE,
    COULD_NOT_RUN,
    EQUAL,
    INTERRUPTED,
    NOBODY_READS,
    in_order,
    spare_what_is_read,
    stop_name,
)
from gbfl_compile.cli.mine import mine
from gbfl_compile.cli.paper import paper
from gbfl_compile.cli.programs import diff, lint, reasons, report, show
from gbfl_compile.cli.start import doctor, init
from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.files.atomic import sweep
from gbfl_compile.version import VERSION


class _NobodyReads(Exception):
    """The reader of a pipe has closed it. click would end the process by itself."""


@contextlib.contextmanager
def _noticing_closed_pipes() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _NobodyReads from None


OTHER_WORDS = {
    **dict.fromkeys(("train", "fit", "learn"), "mine"),
    **dict.fromkeys(("predict", "run", "apply"), "score"),
    **dict.fromkeys(("export", "emit", "build", "convert"), "compile"),
    **dict.fromkeys(("explain", "print", "why", "view"), "show"),
    **dict.fromkeys(("verify", "prove", "test"), "check"),
    **dict.fromkeys(("new", "start", "example", "quickstart"), "init"),
    **dict.fromkeys(("help", "version", "info"), "--help"),
    "compare": "diff",
    "html": "report",
}
"""What other programs call these commands."""


class _InOrder(click.Group):
    """Commands listed in the order they are used in, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names as they were added."""
        return list(self.commands)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Where help is printed."""
        with _noticing_closed_pipes():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _noticing_closed_pipes():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of a name; where there is none, the likeliest one, or the one for a file of that name."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from gbfl_compile.files.formats import wrong_file

            near = [OTHER_WORDS[args[0]]] if args[0] in OTHER_WORDS else get_close_matches(args[0], self.commands, n=1)
            likeliest = f"did you mean gbfl {near[0]}?" if near else "gbfl --help lists them"
            raise BadInput(f"{args[0]}: {wrong_file(Path(args[0]), 'a command') or f'no such command; {likeliest}'}")
        return super().resolve_command(ctx, args)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="gbfl")
def gbfl() -> None:
    """Mine rules from a black box, compile them for where they run, and prove that every artifact equals its source.

    Start with: gbfl demo --out demo-out

    Most commands take --json (JSON and nothing else), --quiet and --out. Exit codes: 0 done or equal, 1 different,
    2 bad usage or input, 3 could not run (the table is in docs/auditing.md). NO_COLOR=1 switches colours off; without
    a terminal they are always off.
    For shell completion: gbfl completion --help.
    """


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a script that makes your shell complete gbfl's commands, options and targets.

    \b
    bash   eval "$(gbfl completion bash)"    in ~/.bashrc
    zsh    eval "$(gbfl completion zsh)"     in ~/.zshrc
    fish   gbfl completion fish | source     in ~/.config/fish/config.fish

    Example: gbfl completion bash
    """  # noqa: D301 - the backspace is click's sign for lines to keep
    root = context.find_root()
    completer = get_completion_class(shell)
    assert completer is not None  # noqa: S101 - click has all three
    click.echo(completer(root.command, {}, "gbfl", "_GBFL_COMPLETE").source())
    return EQUAL


COMMANDS = {
    init: "create a small example to start from",
    demo: "show everything once, on invented loans",
    mine: "mine rules from a table and a black box",
    show: "print a program's rules, or why one row gets its class",
    reasons: "list clauses by number, or attach your own wording to them",
    compile_: "compile a program to Python, C, JavaScript, ONNX or SQL",
    check: "prove that artifacts equal their source, and run them",
    lint: "find rules that are redundant or can never apply",
    score: "score a table, in a file or inside a database",
    audit: "check that what is deployed is what was approved",
    audit_log: "verify a log of audits",
    audit_evidence: "verify the evidence pack of an audit",
    diff: "compare two versions of a program by their answers",
    report: "write an HTML report on a program",
    sizes: "measure the size of a C scorer",
    paper: "reproduce the experiment of docs/paper.md",
    doctor: "show what is installed and which targets can be run",
    completion: "set up completion in your shell",
}
"""Each with what the list of commands says of it, in the order they are used in."""
for command, summary in COMMANDS.items():
    command.short_help = summary
    spare_what_is_read(command)
    gbfl.add_command(command)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code. What a user can mend is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with in_order() as interrupts:
        try:
            try:
                code = _run_command(arguments)
            finally:
                sweep()
        except (click.Abort, KeyboardInterrupt) as stop:  # at any moment: while an error is reported, or in the sweep
            sweep()
            click.echo(f"gbfl: {stop_name(stop)}", err=True)
            code = INTERRUPTED
        return code if interrupts.first is None else 128 + interrupts.first


def _run_command(arguments: list[str] | None) -> int:
    try:
        code = int(gbfl.main(arguments, prog_name="gbfl", standalone_mode=False) or 0)
        sys.stdout.flush()  # a full disk is an error now, not a line at exit
        return code
    except GbflError as error:
        from gbfl_compile.ir.text import printable  # a message quotes names, and names come from anyone

        click.echo(f"gbfl: {printable(' '.join(str(error).split()))}", err=True)
        return error.exit_code
    except click.ClickException as error:
        _show_usage(error)
        return BAD_USAGE
    except SystemExit as ended:  # some code that was run tried to end us: nothing was decided
        if isinstance(ended.__context__, BrokenPipeError):  # the reader has seen enough
            _give_up_stdout()
            return NOBODY_READS
        if "_GBFL_COMPLETE" in os.environ:  # or click has answered a shell that completes a command
            return int(ended.code or 0)
        click.echo("gbfl: code that was run tried to exit, nothing was decided", err=True)
        return COULD_NOT_RUN
    except click.Abort:  # a stop, or the end of the input where an answer was wanted
        raise
    except (BrokenPipeError, _NobodyReads):
        _give_up_stdout()
        return NOBODY_READS
    except OSError as error:  # errors in writing our own files have their own messages
        click.echo(f"gbfl: {error.filename or 'the output'}: {error.strerror or error}", err=True)
        _give_up_stdout()
        return COULD_NOT_RUN
    except Exception:  # a defect of ours must not look like a verdict
        import traceback

        traceback.print_exc()
        click.echo("gbfl: this is a defect in gbfl, nothing was decided", err=True)
        return COULD_NOT_RUN


def _show_usage(error: click.ClickException) -> None:
    """What is wrong with a command line. What is missing is shown by an example, unless its file is the wrong one."""
    context = error.ctx if isinstance(error, click.MissingParameter) else None
    if context is not None and isinstance(file := context.params.get("program"), Path):
        from gbfl_compile.files.formats import A_PROGRAM, wrong_file
        from gbfl_compile.ir.text import printable

        if wrong := wrong_file(file, A_PROGRAM):
            click.echo(f"gbfl: {printable(f'{file}: {wrong}')}", err=True)
            return
    error.show()
    example = re.search(r"^\s*Example: (.+?)(?:\n\s*\n|\Z)", (context and context.command.help) or "", re.M | re.S)
    if example:
        click.echo(f"Example: {' '.join(example[1].split())}", err=True)


def _give_up_stdout() -> None:
    """Give up standard output, so that Python does not try to flush it again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
