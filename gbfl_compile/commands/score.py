"""`gbfl score`: a table scored by an artifact, or where it stands in a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.commands.flags import EQUAL, FILE, WRITTEN, as_json, silenced
from gbfl_compile.commands.given import column_mapping


@click.command()
@click.argument("source", metavar="FOLDER|PROGRAM", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--out", "-o", type=WRITTEN, help="Where the scored table goes (CSV, Parquet or Arrow).")
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="A column of DATA to carry over; may be repeated.")
@click.option("--name", help="The artifact's name, where the folder holds several.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Threads; those of the machine, 8 at most, if left out.")
@click.option("--database", envvar="GBFL_DATABASE", metavar="URL", help="Score inside this database instead.")
@click.option("--table", help="The database's table of features.")
@click.option("--to-table", help="The table to make there.")
@click.option("--schema", default="", help="The schema of both tables.")
@click.option("--column", "columns", multiple=True, metavar="FEATURE=COLUMN", help="Where they are called differently.")
@click.option("--replace", is_flag=True, help="Drop TO_TABLE, if it is there, once the new one is complete.")
@as_json
@silenced
def score(
    source: Path,
    data: Path | None,
    out: Path | None,
    keys: tuple[str, ...],
    name: str | None,
    jobs: int | None,
    as_json: bool,
    **inside: Any,
) -> int:
    """Score a table with the artifact in FOLDER, or PROGRAM itself: `label`, then one `p_<class>` a class.

    DATA is CSV (.csv, .csv.gz), Parquet or Arrow (.arrow, .feather) and may be larger than memory: rows pass through in
    batches. OUT appears when it is complete.

    With --table, the table of a database is scored with PROGRAM where it stands: no row leaves it. The URL may stand
    in the environment variable GBFL_DATABASE, where no list of processes shows its password.

    Example: gbfl score demo-out/python new.csv -o scored.csv

    Example: gbfl score demo-out/program.json --database sqlite:///f.db --table people --to-table scored
    """
    from gbfl_compile import screen

    if inside["table"] is not None or inside["to_table"] is not None:
        if data is not None or out is not None or name is not None or jobs is not None:
            raise click.UsageError("--table scores inside a database: leave DATA, --out, --name and --jobs out.")
        told = _score_inside(source, keys, **inside)
    elif data is None or out is None:
        raise click.UsageError("Give DATA and --out, or --database, --table and --to-table.")
    else:
        told = _score_file(source, data, out, keys, name, jobs)
    if as_json:
        screen.print_json(told)
    else:
        screen.print_lines(f"{told['rows']} rows scored by {told['engine']}: {told['out']}")
    return EQUAL


def _score_file(
    source: Path, data: Path, out: Path, keys: tuple[str, ...], name: str | None, jobs: int | None
) -> dict[str, Any]:
    from gbfl_compile.artifacts import load_artifact
    from gbfl_compile.ir.json_form import load
    from gbfl_compile.scoring import formulas, reference_predictor, score_file

    if source.is_file() and name is not None:
        raise click.UsageError("--name chooses among the artifacts of a folder: leave it out for a program.")
    predictor = reference_predictor(load(source)) if source.is_file() else load_artifact(source, name)
    rows = score_file(predictor, data, out, keys, jobs)
    for label in formulas(predictor.classes) if ".csv" in out.name.lower() else ():
        click.echo(
            f"gbfl: a spreadsheet takes the label {label!r} for a formula: import {out.name!r} as text", err=True
        )
    return {"rows": rows, "out": str(out), "engine": predictor.engine, "digest": predictor.digest}


def _score_inside(
    program: Path,
    keys: tuple[str, ...],
    database: str | None,
    table: str | None,
    to_table: str | None,
    schema: str,
    columns: tuple[str, ...],
    replace: bool,
) -> dict[str, Any]:
    from gbfl_compile.databases import connect
    from gbfl_compile.ir.json_form import load
    from gbfl_compile.scoring_database import score_in_database

    if database is None or table is None or to_table is None:
        raise click.UsageError("Scoring inside a database needs --database, --table and --to-table.")
    mapped = column_mapping(columns)
    loaded = load(program)
    opened = connect(database)
    try:
        made = score_in_database(
            loaded, opened, table, to_table, columns=mapped, keys=keys, schema=schema, replace=replace
        )
    finally:
        opened.close()
    return {"rows": made.rows, "out": made.table, "engine": made.engine, "digest": made.digest}
