"""emit: a program written for one target; nothing is put on disk.

It prints::

    ['model.h', 'model.c', 'gbfl.h']
    ['model.sql']
"""

from pathlib import Path

from gbfl_compile import emit, load_program

program = load_program(Path(__file__).parent.parent / "loans.gbfl.json")
print(list(emit(program, "c").files))
print(list(emit(program, "sql:postgres", form="view", table="loans", view="scores").files))
