"""`gbfl show`, `reasons`, `lint`, `diff` and `report`: what a program says, as text, JSON or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.cli.flags import COULD_NOT_RUN, DIFFERENT, EQUAL, FILE, WRITTEN, as_json, output_options, quiet_option
from gbfl_compile.errors import BadInput
from gbfl_compile.files.formats import shell_command


@click.command()
@click.argument("program", type=FILE)
@click.option("--row", "table", type=FILE, help="A table (CSV or Parquet): explain the class of one of its rows.")
@click.option("--row-number", type=click.IntRange(1), default=1, show_default=True, help="Which of its rows.")
@click.option("--triplets", type=FILE, help="The file that gbfl mine --triplets wrote: add what the black box says.")
@as_json
@output_options
def show(program: Path, table: Path | None, row_number: int, triplets: Path | None, as_json: bool) -> int:
    """Print a program's rules in readable form; with --row, why one row gets its class and what would change it.

    Both are exact: they take every possible value into account, not a sample.

    Example: gbfl show loans.gbfl.json --row new.csv --row-number 3
    """
    from gbfl_compile.cli import screen

    if table is not None:
        from gbfl_compile.why import explain_row

        explanation = explain_row(program, table, row_number=row_number, triplets=triplets)
        if as_json:
            screen.print_json(explanation.as_json())
        else:
            screen.print_wrapped(*explanation.lines())
        return EQUAL
    if triplets is not None:
        raise BadInput("--triplets explains a row: name one with --row")
    from gbfl_compile.ir.json import digest, load
    from gbfl_compile.ir.text import probability_lines, readable

    source = load(program)
    lines = probability_lines(source)
    spaced = ["", *lines] if lines else []
    if as_json:
        form = {"digest": digest(source), "rules": readable(source).split("\n"), "probabilities": lines}
        screen.print_json(form)
    else:
        screen.print_wrapped(*readable(source).split("\n"), *spaced, "", f"digest {digest(source)}")
    return EQUAL


@click.command()
@click.argument("program", type=FILE)
@click.argument("table", type=FILE, required=False)
@click.option("--out", "-o", type=FILE, help="The file for the program with its reasons.")
@as_json
@quiet_option
def reasons(program: Path, table: Path | None, out: Path | None, as_json: bool) -> int:
    """List a program's clauses by number with their reasons; with TABLE (columns clause, text) and --out, set them.

    A reason is given wherever its clause is reported: by show --row, and by compiled artifacts. It changes no answer.

    Example: gbfl reasons loans.gbfl.json reasons.csv -o loans.gbfl.json
    """
    from gbfl_compile.cli import screen
    from gbfl_compile.ir.json import digest, load, save
    from gbfl_compile.ir.text import clause_text, printable, reason_of, reasons_in, with_reasons
    from gbfl_compile.tables.read import read_table

    if (table is None) != (out is None):
        files = (str(program), str(table or "REASONS.csv"), "-o", str(out or "NEW.gbfl.json"))
        both = shell_command("gbfl", "reasons", *files)
        raise BadInput(f"a table of reasons and --out go together: {both}; with neither, the clauses are listed")
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
    else:
        for one in listing:
            screen.print_wrapped(f"{one['clause']}: {one['rule']}")
            if one["text"] is not None:
                screen.print_wrapped(f"    {printable(str(one['text']))}")
    return EQUAL


@click.command()
@click.argument("program", type=FILE)
@click.option("--data", type=FILE, help="Rows (CSV or Parquet) that the rules should cover.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Time limit of the search, in seconds.")
@as_json
@output_options
def lint(program: Path, data: Path | None, budget: float, as_json: bool) -> int:
    """Find leaves that no row reaches, clauses that never or always hold, and rules that repeat others.

    Exit code: 0 nothing found, 1 something found, 2 bad usage or input.

    Example: gbfl lint demo-out/loans.gbfl.json
    """
    from gbfl_compile.checking import lint as linter
    from gbfl_compile.cli import screen
    from gbfl_compile.ir.json import load

    source = load(program)
    oddities = linter.lint(source, data, budget)
    if as_json:
        screen.print_json(linter.as_json(source, oddities))
    else:
        screen.print_wrapped(*linter.as_text(source, oddities).rstrip("\n").split("\n"))
    return DIFFERENT if oddities else EQUAL


@click.command()
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@click.option("--data", type=FILE, help="Rows (CSV or Parquet): count those that get another class.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Time limit of the proof, in seconds.")
@as_json
@output_options
def diff(old: Path, new: Path, data: Path | None, budget: float, as_json: bool) -> int:
    """Compare two versions of a program by their answers: proved equal, or where and how they differ.

    Exit code: 0 equal, 1 different, 2 bad usage or input, 3 undecided.

    Example: gbfl diff approved.json candidate.json --data loans.csv
    """
    from gbfl_compile.auditing.diff import diff as compare
    from gbfl_compile.cli import screen

    difference = compare(old, new, data=data, budget_seconds=budget)
    if as_json:
        screen.print_json(difference.as_json())
    else:
        screen.print_wrapped(*difference.lines())
    return {"different": DIFFERENT, "undecided": COULD_NOT_RUN}.get(difference.verdict, EQUAL)


@click.command()
@click.argument("program", type=FILE)
@click.argument("artifacts", metavar="[BUILD]", type=FILE, required=False)
@click.option("--out", "-o", type=WRITTEN, default=Path("report.html"), show_default=True, help="The HTML file.")
@click.option("--verdict", type=FILE, help="Instead of BUILD: the file that `gbfl check --json FILE` wrote.")
@click.option("--audit", type=FILE, help="The file that `gbfl audit --json --out FILE` wrote.")
@click.option("--row", type=FILE, help="A table (CSV or Parquet): explain one of its rows.")
@click.option(
    "--row-number", type=click.IntRange(1), default=1, show_default=True, help="Which row of --row or --triplets."
)
@click.option("--triplets", type=FILE, help="The file that gbfl mine --triplets wrote: show the row's explanation.")
@click.option("--sizes", type=FILE, metavar="MODEL.c", help="An emitted C file: build it and report its size.")
@click.option("--examples", type=FILE, help="A table (CSV or Parquet) whose first 200 rows can be tried on the page.")
@click.option("--static", is_flag=True, help="Leave out the interactive part and its script.")
@as_json
@quiet_option
def report(program: Path, out: Path, as_json: bool, **sections: Any) -> int:
    """Write a report on a program: what it decides, how well, for whom, its rules, and what is proved.

    The artifacts in BUILD, a folder that `gbfl compile` wrote, are checked first.

    It is one file that needs no network, readable on a phone, on paper and with a screen reader. In a browser it
    is interactive: change a value or a rule and see what the program says. The examples are embedded in the page.

    Example: gbfl report loans.gbfl.json build -o report.html
    """
    from gbfl_compile.cli import screen
    from gbfl_compile.ir.json import digest, load
    from gbfl_compile.reporting.page import report as write_page

    source = load(program)
    size = write_page(program, out, **sections)
    if as_json:
        screen.print_json({"program": digest(source), "out": str(out), "bytes": size})
    else:
        screen.print_lines(f"{out}: {size:,} bytes")
    return EQUAL
