"""Models, rows and expected answers in files, for ONNX implementations that live in environments of their own."""

import json
import random

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.batch import evaluate_many
from tests.backends.c.programs import CARD, TREE, random_card, random_tree

PROGRAMS = {
    "tree": TREE,
    "card": CARD,
    "random_tree": random_tree(5, 12, features=5, atoms=2),
    "random_card": random_card(6, 15, features=5, atoms=2, classes=3),
}


def write_cases(folder, lowerings=("logic", "tree"), most_rows=None):
    """NAME.onnx, NAME.rows (raw numbers) and cases.json, for each program, lowering and dtype."""
    cases = []
    for name, program in PROGRAMS.items():
        for lowering in lowerings:
            for dtype in ("float64", "float32"):
                case = f"{name}_{lowering}_{dtype}"
                content = emit(program, "onnx", options={"lowering": lowering, "dtype": dtype}).files["model.onnx"]
                (folder / f"{case}.onnx").write_bytes(content)
                with np.errstate(over="ignore"):
                    rows = witnesses(program).astype(dtype)
                if most_rows is not None and len(rows) > most_rows:
                    rows = rows[sorted(random.Random(0).sample(range(len(rows)), most_rows))]
                (folder / f"{case}.rows").write_bytes(np.ascontiguousarray(rows).tobytes())
                expected = evaluate_many(program, rows.astype(np.float64))
                cases.append(
                    {
                        "name": case,
                        "dtype": dtype,
                        "shape": list(rows.shape),
                        "labels": expected.labels.tolist(),
                        "scores": None if expected.scores is None else expected.scores.tolist(),
                    }
                )
    (folder / "cases.json").write_text(json.dumps(cases))
    return cases
