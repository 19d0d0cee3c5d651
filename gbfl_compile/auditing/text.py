"""Audits and differences as JSON with a stable schema, and as lines of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from gbfl_compile.auditing.diff import Difference
from gbfl_compile.auditing.verdict import SCHEMA, AuditReport, Change, DeployedVerdict, Region, RowMoves
from gbfl_compile.ir.text import printable


def report_form(report: AuditReport) -> dict[str, Any]:
    """An audit as JSON."""
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "source": report.source,
        "audited": [verdict_form(each, report.source) for each in report.verdicts],
    }


def verdict_form(one: DeployedVerdict, source: str) -> dict[str, Any]:
    """One deployed thing as JSON; what was not done is "not run", what does not apply is left out."""
    run, pair = one.execution, one.consistency
    form = {
        "what": one.what,
        "kind": one.kind,
        "verdict": one.verdict,
        "evidence": one.evidence(),
        "reason": one.reason,
        "digest": one.carried_digest,
        "digest_matches": None if one.carried_digest is None else one.carried_digest == source,
        "fingerprint": one.fingerprint,
        "engine": one.engine,
        "proof": "not run" if one.proof is None else one.proof.as_json(),
        "execution": "not run"
        if run is None
        else {"engine": run.engine, "rows": run.rows, "different": run.different, "first": run.first},
        "rows": "not run"
        if one.checked_rows is None
        else {"checked": one.checked_rows, "different": one.different_rows},
        "consistency": "not run"
        if pair is None
        else {"source": pair.source.as_dict(), "target": pair.target.as_dict()},
        "differences": [
            {
                "where": change.where,
                "approved": change.approved,
                "deployed": change.deployed,
                "kind": change.kind,
                "text": change.text(),
            }
            for change in one.changes
        ],
        "region": None if one.region is None else region_form(one.region),
        "moved": None if one.moves is None else moves_form(one.moves),
    }
    optional = {name: getattr(one, name) for name in OPTIONAL}
    return form | {
        name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
        for name, value in optional.items()
        if value is not None and (value or name == "first_different_rows")
    }


OPTIONAL = (
    "proof_assumes",
    "compared",
    "compared_columns",
    "other_columns",
    "column_types",
    "feature_columns",
    "executed",
    "not_executed",
    "arithmetic",
    "source_proof",
    "rebuild",
    "built_from",
    "first_different_rows",
    "drift",
)
"""Fields of a verdict that only some kinds of deployed things have; their JSON names are the same."""


def region_form(region: Region) -> dict[str, Any]:
    """Where two answers differ, with a row of it; missing is null, an infinity its name."""
    row = {
        name: value if value is None or abs(value) != float("inf") else str(value) for name, value in region.row.items()
    }
    form = {"rule": region.rule, "row": row, "approved": region.approved, "deployed": region.deployed}
    if region.beside is not None:
        what, approved, deployed = region.beside
        form["beside"] = {"what": what, "approved": approved, "deployed": deployed}
    return form


def moves_form(moves: RowMoves) -> dict[str, Any]:
    """Rows that get another class."""
    listed = [{"approved": a, "deployed": b, "rows": count} for a, b, count in moves.moves]
    return {"rows": moves.rows, "of": moves.of, "moves": listed}


def difference_form(difference: Difference, features: tuple[str, ...]) -> dict[str, Any]:
    """A difference of two versions as JSON."""
    return {
        "schema": SCHEMA,
        "verdict": difference.verdict,
        "old": difference.old,
        "new": difference.new,
        "proof": difference.proof.as_json(features),
        "differences": [
            {"where": change.where, "kind": change.kind, "old": change.approved, "new": change.deployed}
            for change in difference.changes
        ],
        "regions": [region_form(region) for region in difference.regions],
        "moved": None if difference.moves is None else moves_form(difference.moves),
    }


def verdict_lines(one: DeployedVerdict, source: str) -> Iterator[str]:
    """One deployed thing as text."""
    yield f"{printable(one.what)}: {one.verdict} ({one.evidence()})"
    if one.reason is not None:
        yield f"  {printable(one.reason)}"
    if one.carried_digest is not None and one.carried_digest != source:
        yield f"  it carries the digest {printable(one.carried_digest)}, the approved program has {source}"
    elif one.carried_digest is not None:
        beside = ", though it is not the approved program" if one.verdict == "different" else ""
        yield f"  it carries the approved program's digest{beside}"
    for change in one.changes:
        yield f"  {printable(change.text())}"
    if one.region is not None:
        yield from region_lines(one.region, "approved", "deployed")
    if one.moves is not None:
        yield from moves_lines(one.moves)
    pair = one.consistency
    if pair is not None:
        same = "unchanged" if pair.source == pair.target else "changed"
        counts = f"{pair.source.c_tb_right} and {pair.target.c_tb_right} of {pair.source.with_pn} rows"
        yield f"  local consistency is {same}: {counts}"
    for words, value in _notes(one):
        if value:
            yield f"  {words}: {printable(value)}"
    yield from _drift_lines(one.drift)


def _notes(one: DeployedVerdict) -> Iterator[tuple[str, str | None]]:
    """What else a reader should know, each on a line of its own."""
    yield "compared", one.compared or _names(one.compared_columns)
    yield "computed by the view and not compared", _names(one.other_columns)
    yield "columns", ", ".join(f"{feature} is read from {name}" for feature, name in one.feature_columns.items())
    yield "column types", ", ".join(f"{name} is {kind}" for name, kind in one.column_types.items())
    yield "the proof assumes", one.proof_assumes
    yield "executed", one.executed
    yield "not executed", one.not_executed
    yield "arithmetic", one.arithmetic
    yield "proof of the source", one.source_proof
    yield "rebuild", one.rebuild


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")


NAMES_SHOWN = 20


def _drift_lines(drift: Mapping[str, Any] | None) -> Iterator[str]:
    """The features that moved most, by population stability index; the JSON has all of it."""
    features = {} if drift is None else drift.get("features") or {}
    ranked = sorted((each.get("psi") or 0.0, name) for name, each in features.items() if isinstance(each, dict))
    for index, name in reversed(ranked[-5:]):
        yield f"  drift: {printable(name)}: population stability index {index:.3f}"


def region_lines(region: Region, old: str, new: str) -> Iterator[str]:
    """Where it differs, and a row there."""
    rule = _shorten(region.rule)
    if region.beside is not None:
        what, before, after = region.beside
        yield f"  {what} differ where {rule}: {old} {before}, {new} {after}, both {region.approved!r}"
    elif region.approved == region.deployed and type(region.approved) is type(region.deployed):
        yield f"  differs where {rule}: the label is {region.approved!r} in both, another column differs"
    else:
        yield f"  differs where {rule}: {old} {region.approved!r}, {new} {region.deployed!r}"
    yield f"  for example {row_text(region)}"


def _shorten(rule: str) -> str:
    """A rule of many conditions, the first few of them: a box of a rule set asks nearly every feature."""
    parts = rule.split(" AND ")
    if len(parts) <= CONDITIONS_SHOWN + 1:
        return rule
    return f"{' AND '.join(parts[:CONDITIONS_SHOWN])} AND {len(parts) - CONDITIONS_SHOWN} more conditions"


def row_text(region: Region) -> str:
    """The region's row. Of a wide one only what its rule asks: the rest may be anything there."""
    values = {printable(name): value for name, value in region.row.items()}
    named = {name for name in values if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", region.rule)}
    shown = values if len(values) <= WIDE or not named else {n: v for n, v in values.items() if n in named}
    text = ", ".join(f"{name} = {'missing' if value is None else value}" for name, value in shown.items())
    return text if len(shown) == len(values) else f"{text}, the rest as you like"


CONDITIONS_SHOWN = 6
WIDE = 8
"""Features of a row that are all shown as text; the JSON has every one."""


def moves_lines(moves: RowMoves) -> Iterator[str]:
    """How many rows of the data, and from which class to which."""
    yield f"  {moves.rows:,} of {moves.of:,} rows of the data get another class"
    for a, b, count in moves.moves:
        yield f"    {count:,} from {a!r} to {b!r}"


def difference_lines(difference: Difference) -> Iterator[str]:
    """A difference of two versions as text: what became of the clauses, rows that move, and the widest regions."""
    match difference.verdict:
        case "identical":
            yield f"identical: both are {difference.old}"
        case "equal":
            yield f"equal: proved on every input, though written differently ({difference.old} and {difference.new})"
        case verdict:
            yield f"{verdict}: {difference.old} to {difference.new}"
    counts = Counter(change.kind for change in difference.changes)
    if counts:
        yield f"  {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
    for change in difference.changes[:CHANGES_SHOWN]:
        yield f"  {_change_text(change)}"
    if len(difference.changes) > CHANGES_SHOWN:
        yield f"  and {len(difference.changes) - CHANGES_SHOWN} more: --json has them all"
    if difference.moves is not None:
        yield from moves_lines(difference.moves)
    for region in difference.regions[:REGIONS_SHOWN]:
        yield from region_lines(region, "old", "new")
    if len(difference.regions) > REGIONS_SHOWN:
        yield f"  other such regions that --json has: {len(difference.regions) - REGIONS_SHOWN}"


CHANGES_SHOWN, REGIONS_SHOWN = 30, 4


def _change_text(change: Change) -> str:
    where = printable(change.where)
    if change.kind == "removed":
        return f"{where} removed: {printable(change.approved)}"
    if change.kind == "added":
        return f"{where} added: {printable(change.deployed)}"
    kind = "" if change.kind == "changed" else f" {change.kind}"
    return f"{where}{kind}: {printable(change.approved)} becomes {printable(change.deployed)}"
