"""The verb of auditing: compares what is deployed, in whatever form, with the approved program.

audit("approved.gbfl.json", database="duckdb:///loans.db", view="scores").verdict
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gbfl_compile.auditing.answers import with_labels
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.auditing.mend.spans import line_at
from gbfl_compile.auditing.verdict import AuditReport, DeployedVerdict
from gbfl_compile.checking.prove import BUDGET_SECONDS
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import label_array
from gbfl_compile.ir.json import as_program, digest
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.text import printable

if TYPE_CHECKING:
    from gbfl_compile.databases.base import Database
    from gbfl_compile.databases.views import CatalogView
    from gbfl_compile.ir.nodes import Program
    from gbfl_compile.learning.consistency import Triplets

File: TypeAlias = "str | os.PathLike[str]"

SECONDS = 60.0
"""That a view, library or scorer may run."""


def audit(
    program: Program | File,
    *,
    file: File | Sequence[File] = (),
    dialect: str | None = None,
    library: File | None = None,
    name: str | None = None,
    source: File | None = None,
    float32: bool = False,
    database: str | Database | None = None,
    view: str | Sequence[str] = (),
    scored: File | None = None,
    label: str | None = None,
    columns: Mapping[str, str] | None = None,
    classes: Mapping[Any, Any] | None = None,
    probabilities: bool = False,
    tolerance: float = 0.0,
    key: str | Sequence[str] = (),
    differences: File | None = None,
    drift: bool = False,
    call: str | Sequence[str] = (),
    call_form: Literal["dicts", "frame", "matrix"] = "dicts",
    request: str = "rows",
    answer: str | None = None,
    time_limit: float = SECONDS,
    data: Any = None,
    triplets: Triplets | File | None = None,
    budget_seconds: float = BUDGET_SECONDS,
) -> AuditReport:
    """Whether what is deployed is the approved program, with the evidence for each thing that is named.

    file, dialect: a .py, .c, .onnx or .sql file, or several; the database of a .sql file that does not say so.
    library, name, source, float32: a shared library, the prefix of its functions, the .c file it was supposedly built
        from, and whether it reads float32 rows.
    database, view: a URL or an open database, and a view there, or several.
    scored: a table of rows and predictions: a file, or a table of the database.
    label, columns: the column of labels of a view, scored table or hand-written .sql file; feature -> column, where
        names differ.
    classes: class -> label, where deployed labels are not the names of the classes: {"yes": 1, "no": 0}. 1, True and
        "1" are three labels.
    probabilities, tolerance, drift: compare the scored table's probabilities, how far each may be off where they were
        rounded, and compare its distributions with those of training.
    key, differences: the scored table's key column, or several: missing and duplicated keys are a difference; a CSV
        file for all rows that differ.
    call, call_form: a scorer, module:function or an http URL, or several; whether it is given dicts, a
        pandas table or a matrix.
    request, answer: the form of an HTTP request (rows, records, instances, dataframe_split), and the path of the labels
        in the answer (`predictions[].class`).
    time_limit, budget_seconds: seconds that a view, library or scorer may run, and that a proof may take.
    data, triplets: rows that are run too, and of which those a difference touches are counted; whether local
        consistency changed.
    """
    files, views, calls = _several(file), _several(view), _several(call)
    if not (files or library or views or scored or calls):
        ways = "--file, --library, --view, --scored or --call" if database is None else "--view VIEW, or --scored TABLE"
        raise BadInput(f"name what is deployed: {ways}")
    if views and database is None:
        raise BadInput("--view needs --database URL")
    if scored is None:
        _refuse_idle("--scored", {"--drift": drift, "--probabilities": probabilities, "--key": bool(key)})
        _refuse_idle("--scored", {"--differences": differences is not None})
    if not probabilities:
        _refuse_idle("--probabilities", {"--tolerance": tolerance > 0})
    if not 0.0 <= tolerance < 1.0:
        raise BadInput(f"--tolerance {tolerance:g}: give a number from 0 on and below 1, beyond which any share passes")
    if library is None:
        _refuse_idle("--library", {"--name": name is not None, "--source": source is not None, "--float32": float32})
    approved = as_program(program)
    rows = points = book = None
    if data is not None:
        from gbfl_compile.tables.values import coded_rows

        rows, book = coded_rows(data, approved)
    if triplets is not None:
        from gbfl_compile.learning.consistency import triplets_for

        points = triplets_for(approved, triplets)
        if approved.kinds:
            book = (codebook(approved) if book is None else book).with_texts(points.texts)
            points = points.in_book(book)
    inputs = AuditInput(approved, rows, points, budget_seconds, dict(columns or {}), time_limit, book=book)
    if classes is not None:
        inputs = _with_labels(inputs, classes)
    where = str(program) if isinstance(program, str | os.PathLike) else "PROGRAM"
    command = AuditCommand(where, database if isinstance(database, str) else None, label, dict(columns or {}))
    verdicts = [
        with_other_command(audit_file(inputs, Path(path), dialect, label), approved, command, None)
        if str(path).endswith(".sql")
        else audit_file(inputs, Path(path), dialect, label)
        for path in files
    ]
    if library is not None:
        verdicts.append(_audit_library(inputs, Path(library), name, source, float32))
    in_database = scored is not None and database is not None and not Path(scored).exists()
    from gbfl_compile.databases import opened_database
    from gbfl_compile.databases.views import read_catalog

    with opened_database(database if views or in_database else None) as opened:
        found = [] if opened is None else [read_catalog(opened, str(each)) for each in views]
        verdicts += [
            with_other_command(_audit_view(inputs, each, label), approved, command, each.name) for each in found
        ]
        if scored is not None:
            from gbfl_compile.auditing.scored import ScoredOptions, audit_scored

            file_of_rows = None if differences is None else Path(differences)
            beside = ScoredOptions(drift, probabilities, tolerance, _names(key), file_of_rows)
            table = (opened, str(scored)) if opened is not None and in_database else Path(scored)
            verdicts.append(
                audit_scored(
                    inputs.program,
                    table,
                    label,
                    inputs.columns,
                    options=beside,
                    names=inputs.names,
                )
            )
    how: dict[str, Any] = {"seconds": time_limit, "form": call_form, "request": request, "answer": answer}
    for each in calls:
        from gbfl_compile.auditing.scorer.callable import audit_callable

        verdicts.append(audit_callable(inputs.program, str(each), **how, data=rows, book=book))
    if inputs.names is not None:
        labels = dict(zip(map(str, inputs.names), inputs.program.classes, strict=True))
        verdicts = [replace(each, class_labels=labels) for each in verdicts]
    return AuditReport(digest(approved), tuple(verdicts))


def _with_labels(inputs: AuditInput, labels: Mapping[Any, Any]) -> AuditInput:
    """Everything is compared in the labels as they are deployed; triplets have the names of the classes."""
    program = with_labels(inputs.program, labels)
    triplets = inputs.triplets
    if triplets is not None:
        deployed = dict(zip(inputs.program.classes, program.classes, strict=True))
        own = tuple(deployed.get(name, name) for name in triplets.label.tolist())
        triplets = replace(triplets, label=label_array(own))
    return replace(inputs, program=program, triplets=triplets, names=inputs.program.classes)


def _several(value: File | Sequence[File]) -> tuple[File, ...]:
    return (value,) if isinstance(value, str | os.PathLike) else tuple(value)


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _refuse_idle(of: str, options: dict[str, bool]) -> None:
    """Refuse options that would have no effect, since what they belong to is not named."""
    for option, is_set in options.items():
        if is_set:
            raise BadInput(f"{option} needs {of}")


def _audit_library(
    inputs: AuditInput, library: Path, name: str | None, source: File | None, float32: bool
) -> DeployedVerdict:
    from gbfl_compile.auditing.scorer.library import audit_library

    prefix = name or library.name.split(".")[0].removeprefix("lib")
    built_from = None if source is None else Path(source)
    return audit_library(
        inputs.program,
        library,
        prefix,
        built_from,
        seconds=inputs.time_limit,
        real="float32" if float32 else "float64",
        data=inputs.data,
        book=inputs.book,
    )


def _audit_view(inputs: AuditInput, found: CatalogView, label: str | None) -> DeployedVerdict:
    from gbfl_compile.auditing.view import LABEL, audit_found_view

    return audit_found_view(inputs, found, f"view {found.name} in {found.database.version}", label or LABEL)


MOST_WORDS = 4
WORD = re.compile(r"\w+(?:\.\d+)?")
FILLED = re.compile(
    r"\b(?:insert\s+(?:overwrite\s+)?into|update|create\s+(?:or\s+replace\s+)?(?:materialized\s+)?(?:table|view)"
    r"(?:\s+if\s+not\s+exists)?)\s+([\w.\"`]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AuditCommand:
    """How the audit was called, for a command to paste."""

    program: str
    database: str | None
    label: str | None
    columns: Mapping[str, str]

    def compare_rows(self, table: str) -> str:
        """The command that compares stored rows."""
        words = ["gbfl", "audit", self.program]
        if self.database is None:
            words += ["--database", "URL"]
        elif os.environ.get("GBFL_DATABASE") != self.database:
            from gbfl_compile.databases import without_password

            words += ["--database", without_password(self.database)]
        words += ["--scored", table]
        words += [] if self.label is None else ["--label", self.label]
        words += [word for name, column in self.columns.items() for word in ("--column", f"{name}={column}")]
        return " ".join(map(shlex.quote, words))


def with_other_command(
    verdict: DeployedVerdict, program: Program, command: AuditCommand, view: str | None
) -> DeployedVerdict:
    """A verdict `unread` with the line that was not understood, and the command that compares rows instead."""
    if verdict.verdict != "unread":
        return verdict
    text = next((each.decode("utf-8", errors="replace") for each in verdict.material.values()), "")
    place = _place(text, verdict.reason or "")
    reason = _with_names((verdict.reason or "").partition("; not in the strict form")[0], program)
    if place is not None:
        line = line_at("", text, place)
        reason = f"line {line.number} is not understood ({line.text}): {reason}"
    filled = FILLED.search(text)
    table = view or (filled[1] if filled is not None else "TABLE")
    wanted = ", ".join(command.columns.get(name, name) for name in program.features)
    note = f"{command.compare_rows(table)} (it must have the columns {wanted}: join them in where it does not)"
    return replace(verdict, reason=reason, other_command=note)


def _with_names(reason: str, program: Program) -> str:
    """A reason with the names of features, which readers know by their numbers."""

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return printable(program.features[number]) if number < len(program.features) else found[0]

    return FEATURE.sub(name, reason)


FEATURE = re.compile(r"\bfeature (\d+)\b")


def _place(text: str, reason: str) -> int | None:
    """Where the text has the words that a reason quotes after its colon."""
    _, colon, quoted = reason.partition(": ")
    words = [word.casefold() for word in WORD.findall(quoted.partition(";")[0])][:MOST_WORDS]
    if not colon or not words:
        return None
    listed = [(match[0].casefold(), match.start()) for match in WORD.finditer(text)]
    for count in range(len(words), 0, -1):
        for at in range(len(listed) - count + 1):
            if [word for word, _ in listed[at : at + count]] == words[:count]:
                return listed[at][1]
    return None
