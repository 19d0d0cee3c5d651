"""DuckDB's look-ups in a list: read where the list is of constants and the place within it for every row, else refused."""

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.databases import availability, scratch
from tests.checking.general.sql.test_types import LOANS

LEAF = '["gbfl_leaf" + 1]'
LABELS = f"['yes', 'no', 'no']{LEAF}"


def proof(label):
    """What is said of the emitted query with another label; the doubled NOT takes it out of the strict form."""
    text = emit(LOANS, "sql:duckdb", "model", {"outputs": "label,probabilities"}).files["model.sql"].decode()
    assert text.count(LABELS) == 1
    head, arm, rest = text.partition("WHEN ")
    inner, then, rest = rest.partition(" THEN\n")
    text = f"{head}{arm}NOT (NOT ({inner})){then}{rest}".replace(LABELS, label)
    return prove_artifact(LOANS, "sql:duckdb", {"model.sql": text.encode()}).answer


@pytest.mark.parametrize(
    "label", [LABELS, f"list_value('yes', 'no', 'no'){LEAF}", "['yes', 'no', 'no'][(gbfl_leaf + 1)]"]
)
def test_a_look_up_is_read(label):
    assert proof(label) == "read as equal"


@pytest.mark.parametrize("items", ["'no', 'yes', 'no'", "'yes', 'no', 'yes'", "'yes', 'yes', 'no'"])
def test_other_items_are_a_counterexample(items):
    assert proof(f"[{items}]{LEAF}") == "counterexample"


@pytest.mark.parametrize(
    "label",
    [
        "['yes', 'no', 'no'][\"gbfl_leaf\"]",
        "['yes', 'yes', 'no', 'no'][\"gbfl_leaf\" + 2]",
        "['yes', 'no', 'no'][\"gbfl_leaf\" + 0]",
        "['yes', 'no', 'no'][\"gbfl_leaf\" + 1.0]",
        "['yes', 'no', 'no'][\"gbfl_leaf\" - -1]",
        "['yes', 'no', 'no'][1 + \"gbfl_leaf\"]",
        "['yes', 'yes', 'no', 'no'][CAST(\"gbfl_leaf\" AS INTEGER) + 2]",
        "['yes', 'no', 'no'][CAST(\"gbfl_leaf\" AS INTEGER) + 1]",
        "['yes', 'no', 'no'][\"income\" + 1]",
        "['yes', 'no', 'no'][\"gbfl_leaf\" + 1:2]",
        "['yes', 'no', 'no'][1]",
        "['yes', 'no', 'no'][(gbfl_leaf) + 1]",
        f"['yes', 'no']{LEAF}",
        f"['yes', 'no', NULL]{LEAF}",
        f"['yes', 'no', 0]{LEAF}",
        f"['yes', 'no', \"note\"]{LEAF}",
        f"[['yes', 'no', 'no']{LEAF}]{LEAF}",
        f"'yno'{LEAF}",
        f"MAP {{'yes': 1}}{LEAF}",
        f"['yes', 'no', 'no']{LEAF}[1]",
    ],
)
def test_any_other_element_is_unread(label):
    assert proof(label) == "unread"


def test_an_element_is_the_one_that_duckdb_takes():
    """The reader counts the first element as 1, and so does the engine."""
    if reason := availability("duckdb"):
        pytest.skip(reason)
    database = scratch("duckdb")
    assert database.fetch("SELECT ['a', 'b', 'c'][n + 1] FROM (VALUES (0), (1), (2)) t(n) ORDER BY n") == [
        ("a",),
        ("b",),
        ("c",),
    ]
    database.close()
