"""`gbfl diff`: what a new version of a program does otherwise than the old one."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.commands.flags import COULD_NOT_RUN, DIFFERENT, EQUAL, FILE, as_json, printed


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--data", type=FILE, help="Rows (CSV or Parquet): how many get another class.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Seconds the proof may take.")
@as_json
@printed
def diff(old: Path, new: Path, data: Path | None, budget: float, as_json: bool) -> int:
    """Compare two versions of a program by what they mean: proved equal, or where and how they differ.

    Exit code: 0 equal, 1 different, 2 bad usage or input, 3 undecided.

    Example: gbfl diff approved.json candidate.json --data loans.csv
    """
    from gbfl_compile import screen
    from gbfl_compile.audit.difference import difference, with_features_of
    from gbfl_compile.audit.forms import difference_form, difference_lines
    from gbfl_compile.commands.given import rows_of
    from gbfl_compile.ir.json_form import load

    before, after = load(old), load(new)
    found = difference(before, after, rows_of(data, with_features_of(before, after)), budget)
    if as_json:
        screen.print_json(difference_form(found, with_features_of(before, after).features))
    else:
        screen.print_wrapped(*difference_lines(found))
    return {"different": DIFFERENT, "undecided": COULD_NOT_RUN}.get(found.verdict, EQUAL)
