"""Audits a view where it is deployed: reads, proves and runs its definition as the database's catalog has it.

Nothing is written to the user's schema. A temporary copy of the view's table takes the rows, and the view's own query
runs on the copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.auditing.compare import AuditInput, compare_readings, weaker_without_run
from gbfl_compile.auditing.verdict import AuditVerdict, DeployedVerdict
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.layered import audit_layers
from gbfl_compile.auditing.view.layered_run import run_unread
from gbfl_compile.auditing.view.places import holds_kind, with_strict_nan, without_nan_decimals
from gbfl_compile.auditing.view.run import OtherRowCount, Outputs, ViewRun, outputs_of, run_view
from gbfl_compile.auditing.view.single_rows import doubt_of, with_inferred_slip
from gbfl_compile.auditing.view.story import with_first_difference, with_mended_view, with_run
from gbfl_compile.auditing.view.table_copy import one_copy
from gbfl_compile.auditing.view.view import (
    MissingFeature,
    View,
    compares_as_double,
    feature_columns,
    own_names,
    uncast_columns,
    view_of,
    without_exact_casts,
)
from gbfl_compile.auditing.view.whole_numbers import without_fractions
from gbfl_compile.checking.artifact import ArtifactProof, ReadArtifact
from gbfl_compile.checking.general.sql import UNKNOWN_TEXTS, TextLayout, other_columns, read_sql
from gbfl_compile.checking.reading.nodes import Reading, Unread, limit_work
from gbfl_compile.checking.strict.sql import ExpectedText, read_strict_view, refuse_conversions
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Column
from gbfl_compile.databases.views import CatalogView, read_catalog
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.ir.text import printable

LABEL = "label"


@dataclass(frozen=True, slots=True)
class ViewAudit:
    """One view, what it is compared with, and the result of running it."""

    inputs: AuditInput
    view: View
    label: str
    run: ViewRun | None
    not_run: BadInput | CannotRun | Unread | OtherRowCount | None
    """Why there is no run."""


def audit_view(inputs: AuditInput, database: Database, name: str, what: str, label: str = LABEL) -> DeployedVerdict:
    """The verdict on the view of this name."""
    return audit_found_view(inputs, read_catalog(database, name), what, label)


def audit_found_view(inputs: AuditInput, found: CatalogView, what: str, label: str = LABEL) -> DeployedVerdict:
    """The verdict on one view; `what` is what the report calls it, `label` its column of labels."""
    return without_fractions(found, lambda each: _audit_found(inputs, each, what, label))


def _audit_found(inputs: AuditInput, found: CatalogView, what: str, label: str) -> DeployedVerdict:
    """STEPS run in order, and each may change the verdict of those before it.

    1. The text is read and proved, over all doubles and then over what the columns can hold: any of the four verdicts.
    2. The run: a differing answer makes anything `different`. A view that its database does not run is not `equal`.
    3. What only the general reader read, and was not run, is `not run`.
    4. A difference that the table's constraints, or the view's own answer, rule out is not `different` but `unread`.
    5. Column types: `equal` needs the columns to compare as doubles do, or a run over their own types.
    6. Built-in functions, operators, types or casts that users redefined: `equal` or `not run` becomes `unread`.
    7. The view itself is queried: where it fails, `equal` becomes `not run`.

    No step turns another verdict into `equal`. A view that reads other views or several tables, or whose text leaves
    rows out, is read and run through its layers instead (`layered`).
    """
    view = view_of(found)
    version, definition = view.database.version, view.definition.encode("utf-8")
    fingerprint, material = hashlib.sha256(definition).hexdigest(), {"definition.sql": definition}
    verdict = DeployedVerdict(what, "view", "not run", None, None, fingerprint, version, material=material)
    if view.materialized:
        reason = f"a materialized view answers from stored rows: compare them with --scored {printable(view.name)}"
        return replace(verdict, verdict="unread", reason=reason)
    if view.query is not None and (view.views_below or view.table is None or not inputs.holds_nan):
        return _through_layers(inputs, view, label, verdict)
    audit, first = _run_first(inputs, view, label), verdict
    for step in STEPS:
        verdict = step(audit, verdict)
    verdict = with_mended_view(inputs, view, label, verdict, lambda v: view_readings(replace(audit, view=v))[0])
    was_read = verdict.proof is not None and verdict.proof.answer != "unread"
    if verdict.verdict != "equal" and view.query is not None and not was_read:
        layered = _through_layers(inputs, view, label, first, isinstance(audit.not_run, MissingFeature | OtherRowCount))
        is_open = verdict.verdict != "different"
        if layered.verdict == "different" or (is_open and (layered.verdict != "unread" or layered.execution)):
            return layered
        if is_open:
            return replace(
                layered, **{each: getattr(verdict, each) for each in ("execution", "executed", "not_executed")}
            )
        if layered.verdict == "unread" and layered.reason is not None:  # which says what in the text is not understood
            return replace(verdict, reason=layered.reason)
    return verdict


def _through_layers(
    inputs: AuditInput, view: View, label: str, verdict: DeployedVerdict, runs_unread: bool = True
) -> DeployedVerdict:
    """The verdict on a view that reads other views or several tables, or leaves rows out."""
    try:
        layered = audit_layers(inputs, view, label, verdict)
    except Unread as error:
        verdict = replace(verdict, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
        return run_unread(inputs, view, label, verdict) if runs_unread else verdict
    except CannotRun as error:
        return replace(verdict, reason=str(error))
    verdict = layered.verdict
    audit = ViewAudit(inputs, view, label, None, None)
    numbers = enumerate(layered.columns)
    columns = [column for f, column in numbers if column is not None and inputs.program.kind(f) == "number"]
    verdict = _with_types(audit, verdict, columns, layered.uncast())
    return _query_itself(audit, _refuse_own_names(audit, verdict, layered.text.uses.functions))


def _run_first(inputs: AuditInput, view: View, label: str) -> ViewAudit:
    """The run comes before the reading, because it shows which columns are answers of the program.

    A leaf or reason in the strict form is an answer, right or wrong: only we write this form.
    """
    outputs = outputs_of(inputs, view, label)
    try:
        run = run_view(inputs, view, outputs, are_answers=_gives_reasons_strictly(inputs, view, outputs))
    except (BadInput, CannotRun, Unread, OtherRowCount) as error:
        return ViewAudit(inputs, view, label, None, error)
    return ViewAudit(inputs, view, label, run, None)


def _gives_reasons_strictly(inputs: AuditInput, view: View, outputs: Outputs) -> bool:
    if not any(kind in ("leaf", "reason") for kind, _ in outputs):
        return False
    try:
        return bool(_read_strictly(inputs, view, outputs))
    except Unread:
        return False


def _prove(audit: ViewAudit, verdict: DeployedVerdict) -> DeployedVerdict:
    """Step 1."""
    try:
        artifact, others, outputs = view_readings(audit)
    except Unread as error:
        return replace(verdict, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except CannotRun as error:
        return replace(verdict, reason=str(error))
    try:
        columns = feature_columns(audit.inputs, audit.view)
    except MissingFeature as error:
        return replace(verdict, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    except Unread:  # a generated column, which holds values of its type, but not every one
        columns = [audit.view.column(name) for _, name in _feature_columns(audit.inputs)]
    prover = prove_on_columns(columns, artifact.readings, audit.inputs.program.kinds) if columns else None
    verdict = compare_readings(verdict, audit.inputs, artifact, prover)
    verdict = with_strict_nan(audit.inputs, audit.view, verdict, columns)
    if verdict.verdict == "different" and any(column is not None and column.generated for column in columns):
        reason = (
            "its text differs from the program, but it is not known whether a computed column ever holds such a value"
        )
        verdict = replace(verdict, verdict="unread", reason=reason)
    return replace(verdict, compared_columns=tuple(dict.fromkeys(name for _, name in outputs)), other_columns=others)


def view_readings(audit: ViewAudit) -> tuple[ReadArtifact, tuple[str, ...], Outputs]:
    """What the view answers, its columns that are not answers of the program, and the (kind, column) of what was read.

    The strict reader goes first; where it refuses, the general one is used. They read the label and, as far as they
    can, probabilities, scores, leaf and reason. Leaf and reason are read only where a run has shown that they are ours.
    """
    view = audit.view
    if view.columns is not None and not view.has_column(audit.label):
        raise Unread(f"the view has no column {audit.label!r}: say which holds the labels with --label COLUMN")
    columns = _feature_columns(audit.inputs)
    every = outputs_of(audit.inputs, view, audit.label)
    if audit.run is not None:
        every = list(audit.run.outputs)
    elif any(kind in ("leaf", "reason") for kind, _ in every):
        every = [output for output in every if output[0] not in ("leaf", "reason")]

    try:
        return ReadArtifact("proved", _read_strictly(audit.inputs, view, every)), (), every
    except Unread as error:
        not_strict = f"not in the strict form: {error}"
    try:
        readings, others, outputs = _read_generally(audit, columns, every)
    except Unread as error:
        raise Unread(f"{error}; {not_strict}") from None
    return ReadArtifact("read as equal", readings, not_strict), others, outputs


def _read_strictly(inputs: AuditInput, view: View, outputs: Outputs) -> tuple[Reading, ...]:
    """The view in the strict form: every column it answers with is an answer, or a key column passed on."""
    program = inputs.program
    columns = _feature_columns(inputs)
    if view.table is None or view.columns is None:
        raise Unread("it is not a view of one table whose columns are known")
    if own := own_names(view):
        raise Unread(f"users added the {own[0][0]} {printable(own[0][1])}, which its text may mean")
    if program.kinds and not view.literals_in_utf8:
        raise Unread(UNKNOWN_TEXTS)
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    for feature, name in columns:
        column = view.column(name)
        if feature in used and (column is None or not holds_kind(column, program.kind(feature), view.database.dialect)):
            kind = "is not a column of its table" if column is None else f"is {column.declared}"
            raise Unread(f"{printable(name)} {kind}: a {program.kind(feature)} of that type has not been tested")
    expected = _expected_text(inputs, view, outputs)
    try:
        with limit_work():
            return read_strict_view(view.statement or view.definition, view.database.dialect, expected)
    except (GbflError, Unread):
        raise
    except Exception as error:  # a text on which a reader fails was not read
        raise Unread(f"the reader gave up on it: {type(error).__name__}") from error


def _expected_text(inputs: AuditInput, view: View, outputs: Outputs) -> ExpectedText:
    """What the view should read and answer."""
    program = inputs.program
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    answers = {name for _, name in outputs}
    words = {
        own.name for f, name in _feature_columns(inputs) if program.kind(f) != "number" and (own := view.column(name))
    }
    return ExpectedText(
        program.features,
        program.classes,
        tuple((feature, column) for feature, column in _feature_columns(inputs) if feature in used),
        tuple(outputs),
        "" if view.table is None else view.table.name,
        "" if view.table is None else view.table.schema,
        "view",
        view.name,
        tuple(column for column in view.columns or () if column not in answers),
        frozenset(column.name for column in view.table_columns if column.type.kind == "double") - words,
        tuple((column.name, column.declared) for column in view.table_columns),
        program.kinds,
    )


def _feature_columns(inputs: AuditInput) -> tuple[tuple[int, str], ...]:
    """Each feature with the name of its column."""
    return tuple((i, inputs.columns.get(name, name)) for i, name in enumerate(inputs.program.features))


def _read_generally(
    audit: ViewAudit, columns: tuple[tuple[int, str], ...], every: Outputs
) -> tuple[tuple[Reading, ...], tuple[str, ...], Outputs]:
    """Reads the view with the general reader: the label, and the other answers as far as they are understood."""
    view, program = audit.view, audit.inputs.program
    if program.kinds:
        raise Unread("words are compared: its layers are read")
    text = view.definition if view.query is None else without_exact_casts(view.query, view.column)

    def read(outputs: Outputs) -> tuple[tuple[Reading, ...], tuple[str, ...], Outputs]:
        refuse_conversions(view.statement or "", view.database.dialect, _expected_text(audit.inputs, view, outputs))
        known = view.literals_in_utf8
        dialect, types = view.database.dialect, view.declared_types(columns)
        naming = TextLayout(program.features, program.classes, columns, tuple(outputs), known_texts=known, types=types)
        return read_sql(text, dialect, naming), other_columns(text, dialect, naming), outputs

    try:
        return read(every)
    except Unread:
        chosen = [("label", audit.label)]
        result = read(chosen)
    for kind in dict.fromkeys(kind for kind, _ in every if kind != "label"):
        more = [*chosen, *(output for output in every if output[0] == kind)]
        try:
            result, chosen = read(more), more
        except Unread:
            continue  # not read, but run on the witnesses
    return result


def _use_run(audit: ViewAudit, verdict: DeployedVerdict) -> DeployedVerdict:
    """Step 2."""
    match audit.not_run:
        case BadInput() | Unread():
            return replace(verdict, not_executed=str(audit.not_run))
        case CannotRun():
            return _not_run(verdict, str(audit.not_run))
        case OtherRowCount():
            word: AuditVerdict = "different" if verdict.verdict == "equal" else verdict.verdict
            return replace(verdict, verdict=word, reason=verdict.reason or str(audit.not_run))
    assert audit.run is not None  # noqa: S101 - it was run, or there is a reason
    verdict = with_run(verdict, audit.run)
    if not audit.run.execution.different:
        return verdict
    return with_inferred_slip(audit.inputs, audit.view, audit.label, with_first_difference(audit.inputs, verdict))


def _not_run(verdict: DeployedVerdict, why: str) -> DeployedVerdict:
    """A view that its database did not run is not called equal, even if its text was proved."""
    verdict = replace(verdict, not_executed=why)
    if verdict.verdict != "equal":
        return verdict
    return replace(verdict, verdict="not run", reason=f"its database did not run it: {why}")


def _respect_constraints(audit: ViewAudit, verdict: DeployedVerdict) -> DeployedVerdict:
    """Step 4. The proof knows types and NOT NULL; a CHECK may rule out its row, or the engine answer it as approved."""
    shown = None if verdict.proof is None else verdict.proof.counterexample
    if verdict.verdict != "different" or audit.run is None or audit.run.execution.different or shown is None:
        return verdict
    columns = feature_columns(audit.inputs, audit.view)
    copies = one_copy(audit.view, columns, audit.inputs.program)
    doubt = doubt_of(audit.inputs, audit.view, audit.run.outputs, columns, copies, shown)
    return verdict if doubt is None else replace(verdict, verdict="unread", reason=doubt)


def _check_types(audit: ViewAudit, verdict: DeployedVerdict) -> DeployedVerdict:
    """Step 5. A column that is not cast and may compare otherwise than a double leaves the proof an assumption.

    This does not concern a text in the strict form, which casts every column that is not known to be a double.
    """
    try:
        program = audit.inputs.program
        every = enumerate(feature_columns(audit.inputs, audit.view))
        columns = [column for f, column in every if column is not None and program.kind(f) == "number"]
        uncast = uncast_columns(audit.view)
    except Unread:
        return verdict
    return _with_types(audit, verdict, columns, {column.name for column in columns if column.name.casefold() in uncast})


def _with_types(
    audit: ViewAudit, verdict: DeployedVerdict, columns: Sequence[Column], uncast: Collection[str]
) -> DeployedVerdict:
    program, view = audit.inputs.program, audit.view
    other = {each.name: each.declared for each in columns if not compares_as_double(program, view, each)}
    verdict = replace(verdict, column_types=other)
    is_strict = verdict.proof is not None and verdict.proof.answer == "proved"
    verdict = verdict if is_strict else without_nan_decimals(verdict, view, columns)
    open_ones = [] if is_strict else [name for name in other if name in uncast]
    if verdict.verdict != "equal" or not open_ones:
        return verdict
    words = ", ".join(f"{printable(name)} ({other[name]})" for name in open_ones)
    is_text = any(column.type.kind in ("text", "other") for column in columns if column.name in open_ones)
    if verdict.execution is None or is_text:
        reason = f"{words} may not compare as a double does: write CAST(… AS DOUBLE) around it"
        return replace(verdict, verdict="unread", reason=reason)
    assumed = (verdict.proof_assumes, f"that {words} compares as a double does")
    return replace(verdict, proof_assumes="; ".join(filter(None, assumed)))


def _refuse_own_names(
    audit: ViewAudit, verdict: DeployedVerdict, functions: Mapping[str, str] | None = None
) -> DeployedVerdict:
    """Step 6; `functions` were read."""
    try:
        own = own_names(audit.view, functions)
    except Unread:
        return verdict
    except CannotRun as error:
        return _not_run(verdict, str(error))
    if not own or verdict.verdict not in ("equal", "not run"):
        return verdict
    named = ", ".join(f"the {kind} {printable(name)}" for kind, name in own[:20])
    reason = f"the database has its own: {named}, which the view's text may mean and which was not read"
    return replace(verdict, verdict="unread", reason=reason)


def _query_itself(audit: ViewAudit, verdict: DeployedVerdict) -> DeployedVerdict:
    """Step 7. The view is queried once, for no rows, to find that a table or column of it is gone."""
    view, database = audit.view, audit.view.database
    as_given = database.dialect == "postgres" and ('"' in view.name or "." in view.name)  # as the catalog took it
    name = view.name if as_given else database.quote(view.name)
    try:
        database.fetch(f"SELECT * FROM {name} WHERE 1 = 0")  # noqa: S608 - a name that the catalog has
    except CannotRun as error:
        reason = f"the view itself cannot be queried: {error}"
        broken = replace(verdict, not_executed="; ".join(filter(None, (verdict.not_executed, reason))))
        return replace(broken, verdict="not run", reason=reason) if verdict.verdict in ("equal", "not run") else broken
    return verdict


STEPS: tuple[Callable[[ViewAudit, DeployedVerdict], DeployedVerdict], ...] = (
    _prove,
    _use_run,
    lambda _, verdict: weaker_without_run(verdict),
    _respect_constraints,
    _check_types,
    _refuse_own_names,
    _query_itself,
)
"""In this order; see `audit_found_view`."""
