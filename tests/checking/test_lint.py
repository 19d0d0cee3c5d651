"""Lint reports oddities and nothing else: compared with brute force where every input can be tried."""

import itertools
import json
import math
import random
import re

import numpy as np
import pytest

from gbfl_compile.checking.lint import as_json, as_text, lint
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.evaluate import clause_holds, evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf_numbers
from tests.checking.respelling import random_program
from tests.programs import interesting_values

YES, NO = Leaf((0.0, 1.0)), Leaf((1.0, 0.0))


def of_kind(found, kind):
    return {oddity.where for oddity in found if oddity.kind == kind}


def every_row(program):
    return np.array(list(itertools.product(*interesting_values(program))))


@pytest.mark.parametrize("kind", ["tree", "list"])
def test_unreachable_leaves_are_those_that_brute_force_does_not_reach(kind):
    choose = random.Random(1)
    seen = 0
    for _ in range(80):
        program = random_program(choose, kind, features=2)
        reached = set(evaluate_many(program, every_row(program)).leaves.tolist())
        odd = {f"leaf {leaf}" for leaf in leaf_numbers(program.decision).values() if leaf not in reached}
        assert of_kind(lint(program), "unreachable leaf") == odd
        seen += len(odd)
    assert seen > 20


def test_implied_and_equal_clauses_are_those_that_brute_force_finds():
    choose = random.Random(2)
    seen = 0
    for _ in range(80):
        program = random_program(choose, "scorecard", features=2, most_clauses=4)
        rows = every_row(program)
        columns = [clause_column(clause, rows) for clause in program.clauses]
        found = lint(program)
        for oddity in found:
            numbers = [int(number) for number in re.findall(r"clause (\d+)", f"{oddity.where} {oddity.text}")]
            if oddity.kind == "implied clause":
                narrow, wide = numbers
                assert (columns[narrow] <= columns[wide]).all()
                assert clause_holds(program.clauses[wide], oddity.row)
                assert not clause_holds(program.clauses[narrow], oddity.row)
                seen += 1
            elif oddity.kind == "equal clauses":
                assert (columns[numbers[0]] == columns[numbers[1]]).all()
        odd = of_kind(found, "implied clause") | of_kind(found, "equal clauses")
        odd |= of_kind(found, "always holds") | of_kind(found, "never holds")
        for a, b in itertools.permutations(range(len(columns)), 2):
            if (columns[a] <= columns[b]).all() and not columns[b].all():
                assert f"clause {a}" in odd or (f"clause {b}" in odd and (columns[a] == columns[b]).all())
    assert seen > 30


def test_a_clause_that_is_decided_on_the_way_to_it_is_named():
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(0, 0.5),)), Clause((Interval(0, None, 0.0),)))
    tree = Tree((Split(0, 1, 4), Split(1, 2, 3), YES, NO, Split(1, 5, 6), YES, NO))
    found = lint(Program(("a",), (0, 1), clauses, tree))
    assert of_kind(found, "always holds") == {"node 1, clause 1"}
    assert of_kind(found, "unreachable leaf") == {"leaf 1"}
    never = lint(Program(("a",), (0, 1), clauses, Tree((Split(0, 1, 4), Split(2, 2, 3), YES, NO, NO))))
    assert of_kind(never, "never holds") == {"node 1, clause 2"}
    [row] = [oddity.row for oddity in never if oddity.kind == "never holds"]
    assert row[0] >= 1.0


def test_a_split_that_changes_no_label_is_named():
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(0, 2.0),)))
    sure, less_sure = Leaf((0.0, 1.0)), Leaf((0.25, 0.75))
    found = lint(Program(("a",), (0, 1), clauses, Tree((Split(0, 1, 4), Split(1, 2, 3), sure, less_sure, NO))))
    assert of_kind(found, "never changes the label") == {"node 1, clause 1"}


def test_points_for_all_classes_and_features_no_rule_tests_are_named():
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(0, 2.0),)))
    found = lint(Program(("a", "idle"), (0, 1), clauses, Scorecard((0, 0), ((3, 3), (0, 1)))))
    assert of_kind(found, "points without effect") == {"clause 0"}
    assert of_kind(found, "feature never used") == {"feature 'idle'"}
    assert of_kind(found, "implied clause") == {"clause 1"}


def test_what_the_data_leaves_untouched_is_named_with_a_row_that_would_touch_it():
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(1, 100.0),)))
    program = Program(("a", "b"), (0, 1), clauses, Tree((Split(0, 1, 2), YES, Split(1, 3, 4), YES, NO)))
    data = np.array([[0.0, 1.0], [2.0, math.nan], [0.5, 3.0]])
    found = lint(program, data)
    assert of_kind(found, "leaf without data") == {"leaf 1"}
    assert of_kind(found, "clause without data") == {"clause 1"}
    assert of_kind(found, "bound outside the data") == {"clause 1"}
    assert of_kind(found, "missing in the data") == {"feature 'b'"}
    [row] = [oddity.row for oddity in found if oddity.kind == "leaf without data"]
    assert evaluate(program, row).leaf == 1
    with pytest.raises(BadInput, match="2 features"):
        lint(program, np.zeros((3, 5)))


def test_a_program_without_findings_says_so_and_its_json_is_valid():
    plain = Program(("a",), (0, 1), (Clause((Interval(0, 1.0),)),), Tree((Split(0, 1, 2), YES, NO)))
    assert as_text(plain, lint(plain)) == "nothing odd found\n"
    odd = Program(("a", "it's"), (0, 1, 2), (Clause((Interval(0, 1.0),)), Clause((Interval(0, 1.0, if_missing=True),))), Scorecard((0, 0, 0), ((1, 1, 1), (0, 1, 0))))  # fmt: skip
    found = lint(odd)
    assert json.loads(json.dumps(as_json(odd, found), allow_nan=False))[0]["kind"] == "points without effect"
    assert "row: 'a'=" in as_text(odd, found)


def test_findings_are_reported_with_the_clauses_they_name():
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(0, 2.0),)), Clause((Interval(0, 9.0),)))
    names = ("clause 2", "x", "y")
    program = Program(names, (0, 1), clauses, Scorecard((0, 0), ((0, 1), (0, 2), (0, 3)), 0))
    lines = as_text(program, lint(program, np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]))).split("\n")
    assert "features never used: 'x', 'y': no clause tests them" in lines
    at = lines.index("clause without data: clause 2: none of 2 rows holds it")
    assert lines[at + 1] == "    clause 2: clause 2 >= 9"
    assert not lines[at + 2].startswith("    row")
    at = next(
        n for n, line in enumerate(lines) if line.startswith("implied clause: clause 1: where it holds, clause 0")
    )
    assert lines[at + 1 : at + 3] == ["    clause 1: clause 2 >= 2", "    clause 0: clause 2 >= 1"]
    assert lines[at + 3].startswith("    row: 'clause 2'=")
    at = next(n for n, line in enumerate(lines) if line.startswith("bound outside the data: clause 2: bound 9.0"))
    assert lines[at + 1] == "    clause 2: clause 2 >= 9"


def test_what_takes_too_long_is_called_not_decided():
    choose = random.Random(4)
    program = random_program(choose, "list", features=2, most_clauses=6)
    assert of_kind(lint(program, budget_seconds=-1.0), "not decided")
