"""A fixed corpus of programs and a hash of every artifact emitted for them.

A change that is meant to move or tidy code leaves every byte as it is. A change that is meant to alter an artifact
records the corpus again, and its review shows which targets it reached: `python -m tests.corpus --record`.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

from gbfl_compile.backends import BACKENDS, emit
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest, load
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

RECORD = Path(__file__).parent / "record.json"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"

FEATURES = ("age", "income", "größe", "a b", 'say "hi"', "it's")
CUTS = (-1e308, -2.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.0000000000000002, 2.0, 29.8731, 1e308)

OPTIONS = {
    "python": ({},),
    "js": ({},),
    "c": (
        {},
        {"dtype": "float32"},
        {"batch": "no"},
        {"kernel": "select"},
        {"kernel": "bits"},
        {"layout": "cmake"},
        {"layout": "arduino"},
    ),
    "onnx": ({}, {"dtype": "float32"}, {"lowering": "logic", "reason": "yes"}, {"inputs": "columns"}),
    "sql": (
        {},
        {"outputs": "label"},
        {"types": "double", "key": "id"},
        {"form": "view", "schema": "main", "replace": "yes"},
        {"form": "view", "view": "scores"},
        {"form": "table", "outputs": "label,probabilities,reason"},
        {"form": "expression", "outputs": "label"},
        {"form": "dbt"},
        {"form": "macro", "outputs": "label"},
    ),
}


def _interval(draw: random.Random, feature: int) -> Interval:
    lo, hi = sorted(draw.sample(CUTS, 2))
    sides = draw.choice((lo, None)), draw.choice((hi, None))
    closed = draw.choice(("left", "left", "left", "right", "both"))
    if None not in sides and math.nextafter(lo, math.inf) == hi:
        closed = "left"
    return Interval(feature, *sides, closed, draw.random() < 0.3)


def _clause(draw: random.Random) -> Clause:
    features = draw.sample(range(len(FEATURES)), draw.randint(1, 3))
    return Clause(tuple(_interval(draw, feature) for feature in sorted(features)))


def _tree(draw: random.Random, clauses: int, classes: int, depth: int) -> object:
    if depth == 0 or draw.random() < 0.15:
        weights = [draw.randint(0, 3) for _ in range(classes - 1)] + [1]
        return leaf(*(weight / sum(weights) for weight in weights), rows=draw.randint(0, 50))
    branches = (_tree(draw, clauses, classes, depth - 1) for _ in range(2))
    return split(draw.randrange(clauses), *branches)


def programs() -> Iterator[tuple[str, Program]]:
    """Every program of the corpus by name: the shipped examples, and drawn trees and rule sets."""
    for path in sorted(EXAMPLES.rglob("*.gbfl.json")):
        yield path.relative_to(EXAMPLES).as_posix(), load(path)
    for number in range(12):
        draw = random.Random(number)
        labels = draw.choice((("no", "yes"), (0, 1), ("a", "b", "c")))
        clauses = tuple(_clause(draw) for _ in range((3, 8, 40)[number % 3]))
        if number % 2:
            points = tuple(tuple(draw.randint(-900, 900) for _ in labels) for _ in clauses)
            decision = Scorecard(tuple(draw.randint(-50, 50) for _ in labels), points, 10)
        else:
            decision = _tree(draw, len(clauses), len(labels), 5)
        yield f"drawn-{number}", Program(FEATURES, labels, clauses, decision)


def artifacts() -> Iterator[tuple[str, str]]:
    """(program, target and options; the start of a SHA-256 over all files) per artifact, and each program's digest."""
    for name, program in programs():
        yield f"{name} digest", digest(program)
        for target in BACKENDS:
            for options in OPTIONS[target.partition(":")[0]]:
                key = " ".join((name, target, *(f"{option}={value}" for option, value in options.items())))
                table = {"table": "data"} if target.startswith("sql") else {}
                try:
                    artifact = emit(program, target, options={**table, **options})
                except BadInput:
                    yield key, "refused"
                    continue
                whole = hashlib.sha256()
                for file, content in sorted(artifact.files.items()):
                    whole.update(f"{file} {len(content)}\n".encode() + content)
                yield key, whole.hexdigest()[:24]


def read_record() -> dict[str, str]:
    return json.loads(RECORD.read_text(encoding="utf-8"))


def write_record() -> None:
    RECORD.write_text(json.dumps(dict(artifacts()), indent=0, sort_keys=True) + "\n", encoding="utf-8")
