"""Words, booleans, dates and timestamps in SQL: exact in every engine, whatever the column's collation or time zone."""

import datetime
import shutil
import subprocess
from itertools import islice

import pytest
from hypothesis import HealthCheck, assume, given, settings

from gbfl_compile.backends import backend, emit
from gbfl_compile.backends.sql import score
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.score import score_in_database
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split
from tests.backends.sql.programs import HOSTILE
from tests.backends.sql.words import (
    CARD,
    EACH,
    HOSTILE_COLUMNS,
    SESSIONS,
    TREE,
    assert_same,
    hostile_table,
    text_of,
    witness_rows,
)
from tests.counts import shorten
from tests.programs import programs_of_kinds_with_rows

FORMS = ("select", "view", "table", "dbt", "expression", "macro")


def emitted(program, dialect, **options):
    """The artifact's files, or None where the engine has no such form."""
    try:
        return emit(program, f"sql:{dialect}", options={"table": "data", **options}).files
    except BadInput:
        return None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
def test_every_form_answers_as_the_program_and_is_proved(database, tmp_path, program, form):
    files = emitted(program, database.dialect, form=form)
    if files is None:
        assert form == "macro"
        assert DIALECTS[database.dialect].macro is None
        return
    assert (
        prove_artifact(program, f"sql:{database.dialect}", files, options={"form": form, "table": "data"}).answer
        == "proved"
    )
    assert_same(program, database, tmp_path, witness_rows(program), form=form)


@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
@pytest.mark.parametrize("which", range(3))
def test_hostile_columns_and_sessions_change_nothing(database, program, which):
    types = dict(enumerate(HOSTILE_COLUMNS[database.dialect])).get(which)
    if types is None:
        return
    rows = list(islice(witness_rows(program), 300))
    rows = [
        [1.0 if value == float("inf") else -1.0 if value == -float("inf") else value for value in row] for row in rows
    ]
    before, after = SESSIONS.get(database.dialect, ((), ()))
    for statement in before:
        database.execute(statement)
    hostile_table(database, program, rows, types)
    outputs = "label,probabilities"
    query = text_of(program, database.dialect, table="people", key="id", outputs=outputs).split("\n;\n")[0]
    for statement in after:
        database.execute(statement)
    try:
        found = sorted(database.fetch(query))
    finally:
        for statement in before:
            database.execute(statement)
    assert [row[:2] for row in found] == [(i, evaluate(program, row).label) for i, row in enumerate(rows)]


@settings(max_examples=shorten(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=programs_of_kinds_with_rows())
def test_random_programs_answer_as_defined_and_are_proved(database, tmp_path_factory, case):
    program, rows = case
    files = emitted(program, database.dialect)
    assume(files is not None)
    assert prove_artifact(program, f"sql:{database.dialect}", files).answer == "proved"
    assert_same(program, database, tmp_path_factory.mktemp("model"), rows)


ODD = (*HOSTILE, "", " ", "\t", "a" * 999, "\u202eabc\u202c", "\r\n", "%", "_", "NULL", "\x01", "\ufeff", "\U0001f600")


def test_hostile_words_are_compared_as_they_are(database, tmp_path):
    for text in ODD:
        words = tuple(sorted({text, text + "x"}))
        clauses = (Clause((OneOf(0, (text,)),)), Clause((OneOf(0, words, negated=True),)))
        tree = split(0, leaf(1.0, 0.0, 0.0), split(1, leaf(0.0, 1.0, 0.0), leaf(0.0, 0.0, 1.0)))
        program = Program(("word",), ("this", "other", "x"), clauses, tree, kinds=("category",))
        if (replaced := DIALECTS[database.dialect].substituted) and replaced in text:
            with pytest.raises(BadInput, match="substitute"):
                emit(program, f"sql:{database.dialect}")
            continue
        files = emit(program, f"sql:{database.dialect}").files
        assert prove_artifact(program, f"sql:{database.dialect}", files).answer == "proved", text
        near = [text, text + "x", text + " ", text.upper(), text[:-1], text.replace("\\", ""), None, text + "\\"]
        assert_same(program, database, tmp_path, [[value] for value in near])


def test_a_word_that_clients_replace_is_refused():
    program = Program(
        ("w",),
        ("n", "y"),
        (Clause((OneOf(0, ("${x}",)),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("category",),
    )
    with pytest.raises(BadInput, match="substitute"):
        emit(program, "sql:spark")
    assert "${x}" in text_of(program, "duckdb")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
def test_the_shell_of_sqlite_drops_a_carriage_return_so_it_is_refused(tmp_path):
    (tmp_path / "query.sql").write_bytes(b"SELECT hex('a\r\nb'), hex('a\rb');\n")
    command = ["sqlite3", ":memory:", f".read {tmp_path / 'query.sql'}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "610A62|610D62"
    tree = split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    with_return, without = (
        Program(("w",), ("n", "y"), (Clause((OneOf(0, (text,)),)),), tree, kinds=("category",))
        for text in ("a\r\nb", "a\nb")
    )
    with pytest.raises(BadInput, match="substitute"):
        emit(with_return, "sql:sqlite")
    edited = text_of(without, "sqlite").replace("'a\nb'", "'a\r\nb'")
    assert prove_artifact(with_return, "sql:sqlite", {"model.sql": edited.encode()}).answer == "unread"


@pytest.mark.parametrize("dialect", [name for name, row in DIALECTS.items() if row.not_run])
def test_an_engine_that_was_never_run_refuses_words_by_name(dialect):
    with pytest.raises(BadInput, match=r"'contract' is a category: .* was never run here"):
        emit(TREE, f"sql:{dialect}")


def dated(kind, *bounds):
    clause = Clause((Interval(0, *bounds),))
    return Program(("when",), ("n", "y"), (clause,), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)), kinds=(kind,))


def test_bounds_that_an_engine_cannot_hold_are_refused():
    early = float((datetime.date(1899, 12, 31) - datetime.date(1970, 1, 1)).days)
    with pytest.raises(BadInput, match="'when': the bound 1899-12-31 is not between 1900-01-01 and 2299-12-31"):
        emit(dated("date", early), "sql:clickhouse")
    with pytest.raises(BadInput, match="not between"):
        emit(dated("timestamp", early * 86_400_000_000), "sql:clickhouse")
    last = float((datetime.date.max - datetime.date(1970, 1, 1)).days)
    with pytest.raises(BadInput, match="the very end of the calendar"):
        emit(dated("date", None, last, "right"), "sql:duckdb")
    assert "DATE '9999-12-31'" in text_of(dated("date", last), "duckdb")


def test_a_time_is_written_without_zeros_at_its_end():
    text = text_of(dated("timestamp", 1_709_164_800_500_000.0), "sqlite")
    assert "`when` >= '2024-02-29 00:00:00.5'" in text
    assert "`when` < '2024-02-29 00:00:00'" in text_of(dated("timestamp", None, 1_709_164_800_000_000.0), "sqlite")


def test_times_as_text_compare_with_and_without_their_digits(tmp_path):
    """SQLite has no type for times: what Python and SQLite write sorts right beside every bound."""
    import sqlite3

    bound = datetime.datetime(2024, 2, 29, 0, 0, 0, 500_000)
    near = [bound + datetime.timedelta(microseconds=step) for step in (-500_000, -1, 0, 1, 499_999, 500_000)]
    for moment in near:
        micros = float((moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
        for bounds in ((micros,), (None, micros), (micros, None, "neither"), (None, micros, "right")):
            program = dated("timestamp", *bounds)
            query = text_of(program, "sqlite", outputs="label").rstrip().rstrip(";")
            connection = sqlite3.connect(":memory:")
            connection.execute("CREATE TABLE data (`when` TIMESTAMP)")
            spelled = [(spelling, at) for at in near for spelling in (str(at), at.isoformat(" ", "microseconds"))]
            connection.executemany("INSERT INTO data VALUES (?)", [(spelling,) for spelling, _ in spelled])
            found = [label for (label,) in connection.execute(query)]
            assert found == [evaluate(program, [at]).label for _, at in spelled]


def test_numbers_alone_take_matrices_and_words_take_values(tmp_path):
    import numpy as np

    path = tmp_path / "model.sql"
    path.write_text(text_of(CARD, "sqlite"), encoding="utf-8", newline="\n")
    predictor = backend("sql:sqlite").load(path)
    assert predictor.kinds == CARD.kinds
    with pytest.raises(BadInput, match="rows of Python values"):
        predictor.answer(np.zeros((1, 5)))
    assert predictor.answer_rows([]).labels.tolist() == []
    row = [2000, "a", None, None, None]
    assert predictor.answer_rows([row]).labels.tolist() == [evaluate(CARD, row).label]


def test_more_different_values_than_one_query_takes(tmp_path):
    path = tmp_path / "model.sql"
    path.write_text(text_of(TREE, "sqlite"), encoding="utf-8", newline="\n")
    rows = [[float(n), f"word {n % 907}", bool(n % 2), None, None] for n in range(2000)]
    found = backend("sql:sqlite").load(path).answer_rows(rows)
    assert found.labels.tolist() == [evaluate(TREE, row).label for row in rows]


# column type, the statements before it, and 'ab' as the rules see it
OTHER_COLUMNS = {
    "sqlite": [("CHAR(4)", (), "ab"), ("BLOB", (), "ab")],
    "duckdb": [("kinds", ("CREATE TYPE kinds AS ENUM ('a', 'ab', 'AB')",), "ab"), ("CHAR(4)", (), "ab")],
    "postgres": [
        ("CHAR(4)", (), "ab"),  # the padding is dropped
        ("kinds", ("CREATE TYPE kinds AS ENUM ('a', 'ab', 'AB')",), "ab"),
        ("named", ("CREATE DOMAIN named AS VARCHAR(9)",), "ab"),
    ],
    "datafusion": [("TEXT", (), "ab")],
    "mariadb": [
        ("CHAR(4)", (), "ab"),
        ("ENUM('a', 'ab', 'c')", (), "ab"),
        ("VARCHAR(9) CHARACTER SET latin1", (), "ab"),
    ],
    "clickhouse": [
        ("Nullable(Enum8('a' = 1, 'ab' = 2, 'AB' = 3))", (), "ab"),
        ("Nullable(FixedString(4))", (), "ab"),  # the padding is dropped
        ("LowCardinality(Nullable(String))", (), "ab"),
    ],
    "spark": [("VARCHAR(4)", (), "ab"), ("CHAR(4)", (), "ab  ")],  # the padding is part of the text
}

WORD = Program(
    ("word",),
    ("none", "this", "padded"),
    (Clause((OneOf(0, ("AB", "ab")),)), Clause((OneOf(0, ("ab  ",)),))),
    split(0, leaf(0.0, 1.0, 0.0), split(1, leaf(0.0, 0.0, 1.0), leaf(1.0, 0.0, 0.0))),
    kinds=("category",),
)


@pytest.mark.parametrize("which", range(3))
def test_other_columns_of_words_are_compared_by_their_text(database, which):
    columns = OTHER_COLUMNS[database.dialect]
    if which >= len(columns):
        return
    kind, before, text = columns[which]
    for statement in before:
        database.execute(statement)
    engine = " ENGINE = MergeTree ORDER BY tuple()" if database.dialect == "clickhouse" else ""
    database.execute(f"CREATE TABLE words{which} (id INT, word {kind}){engine}")
    database.execute(f"INSERT INTO words{which} VALUES (0, 'a'), (1, 'ab'), (2, NULL)")
    query = text_of(WORD, database.dialect, table=f"words{which}", key="id", outputs="label").rstrip().rstrip(";")
    assert evaluate(WORD, [text]).label != "none"
    expected = ["none", evaluate(WORD, [text]).label, "none"]
    assert [label for _, label in sorted(database.fetch(query))] == expected


def test_whole_numbers_can_be_words(database):
    """A column of integers whose feature is a category: its digits are its text."""
    clauses = (Clause((OneOf(0, ("1", "10")),)), Clause((OneOf(0, ("01",), negated=True),)))
    tree = split(0, leaf(1.0, 0.0, 0.0), split(1, leaf(0.0, 1.0, 0.0), leaf(0.0, 0.0, 1.0)))
    program = Program(("zip",), ("one", "other", "none"), clauses, tree, kinds=("category",))
    kind, engine = (
        ("Nullable(Int32)", " ENGINE = MergeTree ORDER BY tuple()") if database.dialect == "clickhouse" else ("INT", "")
    )
    database.execute(f"CREATE TABLE zips (id INT, zip {kind}){engine}")
    database.execute("INSERT INTO zips VALUES (0, 1), (1, 10), (2, 100), (3, NULL), (4, -1)")
    query = text_of(program, database.dialect, table="zips", key="id", outputs="label").rstrip().rstrip(";")
    expected = [evaluate(program, [value]).label for value in ("1", "10", "100", None, "-1")]
    assert [label for _, label in sorted(database.fetch(query))] == expected


def test_codes_that_lost_their_zeros_are_refused_and_scored_as_texts(database):
    """'007' became 7 because a loader took the column for numbers: no row would match the text that was meant."""
    tree = split(0, leaf(1.0, 0.0), leaf(0.0, 1.0))
    program = Program(("zip",), ("in", "out"), (Clause((OneOf(0, ("007", "12")),)),), tree, kinds=("category",))
    is_clickhouse = database.dialect == "clickhouse"
    engine = " ENGINE = MergeTree ORDER BY tuple()" if is_clickhouse else ""
    number, text = ("Int32", "String") if is_clickhouse else ("INT", "VARCHAR(9)")
    database.execute(f"CREATE TABLE lost (id INT, zip {number}){engine}")
    database.execute("INSERT INTO lost VALUES (0, 7), (1, 12)")
    with pytest.raises(BadInput, match=r"'zip' has the number .*'007'.* load the column as text"):
        score_in_database(program, database, "lost", "scored_lost", keys=["id"])
    database.execute(f"CREATE TABLE whole (id INT, zip {text}){engine}")
    database.execute("INSERT INTO whole VALUES (0, '007'), (1, '12'), (2, '7')")
    score_in_database(program, database, "whole", "scored_whole", keys=["id"])
    assert sorted(database.fetch("SELECT id, label FROM scored_whole")) == [(0, "in"), (1, "in"), (2, "out")]


def test_a_table_with_words_is_scored_where_it_is(database):
    rows = [
        [value if value not in (float("inf"), -float("inf")) else 7.0 for value in row]
        for row in islice(witness_rows(TREE), 200)
    ]
    hostile_table(database, TREE, rows, HOSTILE_COLUMNS[database.dialect][0], table="loans")
    scored = score_in_database(TREE, database, "loans", "scored_loans", keys=["id"])
    assert scored.rows == len(rows)
    found = sorted(database.fetch("SELECT id, label FROM scored_loans"))
    assert found == [(number, evaluate(TREE, row).label) for number, row in enumerate(rows)]


def test_numbers_that_an_engine_writes_otherwise_are_refused(database, monkeypatch):
    """0.5 is '0.50' in a DECIMAL, and in SQLite 1 is '1.0' where it is a REAL, though the program knows both texts."""
    texts = ("1", "1.0") if database.dialect == "sqlite" else ("0.5", "0.50")
    tree = split(0, leaf(1.0, 0.0), leaf(0.0, 1.0))
    is_clickhouse = database.dialect == "clickhouse"
    engine = " ENGINE = MergeTree ORDER BY tuple()" if is_clickhouse else ""
    kind = {"sqlite": "REAL", "clickhouse": "Float64"}.get(database.dialect, "DECIMAL(4,2)")
    database.execute(f"CREATE TABLE rates (id INT, rate {kind}){engine}")
    database.execute(f"INSERT INTO rates VALUES (0, {texts[0]}), (1, 2.25)")
    for known in (texts, texts[:1]):
        program = Program(("rate",), ("in", "out"), (Clause((OneOf(0, known),)),), tree, kinds=("category",))
        if is_clickhouse:  # it writes 0.5 as Python does
            score_in_database(program, database, "rates", "scored_rates", keys=["id"])
            assert sorted(database.fetch("SELECT id, label FROM scored_rates")) == [(0, "in"), (1, "out")]
            return
        with pytest.raises(BadInput, match="score a view that writes"):
            score_in_database(program, database, "rates", "scored_rates", keys=["id"])
    other = Program(("rate",), ("in", "out"), (Clause((OneOf(0, ("7.5",)),)),), tree, kinds=("category",))
    score_in_database(other, database, "rates", "scored_other", keys=["id"])
    monkeypatch.setattr(score, "MOST_SPELLINGS", 1)
    with pytest.raises(BadInput, match="more than 1 different values"):
        score_in_database(other, database, "rates", "scored_more", keys=["id"])
