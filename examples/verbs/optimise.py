"""optimise: a smaller program with the same answers. Here a question is asked twice.

It prints::

    Program(tree, 2 clauses, 1 feature, classes ['no', 'yes'])
    Program(tree, 1 clause, 1 feature, classes ['no', 'yes'])
    IF age >= 18 THEN yes (1.00)
    ELSE no (1.00)
"""

from gbfl_compile import Clause, Interval, Program, optimise, readable
from gbfl_compile.ir.nodes import leaf, split

adult = Clause((Interval(0, 18.0),))
twice = split(0, split(1, leaf(0.0, 1.0), leaf(0.5, 0.5)), leaf(1.0, 0.0))
program = Program(("age",), ("no", "yes"), (adult, adult), twice)
print(program)
print(optimise(program))
print(readable(optimise(program)))
