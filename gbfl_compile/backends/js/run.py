"""Runs an emitted JavaScript module with Node.js, in a separate process: rows in, answers out, no bit lost."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gbfl_compile.backends.base import Availability, Predictor
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files import resource_folder
from gbfl_compile.files.atomic import read_whole
from gbfl_compile.ir.nodes import Kind, Label

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Answers, Matrix
    from gbfl_compile.ir.kinds import Value

MISSING_NODE = "Node.js is not installed: apt-get install nodejs"

SECONDS = 600.0
"""Time limit for one run of Node.js."""

ROWS_AT_ONCE = 100_000
"""Rows that one run of Node.js is given."""


def _node_command() -> str:
    node = shutil.which("node")
    if node is None:
        raise CannotRun(MISSING_NODE)
    return node


@cache
def _engine(node: str) -> str:
    try:
        ran = subprocess.run([node, "--version"], capture_output=True, timeout=60, env=_environment())  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"Node.js cannot be run: {error}") from None
    if ran.returncode:
        raise CannotRun(f"Node.js cannot be run: {ran.stderr.decode('utf-8', 'replace')[:200]}")
    return f"Node.js {ran.stdout.decode('ascii', 'replace').strip()}"


def _environment() -> dict[str, str]:
    """Without the settings that make Node load other code first."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NODE_")}


def _run(content: bytes, where: str, columns: Sequence[object] | None) -> Any:
    """What the module says and answers, from a process of its own."""
    node = _node_command()
    with tempfile.TemporaryDirectory(prefix="gbfl-js-") as folder:
        Path(folder, "model.mjs").write_bytes(content)
        shutil.copyfile(resource_folder("templates") / "js" / "run.mjs", Path(folder, "run.mjs"))
        request = json.dumps(None if columns is None else {"columns": columns}).encode("ascii")
        try:
            ran = subprocess.run(  # noqa: S603 - running it is the point
                [node, "run.mjs"], input=request, capture_output=True, cwd=folder, timeout=SECONDS, env=_environment()
            )
        except subprocess.TimeoutExpired:
            raise CannotRun(f"{where}: Node.js did not finish within {SECONDS:g} seconds") from None
        except OSError as error:
            raise CannotRun(f"Node.js cannot be run: {error.strerror or error}") from None
    try:
        if ran.returncode == 0:
            return json.loads(ran.stdout)
    except ValueError:
        pass
    errors = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    first = errors[0] if errors else f"it ended with {ran.returncode}"
    why = next((line for line in errors if "Error" in line), first)
    raise BadInput(f"{where}: is not a module this target emits, or refuses a row: {why[:300]}")


LABELS = re.compile(rb"^export const CLASSES = Object\.freeze\((\[[^\n]*\])\);$", re.MULTILINE)


def _labels(content: bytes, reported: list[Any]) -> tuple[Label, ...]:
    """The classes: what Node says, as whole numbers or doubles by how the module writes them."""
    line = LABELS.search(content)
    try:
        written = json.loads(line[1]) if line else reported
    except ValueError:
        written = reported
    same = len(written) == len(reported) and all(
        isinstance(a, bool) == isinstance(b, bool) and a == b for a, b in zip(written, reported, strict=True)
    )
    return tuple(written if same else reported)


def load(path: Path) -> Predictor:
    """The module in a file, run by Node.js. It is code: load only what you would run."""
    engine, content = _engine(_node_command()), read_whole(path)
    about = _run(content, str(path), None)
    try:
        features = tuple(feature["name"] for feature in about["FEATURES"])
        kinds = tuple(feature["kind"] for feature in about["FEATURES"])
        classes, source = _labels(content, about["CLASSES"]), about["DIGEST"]
    except (KeyError, TypeError):
        raise BadInput(f"{path}: is not a module this target emits: it has no DIGEST, FEATURES or CLASSES") from None
    if set(kinds) == {"number"}:
        kinds = ()

    def answer(rows: Matrix) -> Answers:
        return _answers(len(rows), lambda at: [_doubles(rows[at, i]) for i in range(len(features))])

    def answer_rows(rows: Sequence[Sequence[Value]]) -> Answers:
        def columns(at: slice) -> list[object]:
            by_feature = zip(*rows[at], strict=True)
            every = kinds or ("number",) * len(features)
            return [_column(kind, values) for kind, values in zip(every, by_feature, strict=True)]

        return _answers(len(rows), columns)

    def _answers(count: int, columns: Callable[[slice], list[object]]) -> Answers:
        parts = [
            _run(content, str(path), columns(slice(start, start + ROWS_AT_ONCE)))
            for start in range(0, count, ROWS_AT_ONCE)
        ]
        return _join(classes, count, parts)

    return Predictor("js", engine, source, features, classes, answer, kinds=kinds, answer_rows=answer_rows)


def _doubles(values: Any) -> str:
    import numpy as np

    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")


def _column(kind: Kind, values: Sequence[Any]) -> object:
    """A column of Python values as JSON. A text with half of a surrogate pair is one in JavaScript too."""
    match kind:
        case "number":
            return _doubles([float("nan") if value is None else value for value in values])
        case "category" | "boolean":
            return [None if value is None or value != value else value for value in values]
        case "date" | "timestamp":
            return [None if value is None or value != value else value.isoformat() for value in values]
        case _:
            assert_never(kind)


def _join(classes: tuple[Label, ...], count: int, parts: Sequence[Mapping[str, Any]]) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    for part in parts:
        if part["wrong"] is not None:
            raise BadInput(f"score and scoreColumns disagree: {part['wrong']}")

    def column(name: str) -> Any:
        texts = [part[name] for part in parts]
        if None in texts:
            return None
        return np.frombuffer(b"".join(map(base64.b64decode, texts)), dtype="<f8")

    def whole(name: str) -> Any:
        values = column(name)
        return None if values is None else values.astype(np.int64)

    labels = label_array(classes)[whole("winners")]
    scores = whole("scores")
    return Answers(
        labels,
        column("probabilities").reshape(count, len(classes)),
        leaves=whole("leaves"),
        scores=None if scores is None else scores.reshape(count, len(classes)),
    )


def available() -> Availability:
    """It can always be emitted, and run where Node.js is."""
    node = shutil.which("node")
    return Availability("Node.js", cannot_run=MISSING_NODE) if node is None else Availability(_engine(node))
