"""`gbfl mine`: from a table and a black box to a program."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gbfl_compile.commands.flags import DIFFERENT, EQUAL, FILE, INTERRUPTED, WRITTEN, as_json, quiet, seed
from gbfl_compile.errors import BadInput
from gbfl_compile.interrupts import told_of

if TYPE_CHECKING:
    from gbfl_compile.black_boxes import Given
    from gbfl_compile.mining.draw import Drawn
    from gbfl_compile.mining.job import Order
    from gbfl_compile.mining.rows import Rows, Split

HEADS = {"rules": "rules", "tree": "tree", "list": "rule_list"}
"""As it is said here -> as the classifier calls it."""


@click.command()
@click.argument("data", type=FILE, required=False)
@click.option("--target", required=True, metavar="COLUMN", help="The column with the class.")
@click.option("--out", "-o", type=WRITTEN, default=Path("model.gbfl.json"), show_default=True, help="The program.")
@click.option("--train", type=click.Choice(["mlp", "gbm", "forest"]), help="Train this black box on the data.")
@click.option("--black-box", metavar="MODEL", help="Take this one: a .onnx, .skops or .pkl file, or module:callable.")
@click.option("--trust-pickle", is_flag=True, help="Open a pickle, which can run any code of its author.")
@click.option("--trust-type", "trust_types", multiple=True, metavar="TYPE", help="Allow a type in a skops file.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="A column that is no feature; may be repeated.")
@click.option("--codes", multiple=True, metavar="COLUMN", help="A feature of codes: explanations use no other values.")
@click.option("--immutable", multiple=True, metavar="COLUMN", help="A feature that no explanation changes.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="Rows with a missing feature.",
)
@click.option("--head", type=click.Choice(list(HEADS)), default="rules", show_default=True, help="What to fit.")
@click.option("--clauses", type=click.IntRange(1, 1000), help="At most so many, for rules and list.  [default: 32]")
@click.option("--depth", type=click.IntRange(1, 5), help="At most so deep, for a tree.  [default: 5]")
@click.option("--explainer", type=click.Choice(["greedy", "macem"]), default="greedy", show_default=True)
@click.option("--rows", type=click.IntRange(1), default=20_000, show_default=True, help="Rows at most, drawn by seed.")
@seed
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Processes that explain rows, threads that fit.",
)
@click.option("--memory", metavar="SIZE", help="All processes together, such as 2GB; what takes more is refused.")
@click.option(
    "--black-box-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End when the black box takes longer to answer a block.",
)
@click.option("--checkpoint", type=FILE, metavar="FOLDER", help="Keep explained rows here.  [default: OUT.parts]")
@click.option("--baselines/--no-baselines", default=True, show_default=True, help="Fit three plain trees to compare.")
@click.option("--triplets", type=WRITTEN, help="Write the held-out rows with PP and PN here (NPZ), for check and show.")
@click.option("--database", metavar="URL", help="Read a table of this database in place of a file.")
@click.option("--table", help="The table, with --database.")
@as_json
@quiet
def mine(as_json: bool, quiet: bool, **asked: Any) -> int:
    """Mine a program from a table (CSV, Parquet or of a database) and a black box.

    Features are all columns but the target and those dropped; they must be numbers. A quarter of the rows is held
    out to measure on. A rule set (--head rules) is most consistent with the black box, a tree or a list quickest to
    read. Whatever stops it, Ctrl-C, a failing black box or a power cut, the same command goes on where it was. The
    program depends neither on --jobs nor on --memory.

    module:callable is given a matrix of rows and answers one probability a class, the classes sorted, or the
    probability of the second of two; an object with predict_proba will do too.

    Example: gbfl mine loans.csv --target default --train gbm -o loans.gbfl.json
    """
    from gbfl_compile import screen
    from gbfl_compile.files import make_folder
    from gbfl_compile.ir.json_form import save
    from gbfl_compile.mining import job
    from gbfl_compile.mining.lock import only_one
    from gbfl_compile.mining.rows import split_of
    from gbfl_compile.mining.told import as_form, summary
    from gbfl_compile.triplets import save_triplets

    order, out = _order(asked), asked["out"]
    _check_black_box(asked)
    if out.is_dir():
        raise BadInput(f"{out}: is a folder, name a file")
    make_folder(out.parent)  # before the work: a program that cannot be written is hours lost
    name, rows, about = _rows(asked, order.memory, note=_nothing if quiet or as_json else _note)
    split, features = split_of(rows, order.seed, name), rows.features
    del rows  # the split has copies
    parts = asked["checkpoint"] or out.with_name(f"{out.name}.parts")
    make_folder(parts)
    try:
        with only_one(parts), screen.progress(job.steps(split), quiet=quiet or as_json) as tell:
            mined = job.mine(split, features, _black_box(asked, split, features), order, parts, tell, about)
            save(mined.program, out)
            if asked["triplets"] is not None:
                save_triplets(asked["triplets"], mined.triplets)
            if asked["checkpoint"] is None:
                _remove_own(parts)
    except KeyboardInterrupt as stop:
        click.echo(f"gbfl: {told_of(stop)}: {_kept(parts)}", err=True)
        if asked["checkpoint"] is None and not _files_kept(parts):
            _remove_own(parts)
        return INTERRUPTED
    finally:
        with contextlib.suppress(OSError):
            parts.rmdir()  # where nothing was kept
    if as_json:
        screen.print_json(as_form(mined, out, asked["triplets"]))
    elif not quiet:
        screen.print_wrapped(*(part for line in summary(mined, name, order.seed, out) for part in line.split("\n")))
    return DIFFERENT if mined.compared_different else EQUAL


def _order(asked: dict[str, Any]) -> Order:
    from gbfl_compile.mining.job import Order
    from gbfl_compile.mining.memory import bytes_of

    if asked["head"] == "tree" and asked["clauses"] is not None:
        raise BadInput("--clauses is for rules and lists: a tree is limited by --depth")
    if asked["head"] != "tree" and asked["depth"] is not None:
        raise BadInput(f"--depth is for trees: {asked['head']} is limited by --clauses")
    return Order(
        head=HEADS[asked["head"]],  # type: ignore[arg-type]  # one of the three, as click has seen to
        clauses=asked["clauses"] or 32,
        depth=asked["depth"] or 5,
        explainer=asked["explainer"],
        seed=asked["seed"],
        jobs=asked["jobs"],
        memory=None if asked["memory"] is None else bytes_of(asked["memory"]),
        black_box_timeout=asked["black_box_timeout"],
        codes=asked["codes"],
        immutable=asked["immutable"],
        baselines=asked["baselines"],
    )


def _check_black_box(asked: dict[str, Any]) -> None:
    if (asked["train"] is None) == (asked["black_box"] is None):
        both = ", not both" if asked["train"] else ""
        raise BadInput(f"give --train mlp|gbm|forest, to train a black box, or --black-box MODEL, to take one{both}")
    if (asked["data"] is None) == (asked["database"] is None):
        raise BadInput("give a file of data, or --database URL --table NAME")
    if (asked["database"] is None) != (asked["table"] is None):
        raise BadInput("--database and --table go together")


def _rows(asked: dict[str, Any], memory: int | None, note: Callable[[str], None]) -> tuple[str, Rows, dict[str, Any]]:
    """What the data is called, its rows, and what is to be told of it. A folder's name is nobody's business."""
    from gbfl_compile.mining.memory import give_back
    from gbfl_compile.mining.rows import fewer, keys_among, rows_of

    name, table, drawn = _table(asked, memory)
    of, missing = len(table) if drawn is None else drawn.of, asked["missing"] == "drop"
    places = None if drawn is None else drawn.places
    every = rows_of(table, asked["target"], asked["drop"], name, drop_missing=missing, places=places)
    del table
    give_back()
    rows = fewer(every, asked["rows"], asked["seed"])
    for key in keys_among(rows):
        note(f"column {key!r} has another number in every row; if it is a key, leave it out with --drop")
    if every.left_out:
        note(f"{every.left_out} rows with a missing value are left out")
    if len(rows.x) < of - every.left_out:
        note(f"{len(rows.x)} of {of} rows are used; --rows takes more")
    about = {
        "data": {
            "name": name,
            "target": asked["target"],
            "dropped": list(asked["drop"]),
            "rows": of,
            "left_out": every.left_out,
            "used": len(rows.x),
        }
    }
    return name, rows, about


def _table(asked: dict[str, Any], memory: int | None) -> tuple[str, Any, Drawn | None]:
    """What the data is called, the table, and which rows of a larger one it has. Of a database it has all."""
    from gbfl_compile.mining.drawn_tables import drawn_rows, most_rows
    from gbfl_compile.mining.memory import refuse_many_rows
    from gbfl_compile.mining.rows import refuse_nameless
    from gbfl_compile.table_batches import column_names
    from gbfl_compile.tables import file_ending, read_table

    if asked["database"] is not None:
        from gbfl_compile.database_tables import read_database_table

        return asked["table"], read_database_table(asked["database"], asked["table"]), None
    data, most = asked["data"], asked["rows"]
    rows, names = most_rows(data), column_names(data)
    if file_ending(data).startswith(".csv"):
        refuse_nameless(names, asked["drop"], data.name)
    if memory is not None:
        refuse_many_rows(data.name, min(rows, most), len(names), memory)
    if rows <= most:
        return data.name, read_table(data), None
    return data.name, *drawn_rows(data, asked["target"], most, asked["seed"])


def _black_box(asked: dict[str, Any], split: Split, features: tuple[str, ...]) -> Callable[[], Given]:
    from gbfl_compile.black_boxes import PICKLE_WARNING, PICKLES, load_black_box, train

    if asked["train"] is not None:
        return partial(train, asked["train"], split.x, split.y, asked["seed"])
    source = asked["black_box"]
    if asked["trust_pickle"] and source.lower().endswith(PICKLES):
        _note(f"{source}: {PICKLE_WARNING}")  # even when quiet
    return partial(
        load_black_box,
        source,
        features,
        split.x,
        trust_pickle=asked["trust_pickle"],
        trusted_types=asked["trust_types"],
    )


def _note(line: str) -> None:
    click.echo(f"gbfl: {line}", err=True)


def _nothing(line: str) -> None:
    pass


def _kept(parts: Path) -> str:
    done = _files_kept(parts)
    if not done:
        return "nothing was explained yet"
    return f"{done} files of explained rows are kept in {parts}, the same command goes on from there"


def _files_kept(parts: Path) -> int:
    return len(list(parts.glob("*/rows-*.npz")))


def _remove_own(parts: Path) -> None:
    """Take away the explained rows that nobody asked to keep."""
    with contextlib.suppress(OSError):
        for part in ("training", "test"):
            shutil.rmtree(parts / part)
