"""Which kind a column gets, and what is said where a value does not fit: as a person would expect."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.tables.conversion import text_of
from gbfl_compile.tables.draw import Choice
from gbfl_compile.tables.kinds import encode_rows, encode_table
from gbfl_compile.tables.sample import read_sample

DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=37 * n) for n in range(20)]
TIMES = [datetime.datetime(2020, 1, 1, 8) + datetime.timedelta(seconds=999_999 * n) for n in range(20)]


def kind_of(values, **wanted):
    _, _, (fact,) = encode_table(pd.DataFrame({"c": values}), ("c",), "t", **wanted)
    return fact.kind, fact.why


TEXTS = {
    "days": ([str(day) for day in DAYS], "date"),
    "times": ([str(time) for time in TIMES], "timestamp"),
    "days and times": ([str(time) if n % 2 else str(DAYS[n]) for n, time in enumerate(TIMES)], "timestamp"),
    "PostgreSQL's zones": ([f"{time}+00" for time in TIMES], "timestamp"),
    "nanoseconds, as pandas writes them": ([f"{time}.123456789" for time in TIMES], "timestamp"),
    "SQL Server's fractions": ([f"{time}.1234567" for time in TIMES], "timestamp"),
    "zones without a colon": ([f"{time}-0530" for time in TIMES], "timestamp"),
    "zones with one": ([f"{time}+02:00" for time in TIMES], "timestamp"),
}


@pytest.mark.parametrize(("texts", "kind"), TEXTS.values(), ids=TEXTS)
def test_texts_of_days_and_times(texts, kind):
    assert kind_of(texts)[0] == kind


def test_zones_are_those_of_the_same_moment():
    moments = [
        "2024-03-01 10:00:00+00",
        "2024-03-01 12:00:00+0200",
        "2024-03-01 04:30:00-05:30",
        "2024-03-01 10:00:00Z",
    ]
    x, _, _ = encode_table(pd.DataFrame({"c": moments}), ("c",), "t")
    assert set(x[:, 0]) == {1709287200e6}


def test_one_wrong_date_among_many_is_named():
    texts = [*map(str, DAYS), "2020-02-30"]
    with pytest.raises(
        BadInput, match=r"column 'c', row 21: '2020-02-30' is not a date.*--na 2020-02-30.*--kind c=cat"
    ):
        kind_of(texts)
    assert kind_of(texts, kinds={"c": "category"})[0] == "category"
    assert kind_of(texts, marks=frozenset(["2020-02-30"]))[0] == "date"


def test_labels_some_of_which_look_like_dates_are_words():
    assert kind_of([*map(str, DAYS[:3]), "later", "never"])[0] == "category"


CATEGORICAL = {
    "numbers": (pd.Categorical([1, 2, 1, 3]), "category"),
    "fractions": (pd.Categorical([0.5, 1.0, None, 0.5]), "category"),
    "ordered words": (pd.Categorical(["lo", "hi", None, "lo"], ["lo", "hi"], ordered=True), "category"),
    "truths": (pd.Categorical([True, False, None, True]), "boolean"),
    "a dictionary of Arrow": (pd.array(["1", "2", "1", "x"], pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))), "category"),
    "Int64": (pd.array([1, None, 2, 3], "Int64"), "number"),
    "boolean": (pd.array([True, None, False, True], "boolean"), "boolean"),
    "decimals": (pd.Series([Decimal("0.50"), None, Decimal("1.5"), Decimal("2")], dtype=object), "number"),
}  # fmt: skip


@pytest.mark.parametrize(("values", "kind"), CATEGORICAL.values(), ids=CATEGORICAL)
def test_columns_of_special_types(values, kind):
    assert kind_of(values)[0] == kind


def test_a_type_that_says_category_says_why_and_asks_for_nothing():
    table = pd.DataFrame({"c": pd.Categorical([1, 2] * 40), "x": range(80), "y": ["a", "b"] * 40})
    sample = read_sample(table, Choice("y"), most=100)
    assert [fact["why"] for fact in sample.facts["columns"] if fact["name"] == "c"] == ["its type is categorical"]
    assert not [note for note in sample.notes if "to have them compared" in note]


CANNOT_BE = {
    "too large": ([10**400, 1], None, r"column 'c', row 1: int too large"),
    "an infinity for a word": ([1.5, np.inf], "category", r"column 'c', row 2: inf is not a category"),
    "an infinite decimal": ([Decimal("Infinity"), 1], "category", r"row 1: Decimal\('Infinity'\) is not a category"),
    "whole, or not": ([1.0, 2.0**53], "category", r"row 2: 9007199254740992.0 is not a category"),
    "nanoseconds": (
        pd.to_datetime(["2020-01-01 00:00:00.123456789", None]),
        None,
        "column 'c', row 1:.*has nanoseconds",
    ),
    "the year 1": (["2020-01-01 10:00", "0001-01-01 00:00"], None, "column 'c', row 2:.*too far from 1970.*--drop"),
}


@pytest.mark.parametrize(("values", "kind", "says"), CANNOT_BE.values(), ids=CANNOT_BE)
def test_a_value_that_cannot_be_is_named_with_its_row(values, kind, says):
    with pytest.raises(BadInput, match=says):
        kind_of(values, **({"kinds": {"c": kind}} if kind else {}))


def test_the_text_of_a_number_is_that_of_its_digits():
    assert [text_of(value) for value in (7, 7.0, 0.5, -0.0, 2**53 + 1, Decimal("0.50"), True)] == [
        *("7", "7", "0.5", "0", "9007199254740993", "0.5", "true")
    ]
    assert text_of(2.0**53) is None


def test_rows_to_score_whose_values_are_no_words_are_refused():
    known = pd.DataFrame({"c": ["None", "b", "b"]})
    _, columns, _ = encode_table(known, ("c",), "t", marks=frozenset())
    assert encode_rows(pd.DataFrame({"c": ["b", " ", "", None]}), columns, "t")[:3, 0].tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(BadInput, match="column 'c', row 1: Timedelta"):
        encode_rows(pd.DataFrame({"c": pd.to_timedelta([1, 2], unit="D")}), columns, "t")


def test_days_without_hyphens_are_dates_if_the_user_says_so(tmp_path):
    lines = [f"{day:%Y%m%d},{n % 7},{'ab'[n % 2]}" for n, day in enumerate(DAYS * 3)]
    (tmp_path / "t.csv").write_text("\n".join(["opened,x,y", *lines]), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = read_sample(tmp_path / "t.csv", Choice("y", kinds={"opened": "date"}), most=100)
    assert sample.facts["columns"][0]["kind"] == "date"
    assert {*sample.split.x[:, 0], *sample.split.x_test[:, 0]} == {
        float((day - datetime.date(1970, 1, 1)).days) for day in DAYS
    }


def test_values_of_a_type_that_is_no_kind_are_refused_with_the_way_out():
    with pytest.raises(
        BadInput, match=r"column 'c' holds values of type time: make texts or numbers of them, or .*--drop c"
    ):
        kind_of([datetime.time(10), datetime.time(11)])
