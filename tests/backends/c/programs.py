"""Programs for the C target's tests, many of them built into one library at a time."""

import random
import subprocess

import cffi
import numpy as np
import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.c.build import declarations, find_compiler, why_not
from gbfl_compile.backends.c.scorer import scorer_of
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, leaf, preorder, split
from gbfl_compile.ir.validate import validate
from tests.backends.c.kinds import KINDS

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-ffp-contract=off")

needs_a_compiler = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

TREE = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 1e5))), Clause((Interval(1, None, 0.1, if_missing=True),))),
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), leaf(0.5, 0.5))),
)
CARD = Program(TREE.features, TREE.classes, TREE.clauses, Scorecard((0, -2), ((0, 3), (0, -1)), 1))

WORD_CLAUSES = (
    Clause((Interval(0, 1000.0), OneOf(1, ("Month-to-month", "two year")))),
    Clause((OneOf(2, (TRUE,)), Interval(3, None, 19783.0, "right"))),
    Clause((OneOf(1, ("a", "b"), negated=True, if_missing=True), OneOf(2, (TRUE,), negated=True))),
    Clause((Interval(4, 0.0, 1.7e15, if_missing=True), OneOf(1, (), negated=True))),
    Clause((OneOf(1, ("a",)),)),
)
WORD_FEATURES = ("income", "contract", "smoker", "opened", "seen")
WORD_TREE = validate(
    Program(
        WORD_FEATURES,
        ("no", "yes"),
        WORD_CLAUSES,
        split(
            0,
            split(1, leaf(0.2, 0.8), leaf(0.7, 0.3)),
            split(2, leaf(1.0, 0.0), split(3, leaf(0.4, 0.6), leaf(0.5, 0.5))),
        ),
        kinds=KINDS,
    )
)
WORD_CARD = validate(
    Program(WORD_FEATURES, ("no", "yes", "?"), WORD_CLAUSES, Scorecard((0, 1, 0), ((0, 3, 1), (0, -2, 1), (2, 2, 0), (0, 1, -3), (1, 0, 0)), 1), kinds=KINDS)
)  # fmt: skip


def kernels(program):
    return ("ifelse", "select", "bits") if isinstance(program.decision, Scorecard) else ("ifelse", "select")


def quick_to_build(program):
    """Every kernel of a small program; of a large one the kernel made for it (the others compile for many seconds)."""
    return kernels(program) if len(program.clauses) <= 60 else ("bits",)


def write(artifact, folder):
    for name, content in artifact.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / f"{artifact.name}.c"


def cc(*arguments, folder):
    compiler = find_compiler()
    run = subprocess.run([*compiler.command, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:3000]


def build_many(cases, folder, flags=("-O1",)):
    """A scorer for each (program, options), all in one shared library: it shows that models live side by side."""
    ffi = cffi.FFI()
    for number, (program, options) in enumerate(cases):
        artifact = emit(program, "c", f"m{number}", options)
        write(artifact, folder)
        ffi.cdef(declarations(artifact.files[f"m{number}.h"].decode(), "header"))
    sources = [f"m{number}.c" for number in range(len(cases))]
    (folder / "all.c").write_text("".join(f'#include "{source}"\n' for source in sources))
    cc(*STRICT, *flags, "-fPIC", "-shared", "-DGBFL_WITH_LIBM", "all.c", "-o", "all.so", "-lm", folder=folder)
    library = ffi.dlopen(str(folder / "all.so"))
    return [scorer_of(f"m{number}", library, ffi, "cc") for number in range(len(cases))]


def random_clause(choose, features, grid, atoms):
    made = []
    for feature in choose.sample(range(features), atoms):
        lo, hi = sorted(choose.sample(grid[feature], 2))
        lo, hi = choose.choice(((lo, hi), (lo, hi), (None, hi), (lo, None)))
        closed = choose.choice(("left", "left", "left", "right", "both", "neither"))
        made.append(Interval(feature, lo, hi, closed, choose.random() < 0.1))
    return Clause(tuple(made))


def random_card(seed, clauses, features=20, atoms=3, classes=2, points=9, width=200):
    choose = random.Random(seed)
    grid = [sorted({round(choose.gauss(0, 1), 4) + 0.0 for _ in range(width)}) for _ in range(features)]
    rules = tuple(random_clause(choose, features, grid, choose.choice((1, atoms, atoms))) for _ in range(clauses))
    worth = tuple(tuple(choose.randint(-points, points) for _ in range(classes)) for _ in range(clauses))
    card = Scorecard(tuple(choose.randint(-points, points) for _ in range(classes)), worth, 3)
    return validate(Program(tuple(f"f{i}" for i in range(features)), tuple(range(classes)), rules, card))


def random_tree(seed, leaves, features=20, atoms=3, classes=3, width=200):
    choose = random.Random(seed)
    grid = [sorted({round(choose.gauss(0, 1), 4) + 0.0 for _ in range(width)}) for _ in range(features)]
    rules, nodes = [], [None]
    open_nodes = [0]
    while len(open_nodes) < leaves:
        index = open_nodes.pop(0)
        rules.append(random_clause(choose, features, grid, atoms))
        nodes[index] = Split(len(rules) - 1, len(nodes), len(nodes) + 1)
        open_nodes += (len(nodes), len(nodes) + 1)
        nodes += (None, None)
    for index in open_nodes:
        weights = [choose.randint(0, 4) + (c == 0) for c in range(classes)]
        nodes[index] = Leaf(tuple(w / sum(weights) for w in weights))
    return validate(
        Program(tuple(f"f{i}" for i in range(features)), tuple(range(classes)), tuple(rules), preorder(nodes))
    )


def ordinary_rows(program, count, seed=0, missing=0.02):
    """Rows near the cuts, some values on them, some missing."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, len(program.features)))
    for clause in program.clauses:
        for atom in clause.atoms:
            for cut in (atom.lo, atom.hi):
                if cut is not None:
                    rows[rng.integers(count), atom.feature] = cut
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows
