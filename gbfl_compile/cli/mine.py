"""`gbfl mine`: mines a program from a table and a black box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.cli.flags import (
    DIFFERENT,
    EQUAL,
    FILE,
    INTERRUPTED,
    WRITTEN,
    as_json,
    kind_mapping,
    names_in,
    quiet,
    seed,
    stop_name,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.files.formats import shell_command


@click.command()
@click.argument("data", type=FILE, required=False)
@click.option("--target", required=True, metavar="COLUMN", help="The column that holds the class.")
@click.option("--out", "-o", type=WRITTEN, default=Path("model.gbfl.json"), show_default=True, help="File to write.")
@click.option("--train", type=click.Choice(["mlp", "gbm", "forest"]), help="Train a black box of this kind.")
@click.option(
    "--black-box", metavar="MODEL", help="Use this black box: a .onnx, .skops or .pkl file, or module:callable."
)
@click.option("--trust-pickle", is_flag=True, help="Open a pickle, which can run any code its author put into it.")
@click.option("--trust-type", "trust_types", multiple=True, metavar="TYPE", help="A type to allow in a skops file.")
@click.option(
    "--kind",
    "kind_settings",
    multiple=True,
    metavar="COLUMN=KIND",
    help="number, category, boolean, date or timestamp, instead of the inferred kind; may be repeated.",
)
@click.option(
    "--features", "feature_list", metavar="COLUMNS", help="Learn from these columns only, separated by commas."
)
@click.option(
    "--na",
    "missing_texts",
    multiple=True,
    metavar="TEXT",
    help="A text that means missing, instead of '?', NA and the like.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMNS",
    help="Columns that are not features, separated by commas; may be repeated.",
)
@click.option(
    "--codes",
    multiple=True,
    metavar="COLUMNS",
    help="Features whose values are codes: only values that occur in the data are tried.",
)
@click.option("--immutable", multiple=True, metavar="COLUMNS", help="Features that explanations never change.")
@click.option(
    "--missing",
    type=click.Choice(["keep", "drop", "refuse"]),
    default="keep",
    show_default=True,
    help="Rows with a missing feature: learn from them, leave them out, or stop.",
)
@click.option(
    "--head", type=click.Choice(["rules", "tree", "list"]), default="rules", show_default=True, help="Kind of model."
)
@click.option("--clauses", type=click.IntRange(1, 1000), help="Maximum clauses (rules and list only).  [default: 32]")
@click.option("--depth", type=click.IntRange(1, 5), help="Maximum depth (tree only).  [default: 5]")
@click.option(
    "--explainer",
    default="greedy+nearest",
    show_default=True,
    help="How to find what suffices for an answer (PP) and which small change alters it (PN): greedy, nearest, "
    "macem, spheres, or several joined by +.",
)
@click.option(
    "--rows", type=click.IntRange(1), default=20_000, show_default=True, help="Maximum number of rows, drawn at random."
)
@seed
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Processes that explain rows and threads that fit.",
)
@click.option("--memory", metavar="SIZE", help="Memory limit for all processes together, such as 2GB.")
@click.option(
    "--black-box-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time limit for the black box, per block of rows.",
)
@click.option(
    "--checkpoint", type=FILE, metavar="FOLDER", help="Folder that keeps explained rows.  [default: OUT.parts]"
)
@click.option(
    "--probabilities",
    type=click.Choice(["observed", "score"]),
    default="observed",
    show_default=True,
    help="What probabilities mean: rates observed on the held-out rows, or the rules' own scores.",
)
@click.option(
    "--baselines/--no-baselines", default=True, show_default=True, help="Fit three plain trees for comparison."
)
@click.option(
    "--triplets",
    type=WRITTEN,
    help="Write the held-out rows and their explanations (PP and PN) to this NPZ file, for check and show.",
)
@click.option("--database", metavar="URL", help="Read a table of this database instead of a file.")
@click.option("--table", help="The table, with --database.")
@as_json
@quiet
def mine(
    data: Path | None,
    database: str | None,
    table: str | None,
    out: Path,
    checkpoint: Path | None,
    triplets: Path | None,
    kind_settings: tuple[str, ...],
    feature_list: str | None,
    missing_texts: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Mine a program from a table (CSV, Parquet or in a database) and a black box.

    Features are all columns except the target, keys and those dropped; values may be missing. The kind of
    each column is printed, and --kind changes it. A quarter of the rows is held out to measure on. A rule set
    (--head rules) agrees best with the black box; a tree or a list is quicker to read. The black box is
    queried with a few hundred modified rows per row, in large blocks; the cost is printed last. After Ctrl-C, a
    failure of the black box or a power cut, the same command continues where it stopped. The program depends neither
    on --jobs nor on --memory.

    module:callable takes a matrix of rows (a DataFrame where there are words or missing values) and returns one
    probability per class, in sorted order of the classes, or for two classes the probability of the second. An object
    with predict_proba works as well.

    Example: gbfl mine loans.csv --target default --train gbm -o loans.gbfl.json
    """
    from gbfl_compile.cli import screen

    if (data is None) == (database is None):
        raise BadInput("give a file of data, or --database URL --table NAME")
    if (database is None) != (table is None):
        raise BadInput("--database and --table go together")
    if options["trust_pickle"]:
        _warn_of_pickle(options["black_box"])
    options |= {"kinds": kind_mapping(kind_settings), "features": names_in(feature_list), "na": missing_texts or None}
    options |= {
        flag: tuple(name for text in options[flag] for name in names_in(text))
        for flag in ("drop", "codes", "immutable")
    }
    files: dict[str, Any] = {"out": out, "checkpoint": checkpoint, "triplets": triplets}
    note = _ignore if quiet or as_json else _print_note
    try:
        with screen.progress(quiet=quiet or as_json) as progress:
            from gbfl_compile.mining import mine as run

            mined = run(data or table, database=database, **options, **files, note=note, progress=progress)
    except KeyboardInterrupt as stop:
        _print_note(f"{stop_name(stop)}: {_progress_kept(out, checkpoint)}")
        return INTERRUPTED
    if as_json:
        screen.print_json(mined.as_json(out, triplets))
    elif not quiet:
        lines = mined.summary.split("\n")
        following = shell_command("gbfl", "compile", str(out), "--to", "python", "-o", "build")
        screen.print_wrapped(*lines, f"{out}: next, {following}")
    return DIFFERENT if mined.compared_different else EQUAL


def _warn_of_pickle(source: str | None) -> None:
    """Also with --quiet."""
    from gbfl_compile.learning.black_box.load import PICKLE_WARNING, PICKLES

    if source is not None and source.lower().endswith(PICKLES):
        _print_note(f"{source}: {PICKLE_WARNING}")


def _print_note(line: str) -> None:
    from gbfl_compile.cli.screen import print_note

    print_note(f"gbfl: {line}")


def _ignore(line: str) -> None:
    pass


def _progress_kept(out: Path, checkpoint: Path | None) -> str:
    from gbfl_compile.learning.explain.checkpoints import default_checkpoint, explained_files

    folder = checkpoint or default_checkpoint(out)
    count = explained_files(folder)
    if not count:
        return "nothing was explained yet"
    return f"{count} files of explained rows are kept in {folder}, the same command continues from there"
