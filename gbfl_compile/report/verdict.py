"""What a verdict file says, kept apart as it is: proved, checked on so many rows, different, or not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gbfl_compile.errors import BadInput
from gbfl_compile.report.standing import ORDER, Cell, Standing, Witness, proof_cell, witnesses
from gbfl_compile.report.wording import count, told


@dataclass(frozen=True, slots=True)
class TargetLine:
    """A line of the target × evidence matrix."""

    target: str
    standing: Standing
    word: str
    proof: Cell
    execution: Cell
    consistency: Cell
    digest: Cell
    reason: str
    witnesses: tuple[Witness, ...]


@dataclass(frozen=True, slots=True)
class Banner:
    """The verdict in one sentence, and what it does not say."""

    standing: Standing
    headline: str
    detail: str


def target_lines(verdict: Mapping[str, Any], digest: str) -> tuple[TargetLine, ...]:
    """The targets of a verdict file. A verdict on another program is refused: it is evidence of nothing here."""
    targets = verdict.get("targets")
    if not isinstance(targets, Mapping) or not all(isinstance(form, Mapping) for form in targets.values()):
        raise BadInput("the verdict has no targets: give what `gbfl check --json FILE` wrote")
    if verdict.get("program") != digest:
        about = told(verdict.get("program"), 24)
        raise BadInput(
            f"the verdict is on program {about}, this one is {digest[:16]}…: run `gbfl check` on this program"
        )
    return tuple(evidence_line(told(name, 60), form) for name, form in targets.items())


def banner(lines: tuple[TargetLine, ...] | None) -> Banner:
    """One sentence over all targets; the weakest standing colours it."""
    if lines is None:
        how = "No verdict was given. gbfl check PROGRAM BUILD --json check.json makes one; pass it with --verdict."
        return Banner("not run", "Not checked", how)
    if not lines:
        return Banner(
            "not run", "Not checked", "The verdict names no target: nothing was compiled or nothing was found."
        )
    tally = {standing: sum(line.standing == standing for line in lines) for standing in ORDER}
    if tally["different"]:
        names = ", ".join(line.target for line in lines if line.standing == "different")
        headline = f"Different: {names} does not answer as its source"
        if tally["different"] > 1:
            headline = f"Different: {tally['different']} targets do not answer as their source: {names}"
        return Banner("different", headline, _tally_text(tally, len(lines)))
    for standing, headline, detail in (
        ("proved", "Proved equal", "Every target is proved to answer as its source, on every input."),
        ("checked", "Checked, not proved", "Every target answered as its source on the rows that were run."),
        ("not run", "Not checked", "No target was run, and none is proved."),
    ):
        if tally[standing] == len(lines):  # type: ignore[index]  # the three are standings
            return Banner(standing, headline, detail)  # type: ignore[arg-type]
    weakest: Standing = "not run" if tally["not run"] else "checked"
    return Banner(weakest, "Partly proved" if tally["proved"] else "Partly checked", _tally_text(tally, len(lines)))


def _tally_text(tally: Mapping[Standing, int], targets: int) -> str:
    said = {"different": "different", "proved": "proved", "checked": "checked on rows only", "not run": "not run"}
    parts = [f"{tally[standing]} {said[standing]}" for standing in ORDER if tally[standing]]
    return f"Of {count(targets, 'target')}: {', '.join(parts)}."


def evidence_line(target: str, form: Mapping[str, Any]) -> TargetLine:
    """What is known of one target, or of one deployed thing: they are told in the same keys."""
    execution = _execution(form.get("execution"))
    if execution.standing == "not run":
        execution = _compared(form.get("rows")) or execution
    cells = (proof_cell(form.get("proof")), execution, _consistency(form.get("consistency")))
    standing, word = _standing(told(form.get("verdict"), 20), cells)
    reason = told(form["reason"]) if form.get("reason") is not None else ""
    return TargetLine(target, standing, word, *cells, _digest(form), reason, tuple(witnesses(target, form)))


def _compared(form: Any) -> Cell | None:
    """Rows that were scored before and compared one by one, as an audit of a table does."""
    if not isinstance(form, Mapping):
        return None
    return _execution({"rows": form.get("checked"), "different": form.get("different"), "engine": "rows scored before"})


def _standing(verdict: str, cells: tuple[Cell, Cell, Cell]) -> tuple[Standing, str]:
    """One difference anywhere is a difference; a proof is a proof also where nothing was run, and says so."""
    proof, execution, _ = cells
    if verdict == "different" or any(cell.standing == "different" for cell in cells):
        return "different", "different"
    if proof.standing == "proved":
        return "proved", "proved and run" if execution.standing == "checked" else "proved, not run"
    if execution.standing == "checked" and verdict == "equal":
        return "checked", execution.word
    return "not run", "unread" if verdict == "unread" else "not run"


def _execution(form: Any) -> Cell:
    if not isinstance(form, Mapping):
        return Cell("not run", "not run")
    rows, different = form.get("rows"), form.get("different")
    if type(rows) is not int or type(different) is not int:
        return Cell("not run", "not run", told(form))
    engine = told(form.get("engine"), 80)
    if different:
        return Cell(f"{different:,} of {count(rows, 'row')} differ", "different", engine)
    return Cell(f"equal on {count(rows, 'row')}", "checked", engine) if rows > 0 else Cell("not run", "not run")


def _consistency(form: Any) -> Cell:
    if not isinstance(form, Mapping) or not isinstance(form.get("source"), Mapping):
        return Cell("not run", "not run")
    source, target = form["source"], form.get("target")
    if source != target:
        return Cell("other counts", "different")
    return Cell("same counts", "checked", f"C_TB {told(source.get('c_tb_right'))} of {told(source.get('c_tb_of'))}")


def _digest(form: Mapping[str, Any]) -> Cell:
    carried = form.get("digest")
    if carried is None:
        return Cell("none", "not run")
    if form.get("digest_matches") is True:
        return Cell("the source's", "checked")
    return Cell("another one", "different", told(carried, 70))
