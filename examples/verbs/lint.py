"""lint: what is odd about a program, proved for every row. Here a clause can never hold where it is asked.

It prints::

    node 1, clause 1: never holds
    leaf 0: unreachable leaf
"""

from gbfl_compile import Clause, Interval, Program, lint
from gbfl_compile.ir.nodes import leaf, split

adult, child = Clause((Interval(0, 18.0),)), Clause((Interval(0, None, 12.0),))
tree = split(0, split(1, leaf(1.0, 0.0), leaf(0.0, 1.0)), leaf(1.0, 0.0))
program = Program(("age",), ("no", "yes"), (adult, child), tree)
for oddity in lint(program):
    print(f"{oddity.where}: {oddity.kind}")
