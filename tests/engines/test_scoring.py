"""The promises of tests/databases/test_scoring.py, kept by the slower engines too; and what PostgreSQL alone has."""

import dataclasses
from contextlib import closing

import pytest

import gbfl_compile.databases
from gbfl_compile.databases import availability, scratch
from gbfl_compile.tables.draw import read_database_table
from tests.databases.test_scoring import (  # noqa: F401 - pytest collects what it finds here
    people,
    test_a_category_whose_texts_the_engine_writes_otherwise_is_never_misread,
    test_a_table_in_the_way_of_a_replacement_is_named_and_nothing_is_lost,
    test_a_table_is_scored_inside_the_database,
    test_a_wrong_name_is_reported_before_anything_is_created,
    test_an_existing_table_is_overwritten_only_on_request,
    test_columns_are_mapped_to_features,
)


@pytest.mark.skipif(availability("postgres") is not None, reason=str(availability("postgres")))
def test_texts_of_fixed_length_are_mined_as_they_are_compared(monkeypatch):
    with closing(scratch("postgres")) as database:
        database.execute("CREATE TABLE grades (grade CHAR(6), note TEXT)")
        database.execute("INSERT INTO grades VALUES ('a', 'a '), ('bb', NULL), (NULL, '')")
        kept_open = dataclasses.replace(database, close=lambda: None)
        monkeypatch.setattr(gbfl_compile.databases, "connect", lambda url: kept_open)
        table = read_database_table("postgresql:///here", "grades")
    assert table.astype(object).where(table.notna(), None).to_dict("list") == {
        "grade": ["a", "bb", None],
        "note": ["a ", None, ""],
    }
