"""`gbfl check`: artifacts against their source."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.commands.flags import COULD_NOT_RUN, DIFFERENT, EQUAL, FILE, printed, refuse_overwriting


@click.command()
@click.argument("program", type=FILE)
@click.argument("out", type=FILE, required=False)
@click.option("--data", type=FILE, help="A table whose rows are run too (CSV or Parquet).")
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN, to compare local consistency.")
@click.option("--name", help="The artifacts' name, where a folder holds several.")
@click.option(
    "--budget", type=float, default=10.0, show_default=True, help="Seconds a proof may take, a way of answering."
)
@click.option("--certificates", type=FILE, help="A folder for the proofs of trees, written down to be verified.")
@click.option(
    "--json", "json_to", is_flag=False, flag_value="-", metavar="[FILE]", help="JSON to a file, or instead of text."
)
@printed
def check(
    program: Path,
    out: Path | None,
    data: Path | None,
    triplets: Path | None,
    name: str | None,
    budget: float,
    certificates: Path | None,
    json_to: str | None,
) -> int:
    """Compare every artifact below OUT with its source: read back and proved, then run on rows made to tell them apart.

    Exit code: 0 equal, 1 different, 2 bad usage or input, 3 could not run.

    Example: gbfl check demo-out/program.json demo-out --triplets demo-out/triplets.npz
    """
    if out is None and json_to not in (None, "-"):  # `check --json PROGRAM OUT`: --json took the program for its file
        program, out, json_to = Path(str(json_to)), program, "-"
    if json_to not in (None, "-"):
        refuse_overwriting(Path(str(json_to)), program, data, triplets)
    if out is None:
        raise click.UsageError("Missing argument 'OUT'.")
    import json

    from gbfl_compile import screen
    from gbfl_compile.artifacts import artifact_folders
    from gbfl_compile.check.equivalence import expectation
    from gbfl_compile.check.folder import check_folder
    from gbfl_compile.commands.given import rows_of, triplets_of
    from gbfl_compile.files import write_whole
    from gbfl_compile.ir.json_form import load
    from gbfl_compile.ir.readable import printable

    loaded = load(program)
    rows, given = rows_of(data, loaded), triplets_of(triplets, loaded)
    with screen.progress(1 + len(artifact_folders(out)), quiet=json_to == "-") as tell:
        tell("looking for witnesses")
        verdict = check_folder(expectation(loaded, rows, given), out, name, budget_seconds=budget, tell=tell)
    if json_to not in (None, "-"):
        write_whole(
            Path(str(json_to)), (json.dumps(verdict.as_json(), indent=1, allow_nan=False) + "\n").encode("ascii")
        )
    if json_to == "-":
        screen.print_json(verdict.as_json())
    else:
        screen.print_verdict(verdict)
    if certificates is not None:
        from gbfl_compile.check.certify import certify_folder

        for what, why in certify_folder(loaded, out, certificates, name).items():
            click.echo(printable(f"gbfl: {what}: no certificate: {' '.join(why.split())}"), err=True)
    return _exit_code(verdict.verdict)


def _exit_code(verdict: str) -> int:
    return {"equal": EQUAL, "different": DIFFERENT, "not run": COULD_NOT_RUN}[verdict]
