"""`gbfl audit` and `gbfl audit-log`: compare what is deployed with what was approved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gbfl_compile.cli.flags import (
    COULD_NOT_RUN,
    DIFFERENT,
    EQUAL,
    FILE,
    WRITTEN,
    as_json,
    column_mapping,
    output_options,
    refuse_swapped,
)
from gbfl_compile.errors import BadInput, GbflError

if TYPE_CHECKING:
    from gbfl_compile.auditing.verdict import AuditReport


READ_ENDINGS = (".py", ".c", ".js", ".onnx", ".sql")
"""Files that need no option to say what they are."""


@click.command()
@click.argument("program", type=FILE)
@click.argument("deployed", type=FILE, nargs=-1, metavar="[FILES]...")
@click.option("--file", type=FILE, multiple=True, help="A deployed .py, .c, .js, .onnx or .sql; may be repeated.")
@click.option("--dialect", help="The database a .sql file is for, if the file does not say.")
@click.option("--library", type=FILE, help="A deployed .so: run on chosen rows, in a separate process.")
@click.option(
    "--name", help="The prefix of the library's functions.  [default: its file name, without lib and endings]"
)
@click.option("--source", type=FILE, help="The .c file that the library was supposedly built from.")
@click.option("--float32", is_flag=True, help="The library reads float32 rows.")
@click.option(
    "--database", envvar="GBFL_DATABASE", metavar="URL", help="The database of --view, or of a --scored table."
)
@click.option("--view", multiple=True, help="A view in the database; may be repeated.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FEATURE=COLUMN",
    help="A feature's column, if its name differs, or the SQL expression that computes it.",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="NAME=LABEL",
    help="A class's deployed label, if not its name; repeat for each class. 1 is a number, true a boolean, '1' a text.",
)
@click.option("--scored", help="A table of rows and predictions: CSV, Parquet, or a table of the database.")
@click.option("--label", help="The column of labels in a view or scored table.  [default: label]")
@click.option("--probabilities", is_flag=True, help="Also compare the scored table's columns p_<class>.")
@click.option(
    "--tolerance",
    type=click.FloatRange(0.0, 1.0),
    default=0.0,
    help="How far a scored probability may be off: 0.00005 for four decimals.  [default: exact]",
)
@click.option("--key", multiple=True, help="A key column of the scored table: missing and duplicate keys are reported.")
@click.option("--differences", type=WRITTEN, help="Write all rows of the scored table that differ to this CSV file.")
@click.option("--drift", is_flag=True, help="Compare the scored table's distributions with those of the training rows.")
@click.option(
    "--fail-on-drift", is_flag=True, help="Exit with 1 if a class share or a feature has drifted (includes --drift)."
)
@click.option("--call", multiple=True, metavar="WHAT", help="A scorer: module:function, or an http URL.")
@click.option(
    "--call-form",
    type=click.Choice(["dicts", "frame", "matrix"]),
    default="dicts",
    show_default=True,
    help="What a Python scorer takes: a list of dicts with None, a pandas table, or a float64 matrix with NaN.",
)
@click.option(
    "--request",
    type=click.Choice(["rows", "records", "instances", "dataframe_split"]),
    default="rows",
    show_default=True,
    help="The format of an HTTP request.",
)
@click.option("--answer", metavar="PATH", help="Where the labels are in an HTTP response: predictions[].class.")
@click.option(
    "--time-limit",
    type=float,
    default=60.0,
    show_default=True,
    help="Time limit per view, library or scorer, in seconds.",
)
@click.option(
    "--data", type=FILE, help="Rows (CSV or Parquet) to run as well; those affected by a difference are counted."
)
@click.option("--triplets", type=FILE, help="The file that gbfl mine --triplets wrote: compare local consistency.")
@click.option(
    "--budget", "budget_seconds", type=float, default=10.0, show_default=True, help="Time limit per proof, in seconds."
)
@click.option(
    "--require",
    type=click.Choice(["proved"]),
    help="Accept proofs only. By default, SQL that was read as equal and was also run is accepted too.",
)
@click.option("--log", type=FILE, help="An audit log to append to.")
@click.option("--html", type=WRITTEN, help="Also write the report as an HTML page.")
@click.option("--evidence", type=FILE, help="A new folder for the evidence pack, which verifies offline.")
@click.option("--auditor", help="Who made the audit, for the evidence pack.  [default: your login name]")
@as_json
@output_options
def audit(
    program: Path,
    deployed: tuple[Path, ...],
    columns: tuple[str, ...],
    classes: tuple[str, ...],
    require: str | None,
    log: Path | None,
    html: Path | None,
    evidence: Path | None,
    auditor: str | None,
    fail_on_drift: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Check that what is deployed is the approved PROGRAM, and show the evidence. FILES are the same as --file.

    Files and views are read back and proved; libraries and scorers are run on rows chosen to expose a mistake; a
    scored table is compared row by row. Exit code: 0 as approved, 1 different, 2 bad usage or input, 3 not read, not
    run or (with --require proved) not proved; docs/auditing.md has the table. The URL may be given in the environment
    variable GBFL_DATABASE, which keeps its password out of process lists.

    Example: gbfl audit model.gbfl.json --file deployed/model.sql --dialect postgres
    """
    for each in (each for each in deployed if each.is_dir() or each.suffix not in READ_ENDINGS):
        refuse_swapped("audit", program, each)
        raise BadInput(f"{each}: say with an option what it is: {_audit_command(program, each)}")
    for each in (each for each in options["file"] if each.is_dir()):
        raise BadInput(f"{each}: is a folder: name a file in it, or check all of it: {_audit_command(program, each)}")
    mapping, labels = column_mapping(columns), _class_labels(program, classes)
    from gbfl_compile.auditing.audit import audit as run_audit

    options["drift"] = options["drift"] or fail_on_drift
    options["file"] = (*deployed, *options["file"])
    report = run_audit(program, columns=mapping, classes=labels, **options)
    code = (
        DIFFERENT
        if report.verdict == "different" or (fail_on_drift and report.drift_alarms)
        else COULD_NOT_RUN
        if not report.is_accepted(require == "proved")
        else EQUAL
    )
    text = () if as_json else report.lines()
    _publish(report, text, log, html, program)
    if evidence is not None:
        used = {"columns": mapping, "classes": classes, "require": require, **options}
        manifest = _write_evidence(program, report, evidence, used, auditor)
        if not as_json:
            from gbfl_compile.cli import screen

            screen.print_lines(f"evidence pack in {evidence}, its manifest has the hash {manifest}")
    return code


DATABASES = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
"""The endings of files that are databases, and what their URLs begin with."""


def _audit_command(program: Path, deployed: Path) -> str:
    """The command that audits what was named without an option."""
    from gbfl_compile.files.formats import TARGET_FOLDER, shell_command

    if deployed.is_dir():
        build = deployed.parent if TARGET_FOLDER.fullmatch(deployed.name) else deployed
        return shell_command("gbfl", "check", str(program), str(build))
    if deployed.suffix in DATABASES:
        url = f"{DATABASES[deployed.suffix]}:///{deployed}"
        return f"{shell_command('gbfl', 'audit', str(program), '--database', url)} --view VIEW"
    options = {".so": "--library", ".csv": "--scored", ".parquet": "--scored", ".gz": "--scored"}
    return shell_command("gbfl", "audit", str(program), options.get(deployed.suffix, "--file"), str(deployed))


def _write_evidence(
    program: Path, report: AuditReport, folder: Path, options: dict[str, Any], auditor: str | None
) -> str:
    from getpass import getuser

    from gbfl_compile.auditing.evidence import run_form, write_pack
    from gbfl_compile.databases import without_password
    from gbfl_compile.ir.json import as_program
    from gbfl_compile.reporting.page import pack_page

    if options.get("database") is not None:
        options["database"] = without_password(options["database"])
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    approved = as_program(program)
    run = run_form(report, plain, auditor or getuser())
    return write_pack(folder, approved, report, run, pack_page(approved, report.as_json(), run))


def _class_labels(program: Path, pairs: Sequence[str]) -> dict[Any, Any] | None:
    """`--class NAME=LABEL`, each time it was given."""
    if not pairs:
        return None
    from gbfl_compile.auditing.answers import read_labels
    from gbfl_compile.ir.json import as_program

    return read_labels(pairs, as_program(program).classes)


def _publish(report: AuditReport, text: Sequence[str], log: Path | None, html: Path | None, program: Path) -> None:
    """Print the report, as JSON where there is no text, even where it cannot be logged: that error comes after it."""
    from gbfl_compile.cli import screen

    line, failure = _append(report, log)
    if html is not None:
        from gbfl_compile.reporting.page import report as write_page

        write_page(program, html, audit=report)
    if not text:
        form = report.as_json()
        screen.print_json({**form, "log": line} if line else form)
    else:
        screen.print_wrapped(*text)
        if line:
            screen.print_lines(f"logged in {log} with the hash {line}")
    if failure is not None:
        raise failure


def _append(report: AuditReport, log: Path | None) -> tuple[str | None, GbflError | None]:
    """The hash of the line that was added to the log, or why none was."""
    if log is None:
        return None, None
    from gbfl_compile.auditing.log import append

    try:
        return append(log, report), None
    except GbflError as error:
        return None, error


class _OnlyVerify(click.Group):
    """A group of one command, `verify`: a file in its place is what is to be verified."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or the one that was meant."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            from gbfl_compile.files.formats import shell_command

            meant = shell_command(*ctx.command_path.split(), "verify", *args)
            raise BadInput(f"{args[0]}: the command is {meant}")
        return super().resolve_command(ctx, args)


@click.group("audit-log", cls=_OnlyVerify)
def audit_log() -> None:
    """Verify an audit log.

    Example: gbfl audit-log verify audits.jsonl
    """


@audit_log.command(short_help="find the first line of a log that was changed")
@click.argument("log", type=FILE)
@click.option(
    "--expect",
    metavar="HASH",
    help="A hash that one of the lines must have, to detect that the whole log was replaced.",
)
@as_json
@output_options
def verify(log: Path, expect: str | None, as_json: bool) -> int:
    """Find the first line of LOG that was changed, removed, inserted or cut off.

    LOG.end holds the number of lines. Both files can be replaced together: to detect this, keep the hash of the last
    line elsewhere (this command and `gbfl audit --log` print it) and pass it with --expect.

    Example: gbfl audit-log verify audits.jsonl --expect 3f0a…
    """
    from gbfl_compile.auditing.log import examine
    from gbfl_compile.cli import screen

    state = examine(log, expect)
    if as_json:
        verdict = "whole" if state.problem is None else "broken"
        screen.print_lines(
            json.dumps(
                {
                    "verdict": verdict,
                    "problem": state.problem,
                    "note": state.note,
                    "lines": state.lines,
                    "last": state.last,
                }
            )
        )
    elif state.problem is not None:
        screen.print_lines(f"broken: {state.problem}")
    else:
        lines = f"{state.lines} line{'' if state.lines == 1 else 's'}"
        screen.print_lines(f"whole: {lines}, each following from the one before; the last has the hash {state.last}")
        if state.note is not None:
            screen.print_lines(f"note: {state.note}")
    return EQUAL if state.problem is None else DIFFERENT


@click.group("audit-evidence", cls=_OnlyVerify)
def audit_evidence() -> None:
    """Verify the evidence pack of an audit.

    Example: gbfl audit-evidence verify evidence
    """


@audit_evidence.command("verify", short_help="find what was changed, removed or added in a pack")
@click.argument("folder", type=FILE)
@click.option("--expect", metavar="HASH", help="The hash of the manifest, to detect that the whole pack was replaced.")
@as_json
@output_options
def verify_evidence(folder: Path, expect: str | None, as_json: bool) -> int:
    """Find the first file in FOLDER that was changed, removed or added, or contradicts the others.

    Nothing is run and no network is used: the program's digest is computed again, the deployed copy is compared
    with its fingerprint, and the certificates are verified. The whole pack can be replaced together with its
    manifest: to detect this, keep the hash that `gbfl audit --evidence` prints elsewhere and pass it with --expect.

    Example: gbfl audit-evidence verify evidence --expect 3f0a…
    """
    from gbfl_compile.auditing.evidence import verify_pack
    from gbfl_compile.cli import screen

    state = verify_pack(folder, expect)
    if as_json:
        verdict = "whole" if state.problem is None else "broken"
        screen.print_json(
            {
                "verdict": verdict,
                "problem": state.problem,
                "files": state.files,
                "hash": state.hash,
                "audit": state.verdict,
            }
        )
    elif state.problem is not None:
        screen.print_lines(f"broken: {state.problem}")
    else:
        screen.print_lines(
            f"whole: {state.files} files as they were written; the audit says {state.verdict}",
            f"the manifest has the hash {state.hash}",
        )
    return EQUAL if state.problem is None else DIFFERENT
