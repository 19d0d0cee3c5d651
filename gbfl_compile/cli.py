"""`gbfl`: arguments in, one verb called, text or JSON out.

Each command imports what it needs when it runs, so that `gbfl --help` costs next to nothing.
Exit codes: 0 equal or done, 1 different, 2 bad usage or input, 3 could not run.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from gbfl_compile.commands.audit import audit, audit_log
from gbfl_compile.commands.diff import diff
from gbfl_compile.commands.flags import BAD_USAGE, COULD_NOT_RUN, DIFFERENT, EQUAL, FILE, INTERRUPTED, as_json
from gbfl_compile.commands.init import init
from gbfl_compile.commands.lint import lint
from gbfl_compile.commands.mine import mine
from gbfl_compile.commands.reasons import reasons
from gbfl_compile.commands.report import report
from gbfl_compile.commands.show import show
from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.version import VERSION


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="gbfl")
def gbfl() -> None:
    """Rules mined from a black box, compiled to where they run, and checked against their source.

    Start with: gbfl demo --out demo-out
    """


gbfl.add_command(init)
gbfl.add_command(audit)
gbfl.add_command(audit_log)
gbfl.add_command(diff)
gbfl.add_command(lint)
gbfl.add_command(mine)
gbfl.add_command(report)
gbfl.add_command(show)
gbfl.add_command(reasons)


@gbfl.command()
@click.option("--out", "-o", type=FILE, default=Path("demo-out"), show_default=True, help="Where the results go.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Of the split, the black box and the tree.",
)
@as_json
def demo(out: Path, seed: int, as_json: bool) -> int:
    """Walk the whole way on breast cancer data: mine, fit, compile to every target, check.

    A target that cannot be run here is named as not run; only a difference is a failure.

    Example: gbfl demo --out demo-out
    """
    from gbfl_compile import screen
    from gbfl_compile.demo import STEPS, run_demo

    with screen.progress(len(STEPS), quiet=as_json) as step:
        found = run_demo(out, seed=seed, step=step)
    if as_json:
        screen.print_json(found.as_json())
    else:
        screen.print_demo(found, out)
    return DIFFERENT if found.lowered_different or found.verdict.verdict == "different" else EQUAL


@gbfl.command("compile")
@click.argument("program", type=FILE)
@click.option("--to", "targets", required=True, help="Targets, separated by commas.")
@click.option("--out", "-o", type=FILE, required=True, help="The folder that gets a folder a target.")
@click.option("--name", default="model", show_default=True, help="What the artifacts are called.")
@click.option("--set", "settings", multiple=True, metavar="TARGET.OPTION=VALUE", help="An option of one target.")
@click.option("--no-check", "unchecked", is_flag=True, help="Write the artifacts without proving and running them.")
@as_json
def compile_(
    program: Path, targets: str, out: Path, name: str, settings: tuple[str, ...], unchecked: bool, as_json: bool
) -> int:
    """Write a program down for one or more targets, as OUT/<target>/NAME.<ext>, once they are checked.

    Each artifact is read back, proved equal and run on witnesses first. If one is different none is written, and the
    exit code is 1.

    Example: gbfl compile demo-out/program.json --to python -o build
    """
    from gbfl_compile import screen
    from gbfl_compile.artifacts import write_artifact
    from gbfl_compile.backends import emit
    from gbfl_compile.ir.json_form import load

    wanted = [target.strip() for target in targets.split(",")]
    options = _target_options(wanted, settings)
    loaded = load(program)
    artifacts = [emit(loaded, target, name, options[target]) for target in wanted]  # all of them, before any is written
    verdict = None if unchecked else _checked(loaded, artifacts)
    passed = verdict is None or verdict.verdict != "different"
    written = {
        artifact.target: [str(path) for path in write_artifact(artifact, out)] for artifact in artifacts if passed
    }
    if as_json:
        checked = "not run" if verdict is None else verdict.as_json()
        screen.print_json({"program": artifacts[0].digest, "targets": written, "check": checked})
        return EQUAL if passed else DIFFERENT
    screen.print_lines(*(f"{target}: {path}" for target, paths in written.items() for path in paths))
    if verdict is None:
        screen.print_lines("not checked: gbfl check does that")
    else:
        screen.print_verdict(verdict)
    if not passed:
        screen.print_lines("nothing was written")
    return EQUAL if passed else DIFFERENT


def _checked(program: Any, artifacts: Any) -> Any:
    from gbfl_compile.check.equivalence import expectation
    from gbfl_compile.check.folder import check_artifacts

    return check_artifacts(expectation(program), artifacts)


def _target_options(targets: list[str], settings: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """`c.dtype=float32` goes to target c, `sql.form=view` to every sql:… target, `sql:duckdb.form=view` to that one."""
    options: dict[str, dict[str, str]] = {target: {} for target in targets}
    for setting in settings:
        path, equals, value = setting.partition("=")
        family, dot, option = path.partition(".")
        matching = [target for target in targets if family in (target, target.partition(":")[0])]
        if not equals or not dot or not option:
            raise BadInput(f"--set {setting!r}: write it as TARGET.OPTION=VALUE")
        if not matching:
            raise BadInput(f"--set {setting!r}: {family!r} is not among the targets {', '.join(targets)}")
        for target in matching:
            options[target][option] = value
    return options


@gbfl.command()
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
    if out is None:
        raise click.UsageError("Missing argument 'OUT'.")
    import json

    from gbfl_compile import screen
    from gbfl_compile.check.equivalence import expectation
    from gbfl_compile.check.folder import check_folder
    from gbfl_compile.commands.given import rows_of, triplets_of
    from gbfl_compile.files import write_whole
    from gbfl_compile.ir.json_form import load

    loaded = load(program)
    expected = expectation(loaded, rows_of(data, loaded), triplets_of(triplets, loaded))
    verdict = check_folder(expected, out, name, budget_seconds=budget)
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
            click.echo(f"gbfl: {what}: no certificate: {' '.join(why.split())}", err=True)
    return _exit_code(verdict.verdict)


@gbfl.command()
@click.argument("source", metavar="FOLDER|PROGRAM", type=FILE)
@click.argument("data", type=FILE, required=False)
@click.option("--out", "-o", type=FILE, help="Where the scored table goes (CSV or Parquet).")
@click.option("--key", "keys", multiple=True, metavar="COLUMN", help="A column of DATA to carry over; may be repeated.")
@click.option("--name", help="The artifact's name, where the folder holds several.")
@click.option("--database", envvar="GBFL_DATABASE", metavar="URL", help="Score inside this database instead.")
@click.option("--table", help="The database's table of features.")
@click.option("--to-table", help="The table to make there.")
@click.option("--schema", default="", help="The schema of both tables.")
@click.option("--column", "columns", multiple=True, metavar="FEATURE=COLUMN", help="Where they are called differently.")
@click.option("--replace", is_flag=True, help="Drop TO_TABLE, if it is there, once the new one is complete.")
@as_json
def score(
    source: Path,
    data: Path | None,
    out: Path | None,
    keys: tuple[str, ...],
    name: str | None,
    as_json: bool,
    **inside: Any,
) -> int:
    """Score a table with the artifact in FOLDER: `label`, then one `p_<class>` a class.

    With --table, the table of a database is scored with PROGRAM where it stands: no row leaves it. The URL may stand
    in the environment variable GBFL_DATABASE, where no list of processes shows its password.

    Example: gbfl score demo-out/python new.csv -o scored.csv

    Example: gbfl score demo-out/program.json --database sqlite:///f.db --table people --to-table scored
    """
    from gbfl_compile import screen

    if inside["table"] is not None or inside["to_table"] is not None:
        if data is not None or out is not None or name is not None:
            raise click.UsageError("--table scores inside a database: leave DATA, --out and --name out.")
        told = _score_inside(source, keys, **inside)
    elif data is None or out is None:
        raise click.UsageError("Give DATA and --out, or --database, --table and --to-table.")
    else:
        told = _score_file(source, data, out, keys, name)
    if as_json:
        screen.print_json(told)
    else:
        screen.print_lines(f"{told['rows']} rows scored by {told['engine']}: {told['out']}")
    return EQUAL


def _score_file(folder: Path, data: Path, out: Path, keys: tuple[str, ...], name: str | None) -> dict[str, Any]:
    from gbfl_compile.artifacts import load_artifact
    from gbfl_compile.scoring import score_table
    from gbfl_compile.tables import read_table, write_table

    predictor = load_artifact(folder, name)
    scored = score_table(predictor, read_table(data, text=keys), keys, str(data))
    write_table(scored, out)
    return {"rows": len(scored), "out": str(out), "engine": predictor.engine, "digest": predictor.digest}


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
    mapped = dict(pair.split("=", 1) for pair in columns if "=" in pair)
    if wrong := [pair for pair in columns if "=" not in pair]:
        raise BadInput(f"--column {wrong[0]!r}: write it as FEATURE=COLUMN")
    loaded = load(program)
    opened = connect(database)
    try:
        made = score_in_database(
            loaded, opened, table, to_table, columns=mapped, keys=keys, schema=schema, replace=replace
        )
    finally:
        opened.close()
    return {"rows": made.rows, "out": made.table, "engine": made.engine, "digest": made.digest}


@gbfl.command()
@click.option("--data", type=FILE, help="A folder with the data sets as NAME.csv.gz; what it lacks is looked for.")
@click.option("--sets", help="Data sets, separated by commas; all six when left out.")
@click.option("--seeds", type=int, default=5, show_default=True, help="How often each set is split anew.")
@click.option("--rows", type=int, default=4000, show_default=True, help="Rows of a set at most.")
@click.option("--workers", type=int, default=2, show_default=True, help="Units run side by side; results are the same.")
@click.option("--work", type=FILE, help="A folder that keeps finished units, to go on from after an interruption.")
@click.option("--out", "-o", type=FILE, help="Where the document goes (Markdown).")
@click.option(
    "--json", "json_to", is_flag=False, flag_value="-", metavar="[FILE]", help="JSON to a file, or instead of text."
)
def paper(
    data: Path | None,
    sets: str | None,
    seeds: int,
    rows: int,
    workers: int,
    work: Path | None,
    out: Path | None,
    json_to: str | None,
) -> int:
    """Run the paper's experiment: its baselines, its model and ours on its six data sets.

    A set that cannot be had is named with its reason, and the exit code is then 3.

    Example: gbfl paper --sets wdbc,waveform --seeds 2 --rows 1000
    """
    import json

    from gbfl_compile import screen
    from gbfl_compile.datasets import SOURCES
    from gbfl_compile.files import write_whole
    from gbfl_compile.paper.document import document
    from gbfl_compile.paper.experiment import Plan, check_plan, run_experiment

    wanted = tuple(SOURCES) if sets is None else tuple(name.strip() for name in sets.split(","))
    plan = check_plan(Plan(wanted, seeds, rows, data, workers, work))
    with screen.progress(len(wanted) * seeds, quiet=json_to == "-") as step:
        step("starting")
        result = run_experiment(plan, step)
    if json_to not in (None, "-"):
        write_whole(Path(str(json_to)), (json.dumps(result, indent=1, allow_nan=False) + "\n").encode("ascii"))
    if out is not None:
        write_whole(out, document(result).encode("utf-8"))
    if json_to == "-":
        screen.print_json(result)
    else:
        screen.print_paper(result)
    return COULD_NOT_RUN if result["not_available"] else EQUAL


@gbfl.command()
@click.argument("source", type=FILE)
@as_json
def sizes(source: Path, as_json: bool) -> int:
    """Say how many bytes a C scorer takes, as the compiler reports them: here, and on a Cortex-M4 where gcc can.

    Example: gbfl sizes build/c/model.c
    """
    from gbfl_compile import screen
    from gbfl_compile.backends.c_size import size_rows

    found = size_rows(source)
    if as_json:
        screen.print_json([row.as_json() for row in found])
    else:
        screen.print_sizes([row.as_json() for row in found])
    return EQUAL


@gbfl.command()
@as_json
def doctor(as_json: bool) -> int:
    """Say what is installed, which targets can be emitted and which can be run.

    Example: gbfl doctor
    """
    from gbfl_compile import screen
    from gbfl_compile.doctor import examine

    found = examine()
    if as_json:
        screen.print_json(found)
    else:
        screen.print_doctor(found)
    return EQUAL


def _exit_code(verdict: str) -> int:
    return {"equal": EQUAL, "different": DIFFERENT, "not run": COULD_NOT_RUN}[verdict]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code. What a user can mend is one line on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = gbfl.main(arguments, prog_name="gbfl", standalone_mode=False)
        return int(code or 0)
    except GbflError as error:
        click.echo(f"gbfl: {' '.join(str(error).split())}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return BAD_USAGE
    except SystemExit as ended:  # some code that was run tried to end us: nothing was decided
        if "_GBFL_COMPLETE" in os.environ:  # or click has answered a shell that completes a command
            return int(ended.code or 0)
        click.echo("gbfl: something that was run asked to exit, nothing was decided", err=True)
        return COULD_NOT_RUN
    except (click.Abort, KeyboardInterrupt):
        click.echo("gbfl: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return COULD_NOT_RUN
    except Exception:  # a defect of ours must not look like a verdict
        import traceback

        traceback.print_exc()
        click.echo("gbfl: this is a defect in gbfl, nothing was decided", err=True)
        return COULD_NOT_RUN


def run() -> None:
    """The installed command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
