"""Small artifacts of every target and option, with the results of proving and running them: for the readers' tests."""

import ctypes
import itertools
import subprocess
import types

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import read_artifact
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.prove.reasons import WrongReason, prove_reasons
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Scorecard
from tests.checking.respelling import random_program

KINDS = ("tree", "list", "scorecard", "banded")

OPTIONS = {
    "python": [{}],
    "js": [{}],
    "c": [
        {"dtype": dtype, "kernel": kernel, "layout": layout}
        for dtype, kernel, layout in itertools.product(
            ("float64", "float32"), ("ifelse", "select", "bits"), ("plain", "arduino", "platformio", "cmake")
        )
    ],
    "onnx": [
        {"dtype": dtype, "lowering": lowering, "inputs": inputs, "reason": reason}
        for dtype, lowering, inputs, reason in itertools.product(
            ("float64", "float32"), ("logic", "tree"), ("tensor", "columns"), ("no", "yes")
        )
    ],
}


def random_artifact(choose, target, options=None):
    """A random program and its artifact, with options chosen at random (those a program cannot have are not taken)."""
    while True:
        program = random_program(choose, choose.choice(KINDS))
        taken = options if options is not None else choose.choice(OPTIONS[target])
        try:
            return program, emit(program, target, "model", taken)
        except BadInput:
            continue


def findings(program, target, files):
    """What is found of each reading: "proved", a Counterexample, "undecided"; "names" or "unread" where it ends before.

    Features or labels that are not the program's are a difference too, and one that is said by name. So are reasons,
    and what a self-test expects ("reasons").
    """
    try:
        readings = read_artifact(target, files, program).readings
    except Unread:
        return ["unread"]
    found = []
    for reading in readings:
        try:
            proof = prove(program, reading)
        except BadInput:
            found.append("names")
            continue
        different = [finding for finding in proof.findings.values() if isinstance(finding, Counterexample)]
        if not different and isinstance(prove_reasons(program, reading), WrongReason):
            found.append("reasons")
            continue
        found.append((reading, different[0]) if different else proof.answer)
    return found


def said_by_python(files, rows):
    """(labels, probabilities, leaf or scores) of each row, by the module itself."""
    module = types.ModuleType("model")
    exec(compile(files["model.py"], "model.py", "exec"), module.__dict__)
    found = []
    for row in rows:
        reason = module.explain(row)
        found.append((reason["label"], reason["probabilities"], reason.get("leaf", reason.get("scores"))))
    return found


def said_by_onnx(files, rows, features):
    """The same by ONNX Runtime, None for what has no output; None for all where the runtime does not take the model."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(files["model.onnx"], settings, providers=["CPUExecutionProvider"])
    except Exception:  # the runtime's exceptions have no common ancestor
        return None
    inputs = session.get_inputs()
    kind = np.float64 if inputs[0].type == "tensor(double)" else np.float32
    with np.errstate(over="ignore"):
        table = np.array(rows, dtype=np.float64).astype(kind).reshape(len(rows), -1)
    by_column = len(inputs) > 1 or inputs[0].name != "input"
    feed = {each.name: table[:, [features.index(each.name)]] for each in inputs} if by_column else {"input": table}
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(names, feed), strict=True))
    detail = found.get("score", found.get("reason"))
    return [
        (
            found["label"][i].item() if hasattr(found["label"][i], "item") else found["label"][i],
            tuple(found["probabilities"][i].tolist()),
            None if detail is None else (tuple(detail[i].tolist()) if detail.ndim == 2 else int(detail[i])),
        )
        for i in range(len(rows))
    ]


def said_by_c(files, rows, program, folder):
    """{function: [(class number, leaf or scores)]} by each function of the library, built plainly; None where it cannot be."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    library = folder / f"model{len(list(folder.iterdir()))}.so"
    command = ["gcc", "-O0", "-w", "-ffp-contract=off", "-fPIC", "-shared", "-DGBFL_WITH_LIBM", "-DGBFL_NO_CLONES"]
    run = subprocess.run([*command, "model.c", "-o", str(library), "-lm"], cwd=folder, capture_output=True)
    if run.returncode != 0:
        return None
    loaded = ctypes.CDLL(str(library))
    kind = np.float32 if b"model_REAL_BITS = 32" in files["model.h"] else np.float64
    with np.errstate(over="ignore"):
        table = np.ascontiguousarray(np.array(rows, dtype=np.float64).astype(kind).reshape(len(rows), -1))
    pointer = lambda array: array.ctypes.data_as(ctypes.c_void_p)  # noqa: E731
    scored = isinstance(program.decision, Scorecard)
    classes = len(program.classes)
    found = {"predict": [], "detail": []}
    for row in table:
        found["predict"].append(loaded.model_predict(pointer(row)))
        sums, held = np.zeros(classes, np.int64), np.zeros(64, np.uint32)
        if scored:
            loaded.model_score(pointer(row), pointer(sums))
            found["detail"].append(tuple(sums.tolist()))
        else:
            found["detail"].append(loaded.model_explain(pointer(row), pointer(held)))
    if hasattr(loaded, "model_predict_rows"):
        stride, n = ctypes.c_ssize_t(table.shape[1]), ctypes.c_size_t(len(rows))
        columns = np.ascontiguousarray(table.T)
        pointers = (ctypes.c_void_p * table.shape[1])(*(pointer(column).value for column in columns))
        for verb, width, out_kind in (
            ("predict", 1, np.int32),
            ("score", classes, np.int64) if scored else ("leaf", 1, np.int32),
        ):
            for way, arguments in (("rows", (pointer(table), n, stride)), ("columns", (pointers, n))):
                out = np.zeros((len(rows), width), out_kind)
                getattr(loaded, f"model_{verb}_{way}")(*arguments, pointer(out))
                answers = [tuple(row.tolist()) if verb == "score" else int(row[0]) for row in out]
                found[f"{verb}_{way}"] = answers
    return found
