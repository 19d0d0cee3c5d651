"""Audits and differences as JSON with a stable schema, and as lines of text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gbfl_compile.audit.answer import SCHEMA, Audited, AuditReport, Change, Moved, Region
from gbfl_compile.audit.difference import Difference
from gbfl_compile.ir.readable import printable


def report_form(report: AuditReport) -> dict[str, Any]:
    """An audit as JSON."""
    return {
        "schema": SCHEMA,
        "verdict": report.verdict,
        "source": report.source,
        "audited": [audited_form(each, report.source) for each in report.audited],
    }


def audited_form(audited: Audited, source: str) -> dict[str, Any]:
    """One deployed thing as JSON; what was not done is "not run"."""
    run, pair = audited.execution, audited.consistency
    return {
        "what": audited.what,
        "kind": audited.kind,
        "verdict": audited.verdict,
        "evidence": audited.evidence(),
        "reason": audited.reason,
        "digest": audited.found_digest,
        "digest_matches": None if audited.found_digest is None else audited.found_digest == source,
        "fingerprint": audited.fingerprint,
        "engine": audited.engine,
        "proof": "not run" if audited.proof is None else audited.proof.as_json(),
        "execution": "not run"
        if run is None
        else {"engine": run.engine, "rows": run.rows, "different": run.different, "first": run.first},
        "rows": "not run"
        if audited.checked_rows is None
        else {"checked": audited.checked_rows, "different": audited.different_rows},
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
            for change in audited.changes
        ],
        "region": None if audited.region is None else region_form(audited.region),
        "moved": None if audited.moved is None else moved_form(audited.moved),
        **audited.more,
    }


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


def moved_form(moved: Moved) -> dict[str, Any]:
    """Rows that get another class."""
    moves = [{"approved": a, "deployed": b, "rows": count} for a, b, count in moved.moves]
    return {"rows": moved.rows, "of": moved.of, "moves": moves}


def difference_form(found: Difference, features: tuple[str, ...]) -> dict[str, Any]:
    """A difference of two versions as JSON."""
    return {
        "schema": SCHEMA,
        "verdict": found.verdict,
        "old": found.old,
        "new": found.new,
        "proof": found.proof.as_json(features),
        "differences": [
            {"where": change.where, "kind": change.kind, "old": change.approved, "new": change.deployed}
            for change in found.changes
        ],
        "regions": [region_form(region) for region in found.regions],
        "moved": None if found.moved is None else moved_form(found.moved),
    }


def audited_lines(audited: Audited, source: str) -> Iterator[str]:
    """One deployed thing as text."""
    yield f"{printable(audited.what)}: {audited.verdict} ({audited.evidence()})"
    if audited.reason is not None:
        yield f"  {printable(audited.reason)}"
    if audited.found_digest is not None and audited.found_digest != source:
        yield f"  it carries the digest {printable(audited.found_digest)}, the approved program has {source}"
    elif audited.found_digest is not None:
        beside = ", though it is not the approved program" if audited.verdict == "different" else ""
        yield f"  it carries the approved program's digest{beside}"
    for change in audited.changes:
        yield f"  {printable(change.text())}"
    if audited.region is not None:
        yield from region_lines(audited.region, "approved", "deployed")
    if audited.moved is not None:
        yield from moved_lines(audited.moved)
    pair = audited.consistency
    if pair is not None:
        same = "unchanged" if pair.source == pair.target else "changed"
        counts = f"{pair.source.c_tb_right} and {pair.target.c_tb_right} of {pair.source.with_pn} rows"
        yield f"  local consistency is {same}: {counts}"
    for key, value in audited.more.items():
        if isinstance(value, str):
            yield f"  {key}: {printable(value)}"
    yield from _drift_lines(audited.more.get("drift"))


def _drift_lines(drift: Any) -> Iterator[str]:
    """The features that moved most, by population stability index; the JSON has all of it."""
    if not isinstance(drift, dict):
        return
    moved = [(name, found) for name, found in (drift.get("features") or {}).items() if isinstance(found, dict)]
    ranked = sorted((found.get("psi") or 0.0, name) for name, found in moved)
    for index, name in reversed(ranked[-5:]):
        yield f"  drift: {printable(name)}: population stability index {index:.3f}"


def region_lines(region: Region, old: str, new: str) -> Iterator[str]:
    """Where it differs, and a row there."""
    rule = _shortened(region.rule)
    if region.beside is not None:
        what, before, after = region.beside
        yield f"  {what} differ where {rule}: {old} {before}, {new} {after}, both {region.approved!r}"
    elif region.approved == region.deployed and type(region.approved) is type(region.deployed):
        yield f"  differs where {rule}: the label is {region.approved!r} in both, what stands beside it differs"
    else:
        yield f"  differs where {rule}: {old} {region.approved!r}, {new} {region.deployed!r}"
    yield f"  for example {row_text(region)}"


def _shortened(rule: str) -> str:
    """A rule of many conditions, the first few of them: a box of a rule set asks nearly every feature."""
    parts = rule.split(" AND ")
    if len(parts) <= CONDITIONS_TOLD + 1:
        return rule
    return f"{' AND '.join(parts[:CONDITIONS_TOLD])} AND {len(parts) - CONDITIONS_TOLD} more conditions"


def row_text(region: Region) -> str:
    """The region's row. Of a wide one only what its rule asks: the rest may be anything there."""
    values = {printable(name): value for name, value in region.row.items()}
    asked = {name for name in values if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", region.rule)}
    shown = values if len(values) <= WIDE or not asked else {n: v for n, v in values.items() if n in asked}
    text = ", ".join(f"{name} = {'missing' if value is None else value}" for name, value in shown.items())
    return text if len(shown) == len(values) else f"{text}, the rest as you like"


CONDITIONS_TOLD = 6
WIDE = 8
"""Features of a row that are all shown as text; the JSON has every one."""


def moved_lines(moved: Moved) -> Iterator[str]:
    """How many rows of the data, and from which class to which."""
    yield f"  {moved.rows:,} of {moved.of:,} rows of the data get another class"
    for a, b, count in moved.moves:
        yield f"    {count:,} from {a!r} to {b!r}"


def difference_lines(found: Difference) -> Iterator[str]:
    """A difference of two versions as text: what became of the clauses, rows that move, and the widest regions."""
    match found.verdict:
        case "identical":
            yield f"identical: both are {found.old}"
        case "equal":
            yield f"equal: proved on every input, though written differently ({found.old} and {found.new})"
        case verdict:
            yield f"{verdict}: {found.old} to {found.new}"
    counts = Counter(change.kind for change in found.changes)
    if counts:
        yield f"  {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"
    for change in found.changes[:MOST_TOLD]:
        yield f"  {_change_text(change)}"
    if len(found.changes) > MOST_TOLD:
        yield f"  and {len(found.changes) - MOST_TOLD} more: --json has them all"
    if found.moved is not None:
        yield from moved_lines(found.moved)
    for region in found.regions[:REGIONS_TOLD]:
        yield from region_lines(region, "old", "new")
    if len(found.regions) > REGIONS_TOLD:
        yield f"  other such regions that --json has: {len(found.regions) - REGIONS_TOLD}"


MOST_TOLD, REGIONS_TOLD = 30, 4


def _change_text(change: Change) -> str:
    where = printable(change.where)
    if change.kind == "removed":
        return f"{where} removed: {printable(change.approved)}"
    if change.kind == "added":
        return f"{where} added: {printable(change.deployed)}"
    kind = "" if change.kind == "changed" else f" {change.kind}"
    return f"{where}{kind}: {printable(change.approved)} becomes {printable(change.deployed)}"
