"""Group `c`: the emitted scorers against a plain read of the same memory, and against the peers in `.bench/`.

python -m tests.bench c          the peers are raced where `python -m tests.bench.peers` has installed them
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.backends import emit
from gbfl_compile.backends.c import load_scorer
from gbfl_compile.backends.c_build import compiler
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard
from gbfl_compile.ir.trees import leaf, split
from gbfl_compile.raw_trees import raw_tree
from tests.bench import peers
from tests.bench.timing import Timed, race

ROWS, FEATURES = int(os.environ.get("GBFL_BENCH_ROWS", "1000000")), 20
NAMES = tuple(f"f{i}" for i in range(FEATURES))
CALLS = 200_000

READ = """
#include <stddef.h>
#include <stdint.h>
__attribute__((target_clones("avx2", "default")))
uint64_t read_all(const uint64_t *x, size_t n) { uint64_t s = 0; for (size_t i = 0; i < n; i++) s ^= x[i]; return s; }
"""


def clauses(count, atoms, seed, grid=30):
    """Clauses of half-open intervals between quantiles of a normal feature, as a miner's grid makes them."""
    rng = np.random.default_rng(seed)
    points = np.quantile(rng.normal(size=10_000), np.linspace(0.02, 0.98, grid)).tolist()

    def interval(feature):
        lo, hi = sorted(rng.choice(grid, 2, replace=False))
        return Interval(int(feature), points[lo], points[hi])

    return tuple(
        Clause(tuple(interval(f) for f in sorted(rng.choice(FEATURES, atoms, replace=False)))) for _ in range(count)
    )


def clause_tree(atoms):
    """A full tree of depth 5 over 31 clauses."""

    def grown(first, depth):
        if depth == 0:
            return leaf(0.75, 0.25) if first % 2 else leaf(0.25, 0.75)
        return split(first, grown(2 * first + 1, depth - 1), grown(2 * first + 2, depth - 1))

    return Program(NAMES, (0, 1), clauses(31, atoms, 1), grown(0, 5))


def rule_set(count):
    points = np.random.default_rng(2).integers(-500, 500, count).tolist()
    return Program(NAMES, (0, 1), clauses(count, 3, 3), Scorecard((0, 7), tuple((0, p) for p in points), 8))


def data():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(ROWS, FEATURES))
    return rows, ((rows[:, :6] ** 2).sum(axis=1) + rows[:, 7] * rows[:, 8] > 6).astype(np.int64)


def reader(folder):
    """A call that reads every value of a matrix once and does next to nothing with it."""
    (folder / "read.c").write_text(READ)
    command = [*compiler().command, "-O3", "-shared", "-fPIC", "read.c", "-o", "read.so"]
    subprocess.run(command, cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "read.so")).read_all
    function.restype = ctypes.c_uint64
    return lambda x: function(ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.size))


def scorer_of(program, folder, name, **options):
    target = folder / name
    target.mkdir()
    for file, content in emit(program, "c", "m", options).files.items():
        (target / file).write_bytes(content)
    return load_scorer(target / "m.c")


def peer_times(rows, labels, folder):
    """What the peers took, timed in their own environment right after ours; why, where there are none."""
    if not peers.PYTHON.exists():
        sys.stderr.write("peers are not raced: python -m tests.bench.peers installs them\n")
        return []
    np.save(folder / "rows.npy", rows)
    np.save(folder / "labels.npy", labels)
    script = Path(__file__).with_name("peer_race.py")
    command = [peers.PYTHON, script, folder / "rows.npy", folder / "labels.npy"]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = (line.split("\t") for line in run.stdout.splitlines() if "\t" in line)
    return [Timed("c", "depth-5 tree, raw features", who, float(taken)) for who, taken in lines]


def run() -> list[Timed]:
    """A million rows of 20 doubles through each shape, then one row at a time."""
    rows, labels = data()
    fitted = DecisionTreeClassifier(max_depth=5, random_state=0).fit(rows[:50_000], labels[:50_000])
    raw = Program(NAMES, (0, 1), *raw_tree(fitted, 2))
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
    found = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        read = reader(folder)
        for number, (shape, program) in enumerate(shapes.items()):
            scorer = scorer_of(program, folder, f"wide{number}")
            narrow_scorer = scorer_of(program, folder, f"narrow{number}", dtype="float32")
            contenders = {
                "a plain read": (lambda: read(rows), ROWS),
                "gbfl, rows": (lambda s=scorer: s.predict(rows, out), ROWS),
                "gbfl, columns": (lambda s=scorer: s.predict(columns, out), ROWS),
                "gbfl, float32 columns": (lambda s=narrow_scorer: s.predict(narrow, out), ROWS),
            }
            found += race("c", shape, contenders)
            if number == 0:
                found += peer_times(rows, labels, folder)
                _, call = scorer.bound_row()
                single = {"gbfl, bound row": (lambda call=call: [call() for _ in range(CALLS)], CALLS)}
                single["an empty Python call"] = (lambda: [0 for _ in range(CALLS)], CALLS)
                found += race("c", "one row a call", single)
    return found
