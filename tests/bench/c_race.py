"""Run in the peers' environment by group `c`: prints one line of JSON per contender.

A contender that answers other labels than scikit-learn does on these ordinary rows is not raced. One that fails is
named, and the others go on.
"""

import ctypes
import json
import os
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.backends.c import load_scorer
from gbfl_compile.ir.batch import evaluate_many
from tests.bench import c_peers
from tests.bench.c_words import words_race
from tests.bench.shapes import clause_tree, data, fitted_tree, rule_set
from tests.bench.timing import race

ROWS = int(os.environ.get("GBFL_BENCH_ROWS", "1000000"))
CALLS, SLOW_CALLS = 200_000, 2_000

READ = """
#include <stddef.h>
#include <stdint.h>
uint64_t read_all(const uint64_t *x, size_t n) { uint64_t s = 0; for (size_t i = 0; i < n; i++) s ^= x[i]; return s; }
"""


def announce(found):
    for timed in found:
        line = asdict(timed)
        del line["group"]
        sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def scorer_of(program, folder, name, **options):
    target = folder / name
    target.mkdir()
    for file, content in emit(program, "c", "m", options).files.items():
        (target / file).write_bytes(content)
    return load_scorer(target / "m.c")


def our_session(program):
    """Our own ONNX graph of a program in ONNX Runtime, one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    made = emit(program, "onnx", "m", {}).files["m.onnx"]
    return onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])


def attempts(named):
    """The contenders that could be made, from (name, how to make it)."""
    made = {}
    for who, make in named.items():
        try:
            made[who] = make()
        except Exception as error:  # a peer that fails is named, and the others go on
            sys.stderr.write(f"{who}: not raced: {type(error).__name__}: {str(error).splitlines()[:1]}\n")
    return made


def check(call, out, labels, who):
    call()
    wrong = int((out != labels).sum())
    if wrong:
        sys.stderr.write(f"{who}: {wrong} of {len(labels)} labels differ\n")
    return call, len(labels)


def batch_peers(model, rows, labels, folder):
    answers = model.predict(rows).astype(np.int32)
    narrow = rows.astype(np.float32)
    count = len(rows)

    def m2cgen():
        return check(*c_peers.m2cgen_c(model, rows, folder / "m2cgen"), answers, "m2cgen")

    def emlearn():
        return check(*c_peers.emlearn_c(model, narrow, folder / "emlearn"), answers, "emlearn")

    def tl2cgen(prebuilt):
        import tl2cgen as library

        predictor = c_peers.tl2cgen_predictor(rows, labels, folder / f"tl2cgen{prebuilt}")
        matrix = library.DMatrix(rows, dtype="float64")
        if prebuilt:
            return lambda: predictor.predict(matrix), count
        return lambda: predictor.predict(library.DMatrix(rows, dtype="float64")), count

    def lleaves():
        compiled = c_peers.lleaves_model(rows, labels, folder / "lleaves")
        return lambda: compiled.predict(rows, n_jobs=1), count

    def onnx(cast):
        session = c_peers.onnx_session(model, rows.shape[1])
        if cast:
            return lambda: session.run(["label"], {"X": rows.astype(np.float32)}), count
        return lambda: session.run(["label"], {"X": narrow}), count

    return attempts(
        {
            "scikit-learn": lambda: (lambda: model.predict(rows), count),
            "m2cgen C, -O3 -march=native": m2cgen,
            "tl2cgen, matrix prebuilt": lambda: tl2cgen(True),
            "tl2cgen, matrix built": lambda: tl2cgen(False),
            "lleaves, a LightGBM tree of like size": lleaves,
            "ONNX Runtime, skl2onnx, float32 given": lambda: onnx(False),
            "ONNX Runtime, skl2onnx, cast to float32": lambda: onnx(True),
            "emlearn C, float32 given": emlearn,
        }
    )


def single_peers(model, rows, labels, folder):
    row = rows[:1]
    narrow = row.astype(np.float32)

    def repeat(call, times):
        return lambda: [call() for _ in range(times)], times

    def m2cgen():
        call, _ = c_peers.m2cgen_c(model, row, folder / "m2cgen1")
        return repeat(call, CALLS)

    def onnx():
        session = c_peers.onnx_session(model, rows.shape[1])
        return repeat(lambda: session.run(["label"], {"X": narrow}), SLOW_CALLS)

    def lleaves():
        compiled = c_peers.lleaves_model(rows, labels, folder / "lleaves1")
        return repeat(lambda: compiled.predict(row, n_jobs=1), SLOW_CALLS)

    return attempts(
        {
            "scikit-learn": lambda: repeat(lambda: model.predict(row), SLOW_CALLS),
            "m2cgen C through ctypes": m2cgen,
            "m2cgen Python": lambda: repeat(c_peers.m2cgen_python(model, row), CALLS),
            "lleaves": lleaves,
            "ONNX Runtime, skl2onnx": onnx,
        }
    )


def shape_contenders(scorer, narrow_scorer, rows, columns, narrow, out, read):
    count = len(rows)
    return {
        "a plain read of the rows": (lambda: read(rows), count),
        "gbfl, rows": (lambda: scorer.predict(rows, out), count),
        "gbfl, columns": (lambda: scorer.predict(columns, out), count),
        "gbfl, float32 columns": (lambda: narrow_scorer.predict(narrow, out), count),
    }


def other_ways(program, rows):
    """What runs a program of clauses besides our C: our ONNX graph, numpy."""
    few, fewer = rows[:100_000], rows[:10_000]

    def onnx():
        session = our_session(program)
        outputs, name = [session.get_outputs()[0].name], session.get_inputs()[0].name
        return lambda: session.run(outputs, {name: few}), len(few)

    return attempts(
        {
            "ONNX Runtime, our graph": onnx,
            "numpy, evaluate_many": lambda: (lambda: evaluate_many(program, fewer), len(fewer)),
        }
    )


def two_threads(shape, scorer, rows, columns, out):
    """By the clock on the wall, one thread beside two."""
    return race(
        "c",
        f"{shape}, wall clock",
        {
            f"gbfl, {kind}, {threads} thread{'s' * (threads > 1)}": (
                lambda table=table, threads=threads: scorer.predict(table, out, threads=threads),
                len(rows),
            )
            for kind, table in (("rows", rows), ("columns", columns))
            for threads in (1, 2)
        },
        clock=time.perf_counter_ns,
    )


def main():
    warnings.simplefilter("ignore")
    rows, labels = data(ROWS)
    model, raw = fitted_tree(rows, labels)
    shapes = {
        "depth-5 tree, raw features": raw,
        "tree of 31 clauses x 3": clause_tree(3),
        "tree of 31 clauses x 9": clause_tree(9),
        "50 rules x 3": rule_set(50),
        "300 rules x 3": rule_set(300),
        "1,300 rules x 3": rule_set(1300),
    }
    columns, out = np.asfortranarray(rows), np.empty(ROWS, dtype=np.int32)
    narrow = np.asfortranarray(rows.astype(np.float32))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["GBFL_CACHE"] = str(folder / "cache")
        read_all = c_peers.build(READ, folder / "read", "read").read_all
        read_all.restype = ctypes.c_uint64
        builds = []
        for number, (shape, program) in enumerate(shapes.items()):
            began = time.perf_counter_ns()
            scorer = scorer_of(program, folder, f"wide{number}")
            builds.append((shape, time.perf_counter_ns() - began))
            narrow_scorer = scorer_of(program, folder, f"narrow{number}", dtype="float32")
            read = lambda x: read_all(c_peers.address(x), ctypes.c_size_t(x.size))  # noqa: E731
            contenders = shape_contenders(scorer, narrow_scorer, rows, columns, narrow, out, read)
            contenders |= other_ways(program, rows) if number else batch_peers(model, rows, labels, folder)
            announce(race("c", shape, contenders))
            announce(two_threads(shape, scorer, rows, columns, out))
            if number == 0:
                _, call = scorer.bound_row()
                ours = {"gbfl, bound row": (lambda call=call: [call() for _ in range(CALLS)], CALLS)}
                announce(race("c", "one row per call", ours | single_peers(model, rows, labels, folder)))
        announce(words_race(rows))
        for shape, taken in builds:
            line = {"shape": "emit, compile at -O3 and load, wall clock", "who": shape, "nanoseconds": taken}
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
