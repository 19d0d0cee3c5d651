"""What people read."""

import pytest

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Band, Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from gbfl_compile.ir.text import atom_text, listing, readable, unseen_text

CLAUSES = (
    Clause((Interval(0, 863.33), Interval(1, None, 17.29))),
    Clause((Interval(0, None, 500.0),)),
)


def test_a_rule_reads_as_one_line():
    program = Program(
        ("worst_area", "worst_radius"),
        ("malignant", "benign"),
        CLAUSES,
        split(0, leaf(0.94, 0.06, rows=112), split(1, leaf(0.0, 1.0, rows=1), leaf(0.5, 0.5))),
    )
    assert readable(program).split("\n") == [
        "IF worst_area >= 863.33 AND worst_radius < 17.29 THEN malignant (0.94, 112 rows)",
        "ELSE IF worst_area < 500 THEN benign (1.00, 1 row)",
        "ELSE malignant (0.50)",
    ]


def test_a_tree_below_then_is_indented():
    program = Program(("a", "b"), (0, 1), CLAUSES, split(0, split(1, leaf(1.0, 0.0), leaf(0.0, 1.0)), leaf(0.0, 1.0)))
    assert readable(program).split("\n") == [
        "IF a >= 863.33 AND b < 17.29 THEN",
        "    IF a < 500 THEN 0 (1.00)",
        "    ELSE 1 (1.00)",
        "ELSE 1 (1.00)",
    ]


def test_of_two_classes_the_points_that_decide_are_one_column():
    program = Program(("a", "b"), ("no", "yes"), CLAUSES, Scorecard((1, -19), ((0, 8), (-100, 24)), 3))
    assert readable(program).split("\n") == [
        "       points for yes",
        " -20   to start with",
        "  +8   IF a >= 863.33 AND b < 17.29",
        "+124   IF a < 500",
        "yes where they add up to more than 0, otherwise no",
    ]


@pytest.mark.parametrize("start", [-1, 0, 1])
def test_the_column_of_points_says_what_is_answered(start):
    card = Scorecard((3, 3 + start), ((0, 0), (0, 0)), 0)
    program = Program(("a", "b"), ("no", "yes"), CLAUSES, card)
    assert readable(program).split("\n")[1].startswith(f"{start:+d} ")
    assert evaluate(program, [1.0, 1.0]).label == ("yes" if start > 0 else "no")


def test_more_classes_have_one_column_each():
    program = Program(("a", "b"), ("x", "y", "z"), CLAUSES, Scorecard((0, -2, 3), ((0, 8, 1), (0, 4, 0)), 3))
    assert readable(program).split("\n") == [
        " x   y   z   points",
        "+0  -2  +3   to start with",
        "+0  +8  +1   IF a >= 863.33 AND b < 17.29",
        "+0  +4  +0   IF a < 500",
        "the class with most points wins",
    ]


def test_artifacts_quote_the_points_of_every_class_and_their_scale():
    program = Program(("a", "b"), ("no", "yes"), CLAUSES, Scorecard((0, -20), ((0, 8), (0, 124)), 3))
    assert listing(program).split("\n") == [
        "no   yes   points of 2^-3",
        "+0   -20   to start with",
        "+0    +8   IF a >= 863.33 AND b < 17.29",
        "+0  +124   IF a < 500",
        "the class with most points wins",
    ]


def test_bands_read_as_one_line_per_class():
    bands = ((Band(0, (0.6, 0.4)), Band(12, (0.9, 0.1))), (Band(0, (0.45, 0.55)),))
    program = Program(("a", "b"), ("no", "yes"), CLAUSES, Scorecard((0, -20), ((0, 8), (0, 124)), 3, bands))
    assert readable(program).split("\n")[5:] == [
        "how often that was observed to be right, by its lead in points:",
        "  no: 60 % from 0, 90 % from 12",
        "  yes: 55 % from 0",
    ]


def test_a_leaf_prints_the_probability_of_the_class_it_answers():
    program = Program(("a",), ("no", "yes"), (), Tree((Leaf((0.6, 0.4), 244, answer=1),)))
    assert readable(program) == "ALWAYS yes (0.40, 244 rows)"


def test_every_kind_of_interval_has_words():
    say = {
        Interval(0, 1.0, 2.0): "1 <= a < 2",
        Interval(0, 1.0, 2.0, "neither"): "1 < a < 2",
        Interval(0, 1.0, 2.0, "both"): "1 <= a <= 2",
        Interval(0, 1.0, 1.0, "both"): "a = 1",
        Interval(0, 1.0, closed="right"): "a > 1",
        Interval(0, None, 1.0, "right"): "a <= 1",
        Interval(0): "a is present",
        Interval(0, if_missing=True): "always",
        Interval(0, 0.1, if_missing=True): "(a >= 0.1 OR a is missing)",
        Interval(0, 123456789.0): "a >= 123456789",
    }
    assert {atom: atom_text(atom, ("a",)) for atom in say} == say


def test_a_name_cannot_break_the_line_or_turn_the_text_around():
    program = Program(("a\nIF", "\u202eb"), ("x\u2028", "y"), CLAUSES, split(0, leaf(1.0, 0.0), leaf(0.0, 1.0)))
    assert readable(program).split("\n")[0] == r"IF a\nIF >= 863.33 AND \u202eb < 17.29 THEN x\u2028 (1.00)"
    assert len(readable(program).splitlines()) == 2


def test_a_rule_list_of_thousands_of_rules_prints_flat():
    nodes = []
    for rule in range(3000):
        nodes += [Split(0, 2 * rule + 1, 2 * rule + 2), Leaf((1.0, 0.0))]
    lines = readable(Program(("a", "b"), (0, 1), CLAUSES, Tree((*nodes, Leaf((0.0, 1.0)))))).split("\n")
    assert len(lines) == 3001
    assert not any(line.startswith(" ") for line in lines)


def test_leaves_and_clauses_that_no_training_row_reaches_are_reported():
    def tree(*rows):
        first, second, third = (leaf(1.0, 0.0, rows=count) for count in rows)
        return Program(("a", "b"), (0, 1), CLAUSES, split(0, first, split(1, second, third)))

    assert unseen_text(tree(1, 2, 3), ()) is None
    assert unseen_text(tree(None, None, None), ()) is None
    assert unseen_text(tree(0, 2, 3), ()).startswith("1 of 3 leaves has 0 rows: no training row ends there")
    assert unseen_text(tree(0, 0, 3), ()).startswith("2 of 3 leaves have 0 rows")
    card = Program(("a", "b"), (0, 1), CLAUSES, Scorecard((0, 0), ((0, 1), (1, 0)), 0))
    assert unseen_text(card, (5, 1)) is None
    assert unseen_text(card, (5, 0)) == "1 of 2 clauses holds for no training row, number 1 in gbfl reasons"
    assert unseen_text(card, (0, 0)) == "2 of 2 clauses hold for no training row, numbers 0, 1 in gbfl reasons"
