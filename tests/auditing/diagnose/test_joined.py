"""An OR in place of an AND, and an OR without its parentheses, are named as what they are."""

import itertools
import math

import numpy as np
import pytest

from gbfl_compile.auditing.answers import RowAnswers
from gbfl_compile.auditing.audit import audit
from gbfl_compile.auditing.diagnose.joined import joined_slips
from gbfl_compile.auditing.diagnose.slip import case_of
from gbfl_compile.checking.prove.findings import clock_of
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

FEATURES = ("income", "debt", "age")
CLAUSES = (
    Clause((Interval(0, 30000.0), Interval(1, None, 0.4), Interval(2, 25.0))),
    Clause((Interval(0, 20000.0), Interval(1, None, 0.6, "right", if_missing=True))),
)
LIST = Program(
    FEATURES,
    ("decline", "refer", "approve"),
    CLAUSES,
    split(0, leaf(0.0, 0.0, 1.0), split(1, leaf(0.0, 1.0, 0.0), leaf(1.0, 0.0, 0.0))),
)
CARD = Program(FEATURES, ("decline", "approve"), CLAUSES, Scorecard((0, -3), ((0, 5), (0, 4)), 1))
FIRST = "income >= 30000 AND debt < 0.4 AND age >= 25"
SECOND = "income >= 20000 AND (debt <= 0.6 OR debt IS NULL)"
TEXTS = {
    "list": f"SELECT CASE WHEN {FIRST} THEN 'approve' WHEN {SECOND} THEN 'refer' ELSE 'decline' END AS label FROM a",
    "card": f"SELECT CASE WHEN CASE WHEN {FIRST} THEN 5 ELSE 0 END + CASE WHEN {SECOND} THEN 4 ELSE 0 END >= 4 "
    "THEN 'approve' ELSE 'decline' END AS label FROM a",
}
SLIPS = (
    (FIRST, "income >= 30000 AND debt < 0.4 OR age >= 25", 0),
    (FIRST, "income >= 30000 OR debt < 0.4 AND age >= 25", 0),
    (SECOND, "income >= 20000 OR (debt <= 0.6 OR debt IS NULL)", 1),
    (SECOND, "income >= 20000 AND debt <= 0.6 OR debt IS NULL", 1),
)


@pytest.fixture
def changes_of(tmp_path):
    def changes_of(program, text):
        path = tmp_path / "deployed.sql"
        path.write_text(text)
        (found,) = audit(program, file=path, dialect="sqlite").verdicts
        return found.verdict, [change.text() for change in found.changes]

    return changes_of


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize(("right", "wrong", "number"), SLIPS)
def test_a_clause_of_which_an_or_makes_two_is_named(changes_of, kind, right, wrong, number):
    program = {"list": LIST, "card": CARD}[kind]
    assert changes_of(program, TEXTS[kind]) == ("equal", [])
    verdict, (change,) = changes_of(program, TEXTS[kind].replace(right, wrong))
    deployed = wrong.replace("(debt <= 0.6 OR debt IS NULL)", "(debt <= 0.6 OR debt is missing)")
    deployed = deployed.replace("debt IS NULL", "debt is missing")
    assert verdict == "different"
    assert change.startswith(f"clause {number}: ")
    without = " is deployed as the same without the parentheses around OR: AND is evaluated first"
    assert change.endswith((f" is deployed as {deployed}", without if "OR debt IS NULL" in wrong else deployed))


def test_the_program_with_such_a_slip_answers_as_what_was_deployed():
    """Where a clause holds of a missing value alone, the two of an OR never hold together."""
    rows = np.array(list(itertools.product((10000.0, 25000.0, 40000.0), (0.3, 0.5, 0.7, math.nan), (20.0, 30.0))))
    income, debt, age = rows.T
    first = (income >= 30000) & (debt < 0.4) & (age >= 25)
    second = (income >= 20000) & (debt <= 0.6) | np.isnan(debt)
    for program, labels in (
        (LIST, np.where(first, 2, np.where(second, 1, 0))),
        (CARD, (5 * first + 4 * second > 3).astype(int)),
    ):
        case = case_of(program, rows, RowAnswers(labels), clock_of(10.0), codebook(program))
        slips = list(joined_slips(case))
        assert slips
        for slip in slips:
            assert evaluate_many(slip.program, rows).labels.tolist() == [program.classes[label] for label in labels]
