"""Run by another environment's Python: `run_onnx_cases.py FOLDER` prints a line of differing labels and scores a case.

Needs only numpy and onnxruntime, of any version.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime


def main(folder):
    print("onnxruntime", onnxruntime.__version__)  # noqa: T201 - this is what it is for
    for case in json.loads((folder / "cases.json").read_text()):
        rows = np.frombuffer((folder / f"{case['name']}.rows").read_bytes(), dtype=case["dtype"]).reshape(case["shape"])
        try:
            session = onnxruntime.InferenceSession(
                str(folder / f"{case['name']}.onnx"), providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # which models a runtime takes is what is asked
            print(f"{case['name']}\tnot loaded\t{str(error).splitlines()[0]}")  # noqa: T201
            continue
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(names, {"input": rows}), strict=True))
        wrong = sum(a != b for a, b in zip(found["label"].tolist(), case["labels"], strict=True))
        if case["scores"] is not None:
            wrong += sum(a != b for a, b in zip(found["score"].tolist(), case["scores"], strict=True))
        print(f"{case['name']}\t{wrong}\t{len(rows)}")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
