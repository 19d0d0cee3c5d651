"""What an audit found deployed, difference by difference: the clause, both readings, a witness, the rows it touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.errors import BadInput
from gbfl_compile.report.verdict import Standing
from gbfl_compile.report.wording import count, exact_number, told

MOST_DIFFERENCES = 60
KNOWN = ("clause", "approved", "deployed", "witness", "rows")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the source and what is deployed."""

    heading: str
    approved: str
    deployed: str
    witness: tuple[tuple[str, str], ...]
    touched: str
    more: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The section on what is deployed."""

    standing: Standing
    headline: str
    facts: tuple[tuple[str, str], ...]
    differences: tuple[Difference, ...]
    left_out: str


def audit(form: Mapping[str, Any] | None) -> Audit | None:
    """The section of an audit file. Keys that are not known are told as they are, never dropped."""
    if form is None:
        return None
    listed = form.get("differences", [])
    if "verdict" not in form or not isinstance(listed, Sequence) or isinstance(listed, str):
        raise BadInput("the audit has no verdict and differences: give what `gbfl audit --json FILE` wrote")
    verdict = told(form["verdict"], 60)
    standing = _standing(verdict.lower(), len(listed))
    facts = tuple(
        (told(key, 60), told(value, 200)) for key, value in form.items() if key not in ("verdict", "differences")
    )
    left = len(listed) - MOST_DIFFERENCES
    return Audit(
        standing=standing,
        headline=_headline(standing, verdict, len(listed)),
        facts=facts,
        differences=tuple(_difference(number, item) for number, item in enumerate(listed[:MOST_DIFFERENCES], 1)),
        left_out=f"{count(left, 'difference')} more: the audit's JSON has them all." if left > 0 else "",
    )


def _standing(verdict: str, differences: int) -> Standing:
    """A listed difference outweighs the word: an audit file is read as suspiciously as what it is about."""
    if differences or verdict in ("different", "counterexample"):
        return "different"
    if verdict == "proved":
        return "proved"
    return "checked" if verdict in ("equal", "same", "checked") or verdict.startswith("checked on") else "not run"


def _headline(standing: Standing, verdict: str, differences: int) -> str:
    match standing:
        case "different":
            found = f": {count(differences, 'difference')}" if differences else ""
            return f"What is deployed is not the source{found}"
        case "proved":
            return "What is deployed is proved to be the source"
        case "checked":
            return f"What is deployed answered as the source ({verdict}), not proved"
        case _:
            return f"Not decided: {verdict}"


def _difference(number: int, form: Any) -> Difference:
    if not isinstance(form, Mapping):
        return Difference(f"Difference {number}", told(form), "", (), "", ())
    clause = form.get("clause")
    named = "" if clause is None else f": clause C{clause}" if isinstance(clause, int) else f": {told(clause, 120)}"
    witness = form.get("witness")
    if isinstance(witness, Mapping) and isinstance(witness.get("row"), Mapping):
        values = _values(witness["row"])
        values += tuple((told(key, 40), told(value)) for key, value in witness.items() if key != "row")
    else:
        values = _values(witness) if isinstance(witness, Mapping) else ()
    rows = form.get("rows")
    touched = "" if rows is None else count(rows, "row") if isinstance(rows, int) else told(rows)
    more = tuple((told(key, 60), told(value)) for key, value in form.items() if key not in KNOWN)
    if witness is not None and not isinstance(witness, Mapping):
        more = (("witness", told(witness)), *more)
    sides = (("–" if form.get(side) is None else told(form[side])) for side in ("approved", "deployed"))
    approved, deployed = sides
    return Difference(f"Difference {number}{named}", approved, deployed, values, touched, more)


def _values(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((told(name, 120), exact_number(value)) for name, value in row.items())
