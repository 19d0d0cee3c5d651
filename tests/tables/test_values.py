"""The table that a program was mined from works with every command, unchanged."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from gbfl_compile import check, emit, evaluate, explain_row, report, score
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
    with pytest.raises(BadInput, match="column 'age', row 2: 'old' is not a number"):
        encoded_rows(path, numbers("?"))


SIDES = {
    "number": (Interval(0, 2.0), ("3", " 3", "1_000", "-inf", "Infinity", "?", " ", "NA", "3,5", "\u0663", "TRUE", "9" * 400)),
    "category": (OneOf(0, ("?", "", "NA", "1", "true", "2024-01-02"), negated=True), ("a", "", " ", "?", "NA", "1", "1.0")),
    "boolean": (OneOf(0, ("true",)), ("TRUE", " true", "false ", "1", "0", "1.0", "yes", "?", "", "NA", " ")),
    "date": (Interval(0, 19_724.0), ("2024-01-02", " 2024-01-02", "2024-01-02T00:00", "02.01.2024", "?", "", "NaT")),
    "timestamp": (Interval(0, 19_724.0 * 86_400e6), ("2024-01-02", " 2024-01-02 10:00", "2024-01-02T10:00:00Z", "?", "")),
}  # fmt: skip
TYPED = {
    "whole numbers": pd.Series([1, 3]),
    "whole numbers, one missing": pd.Series([1, None], dtype="Int64"),
    "fractions": pd.Series([1.0, 0.5]),
    "truths": pd.Series([True, False]),
    "truths, one missing": pd.Series([True, None], dtype=object),
    "decimals": pd.Series([Decimal("1.50"), Decimal("3")], dtype=object),
    "dates": pd.Series([datetime.date(2024, 1, 2), None], dtype=object),
    "timestamps": pd.Series([datetime.datetime(2024, 1, 2), datetime.datetime(2023, 1, 1)]),
    "categories that are numbers": pd.Series(pd.Categorical([1, 3])),
    "categories that are truths": pd.Series(pd.Categorical([True, False])),
}


def one_feature(kind, atom):
    """A program that answers by one value."""
    return Program(("v",), ("no", "yes"), (Clause((atom,)),), TREE, kinds=(kind,))


def answered(command):
    """Labels, or that the table is refused."""
    try:
        return command()
    except BadInput:
        return "refused"


def tables(values, path):
    """The values as a DataFrame and as Parquet."""
    frame = pd.DataFrame({"v": values, "w": "x"})
    frame.to_parquet(path)
    return frame, path


def assert_read_alike(program, table, tmp_path):
    """Scored and read for a check, a row has one answer."""

    def scored():
        if hasattr(table, "columns"):
            return score(program, table).table.label.tolist()
        score(program, table, tmp_path / "scored.csv")
        return pd.read_csv(tmp_path / "scored.csv").label.tolist()

    read = answered(lambda: [evaluate(program, row).label for row in value_rows(table, program)])
    assert read == answered(scored)


@pytest.mark.parametrize("kind", SIDES)
def test_texts_are_read_as_they_are_scored(kind, tmp_path):
    atom, texts = SIDES[kind]
    program = one_feature(kind, atom)
    for text in texts:
        path = tmp_path / "rows.csv"
        path.write_text(f'v,w\n"{text}",x\n', encoding="utf-8")
        for table in (path, *tables([text], tmp_path / "rows.parquet")):
            assert_read_alike(program, table, tmp_path)


@pytest.mark.parametrize("values", TYPED.values(), ids=TYPED)
def test_columns_with_types_are_read_as_they_are_scored(values, tmp_path):
    for kind, (atom, _) in SIDES.items():
        for table in tables(values, tmp_path / "rows.parquet"):
            assert_read_alike(one_feature(kind, atom), table, tmp_path)


def test_a_category_of_whole_numbers_is_its_digits_for_every_command(tmp_path):
    program = one_feature("category", OneOf(0, ("1",)))
    table, path = tables([1, 2], tmp_path / "rows.parquet")
    assert value_rows(table, program) == value_rows(path, program) == [["1"], ["2"]]
    assert explain_row(program, path).label == "yes"
    (found,) = check(program, emit(program, "python"), data=path).targets
    assert found.verdict == "equal"


def test_what_no_rule_asks_may_be_absent_or_of_another_kind(tmp_path):
    program = Program(("age", "spare"), ("no", "yes"), (Clause((Interval(0, 2.0),)),), TREE)
    words = Program(("age", "spare"), ("no", "yes"), program.clauses, TREE, kinds=("number", "date"))
    assert value_rows(pd.DataFrame({"age": [3], "spare": ["soon"]}), words) == [[3.0, None]]
    path = tmp_path / "rows.csv"
    path.write_text("age\n3\n")
    for row in (path, {"age": 3}, pd.DataFrame({"age": [3]}), pd.Series({"age": 3})):
        for each in (program, words):
            assert explain_row(each, row).label == "yes"
            assert report(each, tmp_path / "report.html", row=row)
    assert report(program, tmp_path / "report.html", examples=path)


def test_a_number_that_no_double_holds_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(f"age\n3\n{'9' * 400}\n")
    program = Program(("age",), ("no", "yes"), (Clause((Interval(0, 2.0),)),), TREE)
    with pytest.raises(BadInput, match=r"column 'age', row 2: '9+' is not a number"):
        score(program, path, tmp_path / "scored.csv")
