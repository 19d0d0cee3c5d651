"""What a report adds to a difference is true: the line, the edit, the row, the SELECT and the number of rows."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.verdict import verdict_lines
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from tests.auditing.forms.corpus import ONE, TREE

ENGINES = ["sqlite", "duckdb", "postgres"]
RULE = """SELECT id, CASE
    WHEN income {sign} 30000 AND debt < 0.4 THEN 'approve'
    WHEN age >= 25 AND debt <= {most} THEN 'refer'
    ELSE 'decline' END AS label
FROM applications"""
ROWS = [
    (1, 30000, 0.2, 40),
    (2, 30000, 0.2, 20),
    (3, 45000, 0.2, 40),
    (4, None, 0.2, 40),
    (5, 30000, None, 30),
    (6, 12000, 0.6, 33),
]


@pytest.fixture(params=ENGINES)
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    with closing(scratch(request.param)) as opened:
        opened.execute("CREATE TABLE applications (id INTEGER, income INTEGER, debt DOUBLE PRECISION, age INTEGER)")
        values = ", ".join(str(row).replace("None", "NULL") for row in ROWS)
        opened.execute(f"INSERT INTO applications VALUES {values}")
        yield opened


def audited(database, query, program=TREE):
    database.execute(f"CREATE VIEW decisions AS {query}")
    return audit_view(AuditInput(program), database, "decisions", "decisions")


def test_the_rows_that_move_are_those_of_the_table_that_get_another_label(database):
    found = audited(database, RULE.format(sign=">", most="0.6"))
    deployed = dict(database.fetch("SELECT id, label FROM decisions"))
    approved = {
        row[0]: evaluate(TREE, [float("nan") if value is None else float(value) for value in row[1:]]).label
        for row in ROWS
    }
    moved = [(approved[key], deployed[key]) for key in approved if approved[key] != deployed[key]]
    assert (found.moves.rows, found.moves.of) == (len(moved), len(ROWS))
    assert sorted((a, b) for a, b, count in found.moves.moves for _ in range(count)) == sorted(moved)


def test_the_example_is_a_row_of_the_table_and_the_select_shows_it(database):
    found = audited(database, RULE.format(sign=">", most="0.6"))
    assert found.story.table == "applications"
    (key,) = found.story.key.values()
    row = next(row for row in ROWS if row[0] == key)
    assert [found.region.row[name] for name in ("income", "debt", "age")] == list(row[1:])
    answers = database.fetch(found.story.query)
    assert (key, found.region.deployed) in [tuple(answer) for answer in answers]
    assert f"{found.story.query};" in "\n".join(line.strip() for line in verdict_lines(found, ""))


def test_where_no_row_of_the_table_shows_it_the_select_brings_its_own_row(database):
    database.execute("DELETE FROM applications WHERE id IN (1, 2, 5)")
    found = audited(database, RULE.format(sign=">", most="0.6"))
    assert (found.moves.rows, found.story.table) == (0, None)
    answers = database.fetch(f"SELECT label FROM ({found.story.query}) q")
    assert [tuple(answer) for answer in answers] == [(found.region.deployed,)]
    assert all(value is None or abs(value) < 1e6 for value in found.region.row.values())


def test_the_edit_that_mends_it_does(database):
    found = audited(database, RULE.format(sign=">", most="0.6"))
    mend = found.story.mend
    assert mend is not None
    (definition,) = found.material.values()
    line = definition.decode().splitlines()[mend.line.number - 1]
    assert mend.line.text.strip("…") in line
    assert mend.old in line
    database.execute("DROP VIEW decisions")
    begins = definition.decode().upper().find("SELECT")
    query = definition.decode()[begins:].rstrip().rstrip(";").replace(mend.old, mend.new, 1)
    assert audited(database, query).verdict == "equal"


def test_two_slips_are_mended_by_no_single_edit_and_the_report_says_so(database):
    found = audited(database, RULE.format(sign=">", most="0.7"))
    assert found.verdict == "different"
    assert found.story.mend is None
    assert any("no single edit" in line for line in verdict_lines(found, ""))


def test_an_edit_that_only_drops_the_rows_in_question_is_not_a_mend(database):
    query = (
        "SELECT id, 'approve' AS label FROM applications WHERE income > 30000 UNION ALL "
        "SELECT id, 'decline' AS label FROM applications WHERE income <= 30000 OR income IS NULL"
    )
    found = audited(database, query, ONE)
    assert found.verdict == "different"
    assert found.story.mend is None


LENDING = (
    Clause((Interval(2, 2.0),)),
    Clause((Interval(1, 0.45), Interval(0, None, 40000.0))),
    Clause((Interval(2, 1.0), Interval(0, None, 60000.0))),
)
REFUSALS = Program(
    ("income", "debt", "late"),
    ("refuse", "approve"),
    LENDING,
    split(0, leaf(1.0, 0.0), split(1, leaf(1.0, 0.0), split(2, leaf(1.0, 0.0), leaf(0.0, 1.0)))),
)
POINTS = Program(REFUSALS.features, REFUSALS.classes, LENDING, Scorecard((0, 3), ((2, 0), (3, 0), (1, 0)), 0))


@pytest.fixture
def lender():
    with closing(scratch("sqlite")) as opened:
        opened.execute("CREATE TABLE loans (id INTEGER, income REAL, debt REAL, late REAL)")
        yield opened


def lines_on(database, program, label):
    found = audited(database, f"SELECT id, {label} AS label FROM loans", program)
    assert found.verdict == "different"
    return found, list(verdict_lines(found, ""))


def test_the_clause_whose_and_became_or_is_named(lender):
    rule = (
        "CASE WHEN late >= 2 OR (debt >= 0.45 AND income < 40000) THEN 'refuse' "
        "WHEN late >= 1 OR income < 60000 THEN 'refuse' ELSE 'approve' END"
    )
    _, lines = lines_on(lender, REFUSALS, rule)
    assert "  clause 2: late >= 1 AND income < 60000 is deployed as late >= 1 OR income < 60000" in lines
    assert "    to mend it, write late >= 1 AND income < 60000 for late >= 1 OR income < 60000" in lines
    assert not any("rows of loans" in line for line in lines), "the table is empty"


def test_points_are_reported_with_the_clause_that_gives_them_and_where_the_text_has_them(lender):
    rule = (
        "CASE WHEN CASE WHEN late >= 2 THEN 2 ELSE 0 END + CASE WHEN debt >= 0.45 AND income < 40000 THEN 2 ELSE 0 END "
        "+ CASE WHEN late >= 1 AND income < 60000 THEN 1 ELSE 0 END >= 3 THEN 'refuse' ELSE 'approve' END"
    )
    _, lines = lines_on(lender, POINTS, rule)
    words = "points of clause 1 (IF debt >= 0.45 AND income < 40000): +3 for refuse is deployed as +2 for refuse"
    assert f"  {words}" in lines
    assert "    to mend it, write income < 40000 THEN 3 for income < 40000 THEN 2" in lines


def test_a_row_with_every_value_is_shown_where_one_shows_the_difference(lender):
    rule = (
        "CASE WHEN late >= 2 THEN 'refuse' WHEN debt >= 0.45 AND income < 40000 THEN 'refuse' "
        "WHEN late >= 1 AND income < 6000 THEN 'refuse' ELSE 'approve' END"
    )
    found, lines = lines_on(lender, REFUSALS, rule)
    assert None not in found.region.row.values()
    assert "missing" not in found.region.rule
    assert "clause 2: income < 60000 is deployed as income < 6000" in lines[1]


STORED = """SELECT a.id, CASE
    WHEN a.income >= p.least_income AND a.debt < p.most_debt THEN 'approve'
    WHEN a.age >= 25 AND a.debt <= 0.6 THEN 'refer'
    ELSE 'decline' END AS label
FROM applications a CROSS JOIN limits p"""


@pytest.mark.parametrize(
    ("column", "wrong", "right"), [("most_debt", "0.45", "0.4"), ("least_income", "3000", "30000")]
)
def test_a_wrong_value_in_a_table_of_parameters_is_mended_there_and_not_in_the_text(database, column, wrong, right):
    database.execute("CREATE TABLE limits (least_income INTEGER, most_debt DECIMAL(6, 3))")
    values = {"least_income": "30000", "most_debt": "0.4", column: wrong}
    database.execute(f"INSERT INTO limits VALUES ({values['least_income']}, {values['most_debt']})")
    found = audited(database, STORED)
    lines = list(verdict_lines(found, ""))
    assert any(line.startswith("    row 1 of limits: least_income = ") for line in lines)
    mend = found.story.mend
    assert (mend.line.of, mend.new) == ("limits", f"{column} = {right}")
    assert mend.old.startswith(f"{column} = {wrong}")
    database.execute(f"UPDATE limits SET {mend.new}")
    assert audit_view(AuditInput(TREE), database, "decisions", "decisions").verdict == "equal"


def test_an_edit_is_printed_with_so_much_around_it_that_only_one_place_has_the_words(database):
    nested = RULE.replace("THEN 'refer'", "THEN CASE WHEN debt <= 0.1 THEN 'refer' ELSE 'refer' END").replace("\n", " ")
    wrong = nested.replace("{sign}", ">=").replace("{most}", "0.6").replace("debt < 0.4", "debt <= 0.4")
    found = audited(database, wrong.replace("WHEN income", "WHEN debt <= 0.4 AND 1 = 2 THEN 'refer' WHEN income"))
    (definition,) = found.material.values()
    assert found.story.mend is not None
    assert definition.decode().count(found.story.mend.old) == 1
