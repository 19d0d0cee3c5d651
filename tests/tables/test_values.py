"""The table that a program was mined from works with every command, unchanged."""

import datetime

import numpy as np
import pytest

from gbfl_compile import check, emit, explain_row
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split
from gbfl_compile.tables.values import encoded_rows, value_rows

TREE = split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
CLAUSES = (Clause((Interval(0, 2.0), OneOf(1, ("a", "b")), Interval(2, 19_000.0))),)
WORDS = Program(("age", "grade", "opened"), ("no", "yes"), CLAUSES, TREE, kinds=("number", "category", "date"))
CSV = "age,grade,opened\n3,b,2024-03-01\n?,c,\n1,,1970-01-02\n"


def numbers(mark):
    """A program on numbers whose table had a text for a missing one."""
    columns = [{"name": "age", "kind": "number", "missing_texts": [mark]}]
    return Program(
        ("age",), ("no", "yes"), (Clause((Interval(0, 2.0),)),), TREE, {"mining": {"data": {"columns": columns}}}
    )


def test_words_and_dates_of_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    assert value_rows(path, WORDS) == [
        [3.0, "b", datetime.date(2024, 3, 1)],
        [None, "c", None],
        [1.0, None, datetime.date(1970, 1, 2)],
    ]
    expected = [[3.0, 2.0, 19783.0], [np.nan, 0.0, np.nan], [1.0, np.nan, 1.0]]
    assert np.array_equal(encoded_rows(path, WORDS), np.array(expected), equal_nan=True)


def test_a_check_runs_the_rows_of_a_table_with_words(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    artifact = emit(WORDS, "python")
    (without,), (with_rows,) = (check(WORDS, artifact, data=data).targets for data in (None, path))
    assert with_rows.verdict == "equal"
    assert with_rows.execution.rows == without.execution.rows + 3


@pytest.mark.parametrize("mark", ["?", "not asked"])
def test_a_text_that_meant_missing_when_mining_still_does(mark, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"age\n3\n{mark}\n")
    program = numbers(mark)
    assert np.array_equal(encoded_rows(path, program), np.array([[3.0], [np.nan]]), equal_nan=True)
    assert explain_row(program, path, row_number=2).label == "no"
    (found,) = check(program, emit(program, "python"), data=path).targets
    assert found.verdict == "equal"


def test_another_text_is_still_no_number(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("age\n3\nold\n")
    with pytest.raises(BadInput, match="row 2: 'age' is a number: 'old' is a text"):
        encoded_rows(path, numbers("?"))
