"""Runs something that can be called on the witnesses, in a separate process, and compares it with the program.

Foreign code may crash, hang, print or exit; each of these is a result like any other. The process leads its own process
group, which ends with it; its input is empty and its output is discarded. Results come back through files.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from gbfl_compile.auditing.answers import (
    NO_SCORE,
    Bits,
    RowAnswers,
    answers_of,
    as_json,
    differing,
    differs_at,
    json_number,
    kind_of,
)
from gbfl_compile.auditing.compare import moves_between
from gbfl_compile.auditing.diagnose import explain
from gbfl_compile.auditing.story import RowMoves
from gbfl_compile.auditing.verdict import Change, Region
from gbfl_compile.checking.run import Execution, named_values
from gbfl_compile.checking.witnesses import rows_to_run
from gbfl_compile.ir.batch import Matrix, label_array
from gbfl_compile.ir.kinds import Codebook, Value, decode_rows, is_missing
from gbfl_compile.ir.nodes import Program

Real: TypeAlias = Literal["float64", "float32"]


@dataclass(frozen=True, slots=True)
class WitnessInput:
    """The rows to run, and the approved answer to each."""

    program: Program
    rows: Matrix
    approved: RowAnswers
    book: Codebook
    """The codes of the rows' texts: the program's, those that are easily mistaken for them, and the user's own."""
    own_rows: int = 0
    """How many of the rows, the last ones, are the user's own."""

    def values(self) -> list[list[Value]]:
        """The rows as Python has them: texts, booleans and dates; None where one of these is missing."""
        return decode_rows(self.program, self.rows.tolist(), self.book)


def witness_input(
    program: Program,
    real: Real = "float64",
    data: Matrix | None = None,
    book: Codebook | None = None,
    constants: Collection[float] = (),
) -> WitnessInput:
    """The witnesses, as a check runs them too, and then the user's own rows; `book` has the codes of their texts.

    `constants` are the numbers in the scorer's source: each is tried in every feature.
    """
    found = rows_to_run(program, () if data is None else (data,), real, extra_constants=constants, own_book=book)
    own_rows = 0 if data is None else len(data)
    return WitnessInput(program, found.rows, answers_of(program, found.rows), found.book, own_rows)


def execution(inputs: WitnessInput, engine: str, deployed: RowAnswers, labels: Sequence[Any], ran: Bits) -> Execution:
    """Compares the answers with the approved ones; `ran` has the rows that were answered at all."""
    differs = ran & differs_at(inputs.program, inputs.approved, deployed)
    first = None
    if differs.any():
        place = _first_place(inputs, deployed, differs)
        target = {"label": as_json(labels[place]), **_beside_the_label(deployed, place)}
        label = inputs.program.classes[int(inputs.approved.classes[place])]
        first = {
            "witness": place + 1,
            "row": named_values(inputs.program, inputs.rows[place].tolist(), inputs.book),
            "source": {"label": label, **_beside_the_label(inputs.approved, place, target)},
            "target": target,
        }
    return Execution(engine, int(ran.sum()), int(differs.sum()), first)


def _first_place(inputs: WitnessInput, deployed: RowAnswers, differs: Bits) -> int:
    """A row with another label before one with the same label and another probability."""
    labels = differs & differing(inputs.program, inputs.approved, deployed)["labels"]
    return int(np.flatnonzero(labels if labels.any() else differs)[0])


def _beside_the_label(answers: RowAnswers, place: int, like: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Probabilities and scores of a row as JSON, only those that `like` has too."""
    form: dict[str, Any] = {}
    if answers.probabilities is not None:
        form["probabilities"] = [json_number(value) for value in answers.probabilities[place].tolist()]
    if answers.scores is not None:
        form["scores"] = [None if value == NO_SCORE else value for value in answers.scores[place].tolist()]
    return form if like is None else {key: value for key, value in form.items() if key in like}


def first_reason(first: Mapping[str, Any]) -> str:
    """One line on the first difference: the labels, or what differs beside them."""
    source, target = first["source"], first["target"]
    same_label = (kind_of(source["label"]), source["label"]) == (kind_of(target["label"]), target["label"])
    beside = (key for key in ("probabilities", "scores") if same_label and source.get(key) != target.get(key))
    key = next(beside, "label")
    what = "" if key == "label" else f"the {key} "
    return f"witness {first['witness']}: {what}{source.get(key)!r} is answered {target.get(key)!r}"


def compared_text(inputs: WitnessInput, deployed: RowAnswers, ran: Bits) -> str:
    """What was compared, and how much of it differs: `labels, none different; probabilities, 7 different`."""
    parts = []
    for name, wrong in differing(inputs.program, inputs.approved, deployed).items():
        count = int((wrong & ran).sum())
        parts.append(f"{name}, {count:,} different" if count else f"{name}, none different")
    return "; ".join(parts)


def witness_changes(inputs: WitnessInput, run: Execution, deployed: RowAnswers, ran: Bits) -> tuple[Change, ...]:
    """The one slip that would explain all answers, where there is one."""
    if not run.different:
        return ()
    explanation = explain(inputs.program, inputs.rows[ran], deployed.at(ran), book=inputs.book)
    return () if explanation is None else explanation.changes("every witness")


def own_row_moves(inputs: WitnessInput, labels: Sequence[Any], ran: Bits) -> RowMoves | None:
    """How the user's own rows move between classes; None without such rows, or if some were not answered."""
    first = len(inputs.rows) - inputs.own_rows
    if not inputs.own_rows or not ran[first:].all():
        return None
    approved = [inputs.program.classes[number] for number in inputs.approved.classes[first:].tolist()]
    deployed = [as_json(label) for label in labels[first:]]
    return moves_between(label_array(tuple(approved)), label_array(tuple(deployed)))


def witness_region(inputs: WitnessInput, run: Execution) -> Region | None:
    """The first differing row. How far the difference reaches is not known from running."""
    if run.first is None:
        return None
    number = run.first["witness"]
    (values,) = decode_rows(inputs.program, [inputs.rows[number - 1].tolist()], inputs.book)
    row = {
        name: None if is_missing(value) else value for name, value in zip(inputs.program.features, values, strict=True)
    }
    approved, deployed = run.first["source"]["label"], run.first["target"]["label"]
    return Region(f"the row is witness {number}", row, approved, deployed)


How: TypeAlias = Literal["returned", "exited", "crashed", "hung"]

POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended."""

    how: How
    words: str
    """For a process that did not finish: `it crashed (SIGSEGV)`."""


def run_isolated(
    file: str,
    arguments: Sequence[str],
    seconds: float,
    environment: Mapping[str, str],
    *,
    flag: str,
    folder: Path | None = None,
) -> ProcessEnd:
    """Run one of our workers for at most `seconds`, by a Python with `flag`. Code 0 is `returned`, others `exited`.

    It ends with us: see `worker.py`.
    """
    process = subprocess.Popen(  # noqa: S603 - our own worker; what it loads is why it runs apart
        [sys.executable, flag, str(Path(__file__).with_name("worker.py")), file, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=dict(environment),
        cwd=folder,
    )
    try:
        in_time = _wait(process, time.monotonic() + seconds)
    finally:
        _end_group(process.pid)  # before it is reaped: until then its number is nobody else's
        code = process.wait()
        if process.stdin is not None:
            process.stdin.close()
    if not in_time:
        return ProcessEnd("hung", f"it hung: not done within {seconds:g} s")
    if code < 0:
        return ProcessEnd("crashed", f"it crashed ({_signal_name(-code)})")
    return ProcessEnd("returned" if code == 0 else "exited", f"it ended the process (code {code})")


def _wait(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Whether the process ended in time; it is not reaped, where the system can tell without (macOS cannot)."""
    while not _has_ended(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end_group(pid: int) -> None:
    """The process and whatever it has started and left in its group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
