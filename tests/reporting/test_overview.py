"""The first screen of a report: what is decided, how well, and by which rules; never more than the program says."""

from dataclasses import replace

from gbfl_compile.ir.nodes import Clause, Interval, Leaf, OneOf, Program, Scorecard, Split, Tree
from gbfl_compile.reporting.overview import overview
from gbfl_compile.reporting.page import render_page

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
    assert rules[1][0] == "age >= 30 and grade is A"
    assert rules[0][0] == "not (age >= 30)"


def test_the_clauses_of_a_rule_set_that_move_most_points_over_its_rows_come_first():
    card = replace(TREE, decision=Scorecard((0, 0), ((0, 9), (0, -4))))
    assert [effect for _, effect in overview(card).rules] == ["+9 points for yes", "−4 points for yes"]
    counted = replace(card, metadata={"mining": {"clause_support": [1, 100]}})
    assert [effect for _, effect in overview(counted).rules] == ["−4 points for yes", "+9 points for yes"]


def test_accuracy_is_read_beside_the_black_box_and_the_base_rate():
    known = overview(replace(TREE, metadata={"figures": {"test": FIGURES}}))
    assert [name for name, _ in known.figures] == ["right", "the black box is right", "always the commonest class"]
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
