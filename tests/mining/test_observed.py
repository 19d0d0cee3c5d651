"""`mine` with observed rates: where it cannot observe any, it says so, and it never claims more than it knows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from gbfl_compile import mine
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Program, Scorecard
from gbfl_compile.ir.text import probability_lines
from gbfl_compile.learning.calibration import FEWEST_ROWS
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.reporting.page import render_page
from gbfl_compile.tables.draw import Choice
from gbfl_compile.tables.sample import TEST_SHARE, read_sample

ENOUGH = int(FEWEST_ROWS / TEST_SHARE)
QUICK = {"clauses": 2, "explainer": "greedy", "baselines": False, "note": str}


def noisy_table(rows):
    """One row in three has the wrong class: nobody can be right more often than in two of three."""
    choose = np.random.default_rng(7)
    x = choose.normal(size=(rows, 2)).round(3)
    right = (x[:, 0] > 0) ^ (choose.random(rows) < 1 / 3)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.where(right, "yes", "no")})


@pytest.fixture(scope="module")
def observed():
    return mine(noisy_table(ENOUGH), "y", train="gbm", **QUICK)


def test_probabilities_are_observed_by_default_and_every_output_says_so(observed):
    facts = observed.program.metadata["probabilities"]
    assert (facts["emitted"], facts["rows"], facts["unseen"]) == ("observed", FEWEST_ROWS, True)
    assert sum(rate["rows"] for rate in facts["by_class"]) == FEWEST_ROWS
    first, *rates = probability_lines(observed.program)
    assert first == f"probabilities: observed on {FEWEST_ROWS} rows that the black box never saw"
    assert len(rates) == 2
    assert all("observed" in line and "black box" in line for line in rates)
    assert "\n".join([first, *rates]) in observed.summary
    assert first.removeprefix("probabilities: ") in render_page(observed.program)
    assert observed.as_json()["probabilities"] == facts


def test_every_row_held_out_is_observed_and_measured_and_its_own_class_does_not_flatter_its_probability():
    mined = mine(noisy_table(4 * ENOUGH), "y", train="gbm", **{**QUICK, "clauses": None, "head": "tree", "depth": 4})
    rows, test = mined.program.metadata["mining"]["rows"], mined.figures["test"]
    assert rows["test"] == mined.program.metadata["probabilities"]["rows"] == mined.consistency.rows == 4 * FEWEST_ROWS
    answers = evaluate_many(mined.program, mined.triplets.x)
    table = noisy_table(4 * ENOUGH).set_index(["a", "b"])["y"]
    truth = np.array([table[tuple(row)] for row in mined.triplets.x.tolist()])
    assert test["accuracy"] == (answers.labels == truth).mean()
    in_sample = ((answers.probabilities[:, 1] - (truth == "yes")) ** 2).mean()
    assert test["brier"] > in_sample


def test_the_command_line_and_the_classifier_agree():
    table, label = noisy_table(ENOUGH), lambda rows: rows[:, :1] > np.array([[0.1]])
    box = lambda rows: np.column_stack([1 - 0.8 * label(rows)[:, 0], 0.8 * label(rows)[:, 0]])  # noqa: E731
    split = read_sample(table, Choice("y"), most=ENOUGH).split
    mined = mine(table, "y", black_box=box, **QUICK).program
    model = GBFLClassifier(box, max_clauses=2, explainer="greedy", random_state=0)
    model.fit(pd.DataFrame(split.x, columns=["a", "b"]), split.y)
    model.calibrate(pd.DataFrame(split.x_test, columns=["a", "b"]), split.y_test)
    rows = np.random.default_rng(1).normal(size=(500, 2))
    assert (
        evaluate_many(mined, rows).probabilities == model.predict_proba(pd.DataFrame(rows, columns=["a", "b"]))
    ).all()


def test_the_choice_of_probabilities_changes_no_label(observed):
    score = mine(noisy_table(ENOUGH), "y", train="gbm", **{**QUICK, "probabilities": "score"}).program
    rows = np.random.default_rng(1).normal(size=(500, 2))
    assert (evaluate_many(score, rows).labels == evaluate_many(observed.program, rows).labels).all()
    assert isinstance(score.decision, Scorecard)
    assert score.decision == replace(observed.program.decision, bands=())
    assert probability_lines(score) == [
        "probabilities: the rules' own, not observed (--probabilities observed makes them rates)"
    ]


def test_too_few_rows_leave_the_score_and_all_rows_to_measure_on():
    few = ENOUGH - 8
    mined = mine(noisy_table(few), "y", train="gbm", **QUICK)
    held_out = int(few * TEST_SHARE)
    assert mined.consistency.rows == held_out
    assert mined.program.metadata["probabilities"]["emitted"] == "score"
    line = f"probabilities: the rules' own, not observed ({held_out} rows to observe on, at least 40 are needed)"
    assert probability_lines(mined.program) == [line]
    assert line in mined.summary


def test_rows_are_not_called_unseen_by_a_black_box_from_elsewhere():
    table = noisy_table(ENOUGH)
    model = LogisticRegression().fit(table[["a", "b"]].to_numpy(), table["y"])
    mined = mine(table, "y", black_box=model, **QUICK)
    assert mined.program.metadata["probabilities"]["unseen"] is False
    assert "never saw" not in mined.summary
    assert "the black box may have been trained on them" in mined.summary


@pytest.mark.parametrize(
    "facts",
    [
        "observed",
        {"emitted": "observed"},
        {"emitted": "observed", "unseen": "yes", "rows": "\x1b[2J", "by_class": [1, None]},
        {"emitted": "observed", "rows": 9, "by_class": [{"rows": 1, "observed": "1", "black_box": []}, {}]},
        {"emitted": ["score"], "why": "\u202e"},
    ],
)
def test_metadata_from_anyone_is_printed_without_control_marks(observed, facts):
    program: Program = replace(observed.program, metadata={"probabilities": facts})
    lines = probability_lines(program)
    assert all(line.isprintable() for line in lines)
    assert not any("never saw" in line for line in lines)
