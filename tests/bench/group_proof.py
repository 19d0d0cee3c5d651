"""Group `proof`: how long the prover, the witnesses and lint take. The slowest of n pairs, CPU time (p99 where n >= 100)."""

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.lint import lint
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.reading.from_program import as_reading
from gbfl_compile.checking.reading.nodes import Reading
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from tests.bench.timing import Timing
from tests.checking.respelling import condition_respelled, flattened, mutated, respelled

FEATURES = 30
PAIRS = int(os.environ.get("GBFL_BENCH_PAIRS", "200"))
BUDGET = 5.0
TARGETS: tuple[tuple[str, dict[str, str]], ...] = (
    *(("c", {"dtype": dtype}) for dtype in ("float64", "float32")),
    *((target, {}) for target in ("python", "onnx", "sql:sqlite", "sql:duckdb")),
)


def clause(choose: random.Random, least: int, most: int) -> Clause:
    """Mined rules look so: a few features, half-open intervals, some of them open on one side."""
    atoms = []
    for feature in sorted(choose.sample(range(FEATURES), choose.randint(least, most))):
        lo, side = round(choose.gauss(0, 1), 3) + 0.0, choose.random()
        hi = lo + choose.uniform(0.3, 2.0)
        atoms.append(Interval(feature, lo if side < 0.8 else None, hi if side > 0.2 else None))
    return Clause(tuple(atoms))


def program(choose: random.Random, clauses: int, decision: Tree | Scorecard, least: int = 1) -> Program:
    made = tuple(clause(choose, least, 4) for _ in range(clauses))
    return Program(tuple(f"x{i}" for i in range(FEATURES)), (0, 1), made, decision)


def deep_tree(choose: random.Random, depth: int, clauses: int) -> Tree:
    if depth == 0:
        probability = choose.random()
        return leaf(probability, 1 - probability)
    sides = [deep_tree(choose, depth - 1, clauses) for _ in range(2)]
    return split(choose.randrange(clauses), *sides)


def rule_list(choose: random.Random, rules: int) -> Program:
    nodes: list[Split | Leaf] = []
    for i in range(rules):
        probability = choose.choice((0.9, 0.8, 0.2, 0.1))
        nodes += [Split(i, 2 * i + 1, 2 * i + 2), Leaf((probability, 1 - probability))]
    return program(choose, rules, Tree((*nodes, Leaf((0.5, 0.5)))), least=3)


def rule_set(choose: random.Random, clauses: int) -> Program:
    points = tuple((0, choose.randint(-4000, 4000)) for _ in range(clauses))
    return program(choose, clauses, Scorecard((0, choose.randint(-100, 100)), points, 12))


def said_otherwise(choose: random.Random, source: Program) -> Reading:
    """Step by step the same, every condition respelled."""
    reading = as_reading(source)
    steps = (replace(s, condition=condition_respelled(choose, s.condition)) if hasattr(s, "condition") else s for s in reading.decision.steps)  # fmt: skip
    return replace(reading, decision=replace(reading.decision, steps=tuple(steps)))


def slowest(shape: str, who: str, pairs: Iterator[tuple[Program, Reading]]) -> Timing:
    taken, answers = [], []
    for source, reading in pairs:
        began = time.process_time_ns()
        answers.append(prove(source, reading, BUDGET).answer)
        taken.append(time.process_time_ns() - began)
    counts = ", ".join(f"{answers.count(answer)} {answer}" for answer in sorted(set(answers)))
    rank = max(0, len(taken) * 99 // 100 - 1) if len(taken) >= 100 else -1
    return Timing("proof", shape, f"{who}: {counts}", sorted(taken)[rank])


def pairs(
    make: Callable[[random.Random], Program], say: Callable[[random.Random, Program], Reading], count: int
) -> Iterator[tuple[Program, Reading]]:
    for seed in range(count):
        choose = random.Random(seed)
        source = make(choose)
        yield source, say(choose, source)


def artifacts(shape: str, make: Callable[[random.Random], Program], count: int) -> Iterator[Timing]:
    """Emitted, read back from the text and proved: 99 of 100 take no longer. Emitting is not counted."""
    for target, options in TARGETS:
        taken = []
        for seed in range(-1, count):  # the first one loads the reader, and is not counted
            source = make(random.Random(seed))
            artifact = emit(source, target, options=options)
            began = time.process_time_ns()
            answer = prove_artifact(source, target, artifact.files, BUDGET, artifact.options).answer
            taken.append(time.process_time_ns() - began)
            if answer != "proved":
                raise AssertionError(f"{target}, {shape}, seed {seed}: {answer}")
        ranked = sorted(taken[1:])
        who = " ".join((target, *options.values()))
        yield Timing("proof", shape, f"{who}: median of {count} proved", ranked[count // 2])
        yield Timing("proof", shape, f"{who}: p99 of {count} proved", ranked[max(0, -(-count * 99 // 100) - 1)])


def once(shape: str, who: str, call: Callable[[], object]) -> Timing:
    began = time.process_time_ns()
    call()
    return Timing("proof", shape, who, time.process_time_ns() - began)


def run() -> list[Timing]:
    """The shapes of issue 7, equal and not."""

    def same(_: random.Random, source: Program) -> Reading:
        return as_reading(source)

    def cases(choose: random.Random, source: Program) -> Reading:
        reading = as_reading(source)
        return replace(reading, decision=flattened(choose, reading.decision))

    def tree(choose: random.Random) -> Program:
        return program(choose, 300, deep_tree(choose, 5, 300))

    few = max(3, PAIRS // 20)
    shape = "tree, 30 features, 300 clauses, depth 5"
    ways = {"as emitted": same, "respelled": said_otherwise, "as a list of cases": cases, "one slip": mutated}
    found = [slowest(shape, who, pairs(tree, say, PAIRS)) for who, say in ways.items()]
    shape = "rule list of 1,000 boxes"
    ways = {"as emitted": same, "respelled": said_otherwise, "one slip": mutated}
    found += [slowest(shape, who, pairs(lambda c: rule_list(c, 1000), say, few)) for who, say in ways.items()]
    for clauses in (300, 1300):
        shape = f"rule set of {clauses} clauses"
        ways = {"as emitted": same, "respelled": respelled, "one slip": mutated}
        found += [
            slowest(shape, who, pairs(lambda c, n=clauses: rule_set(c, n), say, few)) for who, say in ways.items()
        ]
    found += artifacts("artifact of a tree, 300 clauses, depth 5, read and proved", tree, PAIRS)
    found += artifacts("artifact of a tree, 300 clauses, 255 splits, read and proved", lambda c: program(c, 300, deep_tree(c, 8, 300)), PAIRS)  # fmt: skip
    found += artifacts("artifact of a rule set of 1,300 clauses, read and proved", lambda c: rule_set(c, 1300), PAIRS // 2)  # fmt: skip
    choose = random.Random(0)
    made = {"tree": tree(choose), "rule list of 1,000": rule_list(choose, 1000), "rule set of 1,300": rule_set(choose, 1300)}  # fmt: skip
    for who, source in made.items():
        found.append(once("witnesses", who, lambda source=source: witnesses(source)))
        found.append(once("lint", who, lambda source=source: lint(source)))
    return found
