"""`gbfl report`: a program and all that is known of it as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gbfl_compile.commands.flags import EQUAL, FILE, WRITTEN, as_json, quiet
from gbfl_compile.errors import BadInput

if TYPE_CHECKING:
    from gbfl_compile.ir.nodes import Program
    from gbfl_compile.triplets import Triplets

LARGEST_JSON = 64 * 2**20


@click.command()
@click.argument("program", type=FILE)
@click.option("--out", "-o", type=WRITTEN, default=Path("report.html"), show_default=True, help="The HTML file.")
@click.option("--verdict", type=FILE, help="What `gbfl check --json FILE` wrote.")
@click.option("--audit", type=FILE, help="What `gbfl audit --json` printed, as --out writes it.")
@click.option("--row", "table", type=FILE, help="A table (CSV or Parquet): give the reasons of a row of it.")
@click.option(
    "--row-number", type=click.IntRange(1), default=1, show_default=True, help="Which row, of --row or --triplets."
)
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN: show those of the row.")
@click.option("--sizes", type=FILE, metavar="MODEL.c", help="An emitted C file: build it and say how large it is.")
@as_json
@quiet
def report(program: Path, out: Path, as_json: bool, quiet: bool, **given: Any) -> int:
    """Write a report on a program: verdict, rules, features, reasons, figures, and what is not known.

    One file that needs no network and no scripts; it reads on a phone, on paper and with a screen reader.

    Example: gbfl report loans.gbfl.json --verdict check.json -o report.html
    """
    from gbfl_compile import screen
    from gbfl_compile.files import write_whole
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.ir.json_form import load
    from gbfl_compile.report.page import Given
    from gbfl_compile.report.page import report as page

    loaded = load(program)
    number = given["row_number"]
    told = Given(
        verdict=None if given["verdict"] is None else json_object(given["verdict"]),
        audit=None if given["audit"] is None else json_object(given["audit"]),
        row=_row(given["table"], number, loaded),
        triplets=_triplets(given["triplets"], loaded),
        row_number=number - 1,
        sizes=_sizes(given["sizes"]),
    )
    written = page(loaded, told).encode("utf-8")
    write_whole(out, written)
    if as_json:
        screen.print_json({"program": digest(loaded), "out": str(out), "bytes": len(written)})
    elif not quiet:
        screen.print_lines(f"{out}: {len(written):,} bytes")
    return EQUAL


def json_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file that may come from anyone."""
    import json

    from gbfl_compile.files import read_whole

    try:
        form = json.loads(read_whole(path, LARGEST_JSON))
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(form, dict):
        raise BadInput(f"{path}: holds a {type(form).__name__}, a verdict is an object")
    return form


def _row(path: Path | None, number: int, program: Program) -> list[float] | None:
    if path is None:
        return None
    from gbfl_compile.tables import feature_matrix, read_table

    rows = feature_matrix(read_table(path), program.features, str(path))
    if number > len(rows):
        raise BadInput(f"{path}: has no row {number}, there are {len(rows)}")
    found: list[float] = rows[number - 1].tolist()
    return found


def _triplets(path: Path | None, program: Program) -> Triplets | None:
    if path is None:
        return None
    from gbfl_compile.triplets import load_triplets

    triplets = load_triplets(path)
    if triplets.features != program.features:
        raise BadInput(f"{path}: its features are not the program's, make triplets for this program")
    return triplets


def _sizes(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    from gbfl_compile.backends.c_size import size_rows

    return [row.as_json() for row in size_rows(path)]
