"""The answer of an audit: a verdict on each deployed item, the evidence for it, and what exactly is different.

`proved`, `checked on n rows` and `not run` are kept apart, as the check does.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gbfl_compile.auditing.story import RowMoves, Story, moves_form, moves_lines, place_lines, query_lines, story_form
from gbfl_compile.checking.artifact import ArtifactProof
from gbfl_compile.checking.reading.nodes import Reading
from gbfl_compile.checking.run import ConsistencyPair, Execution
from gbfl_compile.ir.kinds import Value
from gbfl_compile.ir.text import printable, value_text

Kind: TypeAlias = Literal["file", "library", "view", "scored table", "callable"]
AuditVerdict: TypeAlias = Literal["equal", "different", "unread", "not run"]
WORST_FIRST: tuple[AuditVerdict, ...] = ("different", "unread", "not run", "equal")

SCHEMA = 1
"""The version of the JSON form: it changes only when a reader of the form would break."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was approved in one form and is deployed in another."""

    where: str
    """`clause 7`, `leaf 3`, `points of clause 2`, `to start with`."""
    approved: str
    deployed: str
    kind: str = "changed"
    """changed, loosened (it lets more rows through), tightened (fewer), added, removed or rebuilt."""
    slip: str | None = None
    """What was done to a set of words or a date, where there is a name for it: `"A" re-cased as "a"`."""
    rule: str | None = None
    """The clause in words, where what changed is not one of its conditions."""

    def text(self) -> str:
        """One line: `clause 7: income >= 50000 is deployed as income > 50000`."""
        slip = "" if self.slip is None else f" ({self.slip})"
        rule = "" if self.rule is None else f" (IF {self.rule})"
        return f"{self.where}{rule}: {self.approved} is deployed as {self.deployed}{slip}"


@dataclass(frozen=True, slots=True)
class Region:
    """Where approved and deployed answer differently: a box, described as a rule, with a row in it."""

    rule: str
    row: Mapping[str, Value]
    approved: Any
    deployed: Any
    beside: tuple[str, Any, Any] | None = None
    """Where both give the same class: what else differs (scores, leaf, probabilities), approved and deployed."""


@dataclass(frozen=True, slots=True)
class DeployedVerdict:
    """What is known about one deployed thing."""

    what: str
    """As the user named it; never with a password."""
    kind: Kind
    verdict: AuditVerdict
    reason: str | None = None
    carried_digest: str | None = None
    """The digest it carries: a trace, not evidence."""
    fingerprint: str | None = None
    """The SHA-256 of the artifact's bytes, or of a view's definition."""
    engine: str | None = None
    proof: ArtifactProof | None = None
    proof_assumes: str | None = None
    """What the proof takes for granted without evidence, such as that a FLOAT column compares as a double does."""
    execution: Execution | None = None
    """The result of running it on witnesses."""
    checked_rows: int | None = None
    """Rows of a scored table that were compared one by one."""
    different_rows: int | None = None
    consistency: ConsistencyPair | None = None
    changes: tuple[Change, ...] = ()
    region: Region | None = None
    moves: RowMoves | None = None
    story: Story | None = None
    """Where the text says what is different, how to see it, and what mends it."""
    compared: str | None = None
    """What a library, a scorer or a scored table was compared on, with the number of differences."""
    compared_columns: tuple[str, ...] = ()
    """The columns of a view that the verdict is about."""
    run_only_columns: tuple[str, ...] = ()
    """Columns of a view that were compared on the rows that were run, and not read."""
    other_columns: tuple[str, ...] = ()
    """Columns that a view computes and that were not compared with anything."""
    column_types: Mapping[str, str] = field(default_factory=dict)
    """Columns of a view's table that are not doubles, with their types."""
    feature_columns: Mapping[str, str] = field(default_factory=dict)
    """Features that are read from a column of another name, with that column."""
    class_labels: Mapping[str, Any] = field(default_factory=dict)
    """How each class is deployed, where the auditor said so."""
    row_effects: tuple[str, ...] = ()
    """What a view or query does to rows (WHERE, joins, DISTINCT): the verdict is about the rows that come out."""
    executed: str | None = None
    """What exactly was run."""
    not_executed: str | None = None
    """Why it was not run, or not completely."""
    other_command: str | None = None
    """The command that would give evidence where the text was not read."""
    arithmetic: str | None = None
    """What a library does to the floating-point arithmetic of its process."""
    source_proof: str | None = None
    """The proof of the .c file that a library was supposedly built from, in words."""
    rebuild: str | None = None
    """Whether a build of that file has the library's bytes, in words."""
    built_from: Mapping[str, Any] | None = None
    """Both, as JSON."""
    first_different_rows: tuple[Mapping[str, Any], ...] | None = None
    """Of a scored table."""
    drift: Mapping[str, Any] | None = None
    keys: Mapping[str, Any] | None = None
    """Of a scored table with a key: how many keys are missing or occur more than once."""
    material: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    """The deployed files, or a view's definition, by name, for an evidence pack; not part of the JSON."""
    readings: tuple[Reading, ...] = field(default=(), compare=False, repr=False)
    """What was read of it, likewise."""

    @property
    def is_proved(self) -> bool:
        """Whether a proof covers every input."""
        return self.proof is not None and self.proof.answer == "proved" and self.proof_assumes is None

    def evidence(self) -> str:
        """One phrase: what the verdict rests on."""
        parts: list[str] = []
        if self.proof is not None:
            assumed = self.proof.answer == "proved" and self.proof_assumes is not None
            answer = "proved for doubles only" if assumed else self.proof.answer
            is_partly_read = self.verdict == "equal" and self.run_only_columns
            parts.append(f"labels {answer}; {_names(self.run_only_columns)} not read" if is_partly_read else answer)
        if self.execution is not None:
            parts.append(f"{self.execution.different} different of {self.execution.rows} witnesses")
        if self.checked_rows is not None:
            parts.append(f"checked on {self.checked_rows:,} rows, {self.different_rows:,} different")
        return "; ".join(parts) or "not run"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdicts on everything that was audited against one source."""

    source: str
    """The approved program's digest."""
    verdicts: tuple[DeployedVerdict, ...]

    @property
    def verdict(self) -> AuditVerdict:
        """The worst of them: different, then unread, then not run."""
        words = {each.verdict for each in self.verdicts}
        return next((word for word in WORST_FIRST if word in words), "not run")

    @property
    def drift_alarms(self) -> tuple[str, ...]:
        """What has drifted enough to fail a build."""
        return tuple(text for each in self.verdicts for text in (each.drift or {}).get("alarms", ()))

    def is_accepted(self, only_proved: bool = False) -> bool:
        """Whether everything is equal; with `only_proved`, whether everything is proved to be."""
        return self.verdict == "equal" and (not only_proved or all(each.is_proved for each in self.verdicts))

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        return report_form(self)

    def lines(self) -> list[str]:
        """As text for people, the verdict last."""
        each = [line for verdict in self.verdicts for line in verdict_lines(verdict, self.source)]
        return [*each, f"verdict: {self.verdict}"]


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
                **({} if change.slip is None else {"slip": change.slip}),
            }
            for change in one.changes
        ],
        "region": None if one.region is None else region_form(one.region),
        "moved": None if one.moves is None else moves_form(one.moves),
        "story": None if one.story is None else story_form(one.story),
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
    "run_only_columns",
    "other_columns",
    "column_types",
    "feature_columns",
    "class_labels",
    "row_effects",
    "executed",
    "not_executed",
    "other_command",
    "arithmetic",
    "source_proof",
    "rebuild",
    "built_from",
    "first_different_rows",
    "drift",
    "keys",
)
"""Fields of a verdict that only some kinds of deployed things have; their JSON names are the same."""


def region_form(region: Region) -> dict[str, Any]:
    """Where two answers differ, with a row of it; missing is null, an infinity its name."""
    row = {name: value_form(value) for name, value in region.row.items()}
    form = {"rule": region.rule, "row": row, "approved": region.approved, "deployed": region.deployed}
    if region.beside is not None:
        what, approved, deployed = region.beside
        form["beside"] = {"what": what, "approved": approved, "deployed": deployed}
    return form


def value_form(value: Value) -> float | str | bool | None:
    """A value as JSON: missing is null, an infinity its name, a date as ISO 8601 writes it."""
    if isinstance(value, datetime.date):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


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
    for name, label in one.class_labels.items():
        yield f"  class {printable(name)} is deployed as {label!r}"
    for change in one.changes:
        yield f"  {printable(change.text())}"
    text = "the view's definition" if one.kind == "view" else None
    yield from () if one.story is None else place_lines(one.story, text)
    if one.region is not None:
        yield from region_lines(one.region, "approved", "deployed", one.story)
    yield from () if one.story is None else query_lines(one.story)
    if one.moves is not None and one.moves.of:
        before = ", counted before its joins and filters" if one.kind == "view" and one.row_effects else ""
        yield from moves_lines(one.moves, f" than approved{before}")
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
    yield "compared on the rows that were run, and not read", _names(one.run_only_columns)
    yield "computed by the view and not compared", _names(one.other_columns)
    yield "to compare the rows it gives instead", one.other_command
    yield "columns", ", ".join(f"{feature} is read from {name}" for feature, name in one.feature_columns.items())
    yield "column types", ", ".join(f"{name} is {kind}" for name, kind in one.column_types.items())
    yield "the proof assumes", one.proof_assumes
    yield (
        "rows",
        "; ".join(one.row_effects) and f"the verdict is about the rows that come out: {'; '.join(one.row_effects)}",
    )
    yield "executed", one.executed
    yield "not executed", one.not_executed
    yield "arithmetic", one.arithmetic
    yield "proof of the source", one.source_proof
    yield "rebuild", one.rebuild
    if one.keys is not None:
        yield "keys", f"{one.keys['missing']:,} missing, {one.keys['duplicated']:,} duplicated"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")


NAMES_SHOWN = 20


def _drift_lines(drift: Mapping[str, Any] | None) -> Iterator[str]:
    """The features that moved most, by population stability index; the JSON has all of it."""
    features = {} if drift is None else drift.get("features") or {}
    for alarm in () if drift is None else drift.get("alarms", ()):
        yield f"  drift alarm: {printable(alarm)}"
    ranked = sorted((each.get("psi") or 0.0, name) for name, each in features.items() if isinstance(each, dict))
    for index, name in reversed(ranked[-5:]):
        yield f"  drift: {printable(name)}: population stability index {index:.3f}"


def region_lines(region: Region, old: str, new: str, story: Story | None = None) -> Iterator[str]:
    """Where it differs, and a row there; the story knows whether a table has that row now."""
    rule = _shorten(region.rule)
    if region.beside is not None:
        what, before, after = region.beside
        yield f"  {what} differ where {rule}: {old} {before}, {new} {after}, both {region.approved!r}"
    elif region.approved == region.deployed and type(region.approved) is type(region.deployed):
        yield f"  differs where {rule}: the label is {region.approved!r} in both, another column differs"
    else:
        yield f"  differs where {rule}: {old} {region.approved!r}, {new} {region.deployed!r}"
    now = "" if story is None or story.table is None else f", in {printable(story.table)} now:"
    key = "" if story is None else "".join(f"{printable(name)} = {value}, " for name, value in story.key.items())
    yield f"  for example{now} {key}{row_text(region, is_of_a_table=bool(now))}"


def _shorten(rule: str) -> str:
    """A rule of many conditions, the first few of them: a box of a rule set has conditions on nearly every feature."""
    parts = rule.split(" AND ")
    if len(parts) <= CONDITIONS_SHOWN + 1:
        return rule
    return f"{' AND '.join(parts[:CONDITIONS_SHOWN])} AND {len(parts) - CONDITIONS_SHOWN} more conditions"


def row_text(region: Region, is_of_a_table: bool = False) -> str:
    """The region's row. Of a wide row only what its rule tests: the other features may have any value there."""
    values = {printable(name): value for name, value in region.row.items()}
    named = {name for name in values if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", region.rule)}
    shown = values if len(values) <= WIDE or not named else {n: v for n, v in values.items() if n in named}
    text = ", ".join(f"{name} = {shown_value(value)}" for name, value in shown.items())
    return text if len(shown) == len(values) or is_of_a_table else f"{text}, the rest as you like"


def shown_value(value: Value) -> str:
    """A value in a row for people; a text that could be taken for something else is in quotes."""
    if isinstance(value, str):
        return f'"{value}"' if value in ("missing", "True", "False") else value_text(value)
    if isinstance(value, float):
        is_short = math.isfinite(value) and value == int(value) and abs(value) < 1e15
        return "NaN" if math.isnan(value) else f"{value:.0f}" if is_short else repr(value)
    return "missing" if value is None else str(value)


CONDITIONS_SHOWN = 6
WIDE = 8
"""Features of a row that are all shown as text; the JSON has every one."""
