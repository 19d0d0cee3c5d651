"""The section on a verdict file. Kinds of evidence are never mixed: proved, checked on rows, different, or not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gbfl_compile.errors import BadInput
from gbfl_compile.reporting.text import count, duration, exact_label, exact_number, is_number, one_line

Status: TypeAlias = Literal["different", "proved", "checked", "not run"]
"""What is known about one artifact, in the strongest word the evidence supports."""

MOST_VALUES = 400
"""Values shown of one row."""

ORDER: tuple[Status, ...] = ("different", "proved", "checked", "not run")


@dataclass(frozen=True, slots=True)
class Cell:
    """One piece of evidence: a word, the status that colours it, and the details."""

    word: str
    status: Status
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
    """What a proof showed. Only the answer `proved` is a proof; an unknown answer counts as not run."""
    if not isinstance(form, Mapping):
        return Cell("not run", "not run", "" if form in (None, "not run") else one_line(form))
    readings = [form, *(each for each in _list(form, "readings") if isinstance(each, Mapping))]
    seconds = [float(each["seconds"]) for each in readings if is_number(each.get("seconds"))]
    took = f" in {duration(sum(seconds))}" if seconds else ""
    reasons = [one_line(form[key]) for key in ("reason", "why") if form.get(key) is not None]
    aspects = [line for each in readings for line in _aspects(each)]
    why = "; ".join(dict.fromkeys([*reasons, *aspects, *_absent_aspects(readings)]))
    match one_line(form.get("answer"), 20).lower():
        case "proved":
            return Cell("proved", "proved", "; ".join(filter(None, (f"for every input{took}", why))))
        case "read as equal":
            return Cell("read as equal", "checked", "; ".join(filter(None, (f"by a general reader{took}", why))))
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
    value = form.get(key)
    return value if isinstance(value, list) else []


def _aspects(form: Mapping[str, Any]) -> Iterator[str]:
    aspects = form.get("aspects")
    if isinstance(aspects, Mapping):
        for aspect, finding in aspects.items():
            answer = finding.get("answer") if isinstance(finding, Mapping) else finding
            yield f"{one_line(aspect, 30)} {one_line(answer, 30).lower()}"


def _absent_aspects(readings: list[Mapping[str, Any]]) -> Iterator[str]:
    """The aspects that no entry point answers; what one leaves out, another may answer."""
    present = {aspect for each in readings if isinstance(each.get("aspects"), Mapping) for aspect in each["aspects"]}
    missing = dict.fromkeys(one_line(aspect, 30) for each in readings for aspect in _list(each, "not_said"))
    if absent := [aspect for aspect in missing if aspect not in present]:
        yield f"not answered by the artifact: {', '.join(absent)}"


def witnesses(target: str, form: Mapping[str, Any]) -> list[Witness]:
    """Rows that show a difference: the first one found by running, and the proof's counterexamples, each row once."""
    every: list[Witness] = []
    execution, proof = form.get("execution"), form.get("proof")
    if isinstance(execution, Mapping) and isinstance(execution.get("first"), Mapping):
        every.append(_witness(target, "found by running it", execution["first"]))
    if isinstance(proof, Mapping):
        for each in (proof, *_list(proof, "readings")):
            every += _counterexamples(target, each)
    rows: dict[tuple[tuple[str, str], ...], Witness] = {}
    for witness in every:
        rows.setdefault(witness.values, witness)
    return [witness for witness in rows.values() if witness.values]


def _counterexamples(target: str, form: Any) -> Iterator[Witness]:
    if not isinstance(form, Mapping):
        return
    if isinstance(form.get("row"), Mapping):
        yield _witness(target, "found by the proof", form)
    aspects = form.get("aspects")
    for aspect, finding in aspects.items() if isinstance(aspects, Mapping) else ():
        if isinstance(finding, Mapping) and isinstance(finding.get("row"), Mapping):
            yield _witness(target, f"found by the proof, for {one_line(aspect, 30)}", finding)


def _witness(target: str, found_by: str, form: Mapping[str, Any]) -> Witness:
    row = form.get("row")
    source, other = form.get("source"), form.get("target")
    answers: list[tuple[str, str, str]] = []
    if isinstance(source, Mapping) and isinstance(other, Mapping):
        for what in dict.fromkeys((*source, *other)):
            write = exact_label if what == "label" else one_line
            of_source, of_target = (write(side[what]) if what in side else "–" for side in (source, other))
            answers.append((one_line(what, 40), of_source, of_target))
    return Witness(target, found_by, row_values(row) if isinstance(row, Mapping) else (), tuple(answers))


def row_values(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """A row from a JSON file, name by name, with every digit."""
    values = tuple((one_line(name, 120), exact_number(value)) for name, value in row.items())
    left = len(values) - MOST_VALUES
    return (*values[:MOST_VALUES], (f"and {left:,} more", "see the JSON")) if left > 0 else values


@dataclass(frozen=True, slots=True)
class TargetLine:
    """A line of the target × evidence matrix."""

    target: str
    status: Status
    word: str
    proof: Cell
    execution: Cell
    consistency: Cell
    digest: Cell
    reason: str
    witnesses: tuple[Witness, ...]


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict in one sentence, and the details behind it."""

    status: Status
    headline: str
    detail: str


def target_lines(verdict: Mapping[str, Any], digest: str) -> tuple[TargetLine, ...]:
    """The targets of a verdict file. A verdict on another program is refused: it says nothing about this one."""
    targets = verdict.get("targets")
    if not isinstance(targets, Mapping) or not all(isinstance(form, Mapping) for form in targets.values()):
        raise BadInput("the verdict has no targets: pass the file that `gbfl check --json FILE` wrote")
    if verdict.get("program") != digest:
        about = one_line(verdict.get("program"), 24)
        raise BadInput(
            f"the verdict is on program {about}, this one is {digest[:16]}…: run `gbfl check` on this program"
        )
    return tuple(evidence_line(one_line(name, 60), form) for name, form in targets.items())


def banner(lines: tuple[TargetLine, ...] | None) -> Banner:
    """One sentence about all targets; the weakest status colours it."""
    if lines is None:
        how = (
            "No compiled artifacts were given: gbfl report PROGRAM BUILD checks those in BUILD and shows what is known."
        )
        return Banner("not run", "Not checked", how)
    if not lines:
        return Banner(
            "not run", "Not checked", "The verdict names no target: nothing was compiled or nothing was found."
        )
    tally = {status: sum(line.status == status for line in lines) for status in ORDER}
    if tally["different"]:
        names = ", ".join(line.target for line in lines if line.status == "different")
        headline = f"Different: {names} does not answer as its source"
        if tally["different"] > 1:
            headline = f"Different: {tally['different']} targets do not answer as their source: {names}"
        return Banner("different", headline, _tally_text(tally, len(lines)))
    for status, headline, detail in (
        ("proved", "Proved equal", "Every target is proved to answer as these rules do, on every input."),
        ("checked", "Checked, not proved", "Every target answered as its source on the rows that were run."),
        ("not run", "Not checked", "No target was run, and none is proved."),
    ):
        if tally[status] == len(lines):  # type: ignore[index]  # the three are statuses
            return Banner(status, headline, detail)  # type: ignore[arg-type]
    weakest: Status = "not run" if tally["not run"] else "checked"
    return Banner(weakest, "Partly proved" if tally["proved"] else "Partly checked", _tally_text(tally, len(lines)))


def _tally_text(tally: Mapping[Status, int], targets: int) -> str:
    names = {"different": "different", "proved": "proved", "checked": "checked on rows only", "not run": "not run"}
    parts = [f"{tally[status]} {names[status]}" for status in ORDER if tally[status]]
    return f"Of {count(targets, 'target')}: {', '.join(parts)}."


def evidence_line(target: str, form: Mapping[str, Any]) -> TargetLine:
    """What is known about one target, or about one deployed item: both use the same keys."""
    execution = _execution(form.get("execution"))
    if execution.status == "not run":
        execution = _scored_before(form.get("rows")) or execution
    cells = (proof_cell(form.get("proof")), execution, _consistency(form.get("consistency")))
    status, word = _status_of(one_line(form.get("verdict"), 30), cells)
    reason = one_line(form["reason"]) if form.get("reason") is not None else ""
    return TargetLine(target, status, word, *cells, _digest(form), reason, tuple(witnesses(target, form)))


def _scored_before(form: Any) -> Cell | None:
    """Rows scored earlier and compared one by one, as an audit of a table does."""
    if not isinstance(form, Mapping):
        return None
    return _execution({"rows": form.get("checked"), "different": form.get("different"), "engine": "rows scored before"})


def _status_of(verdict: str, cells: tuple[Cell, Cell, Cell]) -> tuple[Status, str]:
    """One difference anywhere is a difference; a proof counts even where nothing was run, and the word says so."""
    proof, execution, _ = cells
    if verdict == "different" or any(cell.status == "different" for cell in cells):
        return "different", "different"
    if proof.status == "proved":
        return "proved", "proved and run" if execution.status == "checked" else "proved, not run"
    if execution.status == "checked" and verdict in ("equal", "read as equal"):
        return "checked", "read as equal and run" if verdict == "read as equal" else execution.word
    return "not run", verdict if verdict in ("unread", "undecided", "written", "read as equal, not run") else "not run"


def _execution(form: Any) -> Cell:
    if not isinstance(form, Mapping):
        return Cell("not run", "not run")
    rows, different = form.get("rows"), form.get("different")
    if type(rows) is not int or type(different) is not int:
        return Cell("not run", "not run", one_line(form))
    engine = one_line(form.get("engine"), 80)
    if different:
        return Cell(f"{different:,} of {count(rows, 'row')} differ", "different", engine)
    return Cell(f"equal on {count(rows, 'row')}", "checked", engine) if rows > 0 else Cell("not run", "not run")


def _consistency(form: Any) -> Cell:
    if not isinstance(form, Mapping) or not isinstance(form.get("source"), Mapping):
        return Cell("not run", "not run")
    source, target = form["source"], form.get("target")
    if source != target:
        return Cell("other counts", "different")
    return Cell(
        "same counts", "checked", f"C_TB {one_line(source.get('c_tb_right'))} of {one_line(source.get('c_tb_of'))}"
    )


def _digest(form: Mapping[str, Any]) -> Cell:
    carried = form.get("digest")
    if carried is None:
        return Cell("none", "not run")
    if form.get("digest_matches") is True:
        return Cell("the program's", "checked")
    return Cell("another one", "different", one_line(carried, 70))
