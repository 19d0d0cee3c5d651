"""Tables are scored batch by batch: the cut, the threads and the file's format change nothing that comes out."""

import subprocess
import sys
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from gbfl_compile.backends import backend, emit, load_artifact, write_artifact
from gbfl_compile.backends.score import reference_predictor, score_file
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.tables.read import read_table
from gbfl_compile.tables.write import in_order
from gbfl_compile.version import install_command
from tests.programs import programs_with_rows

CLAUSES = (Clause((Interval(0, 0.1, 50.0),)), Clause((Interval(2, None, 1.5, if_missing=True),)))
FEATURES = ("age", "unasked", "income")
TREE = Program(FEATURES, ("no", "yes"), CLAUSES, split(0, split(1, leaf(0.25, 0.75), leaf(1.0, 0.0)), leaf(0.5, 0.5)))
RULES = Program(FEATURES, (7, 8, 9), CLAUSES, Scorecard((0, 1, 0), ((2, 0, 1), (0, 1, 3)), 3))
VALUES = [np.nan, 0.0, -0.0, 0.1, np.nextafter(0.1, 1), np.nextafter(0.1, 0), 1.5, 49.9, 50.0, np.inf, -np.inf, 5e-324]
ENDINGS = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")


def some_rows(count, seed=0):
    return np.random.default_rng(seed).choice(VALUES, size=(count, 3))


def written(folder, frame, ending, name="rows"):
    """`.arrow` is the stream format here, `.feather` the file format, both in batches of their own size."""
    path = folder / f"{name}{ending}"
    if ending == ".parquet":
        frame.to_parquet(path, index=False, row_group_size=90)
    elif ending == ".arrow":
        table = pa.Table.from_pandas(frame, preserve_index=False)
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, 77)
    elif ending == ".feather":
        feather.write_feather(frame, path, chunksize=77)
    else:
        frame.to_csv(path, index=False)
    return path


def frame_of(rows, features=FEATURES):
    frame = pd.DataFrame(rows, columns=list(features))
    frame.insert(0, "key of row", [f"row {number}" for number in range(len(rows))])
    return frame


def expected(program, rows):
    answers = evaluate_many(program, rows)
    shares = {f"p_{label}": answers.probabilities[:, c].tolist() for c, label in enumerate(program.classes)}
    return {"key of row": [f"row {n}" for n in range(len(rows))], "label": answers.labels.tolist(), **shares}


def got(path):
    return {name: column.tolist() for name, column in read_table(path, text=("key of row",)).items()}


@pytest.fixture(scope="module")
def c_predictors(tmp_path_factory):
    if (reason := backend("c").available().cannot_run) is not None:
        pytest.skip(reason)
    made = {}
    for program in (TREE, RULES):
        folder = tmp_path_factory.mktemp("c")
        write_artifact(emit(program, "c"), folder)
        made[program.classes] = load_artifact(folder / "c")
    return made


@pytest.mark.parametrize("program", [TREE, RULES], ids=["tree", "rule set"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("batch_rows", "jobs"), [(1, 1), (1, 3), (64, 1), (64, 4), (100_000, 1), (100_000, 2)])
def test_the_c_kernel_answers_as_the_program_does_however_rows_are_cut(
    c_predictors, tmp_path, program, ending, batch_rows, jobs
):
    rows = some_rows(500)
    data = written(tmp_path, frame_of(rows), ending)
    out = tmp_path / f"scored{ending}"
    predictor = c_predictors[program.classes]
    assert score_file(predictor, data, out, ("key of row",), jobs, batch_rows) == 500
    found, wanted = got(out), expected(program, rows)
    if program is RULES:  # exp is libm's in C and numpy's here: the language states a bound for it, not equality
        for label in program.classes:
            assert np.allclose(found.pop(f"p_{label}"), wanted.pop(f"p_{label}"), rtol=1e-14, atol=0)
    assert found == wanted


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_float32_scorer_rounds_rows_as_its_predictor_does(tmp_path, ending):
    if (reason := backend("c").available().cannot_run) is not None:
        pytest.skip(reason)
    write_artifact(emit(TREE, "c", options={"dtype": "float32"}), tmp_path)
    predictor = load_artifact(tmp_path / "c")
    rows = np.append(some_rows(300), [[1e300, -1e300, 1.5000000001], [0.1, 0.1, 1e-320]], axis=0)
    score_file(predictor, written(tmp_path, frame_of(rows), ending), tmp_path / "s.parquet", batch_rows=64)
    found, answers = read_table(tmp_path / "s.parquet"), predictor.answer(rows)
    assert found["label"].tolist() == answers.labels.tolist()
    assert (found[["p_no", "p_yes"]].to_numpy() == answers.probabilities).all()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("quick", [False, True], ids=["reference", "C"])
def test_a_program_without_conditions_answers_every_row(tmp_path, ending, quick):
    if quick and (reason := backend("c").available().cannot_run) is not None:
        pytest.skip(reason)
    program = Program(FEATURES, ("no", "yes"), (), leaf(0.25, 0.75))
    predictor = reference_predictor(program)
    if quick:
        write_artifact(emit(program, "c"), tmp_path)
        predictor = load_artifact(tmp_path / "c")
    data = written(tmp_path, frame_of(some_rows(200)), ending)
    assert score_file(predictor, data, tmp_path / "s.csv", batch_rows=64) == 200
    assert (tmp_path / "s.csv").read_text() == "label,p_no,p_yes\n" + 200 * "yes,0.25,0.75\n"


@settings(max_examples=40)
@given(programs_with_rows(), st.integers(1, 40), st.integers(1, 3), st.sampled_from(ENDINGS), st.sampled_from(ENDINGS))
def test_every_program_scores_a_file_as_it_scores_the_rows(
    tmp_path_factory, drawn, batch_rows, jobs, ending, out_ending
):
    program, rows = drawn
    if "key of row" in program.features:
        return
    folder = tmp_path_factory.mktemp("scored")
    matrix = np.array(rows, dtype=np.float64)
    data = written(folder, frame_of(matrix, program.features), ending)
    out = folder / f"scored{out_ending}"
    score_file(reference_predictor(program), data, out, ("key of row",), jobs, batch_rows)
    found, wanted = got(out), expected(program, matrix)
    if out_ending.startswith(".csv"):  # where everything is text, a label is what reads as itself
        found["label"], wanted["label"] = [str(v) for v in found["label"]], [str(v) for v in wanted["label"]]
    assert list(found) == list(wanted)
    assert found == wanted


@pytest.mark.parametrize("target", ["python", "onnx", "sql:duckdb", "sql:sqlite"])
def test_every_kind_of_artifact_takes_batches(tmp_path, target):
    if (reason := backend(target).available().cannot_run) is not None:
        pytest.skip(reason)
    rows = some_rows(200)
    write_artifact(emit(TREE, target), tmp_path)
    predictor = load_artifact(tmp_path / target.replace(":", "-"))
    data = written(tmp_path, frame_of(rows), ".parquet")
    score_file(predictor, data, tmp_path / "s.parquet", ("key of row",), 2, 64)
    assert got(tmp_path / "s.parquet") == expected(TREE, rows)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_rows_make_the_same_bytes_or_the_same_table(tmp_path, ending):
    data = written(tmp_path, frame_of(some_rows(300)), ".parquet")
    made = []
    for number, (batch_rows, jobs) in enumerate([(7, 1), (64, 3), (1000, 2)]):
        out = tmp_path / f"{number}{ending}"
        score_file(reference_predictor(RULES), data, out, ("key of row",), jobs, batch_rows)
        made.append(out.read_bytes() if ending.startswith(".csv") else read_table(out).to_csv())
    assert made[0] == made[1] == made[2]


COLUMNS = {
    "double": pa.array([0.1, 2.0, np.inf, np.nan, None]),
    "float": pa.array([0.1, 2.0, np.inf, np.nan, None], pa.float32()),
    "half": pa.array(np.array([0.1, 2.0, np.inf, np.nan, 0.0], dtype=np.float16)),
    "int64": pa.array([0, 1, 49, 50, None]),
    "int64 beyond 2**53": pa.array([2**53 + 1, 1, 49, -(2**63), 2**63 - 1]),
    "uint64": pa.array([0, 1, 49, 50, 2**64 - 1], pa.uint64()),
    "truth": pa.array([True, False, None, True, False]),
    "decimal": pa.array([Decimal("0.10"), Decimal("49.99"), Decimal("50.00"), None, Decimal("0.09")]),
    "dictionary of doubles": pa.array([0.1, 0.1, None, 50.0, 0.0]).dictionary_encode(),
    "dictionary of integers": pa.array([1, 1, None, 50, 0]).dictionary_encode(),
    "nothing": pa.nulls(5),
    "text, all of it missing": pa.array([None] * 5, pa.string()),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
@pytest.mark.parametrize("quick", [False, True], ids=["reference", "C"])
def test_columns_of_every_type_are_the_numbers_they_hold(c_predictors, tmp_path, kind, ending, quick):
    column = COLUMNS[kind]
    plain = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    doubles = [np.nan if value is None else float(value) for value in plain.to_pylist()]
    table = pa.table({"income": column, "age": column, "unasked": column})
    path = tmp_path / f"t{ending}"
    if ending == ".parquet":
        parquet.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    predictor = c_predictors[TREE.classes] if quick else reference_predictor(TREE)
    score_file(predictor, path, tmp_path / "s.parquet", batch_rows=2)
    answers = evaluate_many(TREE, np.array([doubles, doubles, doubles]).T)
    assert read_table(tmp_path / "s.parquet")["label"].tolist() == answers.labels.tolist()


@pytest.mark.parametrize("batch_rows", [1, 10, 64, 100_000])
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("column", ["age", "unasked"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_word_far_down_is_named_with_its_row_and_nothing_is_left(tmp_path, batch_rows, jobs, column, ending):
    frame = frame_of(some_rows(400)).astype({column: object})
    frame.loc[377, column] = "old"
    if ending == ".parquet":
        frame[column] = frame[column].map(lambda value: value if value == "old" else None)
    data = written(tmp_path, frame, ending)
    (tmp_path / "s.csv").write_text("as before")
    with pytest.raises(BadInput, match=rf"rows{ending}: column '{column}', row 378: 'old' is not a number"):
        score_file(reference_predictor(TREE), data, tmp_path / "s.csv", jobs=jobs, batch_rows=batch_rows)
    assert (tmp_path / "s.csv").read_text() == "as before"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"rows{ending}", "s.csv"]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 4, 100])
@pytest.mark.parametrize(
    ("values", "row"),
    [
        (["True", "", "1.5", "2"], 1),
        (["1.5", "", "False", "2"], 3),
        (["True", "True", "x", "2"], 1),
        (["1", "2", "x", "True"], 3),
    ],
)
def test_truth_values_among_numbers_are_refused_however_rows_are_cut(tmp_path, batch_rows, values, row):
    lines = ["age,unasked,income", *(f"{value},1,1" for value in values)]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(BadInput, match=rf"column 'age', row {row}: "):
        score_file(reference_predictor(TREE), tmp_path / "d.csv", tmp_path / "s.csv", batch_rows=batch_rows)


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_truth_values_and_large_integers_are_numbers_however_rows_are_cut(tmp_path, batch_rows):
    lines = ["age,unasked,income"]
    lines += ["True,99999999999999999999,1", ",1.5,18446744073709551615", "False,,-1", "TRUE,7,9007199254740993"]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    assert score_file(reference_predictor(TREE), tmp_path / "d.csv", tmp_path / "s.csv", batch_rows=batch_rows) == 4
    rows = np.array([[1.0, 1e20, 1.0], [np.nan, 1.5, 2.0**64], [0.0, np.nan, -1.0], [1.0, 7.0, 2.0**53]])
    assert read_table(tmp_path / "s.csv")["label"].tolist() == evaluate_many(TREE, rows).labels.tolist()


@pytest.mark.parametrize("lines", ["age,income\n018,2e3\n,5\n", "age,income\n"], ids=["rows", "none"])
def test_a_key_from_csv_that_is_a_feature_too_is_a_number_where_columns_have_types(tmp_path, lines):
    """A scored table is audited by its features: text would not do."""
    program = Program(
        ("age", "income"), ("no", "yes"), (Clause((Interval(0, 18.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    (tmp_path / "rows.csv").write_text(lines)
    score_file(reference_predictor(program), tmp_path / "rows.csv", tmp_path / "out.parquet", ("age",))
    assert parquet.read_schema(tmp_path / "out.parquet").field("age").type == pa.float64()
    found = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert [value for value in found["age"] if value == value] == ([18.0] if "018" in lines else [])
    assert found["label"] == (["yes", "no"] if "018" in lines else [])


def test_a_key_that_is_a_feature_too_is_carried_as_written(tmp_path):
    (tmp_path / "d.csv").write_text("age,unasked,income\n0.10,1,1\nNA,2,2\n50.000,3,3\n")
    score_file(reference_predictor(TREE), tmp_path / "d.csv", tmp_path / "s.csv", ("age",))
    assert [line.split(",")[:2] for line in (tmp_path / "s.csv").read_text().splitlines()] == [
        ["age", "label"],
        ["0.10", "yes"],
        ["NA", "no"],
        ["50.000", "no"],
    ]


KEYS = pa.table(
    {
        "number": pa.array([2**53 + 1, None, 3, 4]),
        "day": pa.array([0, None, 86_400_000, 1], pa.timestamp("ms")),
        "name": pa.array(["a", None, 'say "b", c', "ä"]),
        "kind": pa.array(["x", "x", None, "y"]).dictionary_encode(),
        "sum": pa.array([Decimal("1.10"), None, Decimal("2.00"), Decimal("0.05")]),
        "sure": pa.array([True, None, False, True]),
        **{name: pa.array([0.1, 1.0, 2.0, 50.0]) for name in FEATURES},
    }
)
KEY_NAMES = ("number", "day", "name", "kind", "sum", "sure")


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_keys_of_every_type_are_carried_and_written_as_text_the_same_in_every_batch(tmp_path, batch_rows):
    parquet.write_table(KEYS, tmp_path / "d.parquet")
    score_file(reference_predictor(TREE), tmp_path / "d.parquet", tmp_path / "s.csv", KEY_NAMES, 2, batch_rows)
    assert (tmp_path / "s.csv").read_text().splitlines() == [
        "number,day,name,kind,sum,sure,label,p_no,p_yes",
        "9007199254740993,1970-01-01 00:00:00,a,x,1.10,True,yes,0.25,0.75",
        ",,,x,,,yes,0.25,0.75",
        '3,1970-01-02 00:00:00,"say ""b"", c",,2.00,False,no,1.0,0.0',
        "4,1970-01-01 00:00:00.001000,ä,y,0.05,True,no,0.5,0.5",
    ]
    score_file(reference_predictor(TREE), tmp_path / "d.parquet", tmp_path / "s.parquet", KEY_NAMES, 2, batch_rows)
    carried = parquet.read_table(tmp_path / "s.parquet").select(KEY_NAMES)
    assert carried.to_pylist() == KEYS.select(KEY_NAMES).to_pylist()
    assert [part.type for part in carried.schema] == [KEYS.schema.field(name).type for name in KEY_NAMES]
    score_file(reference_predictor(TREE), tmp_path / "d.parquet", tmp_path / "s.arrow", KEY_NAMES, 2, batch_rows)
    with pa.ipc.open_file(tmp_path / "s.arrow") as file:
        assert file.read_all().select(KEY_NAMES).to_pylist() == KEYS.select(KEY_NAMES).to_pylist()


@pytest.mark.parametrize("classes", [("a", "b"), (0, 1), (False, True), (0.5, 1.5)])
@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather"])
def test_the_type_of_the_label_is_the_classes_own_even_without_rows(tmp_path, classes, rows, ending):
    program = Program(FEATURES, classes, CLAUSES, TREE.decision)
    data = written(tmp_path, frame_of(np.zeros((rows, 3))).drop(columns="key of row"), ".parquet")
    out = tmp_path / f"s{ending}"
    score_file(reference_predictor(program), data, out)
    schema = parquet.read_schema(out) if ending == ".parquet" else pa.ipc.open_file(out).schema
    assert schema.names == ["label", *(f"p_{label}" for label in classes)]
    assert schema.field("label").type == pa.array(classes).type
    assert len(read_table(out)) == rows


def test_csv_needs_no_pyarrow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = some_rows(50)
    written(tmp_path, frame_of(rows), ".csv")
    save(TREE, tmp_path / "p.json")
    script = (
        "import sys; sys.modules['pyarrow'] = None; from gbfl_compile.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "score", "p.json", "rows.csv", "-o", "s.csv", "--key", "key of row"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).returncode == 0
    assert got(tmp_path / "s.csv") == expected(TREE, rows)
    command[command.index("s.csv")] = "s.parquet"
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 3
    assert install_command("parquet") in refused.stderr


def test_a_program_scores_without_being_compiled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = some_rows(50)
    written(tmp_path, frame_of(rows), ".csv")
    save(TREE, tmp_path / "p.json")
    assert main(["score", "p.json", "rows.csv", "-o", "s.csv", "--key", "key of row", "--jobs", "2"]) == 0
    assert "50 rows scored by" in capsys.readouterr().out
    assert got(tmp_path / "s.csv") == expected(TREE, rows)
    assert main(["score", "p.json", "rows.csv", "-o", "s.csv", "--name", "model"]) == 2
    assert main(["score", "p.json", "rows.csv", "-o", "s.csv", "--jobs", "0"]) == 2


def test_a_file_may_be_scored_into_itself(tmp_path):
    rows = some_rows(200)
    data = written(tmp_path, frame_of(rows), ".parquet")
    score_file(reference_predictor(TREE), data, data, ("key of row",), 2, 10)
    assert got(data) == expected(TREE, rows)


def test_broken_and_old_arrow_files_are_refused(tmp_path):
    data = written(tmp_path, frame_of(some_rows(50)), ".feather")
    whole = data.read_bytes()
    for content, message in (
        (whole[:-300], "cannot be read|rows"),
        (b"FEA1" + whole, "version 1"),
        (b"", "rows.feather"),
    ):
        data.write_bytes(content)
        with pytest.raises(BadInput, match=message):
            score_file(reference_predictor(TREE), data, tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


def test_work_comes_back_in_order_and_the_first_error_is_the_one_raised():
    before = set(threading.enumerate())

    def odd(number):
        if number in (50, 51):
            raise ValueError(f"item {number}")
        return number * number

    def items():
        yield from range(52)
        raise OSError("fetching failed")

    for jobs, threads in ((1, 0), (2, 0), (2, 2), (8, 8)):
        made = []
        with pytest.raises(ValueError, match="item 50"):
            made += in_order(items(), odd, jobs, threads)
        assert list(in_order(iter(range(50)), odd, jobs, threads)) == [number * number for number in range(50)]
    assert not set(threading.enumerate()) - before  # other tests may have left some
