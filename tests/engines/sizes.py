"""Large programs: a rule set of 1,300 clauses, a rule list of 1,000 rules, a tree of 500 leaves."""

import random

from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, preorder

FEATURES = tuple(f"f{i}" for i in range(10))


def clause(choose):
    """Two or three half-open intervals."""
    atoms = []
    for feature in sorted(choose.sample(range(len(FEATURES)), choose.choice((2, 3)))):
        lo, hi = sorted((choose.gauss(0, 1), choose.gauss(0, 1)))
        atoms.append(Interval(feature, lo, hi if choose.random() < 0.7 else None))
    return Clause(tuple(atoms))


def rule_set(count=1300):
    choose = random.Random(0)
    clauses = tuple(clause(choose) for _ in range(count))
    points = tuple(tuple(choose.randrange(-900, 900) for _ in range(3)) for _ in range(count))
    return Program(FEATURES, ("no", "maybe", "yes"), clauses, Scorecard((5, 0, -5), points, 8))


def rule_list(count=1000):
    choose = random.Random(1)
    clauses = tuple(clause(choose) for _ in range(count))
    nodes = []
    for number in range(count):
        share = choose.random()
        nodes += [Split(number, 2 * number + 1, 2 * number + 2), Leaf((share, 1.0 - share))]
    return Program(FEATURES, (0, 1), clauses, preorder((*nodes, Leaf((0.25, 0.75)))))


def wide_tree(leaves=500):
    choose = random.Random(2)
    clauses, nodes = [], []

    def grow(size):
        index = len(nodes)
        nodes.append(None)
        if size == 1:
            share = choose.random()
            nodes[index] = Leaf((share, 1.0 - share))
        else:
            clauses.append(Clause((Interval(choose.randrange(len(FEATURES)), choose.gauss(0, 1), None),)))
            last = len(clauses) - 1
            then = grow(size // 2)
            nodes[index] = Split(last, then, grow(size - size // 2))
        return index

    grow(leaves)
    return Program(FEATURES, ("no", "yes"), tuple(clauses), preorder(tuple(nodes)))
