"""The words evidence is told in: proved, checked, different, not run; each earned, none standing for another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gbfl_compile.report.wording import exact_label, exact_number, is_number, told

Standing: TypeAlias = Literal["different", "proved", "checked", "not run"]
"""What is known of one thing, the strongest word it has earned."""

MOST_VALUES = 400
"""Of a row on the page."""

ORDER: tuple[Standing, ...] = ("different", "proved", "checked", "not run")


@dataclass(frozen=True, slots=True)
class Cell:
    """One piece of evidence: a word, the standing that colours it, and what is behind it."""

    word: str
    standing: Standing
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Witness:
    """A row on which source and target differ, and what each answers."""

    target: str
    found_by: str
    values: tuple[tuple[str, str], ...]
    answers: tuple[tuple[str, str, str], ...]
    """(what, source, target)."""


def proof_cell(form: Any) -> Cell:
    """What a proof showed. Only the answer `proved` is a proof; whatever is not known is not run."""
    if not isinstance(form, Mapping):
        return Cell("not run", "not run", "" if form in (None, "not run") else told(form))
    readings = [form, *(each for each in _list(form, "readings") if isinstance(each, Mapping))]
    seconds = [float(each["seconds"]) for each in readings if is_number(each.get("seconds"))]
    took = f" in {sum(seconds):.3g} s" if seconds else ""
    said = [told(form[key]) for key in ("reason", "why") if form.get(key) is not None]
    why = "; ".join(dict.fromkeys([*said, *(line for each in readings for line in _aspects(each)), *_silent(readings)]))
    match told(form.get("answer"), 20).lower():
        case "proved":
            return Cell("proved", "proved", "; ".join(filter(None, (f"for every input{took}", why))))
        case "counterexample":
            return Cell("counterexample", "different", why)
        case "other names" | "other reasons" as other:
            return Cell(other, "different", why)
        case "unread":
            return Cell("not proved", "not run", f"could not be read back: {why or 'no reason given'}")
        case "undecided":
            return Cell("not proved", "not run", f"undecided{took}: {why or 'no reason given'}")
        case _:
            return Cell("not run", "not run", why)


def _list(form: Mapping[str, Any], key: str) -> list[Any]:
    found = form.get(key)
    return found if isinstance(found, list) else []


def _aspects(form: Mapping[str, Any]) -> Iterator[str]:
    aspects = form.get("aspects")
    if isinstance(aspects, Mapping):
        for aspect, found in aspects.items():
            answer = found.get("answer") if isinstance(found, Mapping) else found
            yield f"{told(aspect, 30)} {told(answer, 30).lower()}"


def _silent(readings: list[Mapping[str, Any]]) -> Iterator[str]:
    """What no way of answering says; what one of several leaves out, another says."""
    said = {aspect for each in readings if isinstance(each.get("aspects"), Mapping) for aspect in each["aspects"]}
    unsaid = dict.fromkeys(told(aspect, 30) for each in readings for aspect in _list(each, "not_said"))
    if silent := [aspect for aspect in unsaid if aspect not in said]:
        yield f"not said by the artifact: {', '.join(silent)}"


def witnesses(target: str, form: Mapping[str, Any]) -> list[Witness]:
    """Rows that show a difference: the first one met by running, and the proof's counterexamples, each row once."""
    found = []
    execution, proof = form.get("execution"), form.get("proof")
    if isinstance(execution, Mapping) and isinstance(execution.get("first"), Mapping):
        found.append(_witness(target, "found by running it", execution["first"]))
    if isinstance(proof, Mapping):
        for each in (proof, *_list(proof, "readings")):
            found += _counterexamples(target, each)
    rows: dict[tuple[tuple[str, str], ...], Witness] = {}
    for witness in found:
        rows.setdefault(witness.values, witness)
    return [witness for witness in rows.values() if witness.values]


def _counterexamples(target: str, form: Any) -> Iterator[Witness]:
    if not isinstance(form, Mapping):
        return
    if isinstance(form.get("row"), Mapping):
        yield _witness(target, "found by the proof", form)
    aspects = form.get("aspects")
    for aspect, found in aspects.items() if isinstance(aspects, Mapping) else ():
        if isinstance(found, Mapping) and isinstance(found.get("row"), Mapping):
            yield _witness(target, f"found by the proof, of {told(aspect, 30)}", found)


def _witness(target: str, found_by: str, form: Mapping[str, Any]) -> Witness:
    row = form.get("row")
    source, other = form.get("source"), form.get("target")
    answers: list[tuple[str, str, str]] = []
    if isinstance(source, Mapping) and isinstance(other, Mapping):
        for what in dict.fromkeys((*source, *other)):
            written = exact_label if what == "label" else told
            of_source, of_target = (written(side[what]) if what in side else "–" for side in (source, other))
            answers.append((told(what, 40), of_source, of_target))
    return Witness(target, found_by, row_values(row) if isinstance(row, Mapping) else (), tuple(answers))


def row_values(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """A row of a JSON file, name by name, with every digit."""
    values = tuple((told(name, 120), exact_number(value)) for name, value in row.items())
    left = len(values) - MOST_VALUES
    return (*values[:MOST_VALUES], (f"and {left:,} more", "see the JSON")) if left > 0 else values
