"""Run by group `c`: trees with words beside the same trees on numbers, and the look-up of a code."""

import ctypes
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.backends.c import load_scorer
from gbfl_compile.ir.nodes import Clause, OneOf, Program, leaf, split
from tests.bench import c_peers
from tests.bench.shapes import clause_tree
from tests.bench.timing import Timing, race

WORDS = tuple(f"word {number:02}" for number in range(20))
VALUES = 1000

LOOK_UPS = """
#include "m.h"
double look_up_all(const char *texts, const uint32_t *ends, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; ++i) {
        const uint32_t start = i > 0 ? ends[i - 1] : 0u;
        sum += m_code(0, texts + start, ends[i] - start);
    }
    return sum;
}
"""


def with_words(program: Program, seed: int = 5) -> Program:
    """The program with a third of its features categories: an interval there is a set of one to three words."""
    choose = np.random.default_rng(seed)
    words = range(0, len(program.features), 3)

    def atom(own):
        if own.feature not in words:
            return own
        listed = choose.choice(len(WORDS), choose.integers(1, 4), replace=False)
        return OneOf(
            own.feature, tuple(WORDS[place] for place in sorted(listed)), negated=bool(choose.integers(4) == 0)
        )

    clauses = tuple(Clause(tuple(map(atom, clause.atoms))) for clause in program.clauses)
    kinds = tuple("category" if feature in words else "number" for feature in range(len(program.features)))
    return replace(program, clauses=clauses, kinds=kinds)


def _scorer(program, folder):
    folder.mkdir()
    for file, content in emit(program, "c", "m").files.items():
        (folder / file).write_bytes(content)
    return load_scorer(folder / "m.c")


def words_race(rows) -> list[Timing]:
    """A tree of 31 clauses with words, by rows and by columns, beside the same tree on numbers; then look-ups."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        numbers = clause_tree(3)
        words = with_words(numbers)
        codes = rows.copy()
        for feature, kind in enumerate(words.kinds):
            if kind == "category":
                codes[:, feature] = np.random.default_rng(feature).integers(0, len(WORDS) + 1, len(rows))
        out, count = np.empty(len(rows), dtype=np.int32), len(rows)
        plain, worded = _scorer(numbers, folder / "numbers"), _scorer(words, folder / "words")
        columns, code_columns = np.asfortranarray(rows), np.asfortranarray(codes)
        found = race(
            "c",
            "tree of 31 clauses x 3, a third of the features words",
            {
                "gbfl, rows, numbers": (lambda: plain.predict(rows, out), count),
                "gbfl, rows, words": (lambda: worded.predict(codes, out), count),
                "gbfl, columns, numbers": (lambda: plain.predict(columns, out), count),
                "gbfl, columns, words": (lambda: worded.predict(code_columns, out), count),
            },
            rounds=9,
        )
        return found + _look_ups(folder / "codes")


def _look_ups(folder) -> list[Timing]:
    """A code of a text among a thousand values, half of the texts not listed."""
    texts = [f"category value {number}" for number in range(VALUES)]
    program = Program(
        ("word",),
        (0, 1),
        (Clause((OneOf(0, tuple(sorted(texts))),)),),
        split(0, leaf(1.0, 0.0), leaf(0.0, 1.0)),
        kinds=("category",),
    )
    artifact = emit(program, "c", "m").files
    folder.mkdir()
    for file, content in artifact.items():
        (folder / file).write_bytes(content)
    source = artifact["m.c"].decode() + LOOK_UPS
    library = c_peers.build(source, folder / "built", "look_ups", f"-I{folder}")
    library.look_up_all.restype = ctypes.c_double
    pool = [*texts, *(text.upper() for text in texts)]
    looked_up = [pool[place].encode() for place in np.random.default_rng(0).integers(0, len(pool), 100_000)]
    ends = np.cumsum([len(text) for text in looked_up]).astype(np.uint32)
    arguments = (ctypes.c_char_p(b"".join(looked_up)), c_peers.address(ends), ctypes.c_size_t(len(looked_up)))
    return race(
        "c", "a code among 1,000 values", {"gbfl, look-up": (lambda: library.look_up_all(*arguments), len(looked_up))}
    )
