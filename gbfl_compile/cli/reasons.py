"""`gbfl reasons`: clauses by number, and the user's own words for them."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import EQUAL, FILE, as_json, quiet
from gbfl_compile.errors import BadInput


@click.command()
@click.argument("program", type=FILE)
@click.argument("table", type=FILE, required=False)
@click.option("--out", "-o", type=FILE, help="Where the program with its reasons goes.")
@as_json
@quiet
def reasons(program: Path, table: Path | None, out: Path | None, as_json: bool, quiet: bool) -> int:
    """List a program's clauses by number with their reasons; with TABLE (columns clause, text) and --out, set them.

    A reason is told wherever its clause is: by show --row, and in what is compiled. It changes no answer.

    Example: gbfl reasons loans.gbfl.json reasons.csv -o loans.gbfl.json
    """
    from gbfl_compile.cli import screen
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.ir.json import load, save
    from gbfl_compile.ir.reasons import reason_of, reasons_in, with_reasons
    from gbfl_compile.ir.text import clause_text, printable
    from gbfl_compile.tables.read import read_table

    if (table is None) != (out is None):
        raise BadInput("a table of reasons and --out go together; with neither the clauses are listed")
    loaded = load(program)
    if table is not None and out is not None:
        loaded = with_reasons(loaded, reasons_in(read_table(table, text=("clause", "text")), str(table)))
        save(loaded, out)
    listing = [
        {
            "clause": number,
            "rule": clause_text(clause, loaded.features, loaded.kinds),
            "text": reason_of(loaded, number),
        }
        for number, clause in enumerate(loaded.clauses)
    ]
    if as_json:
        screen.print_json({"program": digest(loaded), "reasons": listing})
    elif not quiet:
        for one in listing:
            screen.print_lines(f"{one['clause']}: {one['rule']}")
            if one["text"] is not None:
                screen.print_lines(f"    {printable(str(one['text']))}")
    return EQUAL
