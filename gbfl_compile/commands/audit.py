"""`gbfl audit` and `gbfl audit-log`: what is deployed against what was approved."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from gbfl_compile.commands.flags import COULD_NOT_RUN, DIFFERENT, EQUAL, FILE, WRITTEN, as_json, printed
from gbfl_compile.commands.given import column_mapping, rows_of, triplets_of
from gbfl_compile.errors import GbflError

if TYPE_CHECKING:
    from gbfl_compile.audit.answer import Audited, AuditReport
    from gbfl_compile.audit.files import Given
    from gbfl_compile.databases.base import Database


@click.command()
@click.argument("program", type=FILE)
@click.option("--file", "files", type=FILE, multiple=True, help="A deployed .py, .c, .onnx or .sql; may be repeated.")
@click.option("--dialect", help="The database a .sql file is for, where it does not say so.")
@click.option("--library", type=FILE, help="A deployed .so: run on witnesses in a process of its own.")
@click.option(
    "--name", help="The prefix of the library's functions; when left out its file name, without lib and endings."
)
@click.option("--source", type=FILE, help="The .c file the library is said to be built from.")
@click.option("--float32", is_flag=True, help="The library reads float32 rows.")
@click.option(
    "--database", "url", envvar="GBFL_DATABASE", metavar="URL", help="The database of --view, or of a --scored table."
)
@click.option("--view", "views", multiple=True, help="A view in the database; may be repeated.")
@click.option("--column", "columns", multiple=True, metavar="FEATURE=COLUMN", help="Where a table has another name.")
@click.option("--scored", help="A table of rows and predictions: CSV, Parquet, or a table of the database.")
@click.option("--label", "label_column", help="The column of labels of a view or scored table; `label` when left out.")
@click.option("--probabilities", is_flag=True, help="Compare the scored table's columns p_<class> too.")
@click.option("--drift", is_flag=True, help="Compare the scored table's distributions with those of training.")
@click.option("--call", "callables", multiple=True, metavar="WHAT", help="A scorer: module:function, or an http URL.")
@click.option(
    "--call-form",
    type=click.Choice(["dicts", "matrix"]),
    default="dicts",
    show_default=True,
    help="What a Python scorer is given: a list of dicts with None, or a float64 matrix with NaN.",
)
@click.option("--time-limit", type=float, default=60.0, show_default=True, help="Seconds a library or scorer may run.")
@click.option("--data", type=FILE, help="Rows (CSV or Parquet): how many a difference touches.")
@click.option("--triplets", type=FILE, help="An NPZ file of x, PP and PN: whether local consistency changed.")
@click.option("--budget", type=float, default=10.0, show_default=True, help="Seconds a proof may take.")
@click.option(
    "--fail-on",
    type=click.Choice(["different", "unread", "unproved"]),
    default="unread",
    show_default=True,
    help="What makes the exit code other than 0; each includes those before it.",
)
@click.option("--log", type=FILE, help="An audit log to add a line to.")
@click.option("--html", type=WRITTEN, help="Write the report as a page.")
@as_json
@printed
def audit(
    program: Path,
    files: tuple[Path, ...],
    dialect: str | None,
    library: Path | None,
    name: str | None,
    source: Path | None,
    float32: bool,
    url: str | None,
    views: tuple[str, ...],
    columns: tuple[str, ...],
    scored: str | None,
    label_column: str | None,
    probabilities: bool,
    drift: bool,
    callables: tuple[str, ...],
    call_form: Literal["dicts", "matrix"],
    time_limit: float,
    data: Path | None,
    triplets: Path | None,
    budget: float,
    fail_on: str,
    log: Path | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Say whether what is deployed is the approved PROGRAM, with the evidence.

    Files and views are read back and proved; libraries and scorers are run on witnesses; a scored table is compared
    row by row. Exit code: 0 as approved, 1 different, 2 bad usage or input, 3 not read, not run or (with --fail-on
    unproved) not proved. The URL may stand in the environment variable GBFL_DATABASE, where no list of processes
    shows its password.

    Example: gbfl audit model.gbfl.json --file deployed/model.sql --dialect postgres
    """
    from gbfl_compile.audit.answer import AuditReport
    from gbfl_compile.audit.files import Given, audit_file
    from gbfl_compile.ir.digest import digest
    from gbfl_compile.ir.json_form import load

    if not (files or library or views or scored or callables):
        raise click.UsageError("Name what is deployed: --file, --library, --view, --scored or --call.")
    if views and url is None:
        raise click.UsageError("--view needs --database URL.")
    if scored is None:
        _refuse_idle("--scored", {"--drift": drift, "--probabilities": probabilities})
    if library is None:
        _refuse_idle("--library", {"--name": name is not None, "--source": source is not None, "--float32": float32})
    approved = load(program)
    given = Given(approved, rows_of(data, approved), triplets_of(triplets, approved), budget, column_mapping(columns))
    found: list[Audited] = [audit_file(given, path, dialect) for path in files]
    if library is not None:
        from gbfl_compile.audit.library import audit_library

        called = name or library.name.split(".")[0].removeprefix("lib")
        real: Literal["float64", "float32"] = "float32" if float32 else "float64"
        found.append(audit_library(approved, library, called, source, seconds=time_limit, real=real))
    in_database = url is not None and scored is not None and not Path(scored).exists()
    with _database(url if views or in_database else None) as database:
        found += [] if database is None else _in_views(given, database, views, label_column)
        if scored is not None:
            from gbfl_compile.audit.scored import audit_scored

            table = (database, scored) if database is not None and in_database else Path(scored)
            found.append(
                audit_scored(
                    approved, table, label_column, given.columns, with_drift=drift, with_probabilities=probabilities
                )
            )
    for what in callables:
        from gbfl_compile.audit.callables import audit_callable

        found.append(audit_callable(approved, what, seconds=time_limit, form=call_form))
    report = AuditReport(digest(approved), tuple(found))
    _tell(report, log, html, as_json, program)
    if report.verdict == "different":
        return DIFFERENT
    return COULD_NOT_RUN if report.fails(fail_on) else EQUAL  # type: ignore[arg-type]


def _refuse_idle(of: str, flags: dict[str, bool]) -> None:
    """Refuse flags that would be passed over: what they are of is not named."""
    for flag, given in flags.items():
        if given:
            raise click.UsageError(f"{flag} goes with {of}, which is not named.")


@contextmanager
def _database(url: str | None) -> Iterator[Database | None]:
    """The database, closed whatever happens."""
    if url is None:
        yield None
        return
    from gbfl_compile.databases import connect

    database = connect(url, read_only=True)
    try:
        yield database
    finally:
        database.close()


def _in_views(given: Given, database: Database, views: tuple[str, ...], label: str | None) -> Iterator[Audited]:
    from gbfl_compile.audit.views import LABEL, audit_view

    for view in views:
        yield audit_view(given, database, view, f"view {view} in {database.version}", label or LABEL)


def _tell(report: AuditReport, log: Path | None, html: Path | None, as_json: bool, program: Path) -> None:
    """The answer is shown even where it cannot be written down: that is said after it."""
    from gbfl_compile import screen
    from gbfl_compile.audit.forms import audited_lines, report_form

    logged, failed = _logged(report, log)
    form = report_form(report)
    if html is not None:
        from gbfl_compile.files import write_whole
        from gbfl_compile.ir.json_form import load
        from gbfl_compile.report import audit_page

        write_whole(html, audit_page(load(program), form).encode("utf-8"))
    if as_json:
        screen.print_json({**form, "log": logged} if logged else form)
    else:
        for each in report.audited:
            screen.print_wrapped(*audited_lines(each, report.source))
        screen.print_lines(f"verdict: {report.verdict}")
        if logged:
            screen.print_lines(f"logged in {log} with the hash {logged}")
    if failed is not None:
        raise failed


def _logged(report: AuditReport, log: Path | None) -> tuple[str | None, GbflError | None]:
    """The hash of the line that was added, or why none was."""
    if log is None:
        return None, None
    from gbfl_compile.audit.log import append

    try:
        return append(log, report), None
    except GbflError as error:
        return None, error


@click.group("audit-log")
def audit_log() -> None:
    """Look after an audit log.

    Example: gbfl audit-log verify audits.jsonl
    """


@audit_log.command()
@click.argument("log", type=FILE)
@click.option("--expect", metavar="HASH", help="A hash that some line must have: a cut-off end shows only so.")
@as_json
@printed
def verify(log: Path, expect: str | None, as_json: bool) -> int:
    """Find the first line of LOG that was changed, removed or put in.

    Lines cut off at the end leave a log that is whole as far as it goes. Keep the hash of the last line elsewhere, as
    this command and `gbfl audit --log` print it, and give it with --expect.

    Example: gbfl audit-log verify audits.jsonl --expect 3f0a…
    """
    from gbfl_compile import screen
    from gbfl_compile.audit.log import examine

    found = examine(log, expect)
    if as_json:
        verdict = "whole" if found.problem is None else "broken"
        screen.print_lines(
            json.dumps({"verdict": verdict, "problem": found.problem, "lines": found.lines, "last": found.last})
        )
    elif found.problem is not None:
        screen.print_lines(f"broken: {found.problem}")
    else:
        lines = f"{found.lines} line{'' if found.lines == 1 else 's'}"
        screen.print_lines(f"whole: {lines}, each following from the one before; the last has the hash {found.last}")
    return EQUAL if found.problem is None else DIFFERENT
