"""Where ONNX Runtime spends its time on a graph of ours: nanoseconds per row for each kind of operator."""

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import onnxruntime

from gbfl_compile.backends.onnx import BATCH
from tests.bench.timing import Timing


def where_time_goes(shape: str, content: bytes, rows: Any) -> list[Timing]:
    """The runtime's own profile over all rows, in batches as our `load` runs them."""
    with tempfile.TemporaryDirectory() as folder:
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        settings.enable_profiling = True
        settings.profile_file_prefix = str(Path(folder) / "profile")
        session = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
        for start in range(0, len(rows), BATCH):
            session.run(None, {"input": rows[start : start + BATCH]})
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    taken: dict[str, float] = defaultdict(float)
    nodes: dict[str, set[str]] = defaultdict(set)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            operator = event["args"]["op_name"]
            taken[operator] += event["dur"] * 1000 / len(rows)
            nodes[operator].add(event["name"])
    return [Timing("onnx", shape, f"{len(nodes[operator])} x {operator}", spent) for operator, spent in taken.items()]
