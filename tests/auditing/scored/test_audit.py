"""Scored tables: every row is compared, one wrong row is found and named, and unreadable values are reported."""

import gzip
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyarrow import parquet

from gbfl_compile.auditing.scored import ScoredOptions, audit_scored
from gbfl_compile.auditing.scored import compare as scored_answers
from gbfl_compile.auditing.scored import source as scored_database
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.tables import batches as table_batches
from tests.programs import programs_with_rows

PROGRAM = Program(
    ("age", "unasked", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 0.1, 50.0),)), Clause((Interval(2, None, 1.5, if_missing=True),))),
    split(0, split(1, leaf(0.25, 0.75), leaf(1.0, 0.0)), leaf(0.5, 0.5)),
)


def table_of(program, rows):
    frame = pd.DataFrame(rows, columns=list(program.features))
    frame["label"] = pd.Series(evaluate_many(program, rows).labels.tolist(), dtype=object)
    return frame


def many(count, seed=0):
    choose = np.random.default_rng(seed)
    rows = choose.choice([np.nan, 0.0, 0.1, np.nextafter(0.1, 1), 1.5, 49.9, 50.0, np.inf, -np.inf], size=(count, 3))
    return table_of(PROGRAM, rows)


def written(folder, frame, ending):
    path = folder / f"scored{ending}"
    if ending == ".parquet":
        frame.to_parquet(path, index=False)
    elif ending in (".arrow", ".feather"):
        table = pa.Table.from_pandas(frame, preserve_index=False)
        kind = pa.ipc.new_stream if ending == ".arrow" else pa.ipc.new_file
        with kind(path, table.schema) as writer:
            writer.write_table(table, 700)
    elif ending == ".csv.gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False)
    return path


ENDINGS = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_scored_by_the_program_is_equal(tmp_path, ending):
    found = audit_scored(PROGRAM, written(tmp_path, many(3000), ending))
    assert (found.verdict, found.reason, found.moves) == ("equal", None, None)
    assert (found.kind, found.checked_rows, found.different_rows) == ("scored table", 3000, 0)
    assert found.evidence() == "checked on 3,000 rows, 0 different"
    assert not found.is_proved


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("place", [0, 999, 1000, 1001, 2999])
def test_one_wrong_row_is_found_and_named(tmp_path, monkeypatch, ending, place):
    monkeypatch.setattr(table_batches, "CSV_ROWS", 500)
    monkeypatch.setattr(table_batches, "ARROW_ROWS", 500)
    frame = many(3000)
    approved = frame.loc[place, "label"]
    frame.loc[place, "label"] = "yes" if approved == "no" else "no"
    found = audit_scored(PROGRAM, written(tmp_path, frame, ending))
    assert (found.verdict, found.checked_rows, found.different_rows) == ("different", 3000, 1)
    (first,) = found.first_different_rows
    assert first["row_number"] == place + 1
    assert (first["approved"], first["deployed"]) == (approved, frame.loc[place, "label"])
    assert found.reason == f"row {place + 1:,}: {approved!r} is deployed as {frame.loc[place, 'label']!r}"
    assert found.moves.moves == ((approved, frame.loc[place, "label"], 1),)
    assert set(found.region.row) == {"age", "income"}


@settings(max_examples=40)
@given(programs_with_rows())
def test_every_program_is_equal_to_what_it_scored_and_each_flip_is_found(tmp_path_factory, drawn):
    program, rows = drawn
    if "label" in program.features:
        return
    frame = table_of(program, np.array(rows, dtype=np.float64))
    folder = tmp_path_factory.mktemp("scored")
    for ending in (".csv", ".parquet"):
        assert audit_scored(program, written(folder, frame, ending)).verdict == "equal"
        if len(program.classes) > 1:
            other = frame.copy()
            other.loc[5, "label"] = next(label for label in program.classes if label != frame.loc[5, "label"])
            assert audit_scored(program, written(folder, other, ending)).different_rows == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_missing_label_and_one_that_is_not_a_class_are_different(tmp_path, ending):
    frame = many(100)
    frame.loc[3, "label"], frame.loc[7, "label"] = None, "maybe"
    found = audit_scored(PROGRAM, written(tmp_path, frame, ending))
    assert found.different_rows == 2
    assert [row["deployed"] for row in found.first_different_rows] == [None, "maybe"]


def test_null_and_nan_are_both_missing(tmp_path):
    ages = pa.array([None, float("nan"), 1.0], from_pandas=False)
    incomes = pa.array([None, 1, 1], pa.int64())
    table = pa.table({"age": ages, "income": incomes, "label": ["no", "no", "yes"]})
    parquet.write_table(table, tmp_path / "nulls.parquet")
    assert audit_scored(PROGRAM, tmp_path / "nulls.parquet").verdict == "equal"


KINDS = {
    "int64": (pa.int64(), (0, 1), [0, 1]),
    "int8": (pa.int8(), (0, 1), [0, 1]),
    "double for ints": (pa.float64(), (0, 1), [0.0, 1.0]),
    "bools": (pa.bool_(), (False, True), [False, True]),
    "floats": (pa.float64(), (0.5, 1.5), [0.5, 1.5]),
    "text": (pa.string(), ("a", "b"), ["a", "b"]),
    "large text": (pa.large_string(), ("a", "b"), ["a", "b"]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ("a", "b"), ["a", "b"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_every_arrow_type_are_compared_by_value(tmp_path, kind):
    arrow, classes, stored = KINDS[kind]
    program = Program(("x",), classes, (Clause((Interval(0, 1.0, None),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    for labels, different in ((stored, 0), (stored[::-1], 2)):
        table = pa.table({"x": [0.0, 1.0], "label": pa.array(labels, arrow)})
        parquet.write_table(table, tmp_path / "t.parquet")
        assert audit_scored(program, tmp_path / "t.parquet").different_rows == different


def test_kinds_of_labels_are_kept_apart_where_the_file_has_types(tmp_path):
    program = Program(("x",), (0, 1), (Clause((Interval(0, 1.0, None),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    for labels, kind in ((["0", "1"], "text"), ([False, True], "truth values")):
        parquet.write_table(pa.table({"x": [0.0, 1.0], "label": labels}), tmp_path / "t.parquet")
        found = audit_scored(program, tmp_path / "t.parquet")
        assert found.different_rows == 2
        assert found.reason.startswith(f"its labels are {kind}, the program's are numbers")


def test_a_csv_has_no_types_and_text_that_reads_as_the_label_is_the_label(tmp_path):
    clauses = (Clause((Interval(0, 1.0, None),)),)
    path = tmp_path / "t.csv"
    for classes, texts in (
        ((0, 1), "0 1"),
        ((0, 1), "0.0 1e0"),
        ((False, True), "False true"),
        ((0.5, 1.5), "0.5 1.50"),
    ):
        program = Program(("x",), classes, clauses, split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
        low, high = texts.split()
        path.write_text(f"x,label\n0,{low}\n1,{high}\n")
        assert audit_scored(program, path).verdict == "equal"
        path.write_text(f"x,label\n0,{high}\n1,{low}\n")
        assert audit_scored(program, path).different_rows == 2
    path.write_text("x,label\n0,0_0\n1, 1\n")
    assert audit_scored(Program(("x",), (0, 1), clauses, program.decision), path).different_rows == 2


def test_doubles_in_a_csv_are_read_to_the_last_bit(tmp_path):
    below = float(np.nextafter(0.1, 0))
    (tmp_path / "t.csv").write_text(
        f"age,income,label\n{below!r},1,no\n0.1,1,yes\n0.1000000000000000055511151231257827,1,yes\n"
    )
    assert audit_scored(PROGRAM, tmp_path / "t.csv").verdict == "equal"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_columns_may_have_other_names(tmp_path, ending):
    frame = many(50).rename(columns={"age": "AGE.1", "label": "predicted"})
    path = written(tmp_path, frame, ending)
    assert audit_scored(PROGRAM, path, "predicted", {"age": "AGE.1"}).verdict == "equal"
    with pytest.raises(BadInput, match=r"has no column 'age': it has 'AGE.1', .*--column FEATURE=COLUMN"):
        audit_scored(PROGRAM, path, "predicted")
    with pytest.raises(
        BadInput, match=r"no column 'label' of labels: it has .*'predicted'; say which holds them with --label"
    ):
        audit_scored(PROGRAM, path, None, {"age": "AGE.1"})
    with pytest.raises(BadInput, match="column of 'Age': the program has no such feature"):
        audit_scored(PROGRAM, path, "predicted", {"Age": "AGE.1"})


def test_a_feature_that_no_clause_tests_may_be_absent(tmp_path):
    assert audit_scored(PROGRAM, written(tmp_path, many(50).drop(columns="unasked"), ".csv")).verdict == "equal"


def test_a_program_without_conditions_needs_only_labels(tmp_path):
    program = Program(("x",), ("only",), (), Scorecard((0,), (), 0))
    (tmp_path / "t.csv").write_text("label\nonly\nother\n")
    found = audit_scored(program, tmp_path / "t.csv")
    assert (found.checked_rows, found.different_rows) == (2, 1)


BROKEN = {
    "a word among numbers": ("age,income,label\n1,1,yes\nold,1,no\n", "column 'age', row 2: 'old' is not a number"),
    "a field too many": ("age,income,label\n1,1,yes\n1,1,no,3\n", "t.csv"),
    "a field too many at once": ("age,income,label\n1,1,no,3\n1,1,no,3\n", "more fields than the header"),
    "a column twice": ("age,age,income,label\n1,1,1,no\n", "2 times"),
    "nothing": ("", "t.csv"),
    "not text": ("\0\xff", "t.csv"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_csv_is_refused_by_name(tmp_path, how):
    (tmp_path / "t.csv").write_bytes(BROKEN[how][0].encode("latin-1"))
    with pytest.raises(BadInput) as refused:
        audit_scored(PROGRAM, tmp_path / "t.csv")
    assert BROKEN[how][1] in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_files_that_are_absent_broken_or_of_text_are_refused(tmp_path):
    with pytest.raises(BadInput, match=r"absent\.parquet"):
        audit_scored(PROGRAM, tmp_path / "absent.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(BadInput, match=r"broken\.parquet"):
        audit_scored(PROGRAM, tmp_path / "broken.parquet")
    with pytest.raises(BadInput, match="ending"):
        audit_scored(PROGRAM, tmp_path / "table.xlsx")
    parquet.write_table(pa.table({"age": ["1"], "income": [1.0], "label": ["no"]}), tmp_path / "text.parquet")
    with pytest.raises(BadInput, match=r"text\.parquet: column 'age': '1' is not a number"):
        audit_scored(PROGRAM, tmp_path / "text.parquet")


def test_a_table_without_rows_is_not_run(tmp_path):
    found = audit_scored(PROGRAM, written(tmp_path, many(0), ".csv"))
    assert (found.verdict, found.reason, found.checked_rows) == ("not run", "it has no rows", 0)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    "program",
    [PROGRAM, Program(PROGRAM.features, PROGRAM.classes, PROGRAM.clauses, Scorecard((0, 1), ((2, 0), (0, 1)), 3))],
)
def test_the_c_scorer_and_the_reference_count_the_same(tmp_path, monkeypatch, program):
    frame = table_of(program, many(5000).iloc[:, :3].to_numpy())
    frame.loc[::7, "label"] = "no"
    path = written(tmp_path, frame, ".parquet")
    monkeypatch.setattr(table_batches, "ARROW_ROWS", 1000)
    by_reference = audit_scored(program, path)
    monkeypatch.setattr(scored_answers, "BUILD_AFTER", 1500)
    by_scorer = audit_scored(program, path)
    assert by_reference.engine == "evaluate_many"
    assert by_scorer.engine.startswith("C scorer, its text proved, ")
    assert (by_reference.moves, by_reference.first_different_rows) == (by_scorer.moves, by_scorer.first_different_rows)
    assert by_reference.different_rows > 0


def test_a_column_of_garbage_labels_stays_bounded(tmp_path):
    frame = many(5000)
    frame["label"] = [f"label {i}" for i in range(5000)]
    found = audit_scored(PROGRAM, written(tmp_path, frame, ".parquet"))
    assert found.different_rows == 5000
    assert len(found.moves.moves) == 20
    assert len(found.first_different_rows) == 10


def fill(database, frame, name, wrong=()):
    """The frame as a table called `name`, with what the program answers, and `maybe` in the `wrong` rows."""
    rows = frame[["age", "income"]].to_numpy(dtype=np.float64).copy()
    if not database.holds_infinity:
        rows[np.isinf(rows)] = 7.0
    labels = evaluate_many(PROGRAM, np.column_stack([rows[:, 0], rows[:, 0], rows[:, 1]])).labels
    database.insert("numbers", ["age", "income"], rows)
    numbers = {"maybe": [*wrong, -1], "yes": [*np.flatnonzero(labels == "yes").tolist(), -1]}
    cases = " ".join(f"WHEN gbfl_row IN ({', '.join(map(str, n))}) THEN '{label}'" for label, n in numbers.items())
    query = f"SELECT age, income, CASE {cases} ELSE 'no' END AS label FROM numbers"
    engine = "ENGINE = Memory " if database.dialect == "clickhouse" else ""
    database.execute(f"CREATE TABLE {name} {engine}AS {query}")


def test_a_table_in_a_database_is_read_page_by_page_and_left_alone(monkeypatch, database):
    monkeypatch.setattr(scored_database, "PAGE_ROWS", 100)
    fill(database, many(450), "scored")
    before = database.fetch("SELECT * FROM scored ORDER BY 1, 2, 3")
    found = audit_scored(PROGRAM, (database, "scored"))
    assert (found.verdict, found.checked_rows, found.what) == ("equal", 450, "scored")
    assert database.version in found.engine
    assert repr(database.fetch("SELECT * FROM scored ORDER BY 1, 2, 3")) == repr(before)
    fill(database, many(450), "tampered", wrong=(0, 99, 100, 449))
    found = audit_scored(PROGRAM, (database, "tampered"))
    assert (found.verdict, found.checked_rows, found.different_rows) == ("different", 450, 4)
    assert {row["deployed"] for row in found.first_different_rows} == {"maybe"}
    with pytest.raises(
        BadInput, match=r"cannot be read, its columns should be 'age', 'income', 'guess'.*--label COLUMN"
    ):
        audit_scored(PROGRAM, (database, "scored"), "guess")


def test_truth_values_are_numbers_only_where_the_database_has_no_others():
    program = Program(
        ("x",), (False, True), (Clause((Interval(0, 1.0, None),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    for dialect, verdict in (("sqlite", "equal"), ("duckdb", "different")):
        if availability(dialect):
            continue
        database = scratch(dialect)
        database.execute("CREATE TABLE t AS SELECT 1.5 AS x, 1 AS label")
        assert audit_scored(program, (database, "t")).verdict == verdict
        database.close()


def test_text_in_a_column_of_numbers_is_refused_in_a_database_too():
    database = scratch("sqlite")
    database.execute("CREATE TABLE t AS SELECT '1.5' AS age, 1.0 AS income, 'no' AS label")
    with pytest.raises(BadInput, match=r"t: column 'age': '1\.5' is not a number"):
        audit_scored(PROGRAM, (database, "t"))
    database.close()


def test_a_float32_column_of_postgres_keeps_its_last_bit():
    if reason := availability("postgres"):
        pytest.skip(reason)
    database = scratch("postgres")
    program = Program(
        ("x",), (0, 1), (Clause((Interval(0, 0.1, None, "neither"),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    database.execute("CREATE TABLE t AS SELECT CAST(0.1 AS REAL) AS x, 1 AS label")
    assert audit_scored(program, (database, "t")).verdict == "equal", "the float32 next to 0.1 is above it"
    database.close()


def with_probabilities(program, frame):
    answers = evaluate_many(program, frame[list(program.features)].to_numpy())
    for place, label in enumerate(program.classes):
        frame[f"p_{label}"] = answers.probabilities[:, place]
    return frame


RULES = Program(PROGRAM.features, PROGRAM.classes, PROGRAM.clauses, Scorecard((0, 1), ((2, 0), (0, 1)), 3))


@pytest.mark.parametrize("program", [PROGRAM, RULES], ids=["tree", "rule set"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("drift", [False, True])
def test_probabilities_beside_the_labels_are_compared_on_request(tmp_path, program, ending, drift):
    frame = with_probabilities(program, table_of(program, many(500).iloc[:, :3].to_numpy()))
    path = written(tmp_path, frame, ending)
    found = audit_scored(program, path, options=ScoredOptions(drift, True))
    assert (found.verdict, found.compared) == ("equal", "labels, none different; probabilities, none different")
    frame.loc[7, "p_yes"] += 1e-9
    frame.loc[9, "p_no"] = np.nan
    path = written(tmp_path, frame, ending)
    assert audit_scored(program, path).verdict == "equal", "nobody asked"
    found = audit_scored(program, path, options=ScoredOptions(drift, True))
    assert (found.verdict, found.different_rows, found.moves) == ("different", 2, None)
    assert found.compared == "labels, none different; probabilities, 2 different"
    assert found.reason.startswith("row 8: the probabilities [")
    assert "np." not in found.reason
    assert [row["row_number"] for row in found.first_different_rows] == [8, 10]
    with pytest.raises(BadInput, match="p_no"):
        audit_scored(
            program, written(tmp_path, frame.drop(columns="p_no"), ending), options=ScoredOptions(probabilities=True)
        )


def test_probabilities_in_a_table_of_a_database_are_compared():
    database = scratch("sqlite")
    frame = with_probabilities(PROGRAM, many(50))
    frame.loc[3, "p_no"] = 0.125
    rows = frame[["age", "income", "p_no", "p_yes"]].to_numpy(dtype=np.float64)
    database.insert("numbers", ["age", "income", "p_no", "p_yes"], rows)
    yes = [*np.flatnonzero(frame["label"] == "yes").tolist(), -1]
    label = f"CASE WHEN gbfl_row IN ({', '.join(map(str, yes))}) THEN 'yes' ELSE 'no' END"
    database.execute(f"CREATE TABLE scored AS SELECT *, {label} AS label FROM numbers")
    found = audit_scored(PROGRAM, (database, "scored"), options=ScoredOptions(probabilities=True))
    assert (found.different_rows, found.compared) == (1, "labels, none different; probabilities, 1 different")
    database.close()
