"""What is checked is what is deployed: an artifact's SQL is run byte for byte, and each answer belongs to its row."""

import random
from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run
from gbfl_compile.checking.run import differing_rows
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.databases import scratch
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from tests.backends.sql.programs import EACH, TREE, text_of


def recording(database):
    """The database, and every statement it is given."""
    statements = []

    def fetch(query):
        statements.append(query)
        return database.fetch(query)

    def execute(statement):
        statements.append(statement)
        database.execute(statement)

    return replace(database, fetch=fetch, execute=execute), statements


def shuffling(database):
    """A database that returns rows in another order each time."""
    choose = random.Random(0)

    def fetch(query):
        rows = database.fetch(query)
        return choose.sample(rows, len(rows))

    return replace(database, fetch=fetch, keeps_order=False)


def written(folder, text):
    path = folder / "model.sql"
    path.write_text(text, encoding="utf-8", newline="\n")
    return read_script(path)


def assert_right(program, database, script, rows):
    found = run(DIALECTS[database.dialect], script, database, rows)
    assert not differing_rows(program.has_exact_probabilities, evaluate_many(program, rows), found).any()


@pytest.mark.parametrize("form", ["select", "view", "table"])
def test_the_text_is_run_byte_for_byte(database, tmp_path, form):
    text = text_of(TREE, database.dialect, form=form)
    recorder, statements = recording(database)
    assert_right(TREE, recorder, written(tmp_path, text), witnesses(TREE))
    body = next(part for part in statements if part.startswith(("WITH", "CREATE")) and "gbfl_rows" in part[:400])
    header, _, deployed = text.partition("\n" + body)
    assert deployed == "\n;\n"
    assert all(line.startswith("-- ") for line in header.split("\n"))


def test_comments_and_blanks_change_nothing(database, tmp_path):
    text = text_of(TREE, database.dialect)
    spaced = text.replace("SELECT\n", "SELECT /* formatted */\n\n")
    assert spaced.count("/* formatted */") > 1
    assert_right(TREE, database, written(tmp_path, spaced), witnesses(TREE))


@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
def test_a_key_column_identifies_rows_in_any_order(database, tmp_path, program):
    rows = witnesses(program)
    for keys in ("id", "age,id", "id,other"):
        script = written(tmp_path, text_of(program, database.dialect, key=keys))
        assert_right(program, shuffling(database), script, rows)


def test_without_a_key_the_order_of_rows_must_be_kept(database, tmp_path):
    rows = witnesses(TREE)
    script = written(tmp_path, text_of(TREE, database.dialect))
    with pytest.raises(CannotRun, match=r"does not keep the order of rows: emit it with a key column"):
        run(DIALECTS[database.dialect], script, shuffling(database), rows)
    assert_right(TREE, replace(database, keeps_order=False), script, rows)  # in order all the same


@pytest.mark.parametrize("form", ["select", "view"])
def test_many_rows_come_back_in_order(database, tmp_path, form):
    rows = np.random.default_rng(0).choice([10.0, 30.0, 70.0, 2e5, np.nan], size=(150_000, 2))
    assert_right(TREE, database, written(tmp_path, text_of(TREE, database.dialect, form=form)), rows)


def test_a_query_with_fewer_columns_or_rows_than_it_says_is_refused(tmp_path):
    database = scratch("sqlite")
    text = text_of(TREE, "sqlite", outputs="label,leaf")
    fewer = text.replace(",\n  CASE\n    WHEN", " /*\n  CASE\n    WHEN", 1)
    with pytest.raises((BadInput, CannotRun)):
        run(DIALECTS["sqlite"], written(tmp_path, fewer + "*/"), database, witnesses(TREE))
    rowless = text.removesuffix("\n;\n") + "\nWHERE 1 = 0\n;\n"
    with pytest.raises(BadInput, match=r"0 answers for \d+ rows"):
        run(DIALECTS["sqlite"], written(tmp_path, rowless), database, witnesses(TREE))
    database.close()
