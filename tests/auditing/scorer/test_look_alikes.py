"""What a scorer gives in place of a label or a probability is none, though it looks like one."""

from dataclasses import replace

import numpy as np

from gbfl_compile.auditing.answers import UNKNOWN
from gbfl_compile.auditing.scorer import witness_input
from gbfl_compile.auditing.scorer.callable import audit_callable, row_answers
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("age",), ("no", "yes"), (Clause((Interval(0, 0.1, 50.0),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0))
)

MODULE = """
class Looks:
    def __init__(self, label):
        self.label = label

    def __repr__(self):
        return self.label

def text(rows):
    return ["yes" if row["age"] is not None and 0.1 <= row["age"] < 50.0 else "no" for row in rows]

def looks(rows):
    return [Looks(label) for label in text(rows)]
"""


def test_an_object_that_looks_like_a_label_is_none(tmp_path, monkeypatch):
    (tmp_path / "deployed.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert audit_callable(PROGRAM, "deployed:text").verdict == "equal"
    found = audit_callable(PROGRAM, "deployed:looks")
    assert (found.verdict, found.execution.different) == ("different", found.execution.rows)
    assert "is answered 'no label: " in found.reason


def test_nan_is_not_the_class_that_is_called_nan():
    inputs = witness_input(replace(PROGRAM, classes=("nan", "yes")))
    deployed = row_answers(inputs, {row: {"other": "nan"} for row in range(len(inputs.rows))})
    assert set(deployed.classes.tolist()) == {UNKNOWN}


def test_a_truth_value_is_no_probability():
    deployed = row_answers(witness_input(PROGRAM), {0: {"probabilities": [False, True]}, 1: {"probabilities": [0, 1]}})
    assert (deployed.classes[:2].tolist(), np.isnan(deployed.probabilities[0]).all()) == ([UNKNOWN, 1], True)
