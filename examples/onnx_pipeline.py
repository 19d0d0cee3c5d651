"""A scikit-learn pipeline with rules at its end, converted by skl2onnx and run by ONNX Runtime.

Needs the extra `onnx`; run it with `python examples/onnx_pipeline.py`.
"""

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile import GBFLClassifier
from gbfl_compile.backends.onnx.skl2onnx import register_converters

x, y = load_iris(return_X_y=True)
x = x.astype(np.float32)
pipeline = make_pipeline(
    SimpleImputer(), StandardScaler(), GBFLClassifier(head="tree", max_depth=3, random_state=0)
).fit(x, y)

register_converters()  # once, before converting
model = to_onnx(pipeline, x[:1], options={"zipmap": False})

session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
label, probabilities = session.run(None, {"X": x})
print(f"{len(model.graph.node)} nodes, {(label == pipeline.predict(x)).sum()} of {len(x)} labels the same")
