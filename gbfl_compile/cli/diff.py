"""`gbfl diff`: what a new version of a program does differently from the old one."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import COULD_NOT_RUN, DIFFERENT, EQUAL, FILE, as_json, output_options


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--data", type=FILE, help="Rows (CSV or Parquet): how many get another class.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Time limit of the proof, in seconds.")
@as_json
@output_options
def diff(old: Path, new: Path, data: Path | None, budget: float, as_json: bool) -> int:
    """Compare two versions of a program by what they mean: proved equal, or where and how they differ.

    Exit code: 0 equal, 1 different, 2 bad usage or input, 3 undecided.

    Example: gbfl diff approved.json candidate.json --data loans.csv
    """
    from gbfl_compile.auditing.diff import diff as compare
    from gbfl_compile.cli import screen

    difference = compare(old, new, data=data, budget_seconds=budget)
    if as_json:
        screen.print_json(difference.as_json())
    else:
        screen.print_wrapped(*difference.lines())
    return {"different": DIFFERENT, "undecided": COULD_NOT_RUN}.get(difference.verdict, EQUAL)
