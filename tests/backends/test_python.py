"""The Python target answers what the program answers, for every name and every input."""

import ast
import math
import subprocess
import sys

import pytest
from hypothesis import given, settings

from gbfl_compile.backends import emit
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from gbfl_compile.ir.validate import validate
from tests.programs import programs_with_rows

TREE = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 1e5))), Clause((Interval(1, None, 0.1, if_missing=True),))),
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), leaf(0.5, 0.5))),
)
CARD = Program(TREE.features, TREE.classes, TREE.clauses, Scorecard((0, -2), ((0, 3), (0, -1)), 1))


def source(program, name="model"):
    return emit(program, "python", name).files[f"{name}.py"].decode("utf-8")


def module(program):
    space = {"__name__": "model"}
    exec(source(program), space)
    return space


@settings(max_examples=500, deadline=None)
@given(programs_with_rows(("tree", "scorecard", "banded")))
def test_it_answers_what_the_program_answers(case):
    program, rows = case
    made = module(program)
    assert made["FEATURES"] == program.features
    assert made["CLASSES"] == program.classes
    assert made["DIGEST"] == digest(program)
    assert made["predict_many"](rows) == [evaluate(program, row).label for row in rows]
    for row in rows:
        answer = evaluate(program, row)
        for given_row in (row, dict(zip(program.features, row, strict=True))):
            label = made["predict"](given_row)
            assert label == answer.label
            assert type(label) is type(answer.label)
            assert made["predict_proba"](given_row) == answer.probabilities
            reason = made["explain"](given_row)
            assert reason["held"] == answer.held
            assert reason["label"] == answer.label
            assert reason.get("leaf") == answer.leaf
            assert reason.get("scores") == answer.scores


def test_it_is_readable():
    text = source(TREE)
    assert "    if 18.0 <= age < 65.0 and income >= 100000.0:\n        return 0\n" in text
    assert "#     IF 18 <= age < 65 AND income >= 100000 THEN yes (0.75)\n" in text


def test_it_needs_the_standard_library_only():
    imported = {
        alias.name for node in ast.walk(ast.parse(source(CARD))) if isinstance(node, ast.Import) for alias in node.names
    }
    assert imported == {"math"}


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_a_bare_interpreter_runs_it(program, tmp_path):
    (tmp_path / "model.py").write_text(source(program), encoding="utf-8")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import model; print(model.predict({'age': 30, 'income': 2e5}))"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"{evaluate(program, [30.0, 2e5]).label}\n"


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": 30}, "no feature 'income'"),
        ([30], "1 values, the model has 2 features"),
        ([30, 1, 2], "3 values"),
        (["30", 1], "feature 'age': '30' is not a number"),
        ({"age": b"30", "income": 1}, "feature 'age'"),
        ([30, "x"], "feature 'income': 'x'"),
        ([30, [1]], "feature 'income'"),
        ([30, 1j], "feature 'income'"),
        ([30, 10**400], "feature 'income'"),
        ("ab", "not str"),
        ({1.0, 2.0}, "not set"),
        (7, "a mapping or a sequence of numbers, not int"),
    ],
)
def test_a_bad_row_is_a_clear_value_error(program, row, message):
    made = module(program)
    for verb in ("predict", "predict_proba", "explain"):
        with pytest.raises(ValueError, match=message):
            made[verb](row)


def test_a_row_may_be_any_mapping_or_sequence_of_numbers():
    import fractions

    import numpy as np
    import pandas as pd

    predict = module(TREE)["predict"]
    expected = evaluate(TREE, [30.0, 2e5]).label
    assert predict((30, 2e5)) == expected
    assert predict(np.array([30.0, 2e5])) == expected
    assert predict({"income": 2e5, "age": np.float32(30), "unused": "text"}) == expected
    assert predict(pd.Series({"income": 2e5, "age": 30.0})) == expected  # by name, not by place
    assert predict([fractions.Fraction(30), 2e5]) == expected
    assert predict([True, 2e5]) == evaluate(TREE, [1.0, 2e5]).label


def test_explain_says_the_whole_way_in_words():
    assert module(TREE)["explain"]([70, 1.0]) == {
        "label": "no",
        "probabilities": (0.5, 0.5),
        "leaf": 2,
        "held": (),
        "because": ("not (18 <= age < 65 AND income >= 100000)", "not ((income < 0.1 OR income is missing))"),
    }


def test_none_and_nan_are_missing():
    explain = module(TREE)["explain"]
    assert explain([30, None])["leaf"] == explain([30, math.nan])["leaf"] == evaluate(TREE, [30.0, None]).leaf == 1


HOSTILE = (
    "class", "def", "None", "print", "x", "x1", "self", "__import__('os')", "a'b", 'a"b', "a\\", 'a"""b', "'''", "a\nb = 1",
    "a\rb", "a\u2028b", "a\x0cb", "# x", "größe", "数", "{{ 7*7 }}", "{% raw %}", "{0}", "%s", "\u202eabc", "a b", "a-b", "1a",
    "__debug__", "_", "-*- coding: utf-7 -*-", "\t", " ", "\N{PILE OF POO}", "lambda", "match",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["tree", "rule set"])
def test_a_hostile_name_comes_out_as_itself(name, kind):
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(1, None, 1.0),)))
    decision = split(0, leaf(1.0, 0.0), split(1, leaf(0.0, 1.0), leaf(0.5, 0.5)))
    if kind == "rule set":
        decision = Scorecard((0, 0), ((0, 1), (0, -2)))
    program = validate(Program((name, f"{name}2"), (name, f"{name}!"), clauses, decision))
    made = module(program)
    assert made["FEATURES"] == program.features
    assert made["CLASSES"] == program.classes
    for row in ([2.0, 0.0], [0.0, 0.0], [0.0, 2.0]):
        assert made["predict"](row) == evaluate(program, row).label
        assert made["predict"](dict(zip(program.features, row, strict=True))) == evaluate(program, row).label
    assert sorted(made) == sorted(module(TREE if kind == "tree" else CARD))  # nothing else was defined


def test_features_that_clean_to_the_same_name_stay_apart():
    clauses = (Clause((Interval(0, 1.0), Interval(1, None, 1.0), Interval(2, 5.0))),)
    program = Program(("a b", "a-b", "x0"), (0, 1), clauses, split(0, leaf(1.0, 0.0), leaf(0.0, 1.0)))
    assert "x0 >= 1.0 and x1 < 1.0 and x2 >= 5.0" in source(program)


def rule_list(rules, *, nested):
    clauses = tuple(Clause((Interval(0, float(i), i + 0.5),)) for i in range(rules))
    nodes = []
    if nested:  # every rule inside the THEN of the one before
        nodes = [Split(i, i + 1, 2 * rules - i) for i in range(rules)] + [Leaf((1.0, 0.0))] * (rules + 1)
    else:
        for i in range(rules):
            nodes += [Split(i, 2 * i + 1, 2 * i + 2), Leaf((1.0, 0.0) if i % 2 else (0.0, 1.0))]
        nodes.append(Leaf((0.5, 0.5)))
    return validate(Program(("a",), ("x", "y"), clauses, Tree(tuple(nodes))))


@pytest.mark.parametrize("nested", [False, True])
def test_a_thousand_rules_compile(nested):
    program = rule_list(1000, nested=nested)
    made = module(program)
    for value in (0.0, 500.25, 999.0, 999.75, -1.0):
        assert made["explain"]([value])["leaf"] == evaluate(program, [value]).leaf


def test_a_name_that_is_not_a_module_is_refused():
    for name in ("../x", "a/b", "a.b", "class", "1a", "", "a b", "x" * 65, "ä"):
        with pytest.raises(BadInput, match="the name"):
            emit(TREE, "python", name)


@pytest.mark.parametrize("name", ["math", "Math"])
def test_a_module_is_not_called_like_one_it_imports(name):
    with pytest.raises(BadInput, match="choose another with --name"):
        emit(TREE, "python", name)


def test_an_unknown_target_or_option_is_refused():
    with pytest.raises(BadInput, match="unknown target 'rust'"):
        emit(TREE, "rust")
    with pytest.raises(BadInput, match="unknown option 'dtype'"):
        emit(TREE, "python", options={"dtype": "float32"})


def test_the_same_program_gives_the_same_bytes():
    assert source(TREE) == source(TREE)
