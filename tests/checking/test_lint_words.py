"""Lint on programs with words and dates: its findings are true by brute force, and printed in words."""

import datetime as dt
import json

import pandas as pd
import pytest
from hypothesis import assume, given, settings

from gbfl_compile.checking.lint import as_json, as_text, lint
from gbfl_compile.cli import main
from gbfl_compile.ir.evaluate import clause_holds, evaluate
from gbfl_compile.ir.json import save
from gbfl_compile.ir.kinds import codebook, decode_rows
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, leaf_numbers, split
from gbfl_compile.why.boxes import plain_row
from tests.why.test_words import every_row
from tests.word_programs import word_programs

YES, NO = leaf(0.0, 1.0), leaf(1.0, 0.0)
KINDS = ("category", "boolean", "date")


def of_kind(found, kind):
    return {oddity.where for oddity in found if oddity.kind == kind}


@settings(max_examples=120, deadline=None)
@given(word_programs(decisions=("tree",)))
def test_unreachable_leaves_are_those_that_brute_force_does_not_reach(program):
    reached = {evaluate(program, row).leaf for row in every_row(program)}
    odd = {f"leaf {number}" for number in leaf_numbers(program.decision).values() if number not in reached}
    assert of_kind(lint(program), "unreachable leaf") == odd


@settings(max_examples=120, deadline=None)
@given(word_programs(decisions=("scorecard",)))
def test_clauses_that_never_or_always_hold_are_those_of_brute_force(program):
    assume(program.clauses)
    rows = [plain_row(program, row) for row in every_row(program)]
    holds = [{clause_holds(clause, row) for row in rows} for clause in program.clauses]
    found = lint(program)
    assert of_kind(found, "never holds") == {f"clause {number}" for number, seen in enumerate(holds) if seen == {False}}
    assert of_kind(found, "always holds") == {f"clause {number}" for number, seen in enumerate(holds) if seen == {True}}
    for oddity in found:
        if oddity.kind == "implied clause":
            narrow, wide = oddity.clauses
            (values,) = decode_rows(program, [oddity.row], codebook(program))
            shown = plain_row(program, values)
            assert clause_holds(program.clauses[wide], shown)
            assert not clause_holds(program.clauses[narrow], shown)
    assert json.loads(json.dumps(as_json(program, found), allow_nan=False)) is not None
    assert as_text(program, found)


PROGRAM = Program(
    ("contract", "smoker", "opened"),
    ("no", "yes"),
    (
        Clause((OneOf(0, ("a", "b")), OneOf(1, ("true",)))),
        Clause((OneOf(0, ("a",)), OneOf(1, ("true",)))),
        Clause((Interval(2, 19783.0, None), OneOf(0, ("c",), negated=True))),
    ),
    split(0, split(1, YES, NO), split(2, YES, NO)),
    kinds=KINDS,
)


def test_findings_are_reported_in_words():
    card = Program(PROGRAM.features, PROGRAM.classes, PROGRAM.clauses, Scorecard((0, 0), ((0, 1),) * 3), kinds=KINDS)
    text = as_text(card, lint(card))
    assert "implied clause: clause 1: where it holds, clause 0 holds too" in text
    assert "    clause 1: contract is a AND smoker" in text
    assert "'contract'=b, 'smoker'=true" in text
    (row,) = [form["row"] for form in as_json(card, lint(card)) if form["kind"] == "implied clause"]
    assert (row["contract"], row["smoker"]) == ("b", True)


@pytest.mark.parametrize("how", ["frame", "file", "rows"])
def test_what_the_data_leaves_untouched_is_named(how, tmp_path):
    frame = pd.DataFrame(
        {
            "contract": ["a", None, "x"],
            "smoker": [True, False, None],
            "opened": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1)],
        }
    )
    path = tmp_path / "rows.csv"
    path.write_text("contract,smoker,opened\na,true,2020-01-01\n,false,\nx,,2021-01-01\n")
    rows = [["a", True, dt.date(2020, 1, 1)], [None, False, None], ["x", None, dt.date(2021, 1, 1)]]
    found = lint(PROGRAM, {"frame": frame, "file": path, "rows": rows}[how])
    assert of_kind(found, "text not in the data") == {"clause 0", "clause 2"}
    assert of_kind(found, "bound outside the data") == {"clause 2"}
    assert of_kind(found, "missing in the data") == {f"feature {name!r}" for name in PROGRAM.features}
    text = as_text(PROGRAM, found)
    assert "bound 2024-03-01 of 'opened'; the data goes from 2020-01-01 to 2021-01-01" in text
    assert "text not in the data: clause 0: b of 'contract'; none of 3 rows has it" in text


def test_the_command_takes_words(tmp_path, capsys):
    save(PROGRAM, tmp_path / "p.json")
    (tmp_path / "rows.csv").write_text("contract,smoker,opened\na,true,2020-01-01\n")
    assert main(["lint", str(tmp_path / "p.json"), "--data", str(tmp_path / "rows.csv")]) == 1
    assert "bound 2024-03-01" in capsys.readouterr().out


def test_a_row_with_a_boolean_that_is_not_true_is_false():
    """Codes past the listed ones are any other text, as those below are: decoded, the row still shows what it should."""
    clauses = (Clause((OneOf(0, (), if_missing=True),)), Clause((OneOf(0, ("true",), negated=True, if_missing=True),)))
    program = Program(("b",), ("no", "yes"), clauses, Scorecard((0, 0), ((0, 1), (0, 2))), kinds=("boolean",))
    (oddity,) = [each for each in lint(program) if each.kind == "implied clause"]
    assert decode_rows(program, [oddity.row], codebook(program)) == [[False]]
