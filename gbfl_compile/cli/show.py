"""`gbfl show`: a program's rules, or why it gave one row its class."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import EQUAL, FILE, as_json, output_options
from gbfl_compile.errors import BadInput


@click.command()
@click.argument("program", type=FILE)
@click.option("--row", "table", type=FILE, help="A table (CSV or Parquet): explain why a row of it gets its class.")
@click.option("--row-number", type=click.IntRange(1), default=1, show_default=True, help="Which of its rows.")
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN: add what the black box says about the row.")
@as_json
@output_options
def show(program: Path, table: Path | None, row_number: int, triplets: Path | None, as_json: bool) -> int:
    """Print a program's rules as people read them; with --row, why one row gets its class and what would change it.

    What suffices for the class and what would change it is exact: it holds in the program for every possible value.

    Example: gbfl show loans.gbfl.json --row new.csv --row-number 3
    """
    from gbfl_compile.cli import screen

    if table is not None:
        from gbfl_compile.why.row import explain_row

        explanation = explain_row(program, table, row_number=row_number, triplets=triplets)
        if as_json:
            screen.print_json(explanation.as_json())
        else:
            screen.print_wrapped(*explanation.lines())
        return EQUAL
    if triplets is not None:
        raise BadInput("--triplets explains a row: name one with --row")
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.ir.json import load
    from gbfl_compile.ir.text import readable

    source = load(program)
    if as_json:
        screen.print_json({"digest": digest(source), "rules": readable(source).split("\n")})
    else:
        screen.print_wrapped(*readable(source).split("\n"), "", f"digest {digest(source)}")
    return EQUAL
