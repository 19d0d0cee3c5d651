"""What a verdict file says, kept apart as it is: proved, checked on so many rows, different, or not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gbfl_compile.errors import BadInput
from gbfl_compile.report.wording import count, exact_label, exact_number, told

Standing: TypeAlias = Literal["different", "proved", "checked", "not run"]
"""What is known of one target, the strongest word it has earned."""

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
    return tuple(_line(told(name, 60), form) for name, form in targets.items())


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


def _line(target: str, form: Mapping[str, Any]) -> TargetLine:
    proof, execution = _proof(form.get("proof")), _execution(form.get("execution"))
    consistency = _consistency(form.get("consistency"))
    cells = (proof, execution, consistency)
    standing, word = _standing(told(form.get("verdict"), 20), cells)
    witnesses = tuple(_witnesses(target, form))
    reason = told(form["reason"]) if form.get("reason") is not None else ""
    return TargetLine(target, standing, word, *cells, _digest(form), reason, witnesses)


def _standing(verdict: str, cells: tuple[Cell, Cell, Cell]) -> tuple[Standing, str]:
    """One difference anywhere is a difference; a proof is a proof also where nothing was run, and says so."""
    proof, execution, _ = cells
    if verdict == "different" or any(cell.standing == "different" for cell in cells):
        return "different", "different"
    if proof.standing == "proved":
        return "proved", "proved and run" if execution.standing == "checked" else "proved, not run"
    if execution.standing == "checked" and verdict == "equal":
        return "checked", execution.word
    return "not run", "not run"


def _proof(form: Any) -> Cell:
    if not isinstance(form, Mapping):
        return Cell("not run", "not run", "" if form in (None, "not run") else told(form))
    answer = told(form.get("answer"), 20).lower()
    seconds = form.get("seconds")
    took = f" in {seconds:.3g} s" if isinstance(seconds, int | float) and not isinstance(seconds, bool) else ""
    why = "; ".join((*_aspects(form), *(told(form[key]) for key in ("reason", "why") if form.get(key) is not None)))
    match answer:
        case "proved":
            return Cell("proved", "proved", "; ".join(filter(None, (f"for every input{took}", why))))
        case "counterexample":
            return Cell("counterexample", "different", why)
        case "unread":
            return Cell("not proved", "not run", f"the artifact could not be read back: {why or 'no reason given'}")
        case "undecided":
            return Cell("not proved", "not run", f"undecided{took}: {why or 'no reason given'}")
        case _:
            return Cell("not run", "not run", told(form))


def _aspects(form: Mapping[str, Any]) -> Iterator[str]:
    aspects = form.get("aspects")
    if isinstance(aspects, Mapping):
        for aspect, found in aspects.items():
            answer = found.get("answer") if isinstance(found, Mapping) else found
            yield f"{told(aspect, 30)} {told(answer, 30).lower()}"
    silent = form.get("not_said")
    if isinstance(silent, list) and silent:
        yield f"not said by the artifact: {', '.join(told(aspect, 30) for aspect in silent)}"


def _execution(form: Any) -> Cell:
    if not isinstance(form, Mapping):
        return Cell("not run", "not run")
    rows, different = form.get("rows"), form.get("different")
    if not isinstance(rows, int) or not isinstance(different, int):
        return Cell("not run", "not run", told(form))
    engine = told(form.get("engine"), 80)
    if different:
        return Cell(f"{different:,} of {count(rows, 'row')} differ", "different", engine)
    return (
        Cell(f"equal on {count(rows, 'row')}", "checked", engine) if rows else Cell("not run", "not run", "on no row")
    )


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


def _witnesses(target: str, form: Mapping[str, Any]) -> Iterator[Witness]:
    """Rows that show a difference: the first one met by running, and the proof's counterexamples."""
    execution, proof = form.get("execution"), form.get("proof")
    if isinstance(execution, Mapping) and isinstance(execution.get("first"), Mapping):
        yield _witness(target, "found by running it", execution["first"])
    if isinstance(proof, Mapping):
        if isinstance(proof.get("row"), Mapping):
            yield _witness(target, "found by the proof", proof)
        aspects = proof.get("aspects")
        for aspect, found in aspects.items() if isinstance(aspects, Mapping) else ():
            if isinstance(found, Mapping) and isinstance(found.get("row"), Mapping):
                yield _witness(target, f"found by the proof, of {told(aspect, 30)}", found)


def _witness(target: str, found_by: str, form: Mapping[str, Any]) -> Witness:
    values = tuple((told(name, 120), exact_number(value)) for name, value in form["row"].items())
    source, other = form.get("source"), form.get("target")
    answers: list[tuple[str, str, str]] = []
    if isinstance(source, Mapping) and isinstance(other, Mapping):
        for what in dict.fromkeys((*source, *other)):
            written = exact_label if what == "label" else told
            of_source, of_target = (written(side[what]) if what in side else "–" for side in (source, other))
            answers.append((told(what, 40), of_source, of_target))
    return Witness(target, found_by, values, tuple(answers))
