"""`gbfl report`: a program and all that is known about it as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.cli.flags import EQUAL, FILE, WRITTEN, as_json, quiet


@click.command()
@click.argument("program", type=FILE)
@click.option("--out", "-o", type=WRITTEN, default=Path("report.html"), show_default=True, help="The HTML file.")
@click.option("--verdict", type=FILE, help="What `gbfl check --json FILE` wrote.")
@click.option("--audit", type=FILE, help="What `gbfl audit --json` printed, as --out writes it.")
@click.option("--row", type=FILE, help="A table (CSV or Parquet): explain one of its rows.")
@click.option(
    "--row-number", type=click.IntRange(1), default=1, show_default=True, help="Which row of --row or --triplets."
)
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN: show those of the row.")
@click.option("--sizes", type=FILE, metavar="MODEL.c", help="An emitted C file: build it and report its size.")
@as_json
@quiet
def report(program: Path, out: Path, as_json: bool, quiet: bool, **sections: Any) -> int:
    """Write a report on a program: verdict, rules, features, reasons, figures, and what is not known.

    One file that needs no network and no scripts; it reads on a phone, on paper and with a screen reader.

    Example: gbfl report loans.gbfl.json --verdict check.json -o report.html
    """
    from gbfl_compile.cli import screen
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.ir.json import load
    from gbfl_compile.reporting.page import report as write_page

    source = load(program)
    size = write_page(source, out, **sections)
    if as_json:
        screen.print_json({"program": digest(source), "out": str(out), "bytes": size})
    elif not quiet:
        screen.print_lines(f"{out}: {size:,} bytes")
    return EQUAL
