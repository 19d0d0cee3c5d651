"""Rows that one row becomes and that are merged again are read where a key puts them together, and nothing else does."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

RULES = Program(
    ("income", "debt"),
    ("no", "ask", "yes"),
    (Clause((Interval(0, None, 20000.0),)), Clause((Interval(1, None, 0.4),))),
    split(0, leaf(1.0, 0.0, 0.0), split(1, leaf(0.0, 0.0, 1.0), leaf(0.0, 1.0, 0.0))),
)
CARD = Program(
    ("income", "debt"),
    ("no", "yes"),
    (Clause((Interval(0, 20000.0),)), Clause((Interval(1, None, 0.4),))),
    Scorecard((0, -8), ((0, 6), (0, 5))),
)
HITS = (
    "SELECT id, 1 AS p, 'no' AS l FROM loans WHERE income < 20000 UNION ALL "
    "SELECT id, 2, 'yes' FROM loans WHERE debt < 0.4 UNION ALL SELECT id, 3, 'ask' FROM loans"
)
BY_LEAST = f"WITH h AS ({HITS}) SELECT id, CASE MIN(p) WHEN 1 THEN 'no' WHEN 2 THEN 'yes' ELSE 'ask' END AS label FROM h GROUP BY id"
BY_NUMBER = (
    f"SELECT id, l AS label FROM (SELECT id, l, ROW_NUMBER() OVER (PARTITION BY id ORDER BY p) AS n FROM ({HITS}) h) q "
    "WHERE n = 1"
)
BY_SUM = (
    "SELECT l.id, CASE WHEN SUM(b.pts) >= 9 THEN 'yes' ELSE 'no' END AS label FROM loans l CROSS JOIN "
    "(SELECT 'i' AS f, 6 AS pts UNION ALL SELECT 'd', 5 UNION ALL SELECT 'n', 0) b "
    "WHERE (b.f = 'i' AND l.income >= 20000) OR (b.f = 'd' AND l.debt < 0.4) OR b.f = 'n' GROUP BY l.id"
)
OUTER = (
    "SELECT l.id, CASE WHEN COALESCE(SUM(b.pts), 0) < 9 THEN 'no' ELSE 'yes' END AS label FROM loans l LEFT JOIN "
    "(SELECT 'i' AS f, 6 AS pts UNION ALL SELECT 'd', 5) b "
    "ON (b.f = 'i' AND l.income >= 20000) OR (b.f = 'd' AND l.debt < 0.4) GROUP BY l.id"
)
BY_STATUS = (
    "SELECT status AS id, label FROM (SELECT status, CASE MIN(p) WHEN 1 THEN 'no' WHEN 2 THEN 'yes' ELSE 'ask' END "
)
BY_STATUS += f"AS label FROM ({HITS.replace('SELECT id', 'SELECT status')}) h GROUP BY status) g"
READ = {
    "the least priority": (BY_LEAST, RULES),
    "the first row": (BY_NUMBER, RULES),
    "a sum": (BY_SUM, CARD),
    "a sum of what is met": (OUTER, CARD),
}


def verdict(engine, query, program, second=2, before=()):
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        ending = " ENGINE = Memory" if engine == "clickhouse" else ""
        types = ("Nullable(Int32)", "Nullable(Float64)") if ending else ("INTEGER", "DECIMAL(6, 4)")
        database.execute(
            f"CREATE TABLE loans (id INTEGER, income {types[0]}, debt {types[1]}, status VARCHAR(9)){ending}"
        )
        database.execute(
            f"INSERT INTO loans VALUES (1, 20000, 0.3, 'open'), ({second}, 19999, 0.3, 'open'), (3, 20000, NULL, 'open')"
        )
        for statement in before:
            database.execute(statement)
        database.execute(f"CREATE VIEW v AS {query}")
        (found,) = audit(program, database=database, view="v").verdicts
        return found


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_rows_that_a_key_puts_together_are_read(engine, form):
    found = verdict(engine, *READ[form])
    assert found.verdict == "equal", found
    assert "id is different in every row of loans as it is now" in found.row_effects


@pytest.mark.parametrize("form", READ)
def test_rows_are_not_merged_where_two_rows_of_the_table_have_one_key(form):
    assert verdict("sqlite", *READ[form], second=1).verdict == "unread"


OTHER = {
    "another bound": (BY_LEAST.replace("0.4", "0.5"), RULES),
    "the greatest priority": (BY_LEAST.replace("MIN", "MAX"), RULES),
    "another order": (BY_NUMBER.replace("2, 'yes'", "4, 'yes'"), RULES),
    "from the last": (BY_NUMBER.replace("ORDER BY p", "ORDER BY p DESC"), RULES),
    "the second row": (BY_NUMBER.replace("n = 1", "n = 2"), RULES),
    "other points": (BY_SUM.replace("'d', 5", "'d', 9"), CARD),
    "a sum that is NULL": (OUTER.replace("COALESCE(SUM(b.pts), 0)", "SUM(b.pts)"), CARD),
}


@pytest.mark.parametrize("form", OTHER)
@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_another_rule_is_different(engine, form):
    assert verdict(engine, *OTHER[form]).verdict == "different"


UNREAD = {
    "rows in no order": (BY_NUMBER.replace("2, 'yes'", "1, 'yes'"), RULES),
    "grouped by no key": (BY_STATUS, RULES),
    "numbered within all": (BY_NUMBER.replace("PARTITION BY id ", ""), RULES),
    "ranked": (BY_NUMBER.replace("ROW_NUMBER()", "NTILE(2)"), RULES),
    "equal rows merged": (
        BY_SUM.replace(
            "FROM loans l", "FROM (SELECT id, income, debt FROM loans UNION SELECT id, income, debt FROM loans) l"
        ),
        CARD,
    ),
    "a branch for some": (BY_LEAST.replace("WHERE debt", "WHERE status = 'open' AND debt"), RULES),
    "a join between": (
        BY_LEAST.replace(
            "'yes' FROM loans", "'yes' FROM loans JOIN (SELECT id AS other FROM loans) o ON o.other <> id"
        ),
        RULES,
    ),
    "different values only": (BY_SUM.replace("SUM(b.pts)", "SUM(DISTINCT b.pts)"), CARD),
    "a mean": (BY_SUM.replace("SUM(b.pts)", "3 * AVG(b.pts)"), CARD),
    "some groups": (f"{BY_LEAST} HAVING COUNT(*) > 0", RULES),
    "some rows": (BY_LEAST.replace("FROM loans)", "FROM loans ORDER BY p LIMIT 5)"), RULES),
    "a filter within": (BY_SUM.replace("SUM(b.pts)", "SUM(b.pts) FILTER (WHERE l.status = 'open')"), CARD),
}


@pytest.mark.parametrize("form", UNREAD)
@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_what_may_merge_or_leave_out_other_rows_is_never_equal(engine, form):
    assert verdict(engine, *UNREAD[form]).verdict in ("unread", "different")
