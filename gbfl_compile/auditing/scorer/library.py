"""Compares a deployed .so with the approved program: run on witnesses in its own process, proved only with its source.

A library can detect that it is being tested: this is evidence about an honest library, not protection from one that
is made to deceive. Where its source is given, that is read and proved, and rebuilt: a library with the same bytes as
a build of a proved source is proved as far as its compiler is trusted.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.auditing.answers import Bits, RowAnswers
from gbfl_compile.auditing.scorer import (
    ProcessEnd,
    Real,
    WitnessInput,
    compared_text,
    execution,
    first_reason,
    library_worker,
    own_row_moves,
    run_isolated,
    witness_changes,
    witness_input,
    witness_region,
)
from gbfl_compile.auditing.scorer.library_answers import (
    FUNCTIONS,
    function_findings,
    held_words,
    prepare,
    read_numbers,
    row_answers,
    table_findings,
)
from gbfl_compile.auditing.scorer.library_worker import LOADED, LOADING, NO_ANSWER, ROUNDS
from gbfl_compile.auditing.verdict import AuditVerdict, DeployedVerdict
from gbfl_compile.backends.base import artifact_name
from gbfl_compile.backends.c import label_string
from gbfl_compile.backends.c.build import find_compiler, run_compiler
from gbfl_compile.backends.c.expressions import require_exact
from gbfl_compile.checking.artifact import artifact_files, prove_artifact
from gbfl_compile.checking.witnesses import artifact_constants
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import temporary_folder
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Codebook
from gbfl_compile.ir.nodes import Program, Tree, leaf_numbers

BUILD_SECONDS = 60

ALWAYS = ("-ffp-contract=off", "-fPIC", "-shared")
PLAIN = re.compile(
    r"-O[0-3s]?|-g[0-3]?|-s|-w|-W[a-z][a-z0-9=+-]*|-pipe|-shared|-lm|-std=(c|gnu)(99|9x|11|17|18|23|2x)"
    r"|-f(PIC|pic|fp-contract=off|visibility=hidden|stack-protector(-strong|-all)?|no-plt|(function|data)-sections)"
    r"|-DNDEBUG|-DGBFL_(WITH_LIBM|NO_BATCH|NO_CLONES)|-m(64|arch=[\w.-]+|tune=[\w.-]+)"
)
"""Flags with which a source means what it says. A macro, or a header put before it, makes another program of it."""

LEVELS = ("-O2", "-O3", "-O1", "-O0")
LIBM: tuple[tuple[str, ...], ...] = ((), ("-DGBFL_WITH_LIBM", "-lm"))
"""Without and with the probabilities of a rule set."""


def rebuild(source: Path, files: Mapping[str, bytes], fingerprint: str, flags: Sequence[str] | None) -> dict[str, Any]:
    """Whether some build of the source has this fingerprint; with `flags`, that build and no other."""
    compiler = find_compiler()
    if compiler is None:
        return {"same_bytes": None, "words": "not rebuilt: no C compiler was found, install one or name it in CC"}
    failed = ""
    with temporary_folder("rebuild") as folder:
        _write(folder, files)
        for tried in _flags(flags, b"GBFL_WITH_LIBM" in files[source.name]):
            failed = _build(compiler.command, tried, source.name, folder)
            same = not failed and hashlib.sha256((folder / "rebuilt.so").read_bytes()).hexdigest() == fingerprint
            if same:
                words = f"same bytes as a build of {source.name} by {compiler.version}, {' '.join(tried)}"
                if others := [flag for flag in tried if not PLAIN.fullmatch(flag)]:
                    words += f": with {others[0]} the source may mean something else, so its proof is not the library's"
                form = {"compiler": compiler.version, "flags": list(tried), "words": words}
                return {"same_bytes": True, "same_meaning": not others, **form}
    if failed:
        return {"same_bytes": None, "compiler": compiler.version, "words": f"not rebuilt: {failed}"}
    words = f"not the same bytes as a build of {source.name} (compilers and flags differ, this proves nothing)"
    return {"same_bytes": False, "compiler": compiler.version, "words": words}


def _flags(stated_flags: Sequence[str] | None, has_libm: bool) -> Iterator[tuple[str, ...]]:
    if stated_flags is not None:
        yield tuple(stated_flags)
        return
    for level, more in itertools.product(LEVELS, LIBM if has_libm else LIBM[:1]):
        yield (level, *ALWAYS, *more)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        if PurePosixPath(name).suffix in (".c", ".h"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


def _build(command: Sequence[str], flags: Sequence[str], name: str, folder: Path) -> str:
    """Build `rebuilt.so`; what went wrong, or nothing. Libraries come after the source that needs them."""
    libraries = [flag for flag in flags if flag.startswith("-l")]
    others = [flag for flag in flags if not flag.startswith("-l")]
    whole = [*command, *others, f"./{name}", "-o", "rebuilt.so", *libraries]
    try:
        ran = run_compiler(whole, folder, BUILD_SECONDS)
    except CannotRun as error:
        return str(error)
    return "" if ran.code == 0 else ran.first_error()[:300]


SECONDS = 60.0
"""For loading it and all witnesses together."""

PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
"""The environment variables that a foreign library sees: the rest may hold passwords."""

FLUSHES = "it makes every process that loads it take the smallest numbers for zero (flush to zero)"

SPOILED = "it has spoiled the file of its answers"

IN_PIECES = "batches also in pieces and row by row"

ENGINE = "in a separate process, by ctypes"


@dataclass(frozen=True, slots=True)
class Run:
    """What a worker wrote."""

    ended: ProcessEnd
    reached: int
    """The step it was at: below 0 not running yet, then forwards and backwards over the rows, then batches."""
    deployed: RowAnswers
    again: NDArray[np.int64]
    functions: Mapping[str, str | None]
    """Its other functions that were called, and the first difference of each from what was approved."""
    report: Mapping[str, Any]
    """What the worker wrote about the library as a whole."""


def audit_library(
    program: Program,
    path: Path,
    name: str,
    source: Path | None = None,
    *,
    seconds: float = SECONDS,
    real: Real = "float64",
    flags: Sequence[str] | None = None,
    data: Matrix | None = None,
    book: Codebook | None = None,
) -> DeployedVerdict:
    """Ask `NAME_predict` of a shared library about every witness and every row of `data`.

    `real` is the type of number it reads, `flags` are the compiler flags it was built with, `book` has the codes of
    the texts in `data`. Texts go in by the codes that the library's own `NAME_code` gives them.
    """
    artifact_name(name)
    require_exact(program, "double" if real == "float64" else "float")
    before = _fingerprint(path)
    constants = artifact_constants({} if source is None else _source_files(source))
    inputs = witness_input(program, real, data, book, constants)
    run = _run(inputs, path, name, seconds, real)
    if _fingerprint(path) != before:
        raise BadInput(f"{path}: was changed while it was audited, audit it again")
    deployed = DeployedVerdict(str(path), "library", "not run", fingerprint=before)
    result = _verdict(inputs, run, replace(deployed, material={path.name: path.read_bytes()}))
    if run.report.get("flushes_denormals"):
        result = replace(result, arithmetic=FLUSHES)
    return result if source is None else _with_source(program, result, source, flags)


def _fingerprint(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def _run(inputs: WitnessInput, path: Path, name: str, seconds: float, real: Real) -> Run:
    count, width = inputs.rows.shape
    with temporary_folder("library") as folder:
        order = {"rows": count, "features": width, "real": real, **_sizes(inputs.program), "texts": _texts(inputs)}
        (folder / "order.json").write_text(json.dumps(order))
        with np.errstate(over="ignore"):
            (folder / "rows.bin").write_bytes(np.ascontiguousarray(inputs.rows, dtype=real).tobytes())
        steps = np.full(1 + 2 * count, NO_ANSWER, dtype=np.int64)
        (folder / "answers.bin").write_bytes(steps.tobytes())
        arguments = [str(path.resolve()), name, str(folder)]
        environment = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        prepare(folder, inputs)
        ended = run_isolated(library_worker.__file__, arguments, seconds, environment, flag="-I", folder=folder)
        written = read_numbers(folder / "answers.bin", np.int64, steps.shape)
        if written is None:
            return Run(ended, LOADED, RowAnswers(steps[1:]), steps, {}, {"problem": f"{ended.words}: {SPOILED}"})
        steps = written
        deployed = row_answers(folder, inputs, steps[1 : 1 + count])
        report = _read_report(folder / "report.json")
        functions = {**function_findings(folder, inputs, name), **table_findings(inputs, report, name)}
        return Run(ended, int(steps[0]), deployed, steps[1 + count :], functions, report)


def _texts(inputs: WitnessInput) -> dict[int, list[str]]:
    """The texts of each category in the order of their codes, in UTF-8 and hexadecimal."""
    of_feature = zip(inputs.program.kinds, inputs.book.texts, strict=False)
    return {
        feature: [text.encode().hex() for text in texts]
        for feature, (kind, texts) in enumerate(of_feature)
        if kind == "category"
    }


def _sizes(program: Program) -> dict[str, int]:
    leaves = len(leaf_numbers(program.decision)) if isinstance(program.decision, Tree) else 0
    counts = {"classes": len(program.classes), "clauses": len(program.clauses), "leaves": leaves}
    return {**counts, "held_words": held_words(program)}


def _read_report(path: Path) -> Mapping[str, Any]:
    """What the worker wrote at its end. The library could write anything there, as it ran in that process."""
    try:
        form = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return {}
    return form if isinstance(form, dict) else {}


def _verdict(inputs: WitnessInput, run: Run, unrun: DeployedVerdict) -> DeployedVerdict:
    if "problem" in run.report:
        return replace(unrun, reason=str(run.report["problem"]))
    if run.reached < 0:
        when = {LOADING: "while it was loaded", LOADED: "before its first answer"}.get(
            run.reached, "before it was loaded"
        )
        return replace(unrun, reason=f"{run.ended.words} {when}")
    ran = run.deployed.classes != NO_ANSWER
    labels = [_label(inputs.program, number) for number in run.deployed.classes.tolist()]
    shown = execution(inputs, ENGINE, run.deployed, labels, ran)
    reasons = list(_reasons(inputs, run, ran, shown.first))
    unfinished = run.reached != 2 * len(inputs.rows) or run.ended.how != "returned"
    verdict: AuditVerdict = "different" if reasons else "equal"
    if unfinished:
        reasons.append(f"{run.ended.words} {_where(run, len(inputs.rows))}")
        hung = run.ended.how == "hung"
        verdict = "not run" if hung and verdict == "equal" else "different"
    digest = run.report.get("digest")
    return replace(
        unrun,
        verdict=verdict,
        reason="; ".join(reasons) or None,
        execution=shown,
        changes=witness_changes(inputs, shown, run.deployed, ran),
        region=witness_region(inputs, shown),
        engine=ENGINE,
        carried_digest=digest if isinstance(digest, str) else None,
        moves=own_row_moves(inputs, labels, ran) if shown.different else None,
        compared=_comparison_text(inputs, run, ran),
    )


def _reasons(inputs: WitnessInput, run: Run, ran: Bits, first: Mapping[str, Any] | None) -> Iterator[str]:
    """Each way in which it differs from what was approved."""
    if names := _other_names(inputs.program, run.report):
        yield names
    if first is not None:
        yield first_reason(first)
    changed = np.flatnonzero(ran & (run.again != NO_ANSWER) & (run.again != run.deployed.classes))
    if len(changed):
        yield f"witness {changed[0] + 1} gets a different answer the second time: the library keeps state"
    for function, wrong in run.functions.items():
        if wrong is not None and first is None:  # else they only say it again, and `compared` lists them
            yield f"{function}: {wrong}"


def _comparison_text(inputs: WitnessInput, run: Run, ran: Bits) -> str:
    """What was compared with what was approved."""
    again = {function: wrong for function, wrong in run.functions.items() if function.endswith(ROUNDS[1:])}
    others = [
        function if wrong is None else f"{function}, different"
        for function, wrong in run.functions.items()
        if wrong is not None or function not in again
    ]
    others += [IN_PIECES] if again and not any(again.values()) else []
    return "; ".join([compared_text(inputs, run.deployed, ran), *others])


def _where(run: Run, count: int) -> str:
    """Where it stopped: the number, from 1, of the row it was at, or the function that was given all rows."""
    if run.reached == 2 * count:
        return "while it gave its names"
    if run.reached > 2 * count:
        return f"in its function …_{FUNCTIONS[min(run.reached - 2 * count - 1, len(FUNCTIONS) - 1)]}"
    return f"on witness {run.reached + 1 if run.reached < count else 2 * count - run.reached}"


def _label(program: Program, number: int) -> Any:
    return program.classes[number] if 0 <= number < len(program.classes) else f"class number {number}"


def _other_names(program: Program, report: Mapping[str, Any]) -> str | None:
    """Names that the library itself reports and that are not the program's; none if it has no functions for them."""
    expected = {"features": list(program.features), "labels": [label_string(label) for label in program.classes]}
    for what, names in expected.items():
        listed = report.get(what)
        if isinstance(listed, list) and listed and listed != names:
            place = next((i for i, pair in enumerate(zip(listed, names, strict=False)) if pair[0] != pair[1]), 0)
            return f"its {what} are not the program's: number {place} is {str(listed[place])!r}, not {names[place]!r}"
    return None


def _source_files(source: Path) -> Mapping[str, bytes]:
    if source.suffix != ".c" or not source.is_file():
        raise BadInput(f"{source}: name the .c file the library was built from")
    return artifact_files(source, ".c")


def _with_source(
    program: Program, result: DeployedVerdict, source: Path, flags: Sequence[str] | None
) -> DeployedVerdict:
    """The source proved and rebuilt. Its proof is the library's only where the bytes are the same."""
    files = _source_files(source)
    proof = prove_artifact(program, "c", files)
    built = rebuild(source, files, result.fingerprint or "", flags)
    words = f"{proof.answer}: {proof.reason}" if proof.reason else proof.answer
    rebuild_text = built.pop("words")
    form = {"file": str(source), "proof": proof.as_json(), **built}
    result = replace(result, source_proof=f"{source.name}: {words}", rebuild=rebuild_text, built_from=form)
    if not built["same_bytes"] or not built["same_meaning"]:
        return result
    verdict: AuditVerdict = "different" if proof.different else result.verdict
    return replace(result, proof=proof, verdict=verdict)
