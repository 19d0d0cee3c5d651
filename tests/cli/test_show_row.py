"""`gbfl show --row`: why a row got its class, what suffices, what would change it, and the user's own reasons."""

import json

import numpy as np
import pytest

from gbfl_compile.cli import main
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest, load, to_json
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import reason_of, with_reasons
from gbfl_compile.learning.consistency import Triplets, save_triplets

TREE = Program(
    ("age", "the income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 0.1))),),
    split(0, leaf(0.25, 0.75, rows=3), leaf(1.0, 0.0, rows=1)),
)
CARD = Program(
    ("age", "income", "debts"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0),)), Clause((Interval(1, 30_000.0),)), Clause((Interval(2, 3.0),))),
    Scorecard((0, -10), ((0, 4), (0, 20), (0, -5))),
    {"mining": {"whole_numbers": ["debts"]}},
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree.json").write_text(to_json(TREE))
    (tmp_path / "card.json").write_text(to_json(CARD))
    (tmp_path / "rows.csv").write_text("age,the income,income,debts,other\n30,5,40000,1,x\n70,5,10000,4.5,y\n")
    return tmp_path


def shown(capsys, *arguments):
    capsys.readouterr()
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_a_tree_reports_the_way_to_the_leaf(folder, capsys):
    out = shown(capsys, "tree.json", "--row", "rows.csv")
    assert out == (
        "row 1 of 2: yes, with probability 0.75\n"
        "\n"
        "Why: the questions on the path to it and their answers, in order\n"
        "  18 <= age < 65 AND the income >= 0.1\n"
        "\n"
        "Sufficient (no smaller set of features suffices): yes for any values of the other features, as long as\n"
        "  18 <= age < 65, here 30\n"
        "  the income >= 0.1, here 5\n"
        "\n"
        "Would change it: the nearest change of one feature\n"
        "  age 30 -> just below 18 gives no\n"
        "  age 30 -> 65 gives no\n"
        "  the income 5 -> just below 0.1 gives no\n"
    )  # fmt: skip


def test_of_a_clause_that_failed_only_the_failed_bounds_are_printed(folder, capsys):
    out = shown(capsys, "tree.json", "--row", "rows.csv", "--row-number", "2")
    assert "  not (18 <= age < 65)\n" in out
    assert "  age >= 65, here 70\n" in out
    assert "  age 70 -> just below 65 gives yes\n" in out


def test_a_rule_set_reports_its_points_largest_first(folder, capsys):
    out = shown(capsys, "card.json", "--row", "rows.csv")
    assert "Why: points for yes against no, the largest first\n  +20  income >= 30000\n   +4  age >= 18\n" in out
    assert "  -10  to start with\n  +14  in all\n" in out
    assert "other features, as long as\n  income >= 30000, here 40000\n" in out  # 20 - 10 - 5 is enough
    assert "  income 40000 -> just below 30000 gives no\n" in out


def test_what_is_whole_stays_whole(folder, capsys):
    closer = Program(
        CARD.features, CARD.classes, (Clause((Interval(2, 2.5),)),), Scorecard((0, 1), ((0, -5),)), CARD.metadata
    )
    (folder / "closer.json").write_text(to_json(closer))
    assert "  debts 1 -> 3 gives no\n" in shown(capsys, "closer.json", "--row", "rows.csv")
    assert "  debts 4.5 -> 2 gives yes\n" in shown(capsys, "closer.json", "--row", "rows.csv", "--row-number", "2")


def test_the_json_form_is_as_promised(folder, capsys):
    form = json.loads(shown(capsys, "card.json", "--row", "rows.csv", "--json"))
    assert list(form) == [
        "digest", "row_number", "row", "label", "probabilities", "leaf", "scores", "against", "start", "because",
        "sufficient", "changes", "black_box",
    ]  # fmt: skip
    assert form["digest"] == digest(CARD)
    assert form["scores"] == list(evaluate(CARD, [30.0, 40_000.0, 1.0]).scores)
    assert form["because"][0] == {"clause": 1, "held": True, "text": "income >= 30000", "points": 20, "reason": None}
    conditions = [{"feature": "income", "text": "income >= 30000", "at_least": 30000.0}]
    assert form["sufficient"] == {"smallest": True, "conditions": conditions}
    assert form["changes"]["features_searched"] == 1
    change = form["changes"]["found"][0]
    assert change["values"] == {"income": np.nextafter(30_000.0, 0.0)}
    assert change["label"] == "no"


def test_triplets_add_what_the_black_box_says(folder, capsys):
    x, flags = np.array([[30.0, 5.0]]), np.array([True])
    kept = Triplets(x, np.array([[30.0, 2.0]]), np.array([[70.0, 5.0]]), flags, flags, np.array(["yes"]), TREE.features)
    save_triplets(folder / "t.npz", kept)
    out = shown(capsys, "tree.json", "--row", "rows.csv", "--triplets", "t.npz")
    assert "The black box says yes\n  and still does with the income 5 -> 2\n" in out
    assert "  and no longer does with age 30 -> 70\n" in out
    assert main(["show", "tree.json", "--row", "rows.csv", "--row-number", "2", "--triplets", "t.npz"]) == 2
    assert "does not have this row" in capsys.readouterr().err
    assert main(["show", "tree.json", "--triplets", "t.npz"]) == 2


def test_a_row_number_beyond_the_table_is_named(folder, capsys):
    assert main(["show", "tree.json", "--row", "rows.csv", "--row-number", "3"]) == 2
    assert "rows.csv: has no row 3, there are 2" in capsys.readouterr().err
    assert main(["show", "card.json", "--row", "absent.csv"]) == 2
    assert "absent.csv" in capsys.readouterr().err


def test_reasons_are_printed_beside_their_clause(folder, capsys):
    (folder / "reasons.csv").write_text('clause,text\n1,"Income is enough, ""R01"""\n0,\n')
    assert main(["reasons", "card.json", "reasons.csv", "-o", "told.json"]) == 0
    assert capsys.readouterr().out == ('0: age >= 18\n1: income >= 30000\n    Income is enough, "R01"\n2: debts >= 3\n')
    reasoned = load(folder / "told.json")
    assert digest(reasoned) == digest(CARD)
    assert [reason_of(reasoned, clause) for clause in range(3)] == [None, 'Income is enough, "R01"', None]
    assert reasoned.metadata["mining"] == CARD.metadata["mining"]
    assert 'income >= 30000  [Income is enough, "R01"]' in shown(capsys, "told.json", "--row", "rows.csv")
    form = json.loads(shown(capsys, "told.json", "--row", "rows.csv", "--json"))
    assert form["because"][0]["reason"] == 'Income is enough, "R01"'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("clause,text\n3,too far\n", "there is no clause 3: the program has 0 to 2"),
        ("clause,text\nfirst,x\n", "row 1: 'first' is not the number of a clause"),
        ("clause,text\n1,x\n1,y\n", "row 2: clause 1 is listed twice"),
        ("clause,why\n1,x\n", "has no column 'text'"),
        (f"clause,text\n1,{'x' * 501}\n", "clause 1: a reason is one line of 1 to 500"),
        ('clause,text\n1,"two\nlines"\n', "clause 1: a reason is one line"),
    ],
)
def test_reasons_that_cannot_be_are_named(folder, capsys, content, message):
    (folder / "reasons.csv").write_text(content)
    assert main(["reasons", "card.json", "reasons.csv", "-o", "told.json"]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "told.json").exists()


def test_reasons_need_a_place_to_go(folder, capsys):
    assert main(["reasons", "card.json", "-o", "told.json"]) == 2
    assert "go together" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, [], "x", {"0": 5}, {"0": ""}, {"0": "a\nb"}, {"0": "x" * 501}])
def test_reasons_from_anyone_are_read_with_care(content):
    assert reason_of(Program(CARD.features, CARD.classes, CARD.clauses, CARD.decision, {"reasons": content}), 0) is None


def test_reasons_survive_the_file(folder):
    (folder / "p.json").write_text(to_json(with_reasons(TREE, {0: "größer"})))
    assert reason_of(load(folder / "p.json"), 0) == "größer"
