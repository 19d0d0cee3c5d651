"""`gbfl check`: artifacts against their source."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import (
    COULD_NOT_RUN,
    DIFFERENT,
    EQUAL,
    FILE,
    output_options,
    refuse_overwriting,
    target_options,
    target_settings,
)


@click.command()
@click.argument("program", type=FILE)
@click.argument("out", type=FILE, required=False)
@click.option("--data", type=FILE, help="A table whose rows are run too (CSV or Parquet).")
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN, to compare local consistency.")
@click.option("--name", help="The artifacts' name, where a folder holds several.")
@target_settings
@click.option("--budget", type=float, default=10.0, show_default=True, help="Time limit per proof, in seconds.")
@click.option("--certificates", type=FILE, help="A folder for the proofs of trees, as certificates to verify.")
@click.option(
    "--json", "json_to", is_flag=False, flag_value="-", metavar="[FILE]", help="JSON to a file, or instead of text."
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
    """Compare every artifact below OUT with its source: read back and proved, then run on rows made to tell them apart.

    What an artifact reads is printed: a column of another name than its feature has to be stated, as in
    --set sql.column.age=AGE, and so do columns that are doubles already, by --set sql.types=double.

    Exit code: 0 every target is proved and was run, 1 different, 2 bad usage or input, 3 anything less than 0 says.

    Example: gbfl check demo-out/program.json demo-out --triplets demo-out/triplets.npz
    """
    if out is None and json_to not in (None, "-"):  # `check --json PROGRAM OUT`: --json took the program for its file
        program, out, json_to = Path(str(json_to)), program, "-"
    if json_to not in (None, "-"):
        refuse_overwriting(Path(str(json_to)), program, data, triplets)
    if out is None:
        raise click.UsageError("Missing argument 'OUT'.")
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
