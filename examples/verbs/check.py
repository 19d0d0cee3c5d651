"""check: artifacts read back, proved equal to their source, and run on rows chosen to tell them apart.

It prints::

    Verdict(equal; python: equal, sql:sqlite: equal)
    Verdict(different; python: different)
"""

from dataclasses import replace
from pathlib import Path

from gbfl_compile import Clause, Interval, check, emit, load_program

program = load_program(Path(__file__).parent.parent / "loans.gbfl.json")
print(check(program, [emit(program, "python"), emit(program, "sql:sqlite")]))

moved = replace(program, clauses=(Clause((Interval(0, 1.0),)), *program.clauses[1:]))
print(check(program, emit(moved, "python")))
