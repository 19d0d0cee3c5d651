"""A scorer that can be called, a Python function or an HTTP service, against the approved program, on witnesses.

A Python scorer is `module:function`, imported and called in a process of its own. It is given a list of dicts, feature
to number with None for a missing value, or with form="matrix" a float64 matrix with NaN; it gives back a label a row,
or probabilities, or a dict of both (see `audit.callable_worker`). An HTTP scorer is given and gives JSON, see
`audit.http_scorer`. Labels are compared as `audit.labels` says; probabilities and scores where they are given. A row
that raises, or is refused, was not answered as approved: it counts as different.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from gbfl_compile.audit import callable_worker
from gbfl_compile.audit.answer import Audited, AuditVerdict
from gbfl_compile.audit.apart import Ended, run_apart
from gbfl_compile.audit.http_scorer import NotScored, Scorer, ask, scorer_at
from gbfl_compile.audit.labels import UNKNOWN, class_finder
from gbfl_compile.audit.observed import NO_SCORE, Observed
from gbfl_compile.audit.witness_run import (
    Asked,
    asked_rows,
    compared_text,
    execution,
    first_reason,
    witness_changes,
    witness_region,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.files import temporary_folder
from gbfl_compile.ir.nodes import Program

Form: TypeAlias = Literal["dicts", "matrix"]

SECONDS = 60.0
"""For all witnesses together."""

HTTP_BATCH = 500
MOST_REQUESTS = 2000
"""Where a request fails its rows are asked by halves, down to the one at fault; so many requests in all."""


@dataclass(slots=True)
class Heard:
    """What a scorer said so far: row number -> its answer, row number -> why there is none."""

    answers: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Forms with "label", "probabilities" and "scores", as far as each was given."""
    errors: dict[int, str] = field(default_factory=dict)
    problem: str | None = None
    """Why nothing could be asked at all, or why asking stopped."""
    broke: bool = False
    """Whether that is the scorer's own doing while it answered: a crash, not a hang."""


def audit_callable(program: Program, what: str, *, seconds: float = SECONDS, form: Form = "dicts") -> Audited:
    """Ask `module:function` or `http://…` about every witness, in so many seconds at most."""
    asked = asked_rows(program)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", what):
        scorer = scorer_at(what)
        return _judged(asked, _asked_over_http(asked, scorer, seconds), scorer.shown, "HTTP")
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", what):
        raise BadInput(
            f"{what!r}: a scorer is named module:function, or by a URL http://host/path or https://host/path"
        )
    engine = f"Python {platform.python_version()}, in a process of its own"
    return _judged(asked, _asked_in_python(asked, what, seconds, form), what, engine)


def _asked_in_python(asked: Asked, what: str, seconds: float, form: Form) -> Heard:
    with temporary_folder("callable") as folder:
        order = {"features": list(asked.program.features), "form": form, "rows": len(asked.rows)}
        (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
        (folder / "rows.bin").write_bytes(np.ascontiguousarray(asked.rows).tobytes())
        command = [sys.executable, "-P", str(Path(callable_worker.__file__)), what, str(folder)]
        ended = run_apart(command, seconds, os.environ)
        answers = folder / "answers.jsonl"
        text = answers.read_text(encoding="utf-8", errors="replace") if answers.exists() else ""
    return _heard(text, ended)


def _heard(text: str, ended: Ended) -> Heard:
    heard, at = Heard(), -1
    done = False
    for line in text.splitlines():
        form = _form(line)
        match form:
            case {"problem": str(problem)}:
                return Heard(problem=problem)
            case {"start": int(start), "answers": list(answers)}:
                heard.answers |= {start + number: form for number, form in enumerate(answers) if isinstance(form, dict)}
            case {"start": int(start), "error": str(error)}:
                heard.errors[start] = error
            case {"start": int(start)}:
                at = start
            case {"done": True}:
                done = True
    if not done:
        heard.problem = f"{ended.told} {'while it was imported' if at < 0 else f'on witness {at + 1} or soon after'}"
        heard.broke = at >= 0 and ended.how != "hung"
    return heard


def _form(line: str) -> Mapping[str, Any]:
    try:
        form = json.loads(line)
    except ValueError:  # the last line of a process that did not come back
        return {}
    return form if isinstance(form, dict) else {}


def _asked_over_http(asked: Asked, scorer: Scorer, seconds: float) -> Heard:
    deadline = time.monotonic() + seconds
    rows = asked.rows.tolist()
    heard, requests = Heard(), 0
    waiting = [(start, min(start + HTTP_BATCH, len(rows))) for start in range(0, len(rows), HTTP_BATCH)][::-1]
    while waiting:
        start, stop = waiting.pop()
        requests += 1
        if requests > MOST_REQUESTS:
            heard.problem = f"it failed so often that asking stopped after {MOST_REQUESTS} requests"
            return heard
        try:
            answers = ask(scorer, asked.program.features, rows[start:stop], deadline)
        except NotScored as error:
            if error.whole:
                heard.problem = f"{error} at witness {start + 1}"
                return heard
            if stop - start == 1:
                heard.errors[start] = str(error)
            else:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
            continue
        heard.answers |= dict(enumerate(answers, start))
    return heard


def _judged(asked: Asked, heard: Heard, what: str, engine: str) -> Audited:
    said = [heard_label(heard, row) for row in range(len(asked.rows))]
    ran = np.array([row in heard.answers or row in heard.errors for row in range(len(asked.rows))], dtype=bool)
    if not ran.any() and heard.problem is not None:
        return Audited(what, "callable", "different" if heard.broke else "not run", heard.problem, engine=engine)
    deployed = as_observed(asked, heard.answers)
    shown = execution(asked, engine, deployed, _labels_told(asked, deployed, heard, said), ran)
    verdict: AuditVerdict = "different" if shown.different or heard.broke else "not run" if heard.problem else "equal"
    reasons = [] if shown.first is None else [first_reason(shown.first)]
    reasons += [heard.problem] if heard.problem else []
    return Audited(
        what=what,
        kind="callable",
        verdict=verdict,
        reason="; ".join(reasons) or None,
        engine=engine,
        execution=shown,
        changes=witness_changes(asked, shown, deployed, ran),
        region=witness_region(asked, shown),
        more={"compared": compared_text(asked, deployed, ran)},
    )


def heard_label(heard: Heard, row: int) -> Any:
    """The label of a row as it was said, or why there is none."""
    if row in heard.errors:
        return f"no label: {heard.errors[row]}"
    form = heard.answers.get(row, {})
    return form.get("label", form.get("other"))


def _labels_told(asked: Asked, deployed: Observed, heard: Heard, said: list[Any]) -> list[Any]:
    """Where only probabilities were given, the label of the largest."""
    classes = asked.program.classes
    return [
        classes[number] if label is None and number >= 0 and "label" not in heard.answers.get(row, {}) else label
        for row, (label, number) in enumerate(zip(said, deployed.classes.tolist(), strict=True))
    ]


def as_observed(asked: Asked, answers: Mapping[int, Mapping[str, Any]]) -> Observed:
    """Answers as numbers. What some rows were given and others not is missing there, and so differs."""
    count, width = len(asked.rows), len(asked.program.classes)
    class_number = class_finder(asked.program.classes)
    classes = np.full(count, UNKNOWN, dtype=np.int64)
    probabilities, scores = np.full((count, width), np.nan), np.full((count, width), NO_SCORE, dtype=np.int64)
    for row, form in answers.items():
        if _is_of(form.get("probabilities"), width):
            probabilities[row] = [
                value if isinstance(value, int | float) else np.nan for value in form["probabilities"]
            ]
        if _is_of(form.get("scores"), width):
            scores[row] = [
                value if isinstance(value, int) and _is_number(value) else NO_SCORE for value in form["scores"]
            ]
        if "label" in form or "other" in form:
            classes[row] = class_number(form.get("label", form.get("other")))
        elif not np.isnan(probabilities[row]).any():
            classes[row] = int(probabilities[row].argmax())
    given = {key for form in answers.values() for key in form}
    return Observed(classes, probabilities if "probabilities" in given else None, scores if "scores" in given else None)


def _is_of(values: Any, width: int) -> bool:
    return isinstance(values, list) and len(values) == width


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)
