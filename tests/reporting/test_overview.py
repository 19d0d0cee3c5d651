"""The first screen of a report: what is decided, how well, and by which rules; nothing that the program does not state."""

from dataclasses import replace

import pytest

from gbfl_compile.backends import emit, write_artifacts
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree
from gbfl_compile.reporting.overview import overview
from gbfl_compile.reporting.page import render_page, report

TREE = Program(
    ("age", "grade"),
    ("no", "yes"),
    (Clause((Interval(0, 30.0),)), Clause((OneOf(1, ("A",)),))),
    Tree((Split(0, 1, 4), Split(1, 2, 3), Leaf((0.1, 0.9), 50), Leaf((0.9, 0.1), 5), Leaf((0.8, 0.2), 70))),
    kinds=("number", "category"),
)
FIGURES = {"accuracy": 0.875, "black_box_accuracy": 0.9, "base_rate": 0.6, "confusion": [[50, 10], [5, 60]]}


def test_the_answers_with_most_rows_come_first_with_their_questions():
    rules = overview(TREE).rules
    assert [effect for _, effect in rules] == ["no, 70 training rows", "yes, 50 training rows", "no, 5 training rows"]
    assert rules[1][0] == ("age >= 30", "grade is A")
    assert rules[0][0] == ("not (age >= 30)",)


def test_the_clauses_of_a_rule_set_that_move_most_points_over_its_rows_come_first():
    card = replace(TREE, decision=Scorecard((0, 0), ((0, 9), (0, -4))))
    assert [effect for _, effect in overview(card).rules] == ["+9 points for yes", "−4 points for yes"]
    counted = replace(card, metadata={"mining": {"clause_support": [1, 100]}})
    assert [effect for _, effect in overview(counted).rules] == ["−4 points for yes", "+9 points for yes"]


def test_a_rule_is_shown_condition_by_condition():
    both = replace(TREE, clauses=(Clause((Interval(0, 30.0), OneOf(1, ("B",)))), TREE.clauses[1]))
    assert overview(both).rules[1][0] == ("age >= 30", "grade is B", "grade is A")
    assert overview(both).rules[0][0] == ("not (age >= 30 AND grade is B)",)
    card = replace(both, decision=Scorecard((0, 0), ((0, 9), (0, -4))))
    assert overview(card).rules[0][0] == ("age >= 30", "grade is B")
    assert '<span class="condition">and grade is B</span>' in render_page(both)


def test_accuracy_is_read_beside_the_black_box_and_the_base_rate():
    known = overview(replace(TREE, metadata={"figures": {"test": FIGURES}}))
    assert [name for name, _ in known.figures] == [
        "the rules are right",
        "the black box is right",
        "always the commonest class",
    ]
    assert known.confusion == ((50, 10), (5, 60))
    page = render_page(replace(TREE, metadata={"figures": {"test": FIGURES}}))
    assert page.index("At a glance") < page.index('class="banner')
    assert "answered yes" in page


def test_metadata_of_another_shape_is_left_out():
    for confusion in ("ab", [[1, 2]], [[1, 2], [3]], [[1, 2], [3, "<b>"]], [[1.5, 2], [3, 4]], None):
        assert overview(replace(TREE, metadata={"figures": {"test": {"confusion": confusion}}})).confusion == ()
    assert overview(replace(TREE, metadata={"figures": 7, "mining": []})).figures == ()


def test_hostile_names_stay_names():
    program = replace(TREE, features=("<b>age</b>", "grade"), classes=("</h1>", "yes"))
    page = render_page(program)
    assert "<b>age" not in page
    assert "</h1>, yes" not in page


GROUP = {
    "group": "age < 30",
    "feature": "age",
    "tested": True,
    "rows": 40,
    "class": 1,
    "answers": {"counts": [30, 80], "of": [40, 400], "gap": [0.3, 0.7]},
    "true": [28, 90],
    "errors": {"counts": [4, 36], "of": [40, 400], "gap": [-0.1, 0.12]},
}


def with_groups(*groups, **other):
    return replace(TREE, metadata={"mining": {"groups": {"rows": 440, "compared": 9, "groups": list(groups), **other}}})


def test_who_is_treated_differently_is_on_the_first_screen_with_counts_and_uncertainty():
    (group,) = overview(with_groups(GROUP)).groups.shown
    assert (group.name, group.rows) == ("age < 30", "40")
    plain = [text.replace("\N{NO-BREAK SPACE}", " ") for text in (group.answered, group.true, group.wrong)]
    assert plain == [
        "75 % yes; others 20 % (+30 to +70 points)",
        "70 % yes; others 22 %",
        "10 %; others 9 % (could be chance)",
    ]
    page = render_page(with_groups(GROUP, {**GROUP, "group": "age >= 60"}))
    assert page.index("The most important rules") < page.index("Who it treats differently")
    assert page.index("Who it treats differently") < page.index('id="rules"')
    assert "age &gt;= 60" not in page  # one for each feature


def test_a_group_of_a_feature_that_no_rule_tests_says_so():
    (group,) = overview(with_groups({**GROUP, "tested": False})).groups.shown
    assert "no rule tests this feature" in group.note
    assert overview(with_groups(GROUP)).groups.shown[0].note == ""


def test_no_group_that_differs_is_said_as_well_and_nothing_is_said_where_nothing_was_compared():
    assert "none differs from all other rows" in render_page(with_groups())
    assert "Who it treats differently" not in render_page(TREE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"class": 7},
        {"class": "x"},
        {"answers": None},
        {"answers": {"counts": [41, 0], "of": [40, 400], "gap": [0, 1]}},
        {"answers": {"counts": [1, 0], "of": [0, 400], "gap": [0, 1]}},
        {"true": 3},
        {"errors": {"counts": ["<b>", 0], "of": [40, 400], "gap": [0, 1]}},
    ],
)
def test_groups_of_another_shape_are_left_out(wrong):
    assert overview(with_groups({**GROUP, **wrong})).groups is None


def test_hostile_groups_stay_text():
    assert "<script>alert(1)" not in render_page(with_groups({**GROUP, "group": "<script>alert(1)</script>"}))


def test_artifacts_are_checked_for_the_report(tmp_path):
    program = replace(TREE, metadata={})
    write_artifacts([emit(program, "python"), emit(program, "c")], tmp_path / "build")
    report(program, tmp_path / "page.html", artifacts=tmp_path / "build")
    page = (tmp_path / "page.html").read_text()
    assert "Proved equal" in page
    assert page.index("Proved equal") < page.index('href="#rules"')
    slipped = (tmp_path / "build/python/model.py").read_text().replace(">= 30.0", "> 30.0")
    (tmp_path / "build/python/model.py").write_text(slipped)
    report(program, tmp_path / "page.html", artifacts=tmp_path / "build")
    assert "Different: python does not answer as its source" in (tmp_path / "page.html").read_text()
    with pytest.raises(BadInput, match="not both"):
        report(program, tmp_path / "page.html", artifacts=tmp_path / "build", verdict={})


def test_not_checked_is_never_what_one_reads_first():
    page = render_page(TREE)
    assert page.index("Not checked") > page.index('id="behaviour"') > page.index("At a glance")
    assert page.index('href="#evidence"') > page.index('href="#rules"')
