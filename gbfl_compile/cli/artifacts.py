"""`gbfl compile`, `check`, `score` and `sizes`: a program written for its targets, proved, run, and measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.cli.flags import (
    COULD_NOT_RUN,
    DIFFERENT,
    EQUAL,
    FILE,
    WRITTEN,
    as_json,
    column_mapping,
    output_options,
    quiet_option,
    refuse_overwriting,
    refuse_swapped,
    target_options,
    target_settings,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.files.formats import shell_command


def _targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completions of the last target typed, for a shell; what is before the last comma stays."""
    del context, parameter
    from gbfl_compile.backends import BACKENDS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{target}" for target in BACKENDS if target.startswith(last)]


@click.command("compile")
@click.argument("program", type=FILE)
@click.option(
    "--to",
    "targets",
    required=True,
    shell_complete=_targets,
    help="Targets, separated by commas: python, c, js, onnx, sql:duckdb and other databases; `gbfl doctor` lists all.",
)
@click.option("--out", "-o", type=FILE, required=True, help="Output folder; one subfolder per target.")
@click.option("--name", default="model", show_default=True, help="Name of the artifacts.")
@target_settings
@click.option("--no-check", "unchecked", is_flag=True, help="Write the artifacts without proving and running them.")
@as_json
@quiet_option
def compile_(
    program: Path, targets: str, out: Path, name: str, settings: tuple[str, ...], unchecked: bool, as_json: bool
) -> int:
    """Compile a program to one or more targets: OUT/<target>/NAME.<ext>.

    Each artifact is first read back, proved equal for every input, and run on rows chosen to expose a mistake. If one
    differs, none is written and the exit code is 1.

    Options of a target are given with --set, such as --set sql.form=view --set sql.table=loans (docs/sql.md) or
    --set c.dtype=float32 (docs/embedding.md).

    Example: gbfl compile demo-out/loans.gbfl.json --to python -o build
    """
    from gbfl_compile.cli import screen

    names = [target.strip() for target in targets.split(",")]
    options = target_options(names, settings)
    for target in names:
        form = options[target].get("form", "select")
        if target.startswith("sql:") and "view" in options[target] and form in ("select", "expression"):
            named = options[target]["view"]
            raise BadInput(
                f"{target}: view={named!r} names a view, but the form {form} creates none: add --set sql.form=view"
            )
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
    if unnamed := [target for target in names if target.startswith("sql:") and "table" not in options[target]]:
        name_it = "the table is called data there: --set sql.table=TABLE names yours"
        if any(options[target].get("form", "select") == "select" for target in unnamed):
            screen.print_wrapped(f"{', '.join(unnamed)}: {name_it}")
    if result.verdict is None:
        screen.print_lines(f"not checked; to check: {shell_command('gbfl', 'check', str(program), str(out))}")
    else:
        screen.print_verdict(result.verdict)
    if code == DIFFERENT:
        screen.print_lines("nothing was written")
    return code


@click.command()
@click.argument("program", type=FILE)
@click.argument("out", type=FILE, required=False)
@click.option("--data", type=FILE, help="A table (CSV or Parquet) whose rows are run as well.")
@click.option("--triplets", type=FILE, help="The file that gbfl mine --triplets wrote: compare local consistency.")
@click.option("--name", help="The artifacts' name, if a folder holds several.")
@target_settings
@click.option("--budget", type=float, default=10.0, show_default=True, help="Time limit per proof, in seconds.")
@click.option(
    "--certificates", type=FILE, help="A folder for the proofs of trees, as certificates that can be verified."
)
@click.option(
    "--json",
    "json_to",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write JSON to a file, or print it instead of text.",
)
@output_options
def check(
    program: Path,
    out: Path | None,
    data: Path | None,
    triplets: Path | None,
    name: str | None,
    settings: tuple[str, ...],
    budget: float,
    certificates: Path | None,
    json_to: str | None,
) -> int:
    """Compare every artifact below OUT with its source: read back and proved, then run on rows chosen to expose errors.

    Repeat the options that an artifact was emitted with: --set sql.column.age=AGE for a column whose name differs from
    its feature, --set sql.types=double for columns that already are doubles.

    Exit code: 0 every target is proved and was run, 1 different, 2 bad usage or input, 3 not proved or not run.

    Example: gbfl check demo-out/loans.gbfl.json demo-out/build
    """
    if out is None and json_to not in (None, "-"):  # `check --json PROGRAM OUT`: --json took the program for its file
        program, out, json_to = Path(str(json_to)), program, "-"
    if json_to not in (None, "-"):
        refuse_overwriting(Path(str(json_to)), program, data, triplets)
    if out is None:
        what = "It is the folder that gbfl compile wrote."
        raise click.MissingParameter(what, click.get_current_context(), param_hint="'OUT'", param_type="argument")
    refuse_swapped("check", program, out)
    import json

    from gbfl_compile.checking import check as verbs
    from gbfl_compile.cli import screen
    from gbfl_compile.files.atomic import write_whole
    from gbfl_compile.ir.text import printable

    options = target_options(verbs.targets_in(out), settings)
    with screen.progress(quiet=json_to == "-") as progress:
        verdict = verbs.check(
            program,
            out,
            data=data,
            triplets=triplets,
            name=name,
            options=options,
            budget_seconds=budget,
            progress=progress,
        )
    if json_to not in (None, "-"):
        form = json.dumps(verdict.as_json(), indent=1, allow_nan=False)
        write_whole(Path(str(json_to)), f"{form}\n".encode("ascii"))
    if json_to == "-":
        screen.print_json(verdict.as_json())
    else:
        screen.print_verdict(verdict)
    if certificates is not None:
        for target, why in verbs.certify(program, out, certificates, name=name).items():
            click.echo(printable(f"gbfl: {target}: no certificate: {' '.join(why.split())}"), err=True)
    return {"equal": EQUAL, "different": DIFFERENT}.get(verdict.verdict, COULD_NOT_RUN)


@click.command()
@click.argument("source", type=FILE)
@as_json
@output_options
def sizes(source: Path, as_json: bool) -> int:
    """Report the size of a C scorer in bytes, built for this machine and, with arm-none-eabi-gcc, for a
    Cortex-M4.

    Example: gbfl sizes build/c/model.c
    """
    from gbfl_compile.backends.c.build import size_rows
    from gbfl_compile.cli import screen

    rows = size_rows(source)
    if as_json:
        screen.print_json([row.as_json() for row in rows])
    else:
        screen.print_sizes([row.as_json() for row in rows])
    return EQUAL


@click.command()
@click.argument("source", metavar="FOLDER|PROGRAM", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--out", "-o", type=WRITTEN, help="The file for the scored table (CSV, Parquet or Arrow).")
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="A column of DATA to carry over; may be repeated.")
@click.option("--na", multiple=True, metavar="TEXT", help="A text that means a missing number or date in DATA.")
@click.option("--name", help="The artifact's name, if the folder holds several.")
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
    if data is not None:
        refuse_swapped("score", source, data)
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
