"""A report on rules with words and dates says them in words, and no text in them is ever markup."""

import datetime as dt

import pytest
from hypothesis import given, settings

from gbfl_compile.cli import main
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split
from gbfl_compile.reporting.features import behaviour
from gbfl_compile.reporting.page import ReportInputs, render_page
from tests.reporting.samples import ATTRIBUTE, HOSTILE, Page
from tests.word_programs import word_programs_with_rows

KINDS = ("number", "category", "boolean", "date", "timestamp")
TREE = Program(
    ("income", "contract", "smoker", "opened", "seen"),
    ("no", "yes"),
    (
        Clause((OneOf(1, (ATTRIBUTE, HOSTILE, "One year")), Interval(0, None, 3000.0))),
        Clause((OneOf(2, ("true",)), Interval(3, 19783.0, None))),
        Clause((Interval(3, None, 19783.0),)),
        Clause((Interval(4, 1.7e15, None, if_missing=True),)),
    ),
    split(
        0, leaf(0.1, 0.9), split(1, leaf(0.2, 0.8), split(2, leaf(0.3, 0.7), split(3, leaf(0.9, 0.1), leaf(1.0, 0.0))))
    ),
    kinds=KINDS,
)
CARD = Program(
    TREE.features, TREE.classes, TREE.clauses, Scorecard((0, -2), ((0, 3), (0, 1), (1, 0), (0, 1)), 1), kinds=KINDS
)
ROW = [1000.0, HOSTILE, None, dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12)]


@settings(max_examples=40, deadline=None)
@given(word_programs_with_rows(rows=1))
def test_every_program_with_words_has_a_page(program_and_rows):
    program, (row,) = program_and_rows
    page = Page(render_page(program, ReportInputs(row=row)))
    assert "script" not in page.tags


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "scorecard"])
def test_texts_are_shown_and_never_markup(program):
    html = render_page(program, ReportInputs(row=ROW))
    assert HOSTILE not in html
    assert ATTRIBUTE not in html
    page = Page(html)
    assert "script" not in page.tags
    assert "img" not in page.tags
    words = " ".join(page.words)
    assert "opened >= 2024-03-01" in words
    assert "2024-02-29 12:00:00" in words
    assert HOSTILE in words
    assert "capitals, accents and blanks count" in words
    assert "3 One year" in words


def test_a_cut_in_time_is_shown_a_day_around():
    program = Program(
        ("opened",),
        ("no", "yes"),
        (Clause((Interval(0, 19783.0),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("date",),
    )
    lines = behaviour(program, ["python"]).example_lines
    assert lines == (
        ("the day before", "2024-02-29", "does not hold"),
        ("the cut itself", "2024-03-01", "holds"),
        ("the day after", "2024-03-02", "holds"),
        ("missing", "", "does not hold"),
    )


def test_the_command_explains_a_row_of_a_file(tmp_path):
    save(TREE, tmp_path / "p.json")
    (tmp_path / "rows.csv").write_text("income,contract,smoker,opened,seen\n1000,One year,true,2024-03-01,\n")
    command = ["report", str(tmp_path / "p.json"), "--row", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "r.html")]
    assert main([*command, "--quiet"]) == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "One year" in page
