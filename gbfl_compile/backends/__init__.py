"""The targets: one row each. A new one is a backend file, a template and a line here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from gbfl_compile.backends.base import Artifact, Backend, Options, artifact_name
from gbfl_compile.backends.c import BACKEND as C
from gbfl_compile.backends.js import BACKEND as JS
from gbfl_compile.backends.onnx import BACKEND as ONNX
from gbfl_compile.backends.python import BACKEND as PYTHON
from gbfl_compile.backends.sql import BACKENDS as SQL
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.ir.validate import validate

BACKENDS: Mapping[str, Backend] = {
    PYTHON.target: PYTHON,
    C.target: C,
    ONNX.target: ONNX,
    JS.target: JS,
    **SQL,
}


def _suggestion(target: str) -> str:
    """A guess at a mistyped target."""
    near = difflib.get_close_matches(target, BACKENDS, 1, 0.6)
    if target in (name.partition(":")[2] for name in BACKENDS):
        near = [f"sql:{target}"]
    if target == "sql":
        return " (which database? sql:duckdb, for example)"
    return f" (did you mean {near[0]}?)" if near else ""


def backend(target: str) -> Backend:
    """The row of a target, or an error that lists them all."""
    if target not in BACKENDS:
        raise BadInput(f"unknown target {target!r}{_suggestion(target)}: there are {', '.join(BACKENDS)}")
    return BACKENDS[target]


def emit(
    program: Program, target: str, name: str = "model", options: Options | None = None, **settings: str
) -> Artifact:
    """The program written for one target; nothing is written to disk.

    The target's options are given as a mapping or by name: `emit(program, "sql:postgres", form="view", table="loans")`.
    """
    all_options = {**(options or {}), **settings}
    for option, value in all_options.items():
        if not isinstance(value, str):
            raise BadInput(f"target {target}: {option}={value!r}: give options as text, such as {option}='{value}'")
    way = backend(target)
    decision = validate(program).decision
    if isinstance(decision, Scorecard) and decision.bands and not way.emits_bands:
        raise BadInput(f"target {target} does not write observed rates: mine the rule set with --probabilities score")
    artifact = way.emit(program, artifact_name(name), all_options)
    return replace(artifact, options=all_options)


def folder_name(target: str) -> str:
    """Where a target's artifacts go below an output folder: `sql:duckdb` goes to `sql-duckdb`."""
    return target.replace(":", "-")


def target_of_folder(name: str) -> str | None:
    """The target whose artifacts a folder of this name holds, or None."""
    return next((target for target in BACKENDS if folder_name(target) == name), None)
