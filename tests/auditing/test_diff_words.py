"""`diff` of programs with words, booleans, dates and missing values: true regions, in words, with the slip named."""

import csv
import datetime as dt
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile import diff
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split
from gbfl_compile.ir.validate import validate
from tests.word_programs import (
    CHURN,
    CHURN_ROWS,
    SLIPS,
    values,
    with_one_edit,
    with_slip,
    with_swapped_sets,
    word_programs,
)


def by_hand(old, new, rows):
    """(rows that get another class, rows) by the definition of the language."""
    return sum(evaluate(old, row).label != evaluate(new, row).label for row in rows), len(rows)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_found_named_and_counted(slip):
    new = with_slip(slip)
    found = diff(CHURN, new, data=CHURN_ROWS)
    assert found.verdict == "different"
    assert slip in {part for change in found.changes if change.slip for part in (change.slip, *change.slip.split(", "))}
    assert (found.moves.rows, found.moves.of) == by_hand(CHURN, new, CHURN_ROWS)
    for region in found.regions:
        row = [region.row[name] for name in CHURN.features]
        assert (evaluate(CHURN, row).label, evaluate(new, row).label) == (region.approved, region.deployed)


def test_swapped_sets_are_called_swapped():
    found = diff(CHURN, with_swapped_sets())
    assert found.verdict == "different"
    assert {(change.where, change.slip) for change in found.changes} == {
        ("clause 0", "swapped with clause 2"),
        ("clause 2", "swapped with clause 0"),
    }


def test_regions_are_in_words():
    shown = "\n".join(diff(CHURN, with_slip("1 day later")).lines())
    assert "opened < 2024-03-01 becomes opened < 2024-03-02 (1 day later)" in shown
    assert "opened = 2024-03-01" in shown
    assert "contract in {Month-to-month, two year}" in shown
    assert "smoker = True" in shown


def test_the_same_program_is_identical_and_reordered_conditions_are_equal():
    other = Program(
        CHURN.features,
        CHURN.classes,
        tuple(Clause(c.atoms[::-1]) for c in CHURN.clauses),
        CHURN.decision,
        kinds=CHURN.kinds,
    )
    assert diff(CHURN, CHURN).verdict == "identical"
    assert diff(CHURN, other).verdict in ("identical", "equal")


def test_features_may_come_and_go_and_keep_their_kinds():
    old = Program(("age",), ("no", "yes"), (Clause((Interval(0, 18.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    new = Program(
        ("job", "age"),
        ("no", "yes"),
        (Clause((Interval(1, 18.0), OneOf(0, ("clerk",)))),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("category", "number"),
    )
    found = diff(old, new, data=[{"age": 20.0, "job": job} for job in ("clerk", "Clerk", None)])
    assert (found.verdict, found.moves.rows) == ("different", 2)
    assert any("job is not clerk" in region.rule for region in found.regions)
    assert diff(new, old).verdict == "different"


def test_a_feature_of_two_kinds_is_refused_by_name():
    old = Program(("age",), ("no", "yes"), (Clause((Interval(0, 18.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    new = Program(
        ("age",),
        ("no", "yes"),
        (Clause((OneOf(0, ("18",)),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("category",),
    )
    with pytest.raises(BadInput, match=r"'age' has two kinds.* a number in the old one and a category in the new one"):
        diff(old, new)


def test_data_may_be_a_file_and_the_form_is_json(tmp_path):
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(CHURN.features)
        writer.writerow(["2000", "Month-to-month", "true", "2024-02-29"])
        writer.writerow(["2000", "month-to-month", "true", "2024-02-29"])
        writer.writerow(["", "two year", "", ""])
    slip = 'Month-to-month re-cased as "month-to-month"'
    for name, program in (("old", CHURN), ("new", with_slip(slip))):
        save(program, tmp_path / f"{name}.gbfl.json")
    found = diff(tmp_path / "old.gbfl.json", tmp_path / "new.gbfl.json", data=tmp_path / "rows.csv")
    rows = [
        [2000.0, "Month-to-month", True, dt.date(2024, 2, 29)],
        [2000.0, "month-to-month", True, dt.date(2024, 2, 29)],
        [None, "two year", None, None],
    ]
    assert (found.moves.rows, found.moves.of) == by_hand(CHURN, with_slip(slip), rows)
    form = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert [each["slip"] for each in form["differences"]] == [slip]
    assert form["regions"][0]["row"]["opened"] is None or isinstance(form["regions"][0]["row"]["opened"], str)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_verdict_regions_and_counts_agree_with_the_definition(data):
    old = data.draw(word_programs())
    new = validate(data.draw(with_one_edit(old)))
    row = st.tuples(*(st.sampled_from(values(old, feature)) for feature in range(len(old.features))))
    rows = [list(data.draw(row)) for _ in range(8)]
    found = diff(old, new, data=rows)
    moved, of = by_hand(old, new, rows)
    if found.verdict in ("identical", "equal"):
        assert moved == 0
        return
    assert found.verdict == "different"
    assert (found.moves.rows, found.moves.of) == (moved, of)
    for region in found.regions:
        if region.beside is None:
            shown = [region.row[name] for name in old.features]
            assert (evaluate(old, shown).label, evaluate(new, shown).label) == (region.approved, region.deployed)
    json.dumps(found.as_json(), allow_nan=False)
