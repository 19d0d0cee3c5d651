"""The edit that mends a deployed text is found wherever the text has the slip, and is one that people would make."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split

RULES = Program(
    ("income", "late", "years"),
    ("no", "maybe", "yes"),
    (
        Clause((Interval(1, 3.0),)),
        Clause((Interval(0, 30000.0), Interval(2, 1.0, 5.0))),
        Clause((Interval(2, None, 1.0, if_missing=True), Interval(0, 90000.0))),
    ),
    split(0, leaf(0.9, 0.1, 0.0), split(1, leaf(0.1, 0.2, 0.7), split(2, leaf(0.2, 0.6, 0.2), leaf(0.8, 0.1, 0.1)))),
)
CASE = (
    "CASE WHEN late >= 3 THEN 'no' WHEN income >= 30000 AND years >= 1 AND years < 5 THEN 'yes'"
    " WHEN (years < 1 OR years IS NULL) AND income >= 90000 THEN 'maybe' ELSE 'no' END"
)
CARD = Program(
    ("income", "late", "years"),
    ("good", "bad"),
    (Clause((Interval(0, None, 20000.0),)), Clause((Interval(1, 3.0),)), Clause((Interval(2, None, 1.0),))),
    Scorecard((2, 0), ((0, 1), (0, 2), (0, 1)), 0),
)
PLACES = Program(
    ("place",), ("no", "yes"), (Clause((OneOf(0, ("home",), True),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    kinds=("category",),
)  # fmt: skip


def story_of(engine, *statements, program=RULES, columns="income INTEGER, late INTEGER, years INTEGER"):
    """The changes and the story of the view `v` that the last statement makes."""
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute(f"CREATE TABLE loans (id INTEGER, {columns})")
        for statement in statements:
            database.execute(statement)
        (found,) = audit(program, database=database, view="v").verdicts
    assert found.verdict == "different"
    return found.changes, found.story


BLOCK = """CREATE FUNCTION decide({0}) RETURNS {1} {2}
BEGIN
  IF p_late >= 3 THEN RETURN 'no'; END IF;
  IF p_income >= 30000 AND p_years >= 1 AND p_years <= 5 THEN RETURN 'yes'; END IF;
  IF (p_years < 1 OR p_years IS NULL) AND p_income >= 90000 THEN RETURN 'maybe'; END IF;
  RETURN 'no';
END{3}"""
BLOCKS = {
    "postgres": BLOCK.format("p_income int, p_late int, p_years int", "text", "LANGUAGE plpgsql AS $$", " $$"),
    "mariadb": BLOCK.format("p_income INT, p_late INT, p_years INT", "VARCHAR(9)", "DETERMINISTIC", ""),
}


@pytest.mark.parametrize("engine", BLOCKS)
def test_a_function_is_mended_in_its_own_words(engine):
    view = "CREATE VIEW v AS SELECT id, decide(income, late, years) AS label FROM loans"
    changes, story = story_of(engine, BLOCKS[engine], view)
    assert [(each.where, each.approved, each.deployed) for each in changes] == [
        ("clause 1", "1 <= years < 5", "1 <= years <= 5")
    ]
    assert story.mend.line.of == "the function decide"
    assert (story.mend.old, story.mend.new) == ("p_years <= 5", "p_years < 5")


def test_a_function_that_a_file_creates_is_mended_by_the_line_of_the_file(tmp_path):
    if reason := availability("postgres"):
        pytest.skip(reason)
    file = tmp_path / "decide.sql"
    file.write_text(f"-- deployed by hand\n{BLOCKS['postgres']};\n")
    (found,) = audit(RULES, file=file, dialect="postgres").verdicts
    assert found.verdict == "different"
    assert (found.story.mend.old, found.story.mend.new) == ("p_years <= 5", "p_years < 5")
    assert (found.story.mend.line.number, found.story.mend.line.of) == (5, None)


def test_a_macro_and_the_call_of_it():
    macro = f"CREATE MACRO decide(i, l, y) AS {CASE}".replace("income", "i").replace("late", "l").replace("years", "y")
    view = "CREATE VIEW v AS SELECT id, decide({}) AS label FROM loans"
    changes, story = story_of("duckdb", macro.replace("l >= 3", "l > 3"), view.format("income, late, years"))
    assert (changes[0].where, story.mend.line.of) == ("clause 0", "the function decide")
    assert "l >= 3" in story.mend.new
    _, story = story_of("duckdb", macro, view.format("income, years, late"))
    assert (story.mend.old, story.mend.new) == ('"years", late', 'late, "years"')


def test_a_layer_that_renames_the_column_is_mended():
    below = "CREATE VIEW staged AS SELECT id, income, late, years AS in_work FROM loans"
    text = CASE.replace("years < 1 OR years IS NULL", "years < 1").replace("years", "in_work")
    _, story = story_of("sqlite", below, f"CREATE VIEW v AS SELECT id, {text} AS label FROM staged")
    assert story.mend.new == "(in_work < 1 OR in_work IS NULL)"


@pytest.mark.parametrize(
    ("own", "deployed", "old", "new"),
    [
        (
            "(years < 1 OR years IS NULL)",
            "ifnull(years, 7) < 1",
            "ifnull(years, 7) < 1",
            "(years < 1 OR years IS NULL)",
        ),
        (
            "years >= 1 AND years < 5",
            "years BETWEEN 1 AND 5",
            "years BETWEEN 1 AND 5",
            "years >= 1 AND years < 5",
        ),
    ],
)
def test_a_condition_is_written_anew_as_a_whole(own, deployed, old, new):
    text = CASE.replace(own, deployed)
    columns = "income REAL, late REAL, years REAL"
    _, story = story_of("sqlite", f"CREATE VIEW v AS SELECT id, {text} AS label FROM loans", columns=columns)
    assert (story.mend.old, story.mend.new) == (old, new)


def test_and_for_or_is_shown_with_both_conditions():
    view = "CREATE VIEW v AS SELECT id, IF(late BETWEEN 1 AND 4 OR income >= 9, 'yes', 'no') AS label FROM loans"
    both = Program(
        ("income", "late"),
        ("no", "yes"),
        (Clause((Interval(0, 9.0), Interval(1, 1.0, 5.0))),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    )
    _, story = story_of("mariadb", view, program=both)
    assert "`late` between 1 and 4 or " in story.mend.old
    assert story.mend.new == story.mend.old.replace(" or ", " AND ")


def test_a_parameter_with_a_name():
    view = (
        "CREATE VIEW v AS WITH params AS (SELECT 3 AS most_late, 5 AS young, 39000 AS least) SELECT id,"
        f" {CASE.replace('income >= 30000', 'income >= least')} AS label FROM loans, params"
    )
    changes, story = story_of("sqlite", view, columns="income REAL, late REAL, years REAL")
    assert (changes[0].approved, changes[0].deployed) == ("income >= 30000", "income >= 39000")
    assert "39000" in story.mend.line.text
    assert ("39000" in story.mend.old, "30000" in story.mend.new) == (True, True)


@pytest.mark.parametrize("where", ["income > 0", "income IS NOT NULL AND late BETWEEN 0 AND 99"])
def test_a_slip_is_named_where_a_filter_leaves_rows_out(where):
    view = f"CREATE VIEW v AS SELECT id, {CASE.replace('late >= 3', 'late > 3')} AS label FROM loans WHERE {where}"
    changes, story = story_of("sqlite", view, columns="income REAL, late REAL, years REAL")
    assert [(each.where, each.approved, each.deployed) for each in changes] == [("clause 0", "late >= 3", "late > 3")]
    assert (story.mend.old, story.mend.new) == ("late > 3", "late >= 3")


def test_points_are_named_where_rows_outside_of_all_bins_are_left_out():
    bins = "CREATE TABLE bins AS SELECT -1e9 AS low, 3 AS high, 0 AS points UNION ALL SELECT 3, 1e9, 1"
    view = (
        "CREATE VIEW v AS SELECT id, CASE WHEN points + CASE WHEN income < 20000 THEN 1 ELSE 0 END"
        " + CASE WHEN years < 1 THEN 1 ELSE 0 END >= 3 THEN 'bad' ELSE 'good' END AS label"
        " FROM loans JOIN bins ON late >= low AND late < high"
    )
    changes, story = story_of("duckdb", bins, view, program=CARD)
    assert [(each.where, each.approved, each.deployed) for each in changes] == [
        ("points of clause 1", "+2 for bad", "+1 for bad")
    ]
    assert (story.mend.old, story.mend.new) == ("points = 1", "points = 2")


def test_where_a_logistic_curve_turns():
    points = "-2.5 + (CASE WHEN income < 20000 THEN 1 ELSE 0 END) + (CASE WHEN late >= 3 THEN 2 ELSE 0 END)"
    points += " + (CASE WHEN years < 1 THEN 1 ELSE 0 END)"
    view = (
        f"CREATE VIEW v AS SELECT id, CASE WHEN 1 / (1 + exp(-({points}))) >= 0.3 THEN 'bad' ELSE 'good' END AS label"
        " FROM loans"
    )
    _, story = story_of("duckdb", view, program=CARD)
    assert "0.5" in story.mend.new


def test_a_comparison_that_takes_a_missing_value_for_another_one():
    view = "CREATE VIEW v AS SELECT id, CASE WHEN place IS DISTINCT FROM 'home' THEN 'yes' ELSE 'no' END AS label FROM loans"
    _, story = story_of("duckdb", view, program=PLACES, columns="place VARCHAR")
    assert "<> 'home'" in story.mend.new or "!= 'home'" in story.mend.new
