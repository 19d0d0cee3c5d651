"""Explanations of rows with words and dates are true, against brute force over texts, days and missing values."""

import datetime as dt
import itertools
import json
import math

import pytest
from hypothesis import assume, given, settings

from gbfl_compile import explain_row
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.intervals import Texts
from gbfl_compile.ir.json import save
from gbfl_compile.ir.kinds import codebook, decode_value
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split
from gbfl_compile.why.account import account, as_json, lines
from gbfl_compile.why.boxes import cells, plain_row
from gbfl_compile.why.changes import changes
from gbfl_compile.why.sufficient import sufficient
from tests.word_programs import word_programs_with_rows

MOST_ROWS = 3_000

LOANS = Program(
    ("income", "contract", "smoker", "opened"),
    ("no", "yes"),
    (
        Clause((OneOf(1, ("Month-to-month", "One year")), Interval(0, None, 3000.0))),
        Clause((OneOf(2, ("true",)), Interval(3, 19783.0, None))),
    ),
    split(0, leaf(0.1, 0.9), split(1, leaf(0.2, 0.8), leaf(0.9, 0.1))),
    kinds=("number", "category", "boolean", "date"),
)


def values_of(program, feature):
    """One value per cell of a feature, as Python has it, and the missing one."""
    kind, texts = program.kind(feature), codebook(program).texts[feature]
    if kind in ("category", "boolean"):
        return [*(decode_value(kind, code, texts) for code in range(len(texts) + 1)), None]
    numbers = (min(max(0.0, cell.least), cell.most) for cell in cells(program)[feature])
    return [*(decode_value(kind, number) for number in numbers), None]


def every_row(program):
    pools = [values_of(program, feature) for feature in range(len(program.features))]
    assume(math.prod(len(pool) for pool in pools) <= MOST_ROWS)
    return [list(row) for row in itertools.product(*pools)]


def inside(allowed, value):
    if value is None:
        return allowed.missing
    return value in allowed if isinstance(allowed, Texts) else allowed.least <= value <= allowed.most


@settings(max_examples=120, deadline=None)
@given(word_programs_with_rows(rows=3))
def test_sufficient_conditions_suffice_and_no_smaller_set_does(program_and_rows):
    program, rows = program_and_rows
    points = [(point, plain_row(program, point), evaluate(program, point).label) for point in every_row(program)]
    for row in rows:
        label, plain = evaluate(program, row).label, plain_row(program, row)
        result = sufficient(program, row)
        conditions = dict(result.conditions)
        assert all(inside(allowed, plain[f]) for f, allowed in conditions.items())
        for _, point, other in points:
            if all(inside(allowed, point[f]) for f, allowed in conditions.items()):
                assert other == label
        assert result.smallest
        own = [
            next((c for c in ranges if plain[f] is not None and inside(c, plain[f])), None)
            for f, ranges in enumerate(cells(program))
        ]
        for fewer in itertools.combinations(range(len(row)), max(len(conditions) - 1, 0)) if conditions else ():
            same = [
                other
                for _, point, other in points
                if all(
                    point[f] is None if own[f] is None else point[f] is not None and inside(own[f], point[f])
                    for f in fewer
                )
            ]
            assert any(other != label for other in same)


@settings(max_examples=120, deadline=None)
@given(word_programs_with_rows(rows=3))
def test_changes_change_the_class_and_single_ones_are_all_found(program_and_rows):
    program, rows = program_and_rows
    texts = codebook(program).texts
    pools = [values_of(program, feature)[:-1] for feature in range(len(program.features))]
    for row in rows:
        label = evaluate(program, row).label
        result = changes(program, row)
        for change in result.nearest:
            moved = list(row)
            for feature, value in change.values:
                moved[feature] = decode_value(program.kind(feature), value, texts[feature])
            assert evaluate(program, moved).label == change.label != label
        flips = {
            feature
            for feature, pool in enumerate(pools)
            for value in pool
            if evaluate(program, [*row[:feature], value, *row[feature + 1 :]]).label != label
        }
        if flips:
            assert {feature for change in result.nearest for feature, _ in change.values} == flips
            assert result.smallest
        else:
            assert all(len(change.values) > 1 for change in result.nearest)


@settings(max_examples=60, deadline=None)
@given(word_programs_with_rows(rows=2))
def test_the_account_is_reported_in_words_and_as_json(program_and_rows):
    program, rows = program_and_rows
    for row in rows:
        one = account(program, row)
        assert all("\n" not in line for line in lines(one))
        assert json.loads(json.dumps(as_json(one), allow_nan=False))["label"] == one.answer.label


def test_a_row_in_words():
    row = {"income": 1000.0, "contract": "One year", "smoker": "false", "opened": "2024-02-29"}
    text = str(explain_row(LOANS, row))
    assert "contract in {Month-to-month, One year} AND income < 3000" in text
    assert "income < 3000, here 1000" in text
    assert "contract in {Month-to-month, One year}, here One year" in text
    assert "income 1000 -> 3000 gives no" in text
    assert "contract One year -> any other value gives no" in text
    form = explain_row(LOANS, row).as_json()
    assert form["row"] == {"income": 1000.0, "contract": "One year", "smoker": False, "opened": "2024-02-29"}
    assert {
        "feature": "contract",
        "text": "contract in {Month-to-month, One year}",
        "one_of": ["Month-to-month", "One year"],
    } in form["sufficient"]["conditions"]
    found = [change["values"] for change in form["changes"]["found"]]
    assert {"contract": {"none_of": ["Month-to-month", "One year"]}} in found


def test_dates_move_in_days():
    text = str(explain_row(LOANS, [9000.0, None, True, dt.date(2024, 2, 29)]))
    assert "opened 2024-02-29 -> 2024-03-01 gives yes" in text


def test_a_rule_set_with_words():
    card = Program(
        LOANS.features, LOANS.classes, LOANS.clauses, Scorecard((0, -2), ((0, 3), (0, 1)), 1), kinds=LOANS.kinds
    )
    text = str(explain_row(card, [1000.0, "One year", True, "2024-03-01"]))
    assert "contract in {Month-to-month, One year}, here One year" in text
    assert "smoker true -> false" not in text


@pytest.mark.parametrize("arguments", [[], ["--json"]], ids=["text", "json"])
def test_show_reads_a_row_of_a_csv_file_by_its_kinds(arguments, tmp_path, capsys):
    save(LOANS, tmp_path / "p.json")
    (tmp_path / "rows.csv").write_text("opened,contract,smoker,income,more\n2024-03-01,One year,TRUE,1e3,x\n,,,,\n")
    for number in (1, 2):
        command = ["show", str(tmp_path / "p.json"), "--row", str(tmp_path / "rows.csv"), "--row-number", str(number)]
        assert main([*command, *arguments]) == 0
    shown = capsys.readouterr().out
    assert "One year" in shown


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            "income,contract,smoker,opened\n1,a,maybe,2024-03-01\n",
            "column 'smoker', row 1: 'maybe' is not a boolean: write true",
        ),
        (
            "income,contract,smoker,opened\n1,a,true,yesterday\n",
            "column 'opened', row 1: 'yesterday' is not a date: write it as 2024",
        ),
        ("income,contract,smoker,opened\nmany,a,true,2024-03-01\n", "column 'income', row 1: 'many' is not a number"),
        ("income,contract,smoker\n1,a,true\n", "has no column 'opened'"),
    ],
)
def test_a_value_of_another_kind_is_named(row, reason, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(row)
    with pytest.raises(BadInput, match=reason):
        explain_row(LOANS, path)
