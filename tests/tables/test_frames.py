"""One table as pandas, Polars or Arrow has it, with all sorts of names: every verb takes it alike, or names what is wrong."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gbfl_compile import BadInput, check, compile_program, evaluate, explain_row, lint, mine, score
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split

polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")

PROGRAM = Program(
    ("word", "count", "opened"),
    ("no", "yes"),
    (Clause((OneOf(0, ("a", "é")), Interval(1, 2.0))), Clause((Interval(2, 19000.0, if_missing=True),))),
    split(0, leaf(0.1, 0.9), split(1, leaf(0.3, 0.7), leaf(0.9, 0.1))),
    kinds=("category", "number", "date"),
)
ROWS = [
    ("a", 2, datetime.date(2024, 1, 1)),
    ("a", 1, datetime.date(1999, 1, 1)),
    ("é", None, None),
    (None, 5, datetime.date(1999, 1, 1)),
    ("b", 9, datetime.date(2030, 1, 1)),
]
EXPECTED = [evaluate(PROGRAM, row).label for row in ROWS]


def arrow():
    return pa.table(
        {
            "word": pa.array([row[0] for row in ROWS]).dictionary_encode(),
            "count": pa.array([row[1] for row in ROWS], pa.int64()),
            "opened": pa.array([row[2] for row in ROWS], pa.date32()),
        }
    )


FRAMES = {
    "pandas": lambda: arrow().to_pandas(),
    "pandas over Arrow": lambda: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: polars.from_arrow(arrow()),
    "arrow": arrow,
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    compile_program(PROGRAM, ["python"], folder)
    return folder


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_every_make_of_a_table_is_scored_and_explained_alike(make, build):
    assert set(EXPECTED) == {"no", "yes"}
    for source in (PROGRAM, build / "python"):
        assert score(source, make()).table["label"].tolist() == EXPECTED
    assert [explain_row(PROGRAM, make(), row_number=number).label for number in range(1, 6)] == EXPECTED
    assert check(PROGRAM, build, data=make()).verdict == "equal"
    assert isinstance(lint(PROGRAM, make()), tuple | list)


NUMBERS = Program(("0", "1"), ("no", "yes"), (Clause((Interval(1, 2.0),)),), split(0, leaf(0.1, 0.9), leaf(0.9, 0.1)))


def test_names_that_are_numbers_are_the_features_of_these_names():
    frame = pd.DataFrame([[1.0, 3.0], [3.0, 1.0]])
    assert score(NUMBERS, frame).table["label"].tolist() == ["yes", "no"]
    assert explain_row(NUMBERS, frame, row_number=2).label == "no"


@pytest.mark.parametrize("make", [lambda frame: frame, pa.Table.from_pandas], ids=["pandas", "arrow"])
def test_a_column_that_is_there_twice_is_named(make):
    frame = make(pd.DataFrame([[1.0, 3.0, 4.0]], columns=["a", "b", "c"]))
    names = ["0", "1", "1"]
    frame = frame.rename_columns(names) if hasattr(frame, "rename_columns") else frame.set_axis(names, axis=1)
    for verb in (
        lambda: score(NUMBERS, frame),
        lambda: explain_row(NUMBERS, frame),
        lambda: mine(frame, "0", train="gbm"),
    ):
        with pytest.raises(BadInput, match="the column '1' appears 2 times, rename one"):
            verb()


def test_a_column_that_is_not_needed_may_be_there_twice():
    frame = pd.DataFrame([[1.0, 3.0, 4.0, 5.0]], columns=["0", "1", "note", "note"])
    assert score(NUMBERS, frame).table["label"].tolist() == ["yes"]


def test_what_is_no_table_yet_is_refused_by_its_type():
    lazy = polars.DataFrame({"0": [1.0], "1": [3.0]}).lazy()
    for verb in (
        lambda: score(NUMBERS, lazy),
        lambda: mine(lazy, "0", train="gbm"),
        lambda: explain_row(NUMBERS, lazy),
    ):
        with pytest.raises(BadInput, match="LazyFrame: collect it first"):
            verb()


def test_every_make_of_a_table_is_mined_into_the_same_program():
    random = np.random.default_rng(0)
    plain = pa.table(
        {
            "word": pa.array(random.choice(["a", "b", "c"], 80)),
            "size": pa.array(np.where(random.random(80) < 0.1, None, random.integers(0, 9, 80)), pa.int64()),
            "label": pa.array(random.choice(["no", "yes"], 80)),
        }
    )
    makes = (plain, plain.to_pandas(), polars.from_arrow(plain))
    mined = [mine(make, "label", train="gbm", clauses=2, baselines=False, note=lambda _: None) for make in makes]
    assert (
        len({json.dumps([each.program.metadata["mining"]["data"], str(each.program.clauses)]) for each in mined}) == 1
    )
