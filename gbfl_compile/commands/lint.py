"""`gbfl lint`: what is odd about a program."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.commands.flags import DIFFERENT, EQUAL, FILE, as_json, printed


@click.command()
@click.argument("program", type=FILE)
@click.option("--data", type=FILE, help="Rows (CSV or Parquet) that the rules should cover.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Seconds the search may take.")
@as_json
@printed
def lint(program: Path, data: Path | None, budget: float, as_json: bool) -> int:
    """Point out leaves no row reaches, clauses that never or always hold, and rules that say the same.

    Exit code: 0 nothing odd, 1 something is, 2 bad usage or input.

    Example: gbfl lint demo-out/program.json
    """
    from gbfl_compile import screen
    from gbfl_compile.check import lint as linter
    from gbfl_compile.commands.given import rows_of
    from gbfl_compile.ir.json_form import load

    loaded = load(program)
    found = linter.lint(loaded, rows_of(data, loaded), budget)
    if as_json:
        screen.print_json(linter.as_json(loaded, found))
    else:
        screen.print_wrapped(*linter.as_text(loaded, found).rstrip("\n").split("\n"))
    return DIFFERENT if found else EQUAL
