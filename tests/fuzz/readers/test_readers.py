"""What readers read is what engines and compilers answer; a reading that is wrong is found."""

from dataclasses import replace

import pytest

from gbfl_compile.checking.general.sql import read_sql
from gbfl_compile.checking.reading.conditions import compare_with_itself
from gbfl_compile.databases import availability
from tests.backends.c.programs import needs_a_compiler
from tests.fuzz.readers.c import fuzz_c
from tests.fuzz.readers.known import known
from tests.fuzz.readers.spellings import meanings
from tests.fuzz.readers.sql import READERS, fuzz_engine

COUNT = 150


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_what_is_read_is_what_the_engine_answers(dialect):
    if reason := availability(dialect):
        pytest.skip(reason)
    result = fuzz_engine(dialect, COUNT)
    assert result.disagreements == {}
    for reader in READERS:
        assert result.counts[f"{reader}: read"] > COUNT // 10
        assert result.counts[f"{reader}: refused"] > COUNT // 10
    assert result.counts["runs compared"] > COUNT // 5


def test_a_bound_that_the_strict_reader_misses_is_found(monkeypatch):
    """`x < 3` read as `x <= 3`: one value shows it, and it is among the rows."""
    monkeypatch.setattr("gbfl_compile.checking.strict.sql.logic.below", lambda bound: bound)
    result = fuzz_engine("sqlite", COUNT, readers=("strict",))
    assert {reader for reader, _ in result.disagreements} == {"strict"}


def test_a_missing_value_that_the_general_reader_takes_for_a_number_is_found(monkeypatch):
    def read(text, dialect, layout):
        return tuple(replace(each, nan_features=None) for each in read_sql(text, dialect, layout)[:1])

    if reason := availability("duckdb"):
        pytest.skip(reason)
    monkeypatch.setattr("tests.fuzz.readers.sql.read_sql", read)
    assert fuzz_engine("duckdb", COUNT, readers=("general",)).disagreements


@needs_a_compiler
def test_what_is_read_of_c_is_what_the_program_returns():
    result = fuzz_c(COUNT)
    assert result.disagreements == {}
    assert result.counts["runs compared"] == result.counts["strict: read"] > COUNT // 10


@needs_a_compiler
def test_a_rule_of_c_that_is_misread_is_found(monkeypatch):
    """`x != x` read as `x == x`."""
    other = {"==": "!=", "!=": "=="}
    monkeypatch.setattr(
        "gbfl_compile.checking.strict.c.conditions.compare_with_itself",
        lambda feature, sign: compare_with_itself(feature, other[sign]),
    )
    assert fuzz_c(COUNT).disagreements


def test_nothing_of_the_strict_reader_is_excused():
    text = "SELECT N'\U0001f600' AS label"
    assert [known("strict", dialect, text) for dialect in ("datafusion", "mariadb", "duckdb")] == [[], [], []]
    assert known("general", "mariadb", text)


def test_a_literal_is_tried_in_each_of_its_meanings():
    assert {"a\\'b", "a'b"} <= set(meanings("'a\\'b'"))
    assert {"it''s", "it's", "its"} <= set(meanings("'it''s'"))
