"""Two versions of a program: equal ones are proved so, different ones are described by clause, region and rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from gbfl_compile.auditing.diff import difference
from gbfl_compile.auditing.versions import program_changes
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.cli import main
from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from gbfl_compile.ir.validate import validate
from tests.auditing.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE
from tests.programs import programs_with_rows


def respelled(program):
    """The same rules with another upper bound that no number tells apart."""
    atoms = program.clauses[1].atoms
    below = float(np.nextafter(atoms[0].hi, -np.inf))
    other = Clause((Interval(atoms[0].feature, None, below, "right"),))
    return validate(replace(program, clauses=(program.clauses[0], other, *program.clauses[2:])))


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_equal_though_written_differently_is_proved(program):
    assert difference(program, program).verdict == "identical"
    found = difference(program, respelled(program))
    assert found.verdict == "equal"
    assert found.old != found.new
    assert "proved" in "\n".join(found.lines())


@pytest.mark.parametrize(
    ("program", "cases"), [(TREE, TAMPERED_TREES), (CARD, TAMPERED_CARDS)], ids=["tree", "rule set"]
)
def test_every_region_really_differs(program, cases):
    for name, other, _ in cases:
        found = difference(program, validate(other))
        assert found.verdict == "different", name
        for region in found.regions:
            row = [np.nan if value is None else value for value in region.row.values()]
            assert evaluate(program, row).label == region.approved, name
            assert evaluate(other, row).label == region.deployed, name
            assert region.approved != region.deployed


def test_columns_in_another_order_are_matched_by_name():
    order = (2, 0, 3, 1)
    clauses = tuple(
        Clause(
            tuple(sorted((replace(a, feature=order.index(a.feature)) for a in clause.atoms), key=lambda a: a.feature))
        )
        for clause in TREE.clauses
    )
    moved = validate(replace(TREE, features=tuple(TREE.features[i] for i in order), clauses=clauses))
    assert difference(TREE, moved).verdict == "equal"


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "a.json")
    save(respelled(TREE), tmp_path / "b.json")
    save(validate(TAMPERED_TREES[0][1]), tmp_path / "c.json")
    assert main(["diff", "a.json", "b.json"]) == 0
    assert "equal: proved on every input, though written differently" in capsys.readouterr().out
    assert main(["diff", "a.json", "c.json"]) == 1
    assert "clause 0 tightened: income >= 50000 becomes income > 50000" in capsys.readouterr().out
    assert main(["diff", "a.json", "c.json", "--json"]) == 1
    assert '"verdict": "different"' in capsys.readouterr().out


def test_the_json_is_whole():
    form = difference(CARD, validate(TAMPERED_CARDS[0][1])).as_json()
    assert set(form) == {"schema", "verdict", "old", "new", "proof", "differences", "regions", "moved"}


KINDS = {
    "one ulp up": ("tightened", "clause 0"),
    "greater for at least": ("tightened", "clause 0"),
    "at most for less": ("loosened", "clause 1"),
    "another number": ("tightened", "clause 0"),
    "a bound left out": ("loosened", "clause 0"),
    "a condition left out": ("loosened", "clause 2"),
    "a condition added": ("tightened", "clause 1"),
    "missing let through": ("loosened", "clause 1"),
    "missing kept out": ("tightened", "clause 3"),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("program", "cases"), [(TREE, TAMPERED_TREES), (CARD, TAMPERED_CARDS)], ids=["tree", "rule set"]
)
def test_a_clause_is_said_to_be_loosened_or_tightened(program, cases, name):
    other = next(tampered for each, tampered, _ in cases if each == name)
    (change,) = difference(program, validate(other)).changes
    assert (change.kind, change.where) == KINDS[name]


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_other_reasons_for_the_same_answers_are_a_difference(program, tmp_path, capsys):
    """No digest covers them, and an artifact with the old ones is called different too."""
    old, new = with_reasons(program, {0: "Too young"}), with_reasons(program, {0: "Too old"})
    assert difference(old, old).verdict == "identical"
    found = difference(old, new)
    assert (found.old, found.verdict, found.proof.answer) == (found.new, "different", "proved")
    assert [(each.where, each.approved, each.deployed) for each in found.reasons] == [
        ("reason of clause 0", "Too young", "Too old")
    ]
    assert difference(program, new).reasons[0].approved == "none"
    assert difference(old, with_reasons(respelled(program), {0: "Too young"})).verdict == "equal"
    save(old, tmp_path / "old.json")
    save(new, tmp_path / "new.json")
    assert main(["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 1
    shown = capsys.readouterr().out
    assert "different: the same answers on every input, and other reasons" in shown
    assert "reason of clause 0: Too young becomes Too old" in shown


@settings(max_examples=60)
@given(programs_with_rows())
def test_loosened_and_tightened_are_true_of_every_row(drawn):
    """Each clause of a program against each other one: what is called looser holds wherever the tighter one does."""
    program, rows = drawn
    rows = np.concatenate([np.array(rows, dtype=np.float64), witnesses(program)])
    if len(program.clauses) < 2:
        return
    one, two = program.clauses[:2]
    versions = [replace(program, clauses=(each,), decision=split(0, *LEAVES)) for each in (one, two)]
    versions = [replace(each, classes=("no", "yes")) for each in versions]
    kinds = {change.kind for change in program_changes(*versions) if change.where == "clause 0"}
    before, after = (clause_column(each, rows) for each in (one, two))
    if kinds == {"loosened"}:
        assert not (before & ~after).any()
    if kinds == {"tightened"}:
        assert not (after & ~before).any()


LEAVES = (leaf(0.0, 1.0), leaf(1.0, 0.0))


def test_clauses_added_and_removed_are_reported_with_their_points():
    points = CARD.decision.points
    fewer = replace(CARD, clauses=CARD.clauses[:3], decision=replace(CARD.decision, points=points[:3]))
    (gone,) = difference(CARD, fewer).changes
    assert (gone.kind, gone.where) == ("removed", "clause 3")
    assert gone.approved.endswith("(+0 for no, +3 for yes)")
    (come,) = difference(fewer, CARD).changes
    assert (come.kind, come.where) == ("added", "clause 3 of the new version")


def test_points_bias_and_leaves_that_changed_are_reported():
    by_name = {name: other for name, other, _ in (*TAMPERED_TREES, *TAMPERED_CARDS)}
    assert [c.where for c in difference(CARD, by_name["points off by one"]).changes] == ["points of clause 1"]
    assert [c.where for c in difference(CARD, by_name["another start"]).changes] == ["to start with"]
    assert [c.where for c in difference(TREE, by_name["a class swapped"]).changes] == ["leaf 2"]
    assert [c.where for c in difference(TREE, by_name["probabilities changed"]).changes] == ["probabilities of leaf 4"]


def test_a_version_may_have_a_feature_more_or_less(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wider = replace(TREE, features=(*TREE.features, "region"))
    assert difference(TREE, validate(wider)).verdict == "equal"
    asking = replace(wider, clauses=(*TREE.clauses[:3], Clause((*TREE.clauses[3].atoms, Interval(4, 1.0)))))
    found = difference(TREE, validate(asking))
    assert [(c.kind, c.where, c.deployed) for c in found.changes] == [("tightened", "clause 3", "region >= 1")]
    assert set(found.regions[0].row) == {*TREE.features, "region"}
    save(TREE, tmp_path / "a.json")
    save(validate(asking), tmp_path / "b.json")
    rows = np.random.default_rng(0).uniform([0, 18, 0, 0, 0], [120000, 70, 1, 20, 2], size=(500, 5))
    pd.DataFrame(rows, columns=list(asking.features)).to_csv("loans.csv", index=False)
    assert main(["diff", "a.json", "b.json", "--data", "loans.csv"]) == 1
    moved = (evaluate_many(TREE, rows[:, :4]).labels != evaluate_many(asking, rows).labels).sum()
    assert f"{moved} of 500 rows of the data get another class" in capsys.readouterr().out


def test_a_rule_set_of_a_hundred_clauses_is_compared_and_reported_on_one_screen():
    choose = np.random.default_rng(0)
    cuts = np.sort(choose.normal(size=12))
    clauses = []
    for _ in range(100):
        features = np.sort(choose.choice(20, 3, replace=False)).tolist()
        ends = [np.sort(choose.choice(cuts, 2, replace=False)).tolist() for _ in features]
        clauses.append(Clause(tuple(Interval(f, *pair) for f, pair in zip(features, ends, strict=True))))
    points = tuple((0, int(p)) for p in choose.integers(-500, 500, 100))
    old = validate(
        Program(tuple(f"f{i}" for i in range(20)), ("no", "yes"), tuple(clauses), Scorecard((0, 0), points, 9))
    )
    atoms = clauses[37].atoms
    moved = Clause((replace(atoms[0], hi=atoms[0].hi + 0.01), *atoms[1:]))
    new = validate(replace(old, clauses=(*clauses[:37], moved, *clauses[38:])))
    found = difference(old, new)
    assert [(c.kind, c.where) for c in found.changes] == [("loosened", "clause 37")]
    lines = found.lines()
    assert len(lines) <= 14
    assert all(len(line) < 600 for line in lines)
    turned = replace(old, clauses=old.clauses[::-1], decision=replace(old.decision, points=points[::-1]))
    assert difference(old, validate(turned)).verdict == "equal"
