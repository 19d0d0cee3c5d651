"""Runs an emitted model in ONNX Runtime, in batches that stay in the processor's cache."""

from __future__ import annotations

import importlib.util
import json
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends.base import Availability, Predictor
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.files.atomic import read_whole

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Answers, Matrix

BATCH = 32_768
"""Rows per run: columns of this length stay in cache between operators, and outweigh each node's overhead."""

LARGE = 200_000
"""Bytes beyond which the runtime's graph optimiser is off: loading would take many seconds for no gain."""

INSTALL = "pip install 'gbfl-compile[onnx]'"


def open_model(path: Path, threads: int = 1) -> Predictor:
    """The model in a file, run by ONNX Runtime. The answers do not depend on the number of threads."""
    content = read_whole(path)
    session = _session(content, str(path), threads)
    try:
        fields = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
        digest, features, classes = (
            fields["gbfl.digest"],
            fields["gbfl.features"],
            fields["gbfl.classes"],
        )
        dtype, by_column = fields["gbfl.dtype"], fields["gbfl.inputs"] == "columns"
    except (KeyError, ValueError) as error:
        raise BadInput(f"{path}: is not a model this target emits, its metadata lacks {error}") from None

    def answer(rows: Matrix) -> Answers:
        return _answers(session, rows, tuple(features), dtype, by_column)

    engine = _engine(session, dtype)
    return Predictor("onnx", engine, digest, tuple(features), tuple(classes), answer, dtype, threads=True)


def _session(content: bytes, where: str, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise CannotRun(f"{where}: running ONNX models needs onnxruntime: {INSTALL}") from None
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    if len(content) > LARGE:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3  # errors only: they are raised anyway
    try:
        return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's exceptions have no common base class
        reason = str(error).strip().splitlines()[0]
        if "TreeEnsemble" in reason:
            reason += " (emit it with lowering=logic, or use onnxruntime 1.21 or newer)"
        raise BadInput(f"{where}: ONNX Runtime {onnxruntime.__version__} cannot load it: {reason}") from error


def _engine(session: Any, dtype: str) -> str:
    version = metadata.version("onnxruntime")
    return f"onnxruntime {version}" if dtype == "float64" else f"onnxruntime {version}, rows rounded to {dtype}"


def _answers(session: Any, rows: Matrix, features: tuple[str, ...], dtype: str, by_column: bool) -> Answers:
    import numpy as np

    from gbfl_compile.ir.batch import Answers, label_array

    if rows.ndim != 2 or rows.shape[1] != len(features):
        raise BadInput(f"rows of shape {rows.shape}: the model has {len(features)} features")
    names = [output.name for output in session.get_outputs()]
    parts = []
    for start in range(0, max(len(rows), 1), BATCH):
        with np.errstate(over="ignore"):  # a double beyond float32 is infinite there
            batch = np.ascontiguousarray(rows[start : start + BATCH], dtype=dtype)
        feed = {name: batch[:, [f]] for f, name in enumerate(features)} if by_column else {"input": batch}
        parts.append(session.run(names, feed))
    outputs = {name: np.concatenate([part[i] for part in parts]) for i, name in enumerate(names)}
    by_leaf = "reason" in outputs and "score" not in outputs
    return Answers(
        labels=label_array(tuple(outputs["label"].tolist())),
        probabilities=outputs["probabilities"],
        leaves=outputs["reason"] if by_leaf else None,
        scores=outputs.get("score"),
    )


def available() -> Availability:
    """Whether onnx and onnxruntime are installed; neither is imported to find out."""
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    engine = "onnxruntime" if "onnxruntime" in missing else f"onnxruntime {metadata.version('onnxruntime')}"
    return Availability(
        engine,
        cannot_emit=f"onnx is not installed: {INSTALL}" if "onnx" in missing else None,
        cannot_run=f"onnxruntime is not installed: {INSTALL}" if "onnxruntime" in missing else None,
    )
