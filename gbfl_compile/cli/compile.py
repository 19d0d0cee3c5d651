"""`gbfl compile`: a program written for one or more targets, once they are checked."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import DIFFERENT, EQUAL, FILE, as_json, quiet_option, target_options, target_settings


def _targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completions of the last target typed, for a shell; what is before the last comma stays."""
    del context, parameter
    from gbfl_compile.backends import BACKENDS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{target}" for target in BACKENDS if target.startswith(last)]


@click.command("compile")
@click.argument("program", type=FILE)
@click.option("--to", "targets", required=True, shell_complete=_targets, help="Targets, separated by commas.")
@click.option("--out", "-o", type=FILE, required=True, help="Output folder; one subfolder per target.")
@click.option("--name", default="model", show_default=True, help="Name of the artifacts.")
@target_settings
@click.option("--no-check", "unchecked", is_flag=True, help="Write the artifacts without proving and running them.")
@as_json
@quiet_option
def compile_(
    program: Path, targets: str, out: Path, name: str, settings: tuple[str, ...], unchecked: bool, as_json: bool
) -> int:
    """Write a program for one or more targets, as OUT/<target>/NAME.<ext>, once they are checked.

    Each artifact is read back, proved equal and run on witnesses first. If one is different none is written, and the
    exit code is 1.

    Example: gbfl compile demo-out/program.json --to python -o build
    """
    from gbfl_compile.cli import screen

    names = [target.strip() for target in targets.split(",")]
    options = target_options(names, settings)
    with screen.progress(quiet=as_json) as progress:
        from gbfl_compile.checking.check import compile_program

        result = compile_program(
            program, names, out, name=name, options=options, checked=not unchecked, progress=progress
        )
    code = EQUAL if result.is_written else DIFFERENT
    if as_json:
        screen.print_json(result.as_json())
        return code
    screen.print_lines(*(f"{target}: {path}" for target, paths in result.files.items() for path in paths))
    if result.verdict is None:
        screen.print_lines("not checked: gbfl check does that")
    else:
        screen.print_verdict(result.verdict)
    if code == DIFFERENT:
        screen.print_lines("nothing was written")
    return code
