"""The check is tested with wrong artifacts first: each is caught, and a right one passes."""

import ast
import copy
import json
import math

import numpy as np
import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.base import Predictor
from gbfl_compile.backends.python import load
from gbfl_compile.checking.check import check_folder
from gbfl_compile.checking.run import TargetVerdict, Verdict, compare, differing_rows, expectation
from gbfl_compile.ir.batch import Answers, evaluate_many, label_array
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.learning.consistency import Triplets
from gbfl_compile.passes import optimise

FEATURES = ("area", "radius", "texture")
CLAUSES = (
    Clause((Interval(0, 863.33, 2000.1), Interval(1, None, 17.29))),
    Clause((Interval(2, 0.1, 0.3, "both"),)),
    Clause((Interval(1, 10.7, if_missing=True), Interval(2, 0.2))),
)
TREE = optimise(
    Program(
        FEATURES,
        ("malignant", "benign"),
        CLAUSES,
        split(0, split(1, leaf(0.9, 0.1), leaf(0.2, 0.8)), split(2, leaf(0.7, 0.3), leaf(0.05, 0.95))),
    )
)
CARD = Program(FEATURES, (0, 1, 2), CLAUSES, Scorecard((1, 0, 0), ((0, 3, 0), (0, 0, 4), (2, -1, 0)), 2))


def source(program):
    return emit(program, "python").files["model.py"].decode("utf-8")


def verdict(program, text, tmp_path, **evidence):
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    return compare(expectation(program, **evidence), load(tmp_path / "model.py"))


class Slip(ast.NodeTransformer):
    """Makes the n-th possible change of one kind."""

    def __init__(self, kind, number):
        self.kind, self.left = kind, number

    def chosen(self):
        self.left -= 1
        return self.left == -1

    def visit_Constant(self, node):
        if self.kind in ("up", "down") and isinstance(node.value, float) and self.chosen():
            return ast.Constant(math.nextafter(node.value, math.inf if self.kind == "up" else -math.inf))
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if self.kind == "operator":
            swap = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
            for place, operator in enumerate(node.ops):
                if type(operator) in swap and self.chosen():
                    node.ops[place] = swap[type(operator)]()
        return node

    def visit_If(self, node):
        self.generic_visit(node)
        if self.kind == "inverted" and self.chosen():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        return node

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        if self.kind == "dropped":
            for place in range(len(node.values)):
                if self.chosen():
                    del node.values[place]
                    return node if len(node.values) > 1 else node.values[0]
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        if self.kind == "leaf" and isinstance(node.value, ast.Constant) and self.chosen():
            return ast.Return(ast.Constant(node.value.value + 1 if node.value.value == 0 else node.value.value - 1))
        return node


def rules_function(tree):
    return next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in ("_leaf", "_held"))


def slips(text, kind):
    """Every module one slip of this kind away, within the rules themselves."""
    number = 0
    while True:
        tree = copy.deepcopy(ast.parse(text))
        slip = Slip(kind, number)
        slip.visit(rules_function(tree))
        if slip.left >= 0:
            return
        yield ast.unparse(ast.fix_missing_locations(tree))
        number += 1


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_a_right_artifact_is_equal(program, tmp_path):
    found = verdict(program, source(program), tmp_path)
    assert found.verdict == "equal"
    assert found.execution.different == 0
    assert found.execution.first is None
    assert found.execution.rows > 100


@pytest.mark.parametrize("kind", ["up", "down", "operator", "inverted", "dropped", "leaf"])
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_every_slip_in_the_emitted_module_is_caught(program, kind, tmp_path):
    made = list(slips(source(program), kind))
    if program is CARD and kind in ("inverted", "leaf"):
        assert made == []  # a rule set has neither ifs nor leaves
        return
    assert len(made) >= 3
    for text in made:
        found = verdict(program, text, tmp_path)
        assert found.verdict == "different", text
        assert found.execution.different > 0


def test_swapped_leaves_in_the_table_are_caught(tmp_path):
    text = source(TREE)
    first, second = "(0, (0.9, 0.1), 2)", "(1, (0.2, 0.8), 3)"
    assert first in text
    assert second in text
    swapped = text.replace(first, "@").replace(second, first).replace("@", second)
    assert verdict(TREE, swapped, tmp_path).verdict == "different"


@pytest.mark.parametrize(
    ("old", "new"),
    [("(0, 3, 0)", "(0, 4, 0)"), ("_BIAS = (1, 0, 0)", "_BIAS = (0, 0, 0)"), ("_SCALE = 2", "_SCALE = 3")],
)
def test_changed_points_are_caught(old, new, tmp_path):
    assert old in source(CARD)
    assert verdict(CARD, source(CARD).replace(old, new), tmp_path).verdict == "different"


def test_a_probability_one_ulp_off_is_caught(tmp_path):
    text = source(TREE).replace("(0.9, 0.1)", "(0.9, 0.10000000000000002)")
    assert verdict(TREE, text, tmp_path).verdict == "different"


def test_a_difference_comes_with_a_row_that_shows_it(tmp_path):
    found = verdict(TREE, source(TREE).replace("863.33 <=", "863.33 <"), tmp_path)
    first = found.execution.first
    assert first["row"]["area"] == 863.33
    assert first["source"] != first["target"]
    assert set(first["row"]) == set(FEATURES)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("'area',", "'aera',", "features or classes"),
        ("'benign',", "'begnin',", "features or classes"),
        ("return 0", "return 1 / 0", "ZeroDivisionError"),
        ("return 0", "return 99", "IndexError"),
        ('return _LEAVES[_leaf(_values(row))][1]', "return (1.0,)", "raised"),
    ],
)  # fmt: skip
def test_an_artifact_that_breaks_is_different_and_says_how(old, new, reason, tmp_path):
    assert old in source(TREE)
    found = verdict(TREE, source(TREE).replace(old, new), tmp_path)
    assert found.verdict == "different"
    assert reason in found.reason


def test_labels_of_another_type_are_another_class(tmp_path):
    numbers = Program(FEATURES, (0, 1), TREE.clauses, TREE.decision)
    text = source(numbers).replace("    0,\n    1,\n", "    False,\n    True,\n")
    assert verdict(numbers, text, tmp_path).verdict == "different"


def test_a_label_that_only_looks_the_same_differs():
    rows = np.zeros((1, 3))
    right = evaluate_many(TREE, rows)
    wrong = Answers(label_array((str(right.labels[0]) + " ",)), right.probabilities, right.leaves)
    assert differing_rows(TREE.has_exact_probabilities, right, wrong).tolist() == [True]


def test_a_rule_sets_probabilities_may_differ_by_the_stated_bound_and_no_more():
    rows = np.zeros((1, 3))
    right = evaluate_many(CARD, rows)
    for off, differs in ((1e-13, False), (1e-11, True), (math.nan, True)):
        other = Answers(right.labels, right.probabilities + off, scores=right.scores)
        assert differing_rows(CARD.has_exact_probabilities, right, other).tolist() == [differs]


def triplets(program, label):
    x = np.array([[900.0, 15.0, 0.2], [100.0, 5.0, 0.1]])
    flags = np.array([True, True])
    return Triplets(x, x, x[::-1], flags, flags, np.array(label), program.features)


def test_consistency_is_counted_for_source_and_target(tmp_path):
    found = verdict(TREE, source(TREE), tmp_path, triplets=triplets(TREE, ["malignant", "benign"]))
    assert found.verdict == "equal"
    assert found.consistency.source == found.consistency.target
    assert (found.consistency.source.c_tb_right, found.consistency.source.with_pn) == (2, 2)


def test_other_consistency_counts_are_a_difference(tmp_path):
    text = source(TREE).replace("return 0", "return 3")
    found = verdict(TREE, text, tmp_path, triplets=triplets(TREE, ["malignant", "benign"]))
    assert found.verdict == "different"
    assert found.consistency.target.c_tb_right < found.consistency.source.c_tb_right


def test_the_users_rows_are_run_too(tmp_path):
    bare = verdict(TREE, source(TREE), tmp_path)
    more = verdict(TREE, source(TREE), tmp_path, data=np.zeros((7, 3)))
    assert more.execution.rows == bare.execution.rows + 7


def test_one_different_target_makes_the_whole_different_and_one_unrun_never_equal(tmp_path):
    expected = expectation(TREE)
    (tmp_path / "model.py").write_text(source(TREE))
    right = compare(expected, load(tmp_path / "model.py"))
    unrun = TargetVerdict("other", "not run", "not installed")
    wrong = TargetVerdict("third", "different", "broken")
    assert Verdict("source", (right,)).verdict == "equal"
    assert Verdict("source", (right, unrun)).verdict == "not run"
    assert Verdict("source", (right, unrun, wrong)).verdict == "different"
    assert Verdict("source", (unrun,)).as_json()["targets"]["other"]["execution"] == "not run"


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_a_float32_artifact_is_held_to_float32_rows(program):
    """A predictor that rounds each row first and then does what the program does is equal, and no other is."""
    right = Predictor(
        "narrow", "numpy", "", program.features, program.classes, lambda rows: _rounding(program, rows), "float32"
    )
    found = compare(expectation(program), right)
    assert (found.verdict, found.execution.different) == ("equal", 0)
    as_float64 = Predictor(
        "narrow", "numpy", "", program.features, program.classes, lambda rows: _rounding(program, rows)
    )
    assert compare(expectation(program), as_float64).verdict == "different"
    cut = program.clauses[0].atoms[0]
    slip = float(np.nextafter(np.float32(cut.lo), np.float32(np.inf)))
    off = Clause((Interval(cut.feature, slip, cut.hi, cut.closed), *program.clauses[0].atoms[1:]))
    wrong = Program(program.features, program.classes, (off, *program.clauses[1:]), program.decision)
    one_ulp_off = Predictor(
        "narrow", "numpy", "", program.features, program.classes, lambda rows: _rounding(wrong, rows), "float32"
    )
    assert compare(expectation(program), one_ulp_off).verdict == "different"


def _rounding(program, rows):
    with np.errstate(over="ignore"):
        return evaluate_many(program, rows.astype(np.float32).astype(np.float64))


BROKEN = {
    "the module ends the process": ("import math as _math\n", "import math as _math\nraise SystemExit(0)\n"),
    "predict alone is wrong": ("    return CLASSES[_LEAVES[_leaf(_values(row))][0]]\n", "    return CLASSES[1]\n"),
    "rows by name are read in another order": (
        "for name in FEATURES]\n    if isinstance",
        "for name in FEATURES][::-1]\n    if isinstance",
    ),
    "None is a number": ("        return _math.nan\n", "        return 15.0\n"),
    "the reason names another class": ('"label": CLASSES[winner]', '"label": CLASSES[1 - winner]'),
    "the leaf is not a whole number": ('"leaf": leaf,', '"leaf": leaf + 0.5,'),
    "the features are not tuple": ("FEATURES = (\n", "FEATURES = 5\n_X = (\n"),
    "a label no JSON has": ('    "malignant",\n', "    frozenset([1]),\n"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_module_broken_anywhere_is_found(what, tmp_path):
    old, new = BROKEN[what]
    text = source(TREE).replace("    'malignant',\n", '    "malignant",\n')
    assert old in text
    (tmp_path / "python").mkdir()
    (tmp_path / "python/model.py").write_text(text.replace(old, new, 1))
    found = check_folder(expectation(TREE), tmp_path)
    assert found.verdict == "different"
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["verdict"] == "different"


def test_a_tie_decided_the_wrong_way_is_caught_where_a_tie_can_be(tmp_path):
    clauses = tuple(Clause((Interval(i, 1.0, 2.0),)) for i in range(12))
    card = Program(tuple(f"f{i}" for i in range(12)), ("no", "yes"), clauses, Scorecard((0, -24), ((0, 2),) * 12, 3))
    wrong = source(card).replace(
        "return scores.index(max(scores))", "return len(scores) - 1 - scores[::-1].index(max(scores))"
    )
    assert verdict(card, source(card), tmp_path).verdict == "equal"
    assert verdict(card, wrong, tmp_path).verdict == "different"
