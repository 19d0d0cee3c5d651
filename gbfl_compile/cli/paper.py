"""`gbfl paper`: reproduces the paper's experiment."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from gbfl_compile.cli.flags import COULD_NOT_RUN, EQUAL, FILE, INTERRUPTED, WRITTEN, quiet_option, stop_name


@click.command()
@click.option(
    "--data",
    type=FILE,
    help="A folder with the data sets as NAME.csv.gz; any that it lacks are downloaded or generated.",
)
@click.option("--sets", help="Data sets, separated by commas.  [default: all six]")
@click.option("--seeds", type=int, default=5, show_default=True, help="Number of random splits per set.")
@click.option("--rows", type=int, default=4000, show_default=True, help="Maximum number of rows per set.")
@click.option(
    "--jobs",
    "--workers",
    "workers",
    type=int,
    default=2,
    show_default=True,
    help="Number of processes; it does not change the results.",
)
@click.option("--work", type=FILE, help="Folder that keeps finished runs.  [default: OUT.parts, until all are done]")
@click.option("--out", "-o", type=WRITTEN, help="The file for the document (Markdown).")
@click.option(
    "--json",
    "json_to",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write JSON to a file, or print it instead of text.",
)
@quiet_option
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
    """Run the paper's experiment (docs/paper.md): its baselines, its model and ours on its six data sets.

    A set that is not available is listed with the reason, and the exit code is then 3. After Ctrl-C, the same command
    continues where it stopped.

    Example: gbfl paper --sets wdbc,waveform --seeds 2 --rows 1000
    """
    import json

    from gbfl_compile.cli import screen
    from gbfl_compile.files.atomic import write_whole
    from gbfl_compile.paper import Plan, check_plan, run_experiment
    from gbfl_compile.paper.datasets import SOURCES
    from gbfl_compile.paper.document import document

    names = tuple(SOURCES) if sets is None else tuple(name.strip() for name in sets.split(","))
    parts = work or Path(f"{out or 'gbfl-paper'}.parts")
    plan = check_plan(Plan(names, seeds, rows, data, workers, parts))
    try:
        with screen.progress(quiet=json_to == "-") as step:
            step("starting", len(names) * seeds)
            result = run_experiment(plan, lambda unit: step(unit, len(names) * seeds))
    except KeyboardInterrupt as stop:
        click.echo(f"gbfl: {stop_name(stop)}: {_progress_kept(parts)}", err=True)
        return INTERRUPTED
    if json_to not in (None, "-"):
        write_whole(Path(str(json_to)), (json.dumps(result, indent=1, allow_nan=False) + "\n").encode("ascii"))
    if out is not None:
        write_whole(out, document(result).encode("utf-8"))
    if work is None:
        _remove_own(parts, names)
    if json_to == "-":
        screen.print_json(result)
    else:
        screen.print_paper(result)
    return COULD_NOT_RUN if result["not_available"] else EQUAL


def _progress_kept(parts: Path) -> str:
    done = len(list(parts.glob("*.json"))) if parts.is_dir() else 0
    if not done:
        return "nothing was finished yet"
    return f"finished runs are kept in {parts} ({done}), the same command continues from there"


def _remove_own(parts: Path, sets: tuple[str, ...]) -> None:
    """Remove the runs that nobody asked to keep, and the folder unless it holds something else."""
    with contextlib.suppress(OSError):
        for name in sets:
            for unit in parts.glob(f"{name}-*-*.json"):
                unit.unlink()
        parts.rmdir()
