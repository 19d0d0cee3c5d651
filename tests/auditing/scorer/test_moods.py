"""A scorer's answer depends on its row alone: not on the batch, the order, the number of calls or a second asking."""

import pytest

from gbfl_compile.auditing.scorer.callable import audit_callable
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(("age",), (0, 1), (Clause((Interval(0, 0.1, 50.0),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))

MOODS = """
calls, first = [], []

def right(rows):
    return [int(row["age"] is not None and 0.1 <= row["age"] < 50.0) for row in rows]

def turned(rows, places):
    calls.append(len(rows))
    return [1 - label if place in places else label for place, label in enumerate(right(rows))]

def alone(rows):
    return turned(rows, [0] if len(rows) == 1 else [])

def sevens(rows):
    return turned(rows, [3] if len(rows) == 7 else [])

def square(rows):
    return turned(rows, [0] if len(rows) == len(rows[0]) + 1 else [])

def sixteen(rows):
    return turned(rows, [15] if len(rows) == 16 else [])

def truths(rows):
    calls.append(len(rows))
    return [label == 1 for label in right(rows)] if len(calls) > 2 else right(rows)

def later(rows):
    return turned(rows, [2] if len(calls) > 10 else [])

def order(rows):
    first.append(rows[0])
    return turned(rows, [0] if len(rows) > 1 and rows[-1] == first[0] else [])

def repeated(rows):
    return turned(rows, [1] if len(rows) > 1 and rows[0] == rows[1] else [])

def fails_alone(rows):
    return [{}[0]] if len(rows) == 1 else right(rows)
"""


@pytest.mark.parametrize(
    "mood", ["alone", "sevens", "square", "sixteen", "truths", "later", "repeated", "order", "fails_alone"]
)
def test_a_function_whose_answer_depends_on_more_than_the_row_is_different(tmp_path, monkeypatch, mood):
    (tmp_path / "moods.py").write_text(MOODS)
    monkeypatch.chdir(tmp_path)
    answered = audit_callable(PROGRAM, f"moods:{mood}")
    assert (answered.verdict, answered.is_proved) == ("different", False)
    assert answered.execution.different == 0, "only the second round shows it"
    assert "again" in answered.reason or "was answered before, but not alone" in answered.reason


def test_how_a_scorer_was_called_is_stated(tmp_path, monkeypatch):
    (tmp_path / "moods.py").write_text(MOODS)
    monkeypatch.chdir(tmp_path)
    answered = audit_callable(PROGRAM, "moods:right")
    assert (answered.verdict, answered.is_proved) == ("equal", False)
    assert answered.compared == (
        "labels, none different; called again (40 rows alone, 135 in batches of 2 to 16, all backwards, "
        "all shuffled, and some twice in one batch, one call at a time): the same answers"
    )
