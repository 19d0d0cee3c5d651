"""Features that SQL computes, named with --column FEATURE=expression: equal only where the text means that very one."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("debt", "age"),
    ("no", "yes"),
    (Clause((Interval(0, 0.4), Interval(1, 18.0))),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
)
ROWS = "(1, 39, 100, 20), (2, 40, 100, 20), (3, 41, 50, 20), (4, 40, NULL, 17), (5, NULL, 100, 30)"
RULE = "CASE WHEN {} >= 0.4 AND age >= 18 THEN 'yes' ELSE 'no' END AS label"
PERCENT = {"debt": "pct / 100.0"}


def verdict(engine, view, columns, *layers, rows=ROWS):
    """What an audit says of a view of the table `loans`."""
    if reason := availability(engine):
        pytest.skip(reason)
    with closing(scratch(engine)) as database:
        database.execute("CREATE TABLE loans (id INTEGER, pct INTEGER, income INTEGER, age INTEGER)")
        if rows:
            database.execute(f"INSERT INTO loans VALUES {rows}")
        for layer in layers:
            database.execute(layer)
        database.execute(f"CREATE VIEW v AS {view}")
        (found,) = audit(PROGRAM, database=database, view="v", columns=columns).verdicts
        return found


NOT_THE_FEATURE = {
    "another divisor": f"SELECT id, {RULE.format('pct / 10.0')} FROM loans",
    "another column": f"SELECT id, {RULE.format('income / 100.0')} FROM loans",
    "a column of that name that a stage computes": f"WITH s AS (SELECT id, age, pct * 2 AS pct FROM loans) "
    f"SELECT id, {RULE.format('pct / 100.0')} FROM s",
    "a column of that name that is another one": f"WITH s AS (SELECT id, age, income AS pct FROM loans) "
    f"SELECT id, {RULE.format('pct / 100.0')} FROM s",
    "another row": f"SELECT a.id, {RULE.format('b.pct / 100.0').replace('age', 'a.age')} "
    "FROM loans a JOIN loans b ON b.id = a.id + 1",
    "another sign": f"SELECT id, {RULE.format('pct / 100.0').replace('>= 0.4', '> 0.4')} FROM loans",
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize("form", NOT_THE_FEATURE)
def test_an_expression_that_is_not_the_feature_is_never_equal(engine, form):
    assert verdict(engine, NOT_THE_FEATURE[form], PERCENT).verdict in ("different", "unread")


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
def test_a_slip_beside_a_computed_feature_is_found_on_a_row_that_shows_it(engine):
    found = verdict(engine, NOT_THE_FEATURE["another sign"], PERCENT, rows="")
    assert found.verdict == "different"
    assert found.execution.first["row"]["debt"] == "0.4"


FORMS = {
    "in place": (f"SELECT id, {RULE.format('(pct / 100.0)')} FROM loans", ()),
    "under an alias": (f"SELECT l.id, {RULE.format('l.pct / 100.0')} FROM loans l", ()),
    "in a layer": (
        f"SELECT id, {RULE.format('debt')} FROM s",
        ("CREATE VIEW s AS SELECT id, pct / 100.0 AS debt, age FROM loans",),
    ),
    "of a column that a layer renames": (
        f"SELECT id, {RULE.format('share / 100.0')} FROM s",
        ("CREATE VIEW s AS SELECT id, pct AS share, age FROM loans",),
    ),
}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize("form", FORMS)
def test_a_computed_feature_is_read_run_and_never_proved(engine, form):
    view, layers = FORMS[form]
    found = verdict(engine, view, PERCENT, *layers, rows="")
    assert found.verdict == "equal"
    assert not found.is_proved
    assert found.proof_assumes == "that debt is pct / 100.0, and that this compares as a double does"
    assert found.feature_columns == {"debt": "pct / 100.0"}
    assert found.execution.rows > 10


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_ratio_of_two_columns_is_reached_by_filling_in_one_and_division_by_nought_is_left_out(engine):
    ratio = "pct / NULLIF(income, 0)::double precision"
    found = verdict(engine, f"SELECT id, {RULE.format(ratio)} FROM loans", {"debt": ratio}, rows="")
    assert found.verdict == "equal"


def test_a_feature_that_cannot_be_solved_for_is_run_on_the_tables_own_rows_alone():
    size = "abs(pct) / 100.0"
    view = f"SELECT id, {RULE.format(size)} FROM loans"
    assert verdict("duckdb", view, {"debt": size}).execution.rows == 5
    assert verdict("duckdb", view, {"debt": size}, rows="").verdict == "not run"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("random() * pct", "not known to depend on the row alone"),
        ("(SELECT max(pct) FROM loans)", "not known to depend on the row alone"),
        ("pct / nobody", "not those of one table"),
        ("pct /", "neither a column nor an expression"),
        ("upper('a')", "not those of one table"),
    ],
)
def test_an_expression_that_is_not_a_function_of_a_row_is_refused_by_name(expression, words):
    found = verdict("duckdb", f"SELECT id, {RULE.format('pct / 100.0')} FROM loans", {"debt": expression})
    assert found.verdict in ("unread", "different")
    assert words in found.reason


def test_a_layer_that_computes_a_feature_is_named_with_the_option_that_says_so():
    view, layers = FORMS["in a layer"]
    reason = verdict("sqlite", view, {}, *layers).reason
    assert "--column 'debt=pct / 100.0'" in reason
