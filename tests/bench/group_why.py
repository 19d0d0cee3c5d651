"""Group `why`: what suffices for a row's class and what would change it, seconds per row, of large programs.

The searches count steps, not seconds: a time here is how long the most that is searched takes.
"""

import numpy as np

from gbfl_compile.why.changes import changes
from gbfl_compile.why.sufficient import sufficient
from tests.bench.shapes import FEATURES, clause_tree, rule_set
from tests.bench.timing import race
from tests.engines.sizes import rule_list

ROWS = 3


def told_of(program, ask):
    rows = np.random.default_rng(5).normal(size=(ROWS, len(program.features))).tolist()
    return (lambda: [ask(program, row) for row in rows]), ROWS


def run():
    """A row of each shape; FEATURES features in rule sets and trees, ten in the rule list."""
    shapes = {
        f"tree of 31 clauses, {FEATURES} features": clause_tree(3),
        f"rule set of 32 clauses, {FEATURES} features": rule_set(32),
        f"rule set of 300 clauses, {FEATURES} features": rule_set(300),
        "rule list of 300 rules, 10 features": rule_list(300),
    }
    questions = {"sufficient": sufficient, "changes": changes}
    return [
        timed
        for shape, program in shapes.items()
        for timed in race("why", shape, {who: told_of(program, ask) for who, ask in questions.items()}, rounds=1)
    ]
