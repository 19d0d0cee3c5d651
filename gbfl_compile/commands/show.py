"""`gbfl show`: a program's rules, or why it gave one row its class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gbfl_compile.commands.flags import EQUAL, FILE, as_json, printed
from gbfl_compile.errors import BadInput

if TYPE_CHECKING:
    from gbfl_compile.ir.nodes import Program


@click.command()
@click.argument("program", type=FILE)
@click.option("--row", "table", type=FILE, help="A table (CSV or Parquet): say why a row of it gets its class.")
@click.option("--row-number", type=click.IntRange(1), default=1, show_default=True, help="Which row of it.")
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN: say what the black box says of the row.")
@as_json
@printed
def show(program: Path, table: Path | None, row_number: int, triplets: Path | None, as_json: bool) -> int:
    """Print a program's rules as people read them; with --row, why one row gets its class and what would change it.

    What is said to suffice and to change the class is exact: it holds on the program for every value there is.

    Example: gbfl show loans.gbfl.json --row new.csv --row-number 3
    """
    from gbfl_compile import screen
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.ir.json_form import load
    from gbfl_compile.ir.readable import readable

    loaded = load(program)
    if table is not None:
        _show_row(loaded, table, row_number, triplets, as_json)
    elif triplets is not None:
        raise BadInput("--triplets tells of a row: name one with --row")
    elif as_json:
        screen.print_json({"digest": digest(loaded), "rules": readable(loaded).split("\n")})
    else:
        screen.print_wrapped(*readable(loaded).split("\n"), "", f"digest {digest(loaded)}")
    return EQUAL


def _show_row(program: Program, table: Path, row_number: int, triplets: Path | None, as_json: bool) -> None:
    from gbfl_compile import screen
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.tables import feature_matrix, read_table
    from gbfl_compile.why import words

    rows = feature_matrix(read_table(table), program.features, str(table))
    if row_number > len(rows):
        raise BadInput(f"{table}: has no row {row_number}, there are {len(rows)}")
    row = rows[row_number - 1].tolist()
    told = words.account(program, row)
    own = None if triplets is None else _of_black_box(program, row, triplets)
    if as_json:
        form = {"digest": digest(program), "row_number": row_number, **words.as_json(told), "black_box": own}
        screen.print_json(form)
        return
    first, *others = words.lines(told)
    screen.print_wrapped(f"row {row_number} of {len(rows)}: {first}", *others)
    if own is not None:
        screen.print_wrapped("", *_black_box_lines(program, row, own))


def _of_black_box(program: Program, row: list[float], path: Path) -> dict[str, Any]:
    """The black box's class, PP and PN of this very row, from a file of triplets."""
    import numpy as np

    from gbfl_compile.triplets import load_triplets

    triplets = load_triplets(path)
    if triplets.features != program.features:
        raise BadInput(f"{path}: its features are not the program's, make triplets for this program")
    found = np.flatnonzero((triplets.x == np.array(row)).all(axis=1))
    if not len(found):
        raise BadInput(f"{path}: does not have this row; gbfl mine --triplets writes those it held out")
    place = int(found[0])
    changed = {}
    for what, has, points in (("pp", triplets.has_pp, triplets.pp), ("pn", triplets.has_pn, triplets.pn)):
        differ = np.flatnonzero(points[place] != triplets.x[place])
        new = {program.features[f]: float(points[place, f]) for f in differ.tolist()}
        changed[what] = new if has[place] else None
    return {"label": triplets.label[place].item(), **changed}


def _black_box_lines(program: Program, row: list[float], own: dict[str, Any]) -> list[str]:
    from gbfl_compile.ir.readable import label_text, printable
    from gbfl_compile.why.words import value_text

    before = dict(zip(program.features, row, strict=True))

    def moves(new: dict[str, float]) -> str:
        return ", ".join(f"{printable(n)} {value_text(before[n])} -> {value_text(v)}" for n, v in new.items())

    lines = [f"The black box says {label_text(own['label'])}"]
    if own["pp"] is not None:
        lines.append(f"  and still does with {moves(own['pp']) or 'nothing changed'}")
    if own["pn"] is not None:
        lines.append(f"  and no longer does with {moves(own['pn'])}")
    return lines
