"""What a report adds to a difference is true for programs with words, dates and gaps too."""

import re
from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.verdict import verdict_lines
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, look_up_view, scratch
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split

DAY = 18546.0  # 2020-10-11
FEATURES, KINDS = ("income", "late", "purpose", "opened"), ("number", "number", "category", "date")
RULES = (
    Clause((Interval(0, None, 36000.0, "neither", if_missing=True), Interval(1, 1.0))),
    Clause((OneOf(2, ("business",)), Interval(1, None, 3.0))),
    Clause((Interval(3, DAY), Interval(0, 20000.0, if_missing=True))),
)
LENDING = Program(
    FEATURES,
    ("no", "yes"),
    RULES,
    split(0, leaf(0.2, 0.8), split(1, leaf(0.3, 0.7), split(2, leaf(0.6, 0.4), leaf(0.1, 0.9)))),
    kinds=KINDS,
)
POINTS = Program(FEATURES, ("no", "yes"), RULES, Scorecard((0, 1), ((0, 4), (0, 3), (3, 0)), 0), kinds=KINDS)
TABLE = {
    "sqlite": "loan TEXT, income INTEGER, late INTEGER, purpose TEXT, opened TEXT",
    "duckdb": "loan VARCHAR, income INTEGER, late INTEGER, purpose VARCHAR, opened DATE",
    "postgres": "loan VARCHAR(9), income INTEGER, late INTEGER, purpose VARCHAR(20), opened DATE",
}
ROWS = [
    ("L1", 36000, 2, "car", "2020-01-01"),
    ("L2", 36000, 2, "o'hara", "2021-01-01"),
    ("L3", 35000, 1, "car", "2020-01-01"),
    ("L4", None, 1, "car", "2022-01-01"),
    ("L5", 90000, 0, "Business", "2020-10-11"),
    ("L6", 90000, 0, None, None),
]
RULE = """SELECT loan, CASE
    WHEN (income < 36000 OR income IS NULL) AND late >= 1 THEN 'yes'
    WHEN purpose = 'business' AND late < 3 THEN 'yes'
    WHEN opened >= '2020-10-11' AND (income >= 20000 OR income IS NULL) THEN 'no'
    ELSE 'yes' END AS label
FROM applications"""


@pytest.fixture(params=sorted(TABLE))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    with closing(scratch(request.param)) as opened:
        opened.execute(f"CREATE TABLE applications ({TABLE[request.param]})")
        fill(opened, ROWS)
        yield opened


def literal(value):
    return "NULL" if value is None else str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def fill(database, rows):
    for row in rows:
        database.execute(f"INSERT INTO applications VALUES ({', '.join(map(literal, row))})")


def labels(database):
    return dict(database.fetch("SELECT loan, label FROM decisions"))


def slipped(database, right, wrong, query=RULE, program=LENDING):
    """The verdict on the query with a slip, its lines, and how many rows of the table get another label."""
    assert right in query
    database.execute(f"CREATE VIEW decisions AS {query}")
    before = labels(database)
    assert audit_view(AuditInput(program), database, "decisions", "decisions").verdict == "equal"
    database.execute("DROP VIEW decisions")
    database.execute(f"CREATE VIEW decisions AS {query.replace(right, wrong)}")
    after = labels(database)
    found = audit_view(AuditInput(program), database, "decisions", "decisions")
    assert found.verdict == "different"
    return found, list(verdict_lines(found, "")), [key for key in before if before[key] != after[key]]


SLIPS = [
    ("income < 36000", "income <= 36000"),
    ("income < 36000 OR income IS NULL", "income < 36000"),
    ("'business'", "'Business'"),
    ("2020-10-11", "2020-10-12"),
    ("late < 3", "late < 2"),
]


@pytest.mark.parametrize(("right", "wrong"), SLIPS)
def test_rows_with_words_are_counted_and_one_of_them_is_the_example(database, right, wrong):
    found, lines, moved = slipped(database, right, wrong)
    assert (found.moves.rows, found.moves.of) == (len(moved), len(ROWS))
    if not moved:
        assert found.story.table is None
        return
    assert found.story.key["loan"] in moved
    assert f"    SELECT * FROM decisions WHERE loan = '{found.story.key['loan']}';" in lines
    own = next(row for row in ROWS if row[0] == found.story.key["loan"])
    assert tuple(None if each is None else str(each) for each in found.region.row.values()) == tuple(
        None if each is None else str(float(each)) if isinstance(each, int) else each for each in own[1:]
    )


def test_an_example_that_is_no_row_of_the_table_is_one_that_its_columns_can_hold(database):
    database.execute("DELETE FROM applications")
    points = """SELECT loan, CASE WHEN
        1 + CASE WHEN (income < 36000 OR income IS NULL) AND late >= 1 THEN 4 ELSE 0 END
        + CASE WHEN purpose = 'business' AND late < 3 THEN 3 ELSE 0 END
        - CASE WHEN opened >= '2020-10-11' AND (income >= 20000 OR income IS NULL) THEN 3 ELSE 0 END > 0 THEN 'yes' ELSE 'no' END AS label
    FROM applications"""
    found, lines, _ = slipped(database, "THEN 4", "THEN 2", points, POINTS)
    assert all(value == int(value) for value in found.region.row.values() if isinstance(value, float))
    answers = database.fetch(f"SELECT label FROM ({found.story.query}) q")
    assert [tuple(answer) for answer in answers] == [(found.region.deployed,)]
    assert "  0 of 0" not in "\n".join(lines)


CARD = """SELECT loan, CASE WHEN points > 0 THEN 'yes' ELSE 'no' END AS label FROM (SELECT loan,
        1 + CASE WHEN (income < 36000 OR income IS NULL) AND late >= 1 THEN 4 ELSE 0 END
        + CASE WHEN purpose = 'business' AND late < 3 THEN 3 ELSE 0 END
        - CASE WHEN opened >= '2020-10-11' AND COALESCE(income, 20000) >= 20000 THEN 3 ELSE 0 END AS points
    FROM applications) scored"""
MENDED = [
    ("'business'", "'Business'", "clause 1", CARD, POINTS),
    ("2020-10-11", "2020-11-10", "clause 2", CARD, POINTS),
    ("late >= 1", "income >= 1", "clause 0", CARD, POINTS),
    ("THEN 4", "THEN 2", "points of clause 0", CARD, POINTS),
    (" AND late < 3", "", "clause 1", CARD, POINTS),
    ("(income < 36000 OR income IS NULL)", "income < 36000 OR income IS NULL", "clause 0", RULE, LENDING),
    ("late < 3", "late < 4", "clause 1", RULE, LENDING),
]


@pytest.mark.parametrize(("right", "wrong", "where", "query", "program"), MENDED)
def test_the_clause_is_named_and_the_edit_that_mends_it_is_printed(database, right, wrong, where, query, program):
    found, lines, moved = slipped(database, right, wrong, query, program)
    assert [change.where for change in found.changes] == [where]
    assert found.moves.rows == len(moved)
    assert found.story.mend is not None
    assert mended(database, found.story.mend, program) == "equal"
    assert any("of the view's definition: " in line for line in lines)


def mended(database, mend, program):
    """The verdict on the view that is stored, with the edit made at the one of its places that mends it."""
    text = look_up_view(database, "decisions").definition
    body = text[re.search(r"\bSELECT\b", text, re.IGNORECASE).start() :]
    verdicts = set()
    assert mend.old, "an edit that only inserts does not say where"
    for at in [at for at in range(len(body)) if body.startswith(mend.old, at)]:
        database.execute("DROP VIEW decisions")
        database.execute(f"CREATE VIEW decisions AS {body[:at]}{mend.new}{body[at + len(mend.old) :]}")
        verdicts.add(audit_view(AuditInput(program, mends=False), database, "decisions", "it").verdict)
    return "equal" if "equal" in verdicts else str(verdicts)


NESTED = Program(
    FEATURES,
    ("no", "yes"),
    RULES,
    split(0, split(1, leaf(0.2, 0.8), leaf(0.9, 0.1)), split(2, leaf(0.7, 0.3), leaf(0.4, 0.6))),
    kinds=KINDS,
)
NESTED_RULE = """SELECT loan, CASE
    WHEN (income < 36000 OR income IS NULL) AND late >= 1 THEN
        CASE WHEN purpose = 'business' AND late < 3 THEN 'yes' ELSE 'no' END
    WHEN opened >= '2020-10-11' AND (income >= 20000 OR income IS NULL) THEN 'no'
    ELSE 'yes' END AS label
FROM applications"""


def test_two_answers_in_each_others_place_are_named_by_their_branches_and_mended_by_one_edit(database):
    found, _, _ = slipped(database, "THEN 'yes' ELSE 'no'", "THEN 'no' ELSE 'yes'", NESTED_RULE, NESTED)
    texts = [change.text() for change in found.changes]
    first = "(income < 36000 OR income is missing) AND late >= 1"
    assert texts == [
        f"leaf 0 (IF {first} AND purpose is business AND late < 3): yes is deployed as no",
        f"leaf 1 (IF {first} AND NOT (purpose is business AND late < 3)): no is deployed as yes",
    ]
    assert mended(database, found.story.mend, NESTED) == "equal"


def test_two_exchanged_branches_are_reported_as_exchanged(database):
    first = "WHEN purpose = 'business' AND late < 3 THEN 'yes'"
    second = "WHEN opened >= '2020-10-11' AND (income >= 20000 OR income IS NULL) THEN 'no'"
    found, lines, moved = slipped(database, f"{first}\n    {second}", f"{second}\n    {first}")
    assert mended(database, found.story.mend, LENDING) == "equal"
    assert "    to mend it, put the second of these branches before the first:" in lines
    assert [change.where for change in found.changes] == ["clauses 1 and 2"]
    assert found.moves.rows == len(moved)
