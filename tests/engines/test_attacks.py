"""Hostile names and labels in the slower engines: run there, beside a table that must survive."""

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run
from gbfl_compile.errors import BadInput
from tests.security.attacks import BENIGN, REFUSED, ROWS, labels_of, program_of
from tests.security.test_sql_dialects import LABELS, names, quotes_only


def answered(database, program, folder):
    """The labels by the engine, or `refused`."""
    try:
        content = emit(program, f"sql:{database.dialect}").files["model.sql"]
    except BadInput:
        return "refused"
    (folder / "model.sql").write_bytes(content)
    found = run(DIALECTS[database.dialect], read_script(folder / "model.sql"), database, ROWS)
    return found.labels.tolist()


@pytest.fixture
def untouched(database):
    """A table with some rows, that are there afterwards."""
    database.insert("c", ["one"], ROWS[:3, :1])
    yield
    assert len(database.fetch("SELECT one FROM c")) == 3


def test_a_hostile_name_stays_a_name(database, untouched, tmp_path):
    held = 0
    for kind, text in (*BENIGN.items(), ("name", names(database.dialect)), *LABELS.items()):
        for place in ("label", "feature"):
            program = program_of(text, place)
            found = answered(database, program, tmp_path)
            assert found in ("refused", labels_of(program)), (kind, place)
            assert kind not in REFUSED or found == "refused"
            held += found != "refused"
    assert held > len(BENIGN), "most names and labels can be written"


def test_a_backslash_that_is_not_doubled_is_noticed(database, untouched, tmp_path, monkeypatch):
    if not DIALECTS[database.dialect].string_escapes:
        pytest.skip("a backslash is a letter there")
    monkeypatch.setattr("gbfl_compile.backends.sql.text.string", quotes_only)
    program = program_of(BENIGN["backslash"], "label")
    try:
        found = answered(database, program, tmp_path)
    except Exception as error:  # the engine does not take it
        found = error
    assert found != labels_of(program)
