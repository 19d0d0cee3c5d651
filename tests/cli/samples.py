"""The program and the folder that tests of the command line share."""

from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("age", "the income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 0.1))),),
    split(0, leaf(0.25, 0.75, rows=3), leaf(1.0, 0.0, rows=1)),
)


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
