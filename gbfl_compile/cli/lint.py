"""`gbfl lint`: what is odd about a program."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import DIFFERENT, EQUAL, FILE, as_json, output_options


@click.command()
@click.argument("program", type=FILE)
@click.option("--data", type=FILE, help="Rows (CSV or Parquet) that the rules should cover.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Time limit of the search, in seconds.")
@as_json
@output_options
def lint(program: Path, data: Path | None, budget: float, as_json: bool) -> int:
    """Point out leaves no row reaches, clauses that never or always hold, and rules that say the same.

    Exit code: 0 nothing odd, 1 something is, 2 bad usage or input.

    Example: gbfl lint demo-out/program.json
    """
    from gbfl_compile.checking import lint as linter
    from gbfl_compile.cli import screen
    from gbfl_compile.ir.json import load

    source = load(program)
    oddities = linter.lint(source, data, budget)
    if as_json:
        screen.print_json(linter.as_json(source, oddities))
    else:
        screen.print_wrapped(*linter.as_text(source, oddities).rstrip("\n").split("\n"))
    return DIFFERENT if oddities else EQUAL
