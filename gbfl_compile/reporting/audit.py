"""The section on an audit: what is known about each deployed item, and each difference with a row that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.text import printable
from gbfl_compile.reporting.evidence import Status, TargetLine, evidence_line, row_values
from gbfl_compile.reporting.text import count, exact_label, one_line

MOST_DIFFERENCES = 60
CHANGE_KEYS = ("where", "clause", "approved", "deployed", "text", "witness", "rows")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that was approved in one form and is deployed in another."""

    heading: str
    approved: str
    deployed: str
    witness: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DeployedItem:
    """One deployed item: a file, a view, a library, a table, a service."""

    line: TargetLine
    facts: tuple[tuple[str, str], ...]
    changes: int
    """How many things differ from what was approved; the region where answers differ is one more of `differences`."""
    differences: tuple[Difference, ...]
    left_out: str
    select: str
    """A query that shows a difference where it is run, or an empty text."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The section on what is deployed."""

    status: Status
    headline: str
    deployed: tuple[DeployedItem, ...]
    detail: str = ""
    """What was changed first, and how many rows it moves."""


def audit(form: Mapping[str, Any] | None, digest: str) -> Audit | None:
    """The section for an audit file; an audit of another program is refused. Unknown keys are shown, never dropped."""
    if form is None:
        return None
    items = form.get("audited", [form])
    if "verdict" not in form or not isinstance(items, list) or not all(isinstance(each, Mapping) for each in items):
        raise BadInput("the audit has no verdict or lists nothing: give what `gbfl audit --json` printed")
    if form.get("source", digest) != digest:
        about = one_line(form["source"], 24)
        raise BadInput(f"the audit is against program {about}, this one is {digest[:16]}…: audit against this program")
    deployed = tuple(_deployed_item(each) for each in items)
    differing = [each for each in deployed if each.line.status == "different"]
    if differing or one_line(form["verdict"], 20) == "different":
        number = sum(each.changes for each in differing)
        tally = f": {count(number, 'difference')} found" if number else ""
        return Audit("different", f"What is deployed is not the approved program{tally}", deployed, _first_words(items))
    return Audit(*_agreeing({each.line.status for each in deployed}), deployed)


def _agreeing(statuses: set[Status]) -> tuple[Status, str]:
    if statuses == {"proved"}:
        return "proved", "What is deployed is proved to be the approved program"
    if statuses and statuses <= {"proved", "checked"}:
        return "checked", "What is deployed answered as approved on the rows that were run; not all of it is proved"
    return "not run", "Not all of what is deployed could be checked"


DEPLOYED_KEYS = (
    *("what", "kind", "verdict", "evidence", "reason", "digest", "digest_matches", "fingerprint", "engine", "source"),
    *("proof", "execution", "rows", "consistency", "differences", "region", "moved", "schema", "story"),
)

LONGEST_SELECT = 20_000
"""Characters of a query shown; a longer one is in the JSON alone."""


def _first_words(items: list[Any]) -> str:
    """The first change in words, and how many rows of the data get another class."""
    for form in items:
        changes, moved = form.get("differences"), form.get("moved")
        first = changes[0] if isinstance(changes, list) and changes else None
        words = [one_line(first["text"], 300)] if isinstance(first, Mapping) and first.get("text") is not None else []
        if isinstance(moved, Mapping):
            words.append(f"{one_line(moved.get('rows'))} of {one_line(moved.get('of'))} rows get another class")
        if words:
            return ". ".join(words) + "."
    return ""


def _story(form: Any) -> tuple[list[tuple[str, str]], str]:
    """Where the deployed text was changed and what would mend it, as lines; and the query that shows it."""
    if not isinstance(form, Mapping):
        return [], ""
    line, mend, select = form.get("line"), form.get("mend"), form.get("select")
    lines = []
    if isinstance(line, Mapping):
        lines.append((f"line {one_line(line.get('line'), 12)}", one_line(line.get("text"), 300)))
    if isinstance(mend, Mapping):
        lines.append(("to mend it", f"write {one_line(mend.get('new'), 300)} for {one_line(mend.get('old'), 300)}"))
    is_shown = isinstance(select, str) and len(select) <= LONGEST_SELECT
    return lines, "\n".join(map(printable, str(select).split("\n"))) if is_shown else ""


def _deployed_item(form: Mapping[str, Any]) -> DeployedItem:
    changes = form.get("differences")
    changes = changes if isinstance(changes, list) else []
    line = evidence_line(
        one_line(form.get("what", form.get("deployed", "deployed")), 120), _with_changes(form, changes)
    )
    plain_keys = ("kind", "evidence", "engine", "fingerprint")
    facts = [(key, one_line(form[key], 200)) for key in plain_keys if form.get(key) is not None]
    facts += [(_key_text(key), _value_text(value)) for key, value in form.items() if key not in DEPLOYED_KEYS]
    more, select = _story(form.get("story"))
    differences = [_change(number, each) for number, each in enumerate(changes[:MOST_DIFFERENCES], 1)]
    differences += _region(form.get("region"), form.get("moved"))
    if differences:
        differences[0] = replace(differences[0], more=(*differences[0].more, *more))
    left = len(changes) - MOST_DIFFERENCES
    left_out = f"{count(left, 'difference')} more: the audit's JSON has them all." if left > 0 else ""
    return DeployedItem(line, tuple(facts), len(changes), tuple(differences), left_out, select)


def _key_text(key: str) -> str:
    return one_line(key, 60).replace("_", " ")


def _value_text(value: Any) -> str:
    """A value of the audit's JSON; texts in a list without its brackets."""
    is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return one_line(", ".join(value) if is_list else value, 300)


def _with_changes(form: Mapping[str, Any], changes: list[Any]) -> Mapping[str, Any]:
    """A listed difference outweighs the stated verdict: an audit file is trusted no more than what it audits."""
    return {**form, "verdict": "different"} if changes else form


def _change(number: int, form: Any) -> Difference:
    if not isinstance(form, Mapping):
        return Difference(f"Difference {number}", "–", one_line(form), (), ())
    place = form.get("where", form.get("clause"))
    named = "" if place is None else f": clause C{place}" if isinstance(place, int) else f": {one_line(place, 120)}"
    approved, deployed = ("–" if form.get(side) is None else one_line(form[side]) for side in ("approved", "deployed"))
    witness, rows = form.get("witness"), form.get("rows")
    more = [] if rows is None else [("rows touched", f"{rows:,}" if isinstance(rows, int) else one_line(rows))]
    more += [(one_line(key, 60), one_line(value)) for key, value in form.items() if key not in CHANGE_KEYS]
    values = row_values(witness) if isinstance(witness, Mapping) else ()
    return Difference(f"Difference {number}{named}", approved, deployed, values, tuple(more))


def _region(region: Any, moved: Any) -> list[Difference]:
    """Where the answers differ, as a rule with an example row, and how many rows of the data get another class."""
    more = _moves(moved) if isinstance(moved, Mapping) else ()
    if not isinstance(region, Mapping):
        return [Difference("Rows that get another class", "–", "–", (), more)] if more else []
    row = region.get("row")
    values = row_values(row) if isinstance(row, Mapping) else ()
    approved, deployed = (exact_label(region.get(side)) for side in ("approved", "deployed"))
    what, beside = "Answers", region.get("beside")
    if isinstance(beside, Mapping):  # the class is the same, but its scores or reasons differ
        what = one_line(beside.get("what"), 30).capitalize()
        sides = (approved, beside.get("approved")), (deployed, beside.get("deployed"))
        approved, deployed = (f"{label}, {what.lower()} {one_line(value, 120)}" for label, value in sides)
    return [Difference(f"{what} differ where {one_line(region.get('rule'), 300)}", approved, deployed, values, more)]


def _moves(moved: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    listed = moved.get("moves")
    move_lines = [
        (
            f"{exact_label(move.get('approved'))} → {exact_label(move.get('deployed'))}",
            f"{one_line(move.get('rows'))} rows",
        )
        for move in (listed if isinstance(listed, list) else [])[:10]
        if isinstance(move, Mapping)
    ]
    return (("rows touched", f"{one_line(moved.get('rows'))} of {one_line(moved.get('of'))}"), *move_lines)
