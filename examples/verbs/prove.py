"""prove: an artifact read back and proved for every input; nothing is run.

It prints::

    proved
    counterexample yes no
"""

from dataclasses import replace
from pathlib import Path

from gbfl_compile import Clause, Interval, emit, load_program, prove

program = load_program(Path(__file__).parent.parent / "loans.gbfl.json")
print(prove(program, emit(program, "c"))["c"].answer)

moved = replace(program, clauses=(Clause((Interval(0, 1.0),)), *program.clauses[1:]))
proof = prove(program, emit(moved, "c"))["c"]
print(proof.answer, proof.counterexample.source.label, proof.counterexample.target.label)
