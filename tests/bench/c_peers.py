"""How each peer runs a depth-5 tree over a matrix: as its users do, and with a C loop around it where it emits C."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

from tests.bench.shapes import TRAINING_ROWS

BUILD = ["-O3", "-march=native", "-shared", "-fPIC"]


def build(source, folder, name, *flags):
    """A C source as a loaded library, with every flag that could make it quicker and keep its answers."""
    folder.mkdir()
    (folder / f"{name}.c").write_text(source)
    command = [shutil.which("cc"), *BUILD, *flags, f"{name}.c", "-o", f"{name}.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


def over(batch, rows, width, out):
    """A call of a C loop over all rows; it keeps the arrays alive whose addresses it holds."""
    arguments = address(rows), ctypes.c_long(len(rows)), width, address(out)
    return lambda kept=(rows, out): batch(*arguments), out


def m2cgen_c(model, rows, folder):
    import m2cgen

    source = (
        m2cgen.export_to_c(model)
        + """
void batch(double *x, long n, long width, int *out) {
    double votes[2];
    for (long i = 0; i < n; i++) { score(x + i * width, votes); out[i] = votes[1] > votes[0]; }
}
"""
    )
    batch = build(source, folder, "m2cgen_tree").batch
    out = np.empty(len(rows), dtype=np.int32)
    return over(batch, rows, ctypes.c_long(rows.shape[1]), out)


def m2cgen_python(model, rows):
    import m2cgen

    space = {}
    exec(m2cgen.export_to_python(model), space)  # its own output
    row, score = rows[0].tolist(), space["score"]
    return lambda: score(row)


def onnx_session(model, width):
    import onnxruntime
    from skl2onnx import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = to_onnx(model, np.zeros((1, width), dtype=np.float32), options={"zipmap": False}).SerializeToString()
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])


def tl2cgen_predictor(rows, labels, folder):
    """treelite takes forests, so it gets a forest of this one tree."""
    import tl2cgen
    import treelite
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(1, max_depth=5, bootstrap=False, max_features=None, random_state=0)
    model = treelite.sklearn.import_model(forest.fit(rows[:TRAINING_ROWS], labels[:TRAINING_ROWS]))
    folder.mkdir()
    library = str(folder / "tree.so")
    tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={}, verbose=False)
    return tl2cgen.Predictor(library, nthread=1)


def lleaves_model(rows, labels, folder):
    """lleaves compiles LightGBM: a tree of like size."""
    import lightgbm
    import lleaves

    data = lightgbm.Dataset(rows[:TRAINING_ROWS], labels[:TRAINING_ROWS])
    made = lightgbm.train({"objective": "binary", "num_leaves": 32, "max_depth": 5, "verbose": -1}, data, 1)
    folder.mkdir()
    made.save_model(str(folder / "m.txt"))
    model = lleaves.Model(model_file=str(folder / "m.txt"))
    model.compile()
    return model


def emlearn_c(model, narrow, folder):
    """emlearn's emitted tree in float, and a loop around it."""
    import emlearn

    folder.mkdir()
    made = emlearn.convert(model, method="inline", dtype="float")
    made.save(file=str(folder / "tree.h"), name="tree")
    source = f"""
#include "{folder / "tree.h"}"
void batch(const float *x, long n, int width, int *out) {{
    for (long i = 0; i < n; i++) {{ out[i] = tree_predict(x + i * width, width); }}
}}
"""
    headers = Path(emlearn.includedir)
    batch = build(source, folder / "build", "emlearn_tree", f"-I{headers}").batch
    out = np.empty(len(narrow), dtype=np.int32)
    return over(batch, narrow, ctypes.c_int(narrow.shape[1]), out)
