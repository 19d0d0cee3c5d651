"""`gbfl score`: scores a table with an artifact, or inside its database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.cli.flags import EQUAL, FILE, WRITTEN, as_json, column_mapping, quiet_option


@click.command()
@click.argument("source", metavar="FOLDER|PROGRAM", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--out", "-o", type=WRITTEN, help="The file for the scored table (CSV, Parquet or Arrow).")
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="A column of DATA to carry over; may be repeated.")
@click.option("--na", multiple=True, metavar="TEXT", help="A text that means a missing number or date in DATA.")
@click.option("--name", help="The artifact's name, where the folder holds several.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Number of threads.  [default: one per core, at most 8]")
@click.option("--database", envvar="GBFL_DATABASE", metavar="URL", help="Score inside this database instead.")
@click.option("--table", help="The database's table of features.")
@click.option("--to-table", help="The table to create for the scores.")
@click.option("--schema", default="", help="The schema of both tables.")
@click.option(
    "--column", "columns", multiple=True, metavar="FEATURE=COLUMN", help="A feature's column, if its name differs."
)
@click.option("--replace", is_flag=True, help="Replace an existing table once the new one is complete.")
@as_json
@quiet_option
def score(
    source: Path,
    data: Path | None,
    out: Path | None,
    keys: tuple[str, ...],
    na: tuple[str, ...],
    name: str | None,
    jobs: int | None,
    table: str | None,
    to_table: str | None,
    columns: tuple[str, ...],
    as_json: bool,
    **inside: Any,
) -> int:
    """Score a table with the artifact in FOLDER, or PROGRAM itself: `label`, then one `p_<class>` per class.

    DATA is CSV (.csv, .csv.gz), Parquet or Arrow (.arrow, .feather) and may be larger than memory: it is read in
    batches. OUT appears only when it is complete. PROGRAM needs the columns that its rules test and no others.

    With --table, a table of a database is scored there with PROGRAM: no row leaves it. The URL may be given in the
    environment variable GBFL_DATABASE, which keeps its password out of process lists.

    Example: gbfl score demo-out/build/python new.csv -o scored.csv

    Example: gbfl score demo-out/loans.gbfl.json --database sqlite:///f.db --table people --to-table scored
    """
    from gbfl_compile.backends.score import score as score_table
    from gbfl_compile.cli import screen

    if table is not None or to_table is not None:
        if data is not None or out is not None or name is not None or jobs is not None or na:
            raise click.UsageError("--table scores inside a database: leave DATA, --out, --name, --jobs and --na out.")
        if inside["database"] is None or table is None or to_table is None:
            raise click.UsageError("Scoring inside a database needs --database, --table and --to-table.")
        scored = score_table(source, table, to_table, keys=keys, columns=column_mapping(columns), **inside)
    elif data is None or out is None:
        raise click.UsageError("Give DATA and --out, or --database, --table and --to-table.")
    else:
        scored = score_table(source, data, out, keys=keys, name=name, jobs=jobs, na=na or None)
    for label in scored.formulas:
        click.echo(
            f"gbfl: a spreadsheet takes the label {label!r} for a formula: import {Path(str(out)).name!r} as text",
            err=True,
        )
    if as_json:
        screen.print_json(scored.as_json())
    else:
        screen.print_lines(f"{scored.rows} rows scored by {scored.engine}: {scored.out}")
    return EQUAL
