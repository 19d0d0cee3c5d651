"""The invented loans: the same bytes for the same seed, and what a lender's table holds: words, dates, gaps."""

import csv
import hashlib
import io
from datetime import date

import pytest

from gbfl_compile.cli.loans import FEATURES, HOUSING, KEY, PURPOSES, TARGET, TERMS, loans, new_loans


@pytest.fixture(scope="module")
def table():
    return list(csv.DictReader(io.StringIO(loans(2000, seed=1))))


def test_the_same_seed_gives_the_same_bytes():
    assert loans(500, seed=1) == loans(500, seed=1)
    assert loans(500, seed=1) != loans(500, seed=2)
    assert loans(500, seed=1).startswith(loans(100, seed=1))


def test_the_bytes_are_the_same_on_every_machine():
    digests = [hashlib.sha256(text.encode("ascii")).hexdigest()[:16] for text in (loans(500, 1), new_loans(500, 2))]
    assert digests == ["ef9e77a6543ace3e", "42cb0fa377922c89"]


def test_new_loans_have_the_same_columns_but_no_outcome():
    assert list(csv.DictReader(io.StringIO(loans(3, 1))).fieldnames or ()) == [KEY, *FEATURES, TARGET]
    assert list(csv.DictReader(io.StringIO(new_loans(3, 1))).fieldnames or ()) == [KEY, *FEATURES]


def test_every_word_occurs_and_no_other(table):
    assert {row["purpose"] for row in table} == set(PURPOSES)
    assert {row["housing"] for row in table} == set(HOUSING)
    assert {int(row["term_months"]) for row in table} == set(TERMS)


def test_values_are_missing_where_a_lender_would_miss_them(table):
    assert all(
        (row["employed_since"] == "") == (row["employment"] not in ("salaried", "self-employed")) for row in table
    )
    young, others = ([row for row in table if (int(row["age"]) < 25) == young] for young in (True, False))
    unknown = [sum(row["late_payments"] == "" for row in rows) / len(rows) for rows in (young, others)]
    assert unknown[0] > 3 * unknown[1] > 0


def test_a_row_could_exist(table):
    assert len({row[KEY] for row in table}) == len(table)
    for row in table:
        applied = date.fromisoformat(row["applied_on"])
        if since := row["employed_since"]:
            assert date.fromisoformat(since) <= applied
            assert int(row["age"]) - (applied - date.fromisoformat(since)).days / 365 >= 16


def test_between_a_sixth_and_a_third_of_the_loans_are_not_paid_back(table):
    assert 1 / 6 < sum(row[TARGET] == "yes" for row in table) / len(table) < 1 / 3
