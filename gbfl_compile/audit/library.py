"""A deployed .so against the approved program: run on witnesses, never in this process, and never called proved alone.

What runs could know that it is being watched: this is evidence about an honest library, not protection from one that
is made to deceive. Where its source is given, that is read and proved, and rebuilt: a library with the same bytes as
a build of a proved source is proved as far as its compiler is trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.audit import library_worker
from gbfl_compile.audit.answer import Audited, AuditVerdict
from gbfl_compile.audit.apart import Ended, run_apart
from gbfl_compile.audit.library_answers import (
    FUNCTIONS,
    filled,
    functions_asked,
    held_words,
    observed,
    prepare,
    tables_told,
)
from gbfl_compile.audit.library_rebuild import rebuild
from gbfl_compile.audit.library_worker import LOADED, LOADING, NO_ANSWER
from gbfl_compile.audit.observed import Bits, Observed
from gbfl_compile.audit.witness_run import (
    Asked,
    Real,
    asked_rows,
    compared_text,
    execution,
    first_reason,
    witness_changes,
    witness_region,
)
from gbfl_compile.backends.base import artifact_name
from gbfl_compile.backends.c import label_string
from gbfl_compile.check.artifact_proof import artifact_files, prove_artifact
from gbfl_compile.errors import BadInput
from gbfl_compile.files import temporary_folder
from gbfl_compile.ir.nodes import Program, Tree
from gbfl_compile.ir.trees import leaf_numbers

SECONDS = 60.0
"""For loading it and all witnesses together."""

PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
"""What a foreign library sees of the environment: passwords may stand in the rest."""

FLUSHES = "it makes every process that loads it take the smallest numbers for zero (flush to zero)"

SPOILED = "it has spoiled the file of its answers"

ENGINE = "in a process of its own, by ctypes"


@dataclass(frozen=True, slots=True)
class Run:
    """What a worker left behind."""

    ended: Ended
    reached: int
    """The step it was at: below 0 not running yet, then forwards and backwards over the rows, then batches."""
    deployed: Observed
    again: NDArray[np.int64]
    functions: Mapping[str, str | None]
    """Its other functions that were asked, and how each differs first from what was approved."""
    told: Mapping[str, Any]


def audit_library(
    program: Program,
    path: Path,
    name: str,
    source: Path | None = None,
    *,
    seconds: float = SECONDS,
    real: Real = "float64",
    flags: Sequence[str] | None = None,
) -> Audited:
    """Ask `NAME_predict` of a shared library about every witness. `real` is what it reads, `flags` what built it."""
    artifact_name(name)
    before = _fingerprint(path)
    asked = asked_rows(program, real)
    run = _run(asked, path, name, seconds, real)
    if _fingerprint(path) != before:
        raise BadInput(f"{path}: was changed while it was audited, audit it again")
    found = _judged(asked, run, Audited(str(path), "library", "not run", fingerprint=before))
    if run.told.get("flushes_denormals"):
        found = replace(found, more={**found.more, "arithmetic": FLUSHES})
    return found if source is None else _with_source(program, found, source, flags)


def _fingerprint(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def _run(asked: Asked, path: Path, name: str, seconds: float, real: Real) -> Run:
    count, width = asked.rows.shape
    with temporary_folder("library") as folder:
        order = {"rows": count, "features": width, "real": real, **_sizes(asked.program)}
        (folder / "order.json").write_text(json.dumps(order))
        with np.errstate(over="ignore"):
            (folder / "rows.bin").write_bytes(np.ascontiguousarray(asked.rows, dtype=real).tobytes())
        steps = np.full(1 + 2 * count, NO_ANSWER, dtype=np.int64)
        (folder / "answers.bin").write_bytes(steps.tobytes())
        command = [sys.executable, "-I", str(Path(library_worker.__file__)), str(path.resolve()), name, str(folder)]
        environment = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        prepare(folder, asked)
        ended = run_apart(command, seconds, environment, folder)
        found = filled(folder / "answers.bin", np.int64, steps.shape)
        if found is None:
            return Run(ended, LOADED, Observed(steps[1:]), steps, {}, {"problem": f"{ended.told}: {SPOILED}"})
        steps = found
        deployed = observed(folder, asked, steps[1 : 1 + count])
        told = _told(folder / "told.json")
        functions = {**functions_asked(folder, asked, name), **tables_told(asked.program, told, name)}
        return Run(ended, int(steps[0]), deployed, steps[1 + count :], functions, told)


def _sizes(program: Program) -> dict[str, int]:
    leaves = len(leaf_numbers(program.decision)) if isinstance(program.decision, Tree) else 0
    counts = {"classes": len(program.classes), "clauses": len(program.clauses), "leaves": leaves}
    return {**counts, "held_words": held_words(program)}


def _told(path: Path) -> Mapping[str, Any]:
    """What the worker wrote at its end. A library has had the run of that process: anything may stand there."""
    try:
        form = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return {}
    return form if isinstance(form, dict) else {}


def _judged(asked: Asked, run: Run, found: Audited) -> Audited:
    if "problem" in run.told:
        return replace(found, reason=str(run.told["problem"]))
    if run.reached < 0:
        when = {LOADING: "while it was loaded", LOADED: "before its first answer"}.get(
            run.reached, "before it was loaded"
        )
        return replace(found, reason=f"{run.ended.told} {when}")
    ran = run.deployed.classes != NO_ANSWER
    said = [_label(asked.program, number) for number in run.deployed.classes.tolist()]
    shown = execution(asked, ENGINE, run.deployed, said, ran)
    reasons = list(_reasons(asked, run, ran, shown.first))
    broke = run.reached != 2 * len(asked.rows) or run.ended.how != "returned"
    verdict: AuditVerdict = "different" if reasons else "equal"
    if broke:
        reasons.append(f"{run.ended.told} {_where(run, len(asked.rows))}")
        hung = run.ended.how == "hung"
        verdict = "not run" if hung and verdict == "equal" else "different"
    digest = run.told.get("digest")
    return replace(
        found,
        verdict=verdict,
        reason="; ".join(reasons) or None,
        execution=shown,
        changes=witness_changes(asked, shown, run.deployed, ran),
        region=witness_region(asked, shown),
        engine=ENGINE,
        found_digest=digest if isinstance(digest, str) else None,
        more={**found.more, "compared": _compared(asked, run, ran)},
    )


def _reasons(asked: Asked, run: Run, ran: Bits, first: Mapping[str, Any] | None) -> Iterator[str]:
    """Each way in which it is not what was approved."""
    if names := _other_names(asked.program, run.told):
        yield names
    if first is not None:
        yield first_reason(first)
    changed = np.flatnonzero(ran & (run.again != NO_ANSWER) & (run.again != run.deployed.classes))
    if len(changed):
        yield f"witness {changed[0] + 1} is answered otherwise the second time: it remembers something"
    for function, wrong in run.functions.items():
        if wrong is not None and first is None:  # else they only say it again, and `compared` lists them
            yield f"{function}: {wrong}"


def _compared(asked: Asked, run: Run, ran: Bits) -> str:
    """What was held against what was approved."""
    others = [function if wrong is None else f"{function}, different" for function, wrong in run.functions.items()]
    return "; ".join([compared_text(asked, run.deployed, ran), *others])


def _where(run: Run, count: int) -> str:
    """Where it stopped: the number, from 1, of the row it was at, or the function that was given all rows."""
    if run.reached == 2 * count:
        return "while it told its names"
    if run.reached > 2 * count:
        return f"in its function …_{FUNCTIONS[min(run.reached - 2 * count - 1, len(FUNCTIONS) - 1)]}"
    return f"on witness {run.reached + 1 if run.reached < count else 2 * count - run.reached}"


def _label(program: Program, number: int) -> Any:
    return program.classes[number] if 0 <= number < len(program.classes) else f"class number {number}"


def _other_names(program: Program, told: Mapping[str, Any]) -> str | None:
    """Names that the library itself tells and that are not the program's. One without such functions tells none."""
    expected = {"features": list(program.features), "labels": [label_string(label) for label in program.classes]}
    for what, names in expected.items():
        listed = told.get(what)
        if isinstance(listed, list) and listed and listed != names:
            place = next((i for i, pair in enumerate(zip(listed, names, strict=False)) if pair[0] != pair[1]), 0)
            return f"its {what} are not the program's: number {place} is {str(listed[place])!r}, not {names[place]!r}"
    return None


def _with_source(program: Program, found: Audited, source: Path, flags: Sequence[str] | None) -> Audited:
    """The source proved and rebuilt. Its proof is the library's only where the bytes are the same."""
    if source.suffix != ".c" or not source.is_file():
        raise BadInput(f"{source}: name the .c file the library was built from")
    files = artifact_files(source, ".c")
    proof = prove_artifact(program, "c", files)
    built = rebuild(source, files, found.fingerprint or "", flags)
    told = f"{proof.answer}: {proof.reason}" if proof.reason else proof.answer
    more = {**found.more, "proof_of_source": f"{source.name}: {told}", "rebuild": built.pop("told")}
    more["built_from"] = {"file": str(source), "proof": proof.as_json(), **built}
    if not built["same_bytes"] or not built["same_meaning"]:
        return replace(found, more=more)
    verdict: AuditVerdict = "different" if proof.different else found.verdict
    return replace(found, more=more, proof=proof, verdict=verdict)
