"""The line that a report shows is the one with the changed condition, not one that shares a word with its description."""

import pytest

from gbfl_compile.auditing.mend.spans import find_line
from gbfl_compile.auditing.verdict import Change
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split

DAY = 18546.0  # 2020-10-11
PROGRAM = Program(
    ("job", "opened"),
    ("no", "yes"),
    (Clause((OneOf(0, ("none",), negated=True),)), Clause((Interval(1, DAY),))),
    split(0, leaf(0.9, 0.1), split(1, leaf(0.4, 0.6), leaf(0.1, 0.9))),
    kinds=("category", "date"),
)
DEPLOYED = """SELECT CASE
  WHEN job IS NULL THEN 'no'
  WHEN job <> 'None' THEN 'no'
  WHEN opened < '2019-01-01' THEN 'no'
  WHEN opened > '2020-10-11' THEN 'yes'
  ELSE 'yes' END AS label FROM t"""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (Change("clause 0", "job is not none", 'job is not None (none re-cased as "None")'), 3),
        (Change("clause 1", "opened >= 2020-10-11", "opened >= 2020-10-12 (1 day later)"), 5),
    ],
)
def test_the_line_is_the_one_with_the_changed_text_or_day(change, line):
    assert find_line("", DEPLOYED, PROGRAM, {"job": 0, "opened": 1}, [change]).number == line
