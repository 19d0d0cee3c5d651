"""Edits of artifacts with words and dates, each of which was once proved although it behaves differently."""

import re
from dataclasses import replace

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, leaf, split

WORDS = Program(
    ("w", "b", "d"),
    ("no", "yes"),
    (Clause((OneOf(0, ("a", "b")),)), Clause((OneOf(1, (TRUE,)),)), Clause((Interval(2, 10.0),))),
    split(0, leaf(0.0, 1.0), split(1, leaf(0.25, 0.75), split(2, leaf(0.6, 0.4), leaf(1.0, 0.0)))),
    kinds=("category", "boolean", "date"),
)
SECOND_ROW, THIRD_ROW = "{ {0x4000000000000000u}, {0x7ff8", "{ {0x0000000000000000u}, {0x3ff0000000000000u}, {0x4022"


def edited(edits):
    """The C of WORDS with texts replaced."""
    files = dict(emit(WORDS, "c").files)
    text = files["model.c"].decode()
    for old, new in edits:
        assert old in text, text
        text = text.replace(old, new)
    return {**files, "model.c": text.encode()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SECOND_ROW, SECOND_ROW.replace("0x4000", "0x4004")),  # 2.5 is neither code: the self-test fails
        (SECOND_ROW, SECOND_ROW.replace("0x4000", "0x4008")),  # 3 is the code of no text
        (THIRD_ROW, THIRD_ROW.replace("0x3ff0", "0x3ff8")),  # 1.5 is not true
        (THIRD_ROW, THIRD_ROW.replace("0x4022", "0x4023")),  # 9.5 is not a day
        (THIRD_ROW, THIRD_ROW.replace("0x4022", "0x7fe0")),  # nor is this
    ],
)
def test_a_self_test_is_made_of_rows_that_can_occur(old, new):
    assert prove_artifact(WORDS, "c", edited(())).answer == "proved"
    assert prove_artifact(WORDS, "c", edited([(old, new)])).answer == "unread"


@pytest.mark.parametrize(("code", "answer"), [("0x4000", "proved"), ("0x4008", "proved"), ("0x3ff0", "unread")])
def test_a_text_that_is_never_found_does_not_shift_the_codes_of_a_self_test(code, answer):
    """Code 1 is that of a text in no place of the table, so `a` is 2 and `b` is 3, in the self-test too."""
    files = edited(
        [
            ('code_texts[2] = {\n    { "a", 1u },', 'code_texts[3] = {\n    { "zz", 2u },\n    { "a", 1u },'),
            ("    1, 2, 0, 0", "    2, 3, 0, 0"),
            (SECOND_ROW, SECOND_ROW.replace("0x4000", code)),
        ]
    )
    text = re.sub(r"(x\[?0\]?) == 0x1p\+1", r"\1 == 0x1.8p+1", files["model.c"].decode())
    files["model.c"] = re.sub(r"(x\[?0\]?) == 0x1p\+0", r"\1 == 0x1p+1", text).encode()
    header = files["model.h"].decode().replace("_w_b = 2", "_w_b = 3")
    files["model.h"] = header.replace("model_code_of_w_a = 1", "model_code_of_w_zz = 1, model_code_of_w_a = 2").encode()
    assert prove_artifact(WORDS, "c", files).answer == answer


def test_a_float_does_not_hold_a_timestamp():
    """Two times that are the same float can be on two sides of a bound."""
    clauses = (Clause((Interval(0, 1024.0),)),)
    days = Program(("t",), ("no", "yes"), clauses, split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)), kinds=("date",))
    times = replace(days, kinds=("timestamp",))
    files = dict(emit(days, "c", options={"dtype": "float32"}).files)
    assert prove_artifact(days, "c", files).answer == "proved"
    text = files["model.c"].decode().replace("'d'", "'t'").replace(digest(days), digest(times))
    assert prove_artifact(times, "c", {**files, "model.c": text.encode()}).answer == "unread"
