"""Run by `.bench/bin/python`: times the peers on a depth-5 tree and prints `who<tab>nanoseconds` lines.

peer_race.py ROWS.npy LABELS.npy
"""

import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier


def timed(who, call, items, rounds=5):
    call()
    taken = []
    for _ in range(rounds):
        began = time.process_time_ns()
        call()
        taken.append((time.process_time_ns() - began) / items)
    sys.stdout.write(f"{who}\t{statistics.median(taken)}\n")


def race_m2cgen(model, rows):
    import m2cgen

    loop = """
void batch(double *x, long n, long width, int *out) {
    double votes[2];
    for (long i = 0; i < n; i++) { score(x + i * width, votes); out[i] = votes[1] > votes[0]; }
}
"""
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "m.c").write_text(m2cgen.export_to_c(model) + loop)
        command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "m.c", "-o", "m.so"]
        subprocess.run(command, cwd=made, check=True, capture_output=True)
        batch = ctypes.CDLL(str(Path(made) / "m.so")).batch
        out = np.empty(len(rows), dtype=np.int32)
        pointers = [ctypes.c_void_p(rows.ctypes.data), ctypes.c_long(len(rows)), ctypes.c_long(rows.shape[1])]
        timed("m2cgen C -O3", lambda: batch(*pointers, ctypes.c_void_p(out.ctypes.data)), len(rows))


def race_onnx(model, rows):
    import onnxruntime
    from skl2onnx import to_onnx

    narrow = rows.astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = to_onnx(model, narrow[:1], options={"zipmap": False}).SerializeToString()
    session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    timed("ONNX Runtime, float32 given", lambda: session.run(None, {"X": narrow}), len(rows))


def race_tl2cgen(rows, labels):
    import tl2cgen
    import treelite
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(1, max_depth=5, bootstrap=False, max_features=None, random_state=0)
    model = treelite.sklearn.import_model(forest.fit(rows[:50_000], labels[:50_000]))
    with tempfile.TemporaryDirectory() as made:
        library = str(Path(made) / "peer.so")
        tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={}, verbose=False)
        predictor = tl2cgen.Predictor(library, nthread=1)
        matrix = tl2cgen.DMatrix(rows, dtype="float64")
        timed("tl2cgen, matrix prebuilt", lambda: predictor.predict(matrix), len(rows))


def race_lleaves(rows, labels):
    import lightgbm
    import lleaves

    data = lightgbm.Dataset(rows[:50_000], labels[:50_000])
    made = lightgbm.train({"objective": "binary", "num_leaves": 32, "max_depth": 5, "verbose": -1}, data, 1)
    with tempfile.TemporaryDirectory() as folder:
        made.save_model(str(Path(folder) / "m.txt"))
        model = lleaves.Model(model_file=str(Path(folder) / "m.txt"))
        model.compile()
        timed("lleaves, a LightGBM tree of like size", lambda: model.predict(rows, n_jobs=1), len(rows))


def race_emlearn(model, rows):
    import emlearn

    made = emlearn.convert(model, method="inline")
    narrow = rows.astype(np.float32)
    timed("emlearn, float32 given", lambda: made.predict(narrow), len(rows))


def main():
    rows, labels = np.load(sys.argv[1]), np.load(sys.argv[2])
    model = DecisionTreeClassifier(max_depth=5, random_state=0).fit(rows[:50_000], labels[:50_000])
    timed("scikit-learn", lambda: model.predict(rows), len(rows))
    races = {
        "m2cgen": lambda: race_m2cgen(model, rows),
        "ONNX Runtime": lambda: race_onnx(model, rows),
        "tl2cgen": lambda: race_tl2cgen(rows, labels),
        "lleaves": lambda: race_lleaves(rows, labels),
        "emlearn": lambda: race_emlearn(model, rows),
    }
    for peer, race in races.items():
        try:
            race()
        except Exception as error:  # a peer that fails is named, and the others go on
            sys.stderr.write(f"{peer}: not raced: {type(error).__name__}: {str(error).splitlines()[:1]}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
