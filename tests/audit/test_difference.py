"""Two versions of a program: equal ones are proved so, different ones are told apart by clause, region and rows."""

from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.audit.difference import difference
from gbfl_compile.audit.forms import difference_form, difference_lines
from gbfl_compile.cli import main
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json_form import save
from gbfl_compile.ir.nodes import Clause, Interval
from gbfl_compile.ir.validate import validate
from tests.audit.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE


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
    assert "proved" in "\n".join(difference_lines(found))


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
    assert "clause 0: income >= 50000 becomes income > 50000" in capsys.readouterr().out
    assert main(["diff", "a.json", "c.json", "--json"]) == 1
    assert '"verdict": "different"' in capsys.readouterr().out


def test_the_json_is_whole():
    form = difference_form(difference(CARD, validate(TAMPERED_CARDS[0][1])), CARD.features)
    assert set(form) == {"schema", "verdict", "old", "new", "proof", "differences", "regions", "moved"}
