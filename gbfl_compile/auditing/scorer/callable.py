"""Compares a Python function or an HTTP service with the approved program, by calling it on witnesses.

A Python scorer is `module:function`, imported and called in a separate process. It gets a list of dicts, feature to
value with None for a missing one (a float, a str, a bool, a date or a datetime), with form="frame" a pandas table of
these, or with form="matrix" a float64 matrix with NaN, where all features are numbers; it returns one label per row,
or probabilities, or a dict of both (see `callable_worker.py`). An HTTP scorer takes and returns JSON, see `http.py`.
Labels are compared as `auditing/answers.py` says; probabilities and scores where the scorer returns them. A row that
raises, or that is refused, was not answered as approved: it counts as different.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from gbfl_compile.auditing.answers import NO_SCORE, UNKNOWN, RowAnswers, class_finder, kind_of
from gbfl_compile.auditing.scorer import (
    ProcessEnd,
    WitnessInput,
    callable_worker,
    compared_text,
    execution,
    first_reason,
    own_row_moves,
    run_isolated,
    witness_changes,
    witness_input,
    witness_region,
)
from gbfl_compile.auditing.scorer.http import NotScored, Scorer, ask, scorer_at
from gbfl_compile.auditing.verdict import AuditVerdict, DeployedVerdict
from gbfl_compile.checking.witnesses import artifact_constants
from gbfl_compile.errors import BadInput
from gbfl_compile.files.atomic import temporary_folder
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook, Value
from gbfl_compile.ir.nodes import Program

Form: TypeAlias = Literal["dicts", "frame", "matrix"]

SECONDS = 60.0
"""For all rows together."""

LARGEST_SOURCE = 2**20
"""Bytes of a scorer's module whose numbers are tried as values."""

HTTP_BATCH = 500
MOST_REQUESTS = 2000
"""Where a request fails its rows are sent again by halves, down to the row at fault: never more requests than this."""


@dataclass(slots=True)
class ScorerReplies:
    """The replies so far: row number -> the answer, row number -> why there is none."""

    answers: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Each has "label", "probabilities" and "scores", as far as the scorer gave them."""
    errors: dict[int, str] = field(default_factory=dict)
    problem: str | None = None
    """Why the scorer could not be called at all, or why the calls stopped."""
    crashed: bool = False
    """Whether the scorer itself crashed while it answered; a hang is not a crash."""
    unstable: str | None = None
    """How its answer to the same row differed when it was called again."""
    again: str | None = None
    """How it was called again."""


def audit_callable(
    program: Program,
    what: str,
    *,
    seconds: float = SECONDS,
    form: Form = "dicts",
    request: str = "rows",
    answer: str | None = None,
    data: Matrix | None = None,
    book: Codebook | None = None,
) -> DeployedVerdict:
    """Ask `module:function` or `http://…` about every witness and every row of `data`, within a time limit.

    `form` is what a Python scorer is given; `request` and `answer` are the form of an HTTP request and the path of the
    labels in its answer. `book` has the codes of the texts in `data`.
    """
    if form == "matrix" and program.kinds:
        raise BadInput("--call-form matrix: a matrix holds only numbers, and the program has words or dates: use frame")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", what):
        inputs = witness_input(program, data=data, book=book)
        scorer = scorer_at(what, request, answer)
        return _verdict(inputs, _ask_http(inputs, scorer, seconds), scorer.shown, "HTTP")
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", what):
        raise BadInput(
            f"{what!r}: a scorer is named module:function, or by a URL http://host/path or https://host/path"
        )
    inputs = witness_input(program, data=data, book=book, constants=artifact_constants(_source_files(what)))
    engine = f"Python {platform.python_version()}, in a separate process"
    return _verdict(inputs, _ask_python(inputs, what, seconds, form), what, engine)


def _source_files(what: str) -> dict[str, bytes]:
    """The source of a Python scorer's module, where Python finds it; nothing of it is imported."""
    own = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    path, spec = [str(Path.cwd()), *own, *sys.path], None
    for number, _ in enumerate(parts := what.partition(":")[0].split(".")):
        spec = PathFinder.find_spec(".".join(parts[: number + 1]), path)
        if spec is None:
            return {}
        path = list(spec.submodule_search_locations or ())
    file = Path((spec and spec.origin) or "")
    is_read = file.suffix == ".py" and file.is_file() and file.stat().st_size <= LARGEST_SOURCE
    return {file.name: file.read_bytes()} if is_read else {}


def _ask_python(inputs: WitnessInput, what: str, seconds: float, form: Form) -> ScorerReplies:
    with temporary_folder("callable") as folder:
        again = second_round(len(inputs.rows), callable_worker.BATCH)
        order: dict[str, Any] = {"features": list(inputs.program.features), "form": form, "rows": len(inputs.rows)}
        order["again"] = [list(batch.rows) for batch in again]
        if inputs.program.kinds:
            order["kinds"] = list(inputs.program.kinds)
            (folder / "rows.json").write_text(json.dumps(inputs.values(), default=str), encoding="utf-8")
        else:
            (folder / "rows.bin").write_bytes(np.ascontiguousarray(inputs.rows).tobytes())
        (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
        ended = run_isolated(callable_worker.__file__, [what, str(folder)], seconds, os.environ, flag="-P")
        answers = folder / "answers.jsonl"
        text = answers.read_text(encoding="utf-8", errors="replace") if answers.exists() else ""
    return _read_replies(text, ended, again)


def _read_replies(text: str, ended: ProcessEnd, again: Sequence[Batch]) -> ScorerReplies:
    replies, at = ScorerReplies(), -1
    done = False
    for line in text.splitlines():
        form = _form(line)
        match form:
            case {"problem": str(problem)}:
                return ScorerReplies(problem=problem)
            case {"start": int(start), "answers": list(answers)}:
                replies.answers |= {
                    start + number: form for number, form in enumerate(answers) if isinstance(form, dict)
                }
            case {"start": int(start), "error": str(error)}:
                replies.errors[start] = error
            case {"start": int(start)}:
                at = start
            case {"again": int(number), "rows": list(rows), "answers": list(answers)}:
                replies.unstable = replies.unstable or _otherwise(replies, again[number], rows, answers)
            case {"again": int(number), "rows": list(rows), "error": str(error)}:
                where = f"witness {rows[0] + 1} was answered before, but not {again[number].words}"
                replies.unstable = replies.unstable or f"{where}: {error}"
            case {"again": int(), "rows": list(rows)}:
                at = rows[0]
            case {"done": True}:
                done = True
                replies.again = f"{AGAIN_WORDS}, one call at a time"
    if not done:
        replies.problem = f"{ended.words} {'while it was imported' if at < 0 else f'on witness {at + 1} or soon after'}"
        replies.crashed = at >= 0 and ended.how != "hung"
    return replies


def _form(line: str) -> Mapping[str, Any]:
    try:
        form = json.loads(line)
    except ValueError:  # the last line of a process that did not come back
        return {}
    return form if isinstance(form, dict) else {}


def _ask_http(inputs: WitnessInput, scorer: Scorer, seconds: float) -> ScorerReplies:
    deadline = time.monotonic() + seconds
    rows = inputs.values()
    replies, requests = ScorerReplies(), 0
    waiting = [(start, min(start + HTTP_BATCH, len(rows))) for start in range(0, len(rows), HTTP_BATCH)][::-1]
    while waiting:
        start, stop = waiting.pop()
        requests += 1
        if requests > MOST_REQUESTS:
            replies.problem = f"it failed too often: stopped after {MOST_REQUESTS} requests"
            return replies
        try:
            answers = ask(scorer, inputs.program.features, rows[start:stop], deadline)
        except NotScored as error:
            if error.whole:
                replies.problem = f"{error} at witness {start + 1}"
                return replies
            if stop - start == 1:
                replies.errors[start] = str(error)
            else:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
            continue
        replies.answers |= dict(enumerate(answers, start))
    _ask_again(inputs, scorer, rows, replies, deadline)
    return replies


CONCURRENT_CALLS = 4


def _ask_again(
    inputs: WitnessInput, scorer: Scorer, rows: list[list[Value]], replies: ScorerReplies, deadline: float
) -> None:
    """Run the second round, several batches at a time, and record the answers that changed."""

    def reply(batch: Batch) -> tuple[str, str] | None:
        chosen = [row for row in batch.rows if row in replies.answers]
        try:
            answers = ask(scorer, inputs.program.features, [rows[row] for row in chosen], deadline) if chosen else []
        except NotScored as error:
            if error.whole:
                return "problem", f"{error} when it was called again"
            return "unstable", f"witness {chosen[0] + 1} was answered before, but not {batch.words}: {error}"
        words = _otherwise(replies, batch, chosen, answers)
        return None if words is None else ("unstable", words)

    with ThreadPoolExecutor(CONCURRENT_CALLS) as pool:
        for found in pool.map(reply, second_round(len(rows), HTTP_BATCH)):
            match found:
                case ("problem", words):
                    replies.problem = replies.problem or words
                case ("unstable", words):
                    replies.unstable = replies.unstable or words
    replies.again = f"{AGAIN_WORDS}, {CONCURRENT_CALLS} requests at a time"


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that are sent once more, together."""

    words: str
    rows: tuple[int, ...]


SINGLE, SMALLEST, LARGEST = 40, 2, 16
SIZES = range(SMALLEST, LARGEST + 1)
"""A batch of each: a table of as many rows as columns is a square, and one of as many rows as classes another."""

FEW = sum(SIZES)
AGAIN_WORDS = (
    f"{SINGLE} rows alone, {FEW} in batches of {SMALLEST} to {LARGEST}, all backwards, all shuffled, "
    "and some twice in one batch"
)


def second_round(count: int, size: int) -> list[Batch]:
    """The batches in which rows are sent again: an answer depends on its row and on nothing else."""

    def spread(most: int) -> list[int]:
        return list(range(count)) if count <= most else [place * count // most for place in range(most)]

    backwards = list(range(count))[::-1]
    shuffled = [int(row) for row in np.random.default_rng(0).permutation(count)]
    twice = [row for row in spread(size // 2) for _ in range(2)]
    few = [place * count // FEW for place in range(FEW)] if count else []
    small = [Batch(f"in a batch of {each}", tuple(few[sum(range(SMALLEST, each)) :][:each])) for each in SIZES if few]
    plans = (
        ("alone", spread(SINGLE), 1),
        ("backwards", backwards, size),
        ("in another order", shuffled, size),
        ("twice in one batch", twice, size),
    )
    return small + [
        Batch(words, tuple(rows[start : start + each]))
        for words, rows, each in plans
        for start in range(0, len(rows), each)
    ]


def _otherwise(
    replies: ScorerReplies, batch: Batch, rows: Sequence[int], answers: Sequence[Mapping[str, Any]]
) -> str | None:
    """The first row that was answered otherwise than before."""
    for row, form in zip(rows, answers, strict=True):
        before = replies.answers[row]
        if before != form or kind_of(before.get("label")) != kind_of(form.get("label")):  # True is not 1
            return f"witness {row + 1} gets a different answer when it is sent again, {batch.words}"
    return None


def _verdict(inputs: WitnessInput, replies: ScorerReplies, what: str, engine: str) -> DeployedVerdict:
    replied = [reply_label(replies, row) for row in range(len(inputs.rows))]
    ran = np.array([row in replies.answers or row in replies.errors for row in range(len(inputs.rows))], dtype=bool)
    if not ran.any() and replies.problem is not None:
        return DeployedVerdict(
            what, "callable", "different" if replies.crashed else "not run", replies.problem, engine=engine
        )
    deployed = row_answers(inputs, replies.answers)
    labels = _labels_shown(inputs, deployed, replies, replied)
    run = execution(inputs, engine, deployed, labels, ran)
    verdict: AuditVerdict = (
        "different"
        if run.different or replies.crashed or replies.unstable
        else "not run"
        if replies.problem
        else "equal"
    )
    reasons = [] if run.first is None else [first_reason(run.first)]
    reasons += [each for each in (replies.problem, replies.unstable) if each]
    return DeployedVerdict(
        what=what,
        kind="callable",
        verdict=verdict,
        reason="; ".join(reasons) or None,
        engine=engine,
        execution=run,
        changes=witness_changes(inputs, run, deployed, ran),
        region=witness_region(inputs, run),
        moves=own_row_moves(inputs, labels, ran) if run.different else None,
        compared="; ".join(filter(None, (compared_text(inputs, deployed, ran), _again_words(replies)))),
    )


def _again_words(replies: ScorerReplies) -> str | None:
    if replies.again is None:
        return None
    outcome = "different answers" if replies.unstable else "the same answers"
    return f"called again ({replies.again}): {outcome}"


def reply_label(replies: ScorerReplies, row: int) -> Any:
    """The label of a row as the scorer gave it, or why there is none."""
    if row in replies.errors:
        return f"no label: {replies.errors[row]}"
    form = replies.answers.get(row, {})
    return f"no label: {form['other']}" if "other" in form else form.get("label")


def _labels_shown(inputs: WitnessInput, deployed: RowAnswers, replies: ScorerReplies, replied: list[Any]) -> list[Any]:
    """The labels as the scorer gave them; where it gave probabilities alone, the class of the largest."""
    classes = inputs.program.classes
    return [
        classes[number] if label is None and number >= 0 and "label" not in replies.answers.get(row, {}) else label
        for row, (label, number) in enumerate(zip(replied, deployed.classes.tolist(), strict=True))
    ]


def row_answers(inputs: WitnessInput, answers: Mapping[int, Mapping[str, Any]]) -> RowAnswers:
    """The replies as numbers. What only some rows have is missing in the others, and so differs."""
    count, width = len(inputs.rows), len(inputs.program.classes)
    class_number = class_finder(inputs.program.classes)
    classes = np.full(count, UNKNOWN, dtype=np.int64)
    probabilities, scores = np.full((count, width), np.nan), np.full((count, width), NO_SCORE, dtype=np.int64)
    for row, form in answers.items():
        if _is_of(form.get("probabilities"), width):
            probabilities[row] = [value if _is_number(value) else np.nan for value in form["probabilities"]]
        if _is_of(form.get("scores"), width):
            scores[row] = [
                value if isinstance(value, int) and _is_number(value) else NO_SCORE for value in form["scores"]
            ]
        if "label" in form:  # "other" is how something that is no label looks: a NaN like the class 'nan'
            classes[row] = class_number(form["label"])
        elif "other" not in form and not np.isnan(probabilities[row]).any():
            classes[row] = int(probabilities[row].argmax())
    keys = {key for form in answers.values() for key in form}
    return RowAnswers(classes, probabilities if "probabilities" in keys else None, scores if "scores" in keys else None)


def _is_of(values: Any, width: int) -> bool:
    return isinstance(values, list) and len(values) == width


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)
