"""The Python reader gives Python its real meaning: comparisons with NaN, whole numbers, names; the rest is refused by line."""

import math

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import read
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.backends.c.programs import CARD, TREE
from tests.checking.reader_artifacts import findings, said_by_python

ONE = Program(("a", "b"), ("no", "yes"), (Clause((Interval(0, 1.0, 2.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
CONDITION = "if 1.0 <= a < 2.0:"
ROWS = [[value, 0.0] for value in (math.nan, -math.inf, 0.0, math.nextafter(1.0, 0.0), 1.0, 1.5, 2.0, math.inf)]


def source_of(program):
    return emit(program, "python").files["model.py"].decode()


def edited(old, new, program=ONE):
    source = source_of(program)
    assert old in source
    return {"model.py": source.replace(old, new).encode()}


@pytest.mark.parametrize(
    "condition",
    [
        "not (a < 1.0 or a >= 2.0)",  # true for NaN: not the rule, and the reader must know it
        "not (a < 1.0) and a < 2.0",
        "a != a or 1.0 <= a < 2.0",
        "a == a and not a < 1 and not a >= 2",
        "1 <= a < 2",
        "2.0 > a >= 1.0",
        "1.0 <= a <= 1.9999999999999998",
        "1.0 <= a and (2.0 > a or a > 1e999)",
        "True if 1.0 <= a < 2.0 else False",
        "(a >= 1.0) & (a < 2.0) | (a != a)",
        "_math.isnan(a) or a == _math.inf",
        "a <= a < 2.0",
        "1.0 <= 2.0 <= a",
        "a < _math.nan or a > -1e400",
        "1.0 <= x[0] < x[-2]",
    ],
)
def test_a_condition_means_what_python_makes_of_it(condition):
    files = edited(CONDITION, f"if {condition}:")
    (reading,) = read("python", files)
    answers = [run_reading(reading, row) for row in ROWS]
    assert [(s.label, s.probabilities, s.leaf) for s in answers] == said_by_python(files, ROWS)


@pytest.mark.parametrize(
    "body",
    [
        "    found = 0 if 1.0 <= a < 2.0 else 1\n    return found",
        "    found = 1\n    if a >= 1.0:\n        if a < 2.0:\n            found = 0\n    return found",
        "    inside = a >= 1.0\n    if inside:\n        inside = a < 2.0\n    if not inside:\n        return 1\n    return 0",
        "    if a < 1.0:\n        return 1\n    elif a < 2.0:\n        return 0\n    else:\n        return 1",
        "    if False:\n        return 1\n    if a > 0:\n        pass\n    return 0",
    ],
)
def test_statements_do_what_python_does(body):
    source = source_of(ONE)
    start = source.index(f"    {CONDITION}")
    files = {"model.py": f"{source[:start]}{body}\n\n{source[source.index('def _values') :]}".encode()}
    (reading,) = read("python", files)
    answers = [run_reading(reading, row) for row in ROWS]
    assert [(s.label, s.probabilities, s.leaf) for s in answers] == said_by_python(files, ROWS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CONDITION, "if 1.0 <= a < b:"),
        (CONDITION, "if a:"),
        (CONDITION, "if a is not None:"),
        (CONDITION, "if a >= 9007199254740993:"),
        (CONDITION, f"if a >= 1{'0' * 400}:"),
        (CONDITION, "if a * 2 >= 1.0:"),
        (CONDITION, "if predict(x):"),
        (CONDITION, "if (a := 3.0) > 1.0:"),
        (CONDITION, "if unknown > 1.0:"),
        (CONDITION, "if x[2] > 1.0:"),
        (CONDITION, "while 1.0 <= a < 2.0:"),
        ("return 1\n", "pass\n"),
        ("return 1\n", "return 2\n"),
        ("return 1\n", "return -1\n"),
        ("return 1\n", "return True\n"),
        ("return 1\n", "yield 1\n"),
        ("def _leaf(x):", "def _leaf(x, y=0):"),
        ("def _leaf(x):", "@staticmethod\ndef _leaf(x):"),
        ("type(value) is float", "type(value) is int"),
        ("_math.nan", "_math.inf"),
        ("import math as _math", "import math as _math\n_math = 3.0"),
        ("import math as _math", "import math as _math\nlen = 3.0"),
        ("import math as _math", "import math as _math\n__builtins__ = 3"),
        ("import math as _math", "import math as _math, os"),
        ("import math as _math\n", ""),
        ("(1, (0.0, 1.0), 0),", "(2, (0.0, 1.0), 0),"),
        ("(1, (0.0, 1.0), 0),", "(1, (0.0, 1.0), 7),"),
        ("(-1, 0, True),", "(0, 0, True),"),
        ("'no',", "'yes',"),
        ("DIGEST = ", "DIGEST: str = "),
        (CONDITION, f"__debug__ = 1\n    {CONDITION}"),  # parses, and cannot be imported
    ],
)
def test_what_is_not_understood_is_refused(old, new):
    with pytest.raises(Unread, match=r"model\.py: "):
        read("python", edited(old, new))


def test_a_refusal_names_the_line():
    files = edited(CONDITION, "if a * 2 >= 1.0:")
    line = files["model.py"].decode().split("\n").index("    if a * 2 >= 1.0:") + 1
    with pytest.raises(Unread, match=f"line {line}: is not understood: a \\* 2"):
        read("python", files)


def test_a_number_with_a_name_is_that_number():
    files = edited(CONDITION, "if LOWEST <= a < 2.0:")
    named = files["model.py"].replace(b"\nDIGEST", b"\nLOWEST = 1.0\nDIGEST", 1)
    assert findings(ONE, "python", {"model.py": named}) == ["proved"]
    local = named.replace(b"    if LOWEST", b"    if a > 0.0:\n        LOWEST = 2.0\n    if LOWEST")
    with pytest.raises(Unread, match="LOWEST is not known here"):
        read("python", {"model.py": local})


@pytest.mark.parametrize(
    ("program", "old", "new"),
    [
        (TREE, "(income != income or income < 0.1)", "income < 0.1"),
        (TREE, "(income != income or income < 0.1)", "not (income >= 0.1) and income == income"),
        (TREE, "income >= 100000.0", "not (income < 100000.0)"),
        (TREE, "income < 0.1", "income < 0.10000000149011612"),
        (TREE, "18.0 <= age < 65.0", "18.0 <= age <= 65.0"),
        (TREE, "(1, (0.25, 0.75), 0)", "(0, (0.25, 0.75), 0)"),
        (TREE, "(1, (0.25, 0.75), 0)", "(1, (0.25, 0.7500000000000001), 0)"),
        (CARD, "(0, 3)", "(0, 4)"),
        (CARD, "_SCALE = 1", "_SCALE = 2"),
        (CARD, "_BIAS = (0, -2)", "_BIAS = (0, -3)"),
    ],
)
def test_a_bad_edit_is_shown_a_row_on_which_it_answers_otherwise(program, old, new):
    files = edited(old, new, program)
    ((_, example),) = findings(program, "python", files)
    answer = said_by_python(files, [example.row])[0]
    expected = example.target
    assert answer[0] == expected.label
    assert answer[2] == (expected.leaf if expected.scores is None else expected.scores)
    assert (expected.label, expected.probabilities, expected.leaf, expected.scores) != (
        example.source.label,
        example.source.probabilities,
        example.source.leaf,
        example.source.scores,
    )


@pytest.mark.parametrize("encoding", ["latin-1", "utf-7", "unicode_escape", "raw_unicode_escape", "hz", "shift_jis"])
@pytest.mark.parametrize("before", [b"", b"#!/usr/bin/env python\n"])
def test_only_utf8_is_read(encoding, before):
    """In these a comment can hold the end of its line, or bytes that only some versions decode alike."""
    text = emit(ONE, "python").files["model.py"]
    for declaration, answer in ((encoding, ["unread"]), ("utf-8", ["proved"])):
        content = before + f"# -*- coding: {declaration} -*-\n".encode() + text
        assert findings(ONE, "python", {"model.py": content}) == answer
