"""Scored tables with words, booleans, dates and missing values: read as they are scored, every slip found and shown."""

import datetime as dt

import pandas as pd
import pytest
from hypothesis import given, settings

from gbfl_compile import audit
from gbfl_compile.auditing.scored import ScoredOptions, audit_scored
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.text import blocks, staged_column
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.counts import shorten
from tests.word_programs import CHURN, CHURN_ROWS, SLIPS, with_slip, with_swapped_sets, word_programs_with_rows

ENDINGS = (".csv", ".parquet")

LOOKALIKES = ("a", "A", "a ", "á", "a\u0301", "", None)


def written(folder, program, rows, ending):
    """A table of rows with the labels of a program; a CSV file has no empty text, only nothing."""
    if ending == ".csv":
        rows = [[None if value == "" else value for value in row] for row in rows]
    frame = pd.DataFrame(rows, columns=list(program.features), dtype=object)
    frame["label"] = pd.Series([evaluate(program, row).label for row in rows], dtype=object)
    path = folder / f"scored{ending}"
    if ending == ".csv":
        frame.to_csv(path, index=False)
    else:
        for feature, name in enumerate(program.features):
            if program.kind(feature) == "number":
                frame[name] = frame[name].astype(float)
        frame.to_parquet(path, index=False)
    return path, rows


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_scored_by_the_program_is_equal(ending, tmp_path):
    path, rows = written(tmp_path, CHURN, CHURN_ROWS, ending)
    found = audit_scored(CHURN, path)
    assert (found.verdict, found.checked_rows, found.different_rows) == ("equal", len(rows), 0), found.reason


def assert_a_slip_is_found(found, rows, slip):
    wrong = with_slip(slip)
    moved = [row for row in rows if evaluate(CHURN, row).label != evaluate(wrong, row).label]
    assert (found.verdict, found.different_rows) == ("different" if moved else "equal", len(moved)), slip
    if not moved:
        return False
    row = [found.region.row[name] for name in CHURN.features]
    row[3] = None if row[3] is None else dt.date.fromisoformat(row[3])
    assert (evaluate(CHURN, row).label, evaluate(wrong, row).label) == (found.region.approved, found.region.deployed)
    return bool(found.changes) and any(f"clause {SLIPS[slip][0]}" in change.where for change in found.changes)


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_slip_is_found_and_nearly_every_one_named(ending, tmp_path):
    named = []
    for slip in SLIPS:
        path, rows = written(tmp_path, with_slip(slip), CHURN_ROWS, ending)
        if slip != "one year added":  # which no row has
            named.append(assert_a_slip_is_found(audit_scored(CHURN, path), rows, slip))
    assert sum(named) >= len(named) - 1


@pytest.mark.parametrize(
    ("slip", "text"),
    [
        ('Month-to-month re-cased as "month-to-month"', "contract in {month-to-month, two year}"),
        ("the other texts pass", "contract not in {Month-to-month, two year}"),
        ("1 day later", "opened <"),
        ("a missing value does not pass", "not smoker"),
    ],
)
def test_the_condition_is_reported_as_it_is_deployed(slip, text, tmp_path):
    path, _ = written(tmp_path, with_slip(slip), CHURN_ROWS, ".parquet")
    assert text in audit_scored(CHURN, path).changes[0].text()


def test_swapped_sets_are_different(tmp_path):
    path, _ = written(tmp_path, with_swapped_sets(), CHURN_ROWS, ".parquet")
    assert audit(CHURN, scored=path).verdict == "different"


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("text", LOOKALIKES)
def test_a_text_that_looks_like_a_listed_one_is_distinguished_from_it(text, ending, tmp_path):
    rows = [[5000.0, each, True, dt.date(2024, 3, 1)] for each in LOOKALIKES]
    path, rows = written(tmp_path, CHURN, rows, ending)
    place = LOOKALIKES.index(text)
    frame = pd.read_parquet(path) if ending == ".parquet" else pd.read_csv(path)
    frame.loc[place, "label"] = "yes" if frame.loc[place, "label"] == "no" else "no"
    frame.to_parquet(path) if ending == ".parquet" else frame.to_csv(path, index=False)
    found = audit_scored(CHURN, path)
    assert (found.different_rows, found.first_different_rows[0]["row_number"]) == (1, place + 1)
    assert found.first_different_rows[0]["row"]["contract"] == rows[place][1]


@settings(max_examples=shorten(60), deadline=None)
@given(case=word_programs_with_rows())
def test_every_program_agrees_with_the_definition(case, tmp_path_factory):
    program, rows = case
    path, rows = written(tmp_path_factory.mktemp("scored"), program, rows, ".parquet")
    found = audit_scored(program, path, "label" if "label" not in program.features else None)
    assert (found.verdict, found.checked_rows) == ("equal", len(rows)), found.reason


def test_columns_that_no_rule_tests_may_be_absent_and_others_present(tmp_path):
    path, _ = written(tmp_path, CHURN, CHURN_ROWS, ".parquet")
    wider = Program(
        (*CHURN.features, "unasked"), CHURN.classes, CHURN.clauses, CHURN.decision, kinds=(*CHURN.kinds, "category")
    )
    assert audit_scored(wider, path).verdict == "equal"


def test_texts_that_meant_missing_in_training_mean_it_here_too(tmp_path):
    program = Program(
        ("age", "job"),
        ("no", "yes"),
        (Clause((Interval(0, 30.0, if_missing=True),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("number", "category"),
        metadata={"mining": {"data": {"columns": [{"name": "age", "missing_texts": ["unknown"]}]}}},
    )
    path = tmp_path / "scored.csv"
    path.write_text("age,job,label\n?,a,yes\nunknown,b,yes\n29,c,no\n30,,yes\n", "utf-8")
    assert audit_scored(program, path).verdict == "equal"
    path.write_text("age,job,label\nmany,a,yes\n", "utf-8")
    with pytest.raises(BadInput, match="'many'"):
        audit_scored(program, path)


def test_drift_counts_words_that_training_did_not_have(tmp_path):
    histograms = [{"edges": [], "counts": [], "missing": 0}] * 4
    histograms[1] = {"edges": [], "counts": [], "missing": 0, "values": {"a": 50, "b": 50}}
    histograms[2] = {"edges": [], "counts": [], "missing": 0, "values": {"true": 50, "false": 50}}
    program = Program(
        CHURN.features,
        CHURN.classes,
        CHURN.clauses,
        CHURN.decision,
        kinds=CHURN.kinds,
        metadata={"training": {"histograms": histograms}},
    )
    rows = [[1.0, "a", True, None]] * 50 + [[1.0, "c", False, None]] * 50
    path, _ = written(tmp_path, program, rows, ".csv")
    features = audit_scored(program, path, options=ScoredOptions(drift=True)).drift["features"]
    assert features["contract"]["rows"] == [50, 0, 50, 0]
    assert features["contract"]["outside_share"] == 0.5
    assert features["contract"]["level"] == "large"
    assert (features["smoker"]["rows"], features["smoker"]["psi"]) == ([50, 50, 0, 0], 0.0)


def fill(database, rows, labels, name="scored"):
    """The rows of CHURN in a table with columns of its types, texts from their bytes, and the labels beside them."""
    dialect = DIALECTS[database.dialect]
    (block,) = blocks(dialect, CHURN.kinds, rows)
    database.insert("numbers", [*CHURN.features], block.matrix)
    columns = [database.quote("income")] + [
        staged_column(dialect, kind, block.values[feature], CHURN.features[feature])
        for feature, kind in enumerate(CHURN.kinds)
        if kind != "number"
    ]
    yes = ", ".join(["-1", *(str(n) for n, label in enumerate(labels) if label == "yes")])
    columns.append(f"CASE WHEN gbfl_row IN ({yes}) THEN 'yes' ELSE 'no' END AS label")
    engine = "ENGINE = Memory " if database.dialect == "clickhouse" else ""
    database.execute(f"DROP TABLE IF EXISTS {name}")  # engines that are slow to start are shared by several tests
    database.execute(f"CREATE TABLE {name} {engine}AS SELECT {', '.join(columns)} FROM numbers")


def test_a_table_in_a_database_is_read_with_its_kinds(database):
    fill(database, CHURN_ROWS, [evaluate(CHURN, row).label for row in CHURN_ROWS])
    found = audit_scored(CHURN, (database, "scored"))
    assert (found.verdict, found.checked_rows) == ("equal", len(CHURN_ROWS)), found.first_different_rows
    for number, slip in enumerate(('a re-cased as "A"', "1 day later", "a missing value passes")):
        fill(database, CHURN_ROWS, [evaluate(with_slip(slip), row).label for row in CHURN_ROWS], f"wrong{number}")
        assert assert_a_slip_is_found(audit_scored(CHURN, (database, f"wrong{number}")), CHURN_ROWS, slip), slip


def test_marks_of_missing_numbers_are_read_as_they_were_mined(tmp_path):
    """A program of numbers alone, whose table had `?` for a missing one: `gbfl score` takes it, and so do audits."""
    columns = [{"missing_texts": ["?"]}]
    program = Program(
        ("age",),
        ("no", "yes"),
        (Clause((Interval(0, None, 65.5),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        {"mining": {"data": {"columns": columns}}},
    )
    table = tmp_path / "scored.csv"
    for labels, verdict in ((("yes", "no", "no"), "equal"), (("yes", "no", "yes"), "different")):
        ages = ("40", "70", "?")
        table.write_text("age,label\n" + "".join(f"{age},{label}\n" for age, label in zip(ages, labels, strict=True)))
        assert audit_scored(program, table).verdict == verdict
