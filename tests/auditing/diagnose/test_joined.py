"""An OR in place of an AND, and an OR without its parentheses, are named as what they are."""

import pytest

from gbfl_compile.auditing.audit import audit
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
