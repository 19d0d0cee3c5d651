"""What a view answers beside its label is run too, and a view that its database cannot run is never called equal."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.auditing.view.run import expected_answers, run_view
from gbfl_compile.auditing.view.view import view_of
from gbfl_compile.backends import emit
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.cli import main
from gbfl_compile.databases import availability, from_connection, scratch
from gbfl_compile.databases.views import read_catalog
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import leaf, split
from gbfl_compile.ir.text import with_reasons
from gbfl_compile.ir.validate import validate
from tests.auditing.tampering import CARD, TREE
from tests.auditing.view.cases import make_view

ENGINES = ("sqlite", "duckdb", "postgres")


def opened(name):
    if reason := availability(name):
        pytest.skip(reason)
    return scratch(name)


@pytest.fixture(params=ENGINES)
def database(request):
    made = opened(request.param)
    yield made
    made.close()


def query_of(database, program, outputs):
    options = {"form": "select", "table": "data", "outputs": outputs}
    text = emit(validate(program), f"sql:{database.dialect}", "m", options).files["m.sql"].decode()
    return "\n".join(line for line in text.split("\n") if not line.startswith("--")).strip().rstrip(";")


def deploy(database, program, outputs="label,probabilities", body="CREATE VIEW {view} AS {query}"):
    database.insert("data", list(program.features), np.zeros((1, len(program.features))))
    database.execute(body.format(view=database.quote("scores"), query=query_of(database, program, outputs)))


def found_of(database, program):
    return audit_view(AuditInput(program), database, "scores", "view scores")


REASONED = with_reasons(CARD, {0: "Income; too low", 1: "It's young"})
EVERYTHING = {
    "tree": (TREE, "label,probabilities,leaf,reason"),
    "rule set": (CARD, "label,probabilities,score,reason"),
    "rule set with reasons": (REASONED, "label,probabilities,score,reason"),
}


@pytest.mark.parametrize("kind", EVERYTHING)
def test_every_column_that_was_proved_is_executed(database, kind):
    program, outputs = EVERYTHING[kind]
    deploy(database, program, outputs)
    found = found_of(database, program)
    assert (found.verdict, found.reason, found.is_proved, found.execution.different) == ("equal", None, True, 0)
    for column in outputs.replace("probabilities", "p_").replace("score", "score_").split(","):
        assert any(name.startswith(column) for name in found.compared_columns)


TENTHS = validate(replace(TREE, decision=split(0, leaf(0.1, 0.2, 0.7), leaf(0.7, 0.1, 0.2))))

SLIPS = {
    "float32 probabilities": (TENTHS, "probabilities", "CAST(CAST(q.{} AS REAL) AS DOUBLE PRECISION)"),
    "a probability of type float32": (TENTHS, "probabilities", "CAST(q.{} AS REAL)"),
    "a rule set's float32 probabilities": (CARD, "probabilities", "CAST(q.{} AS REAL)"),
    "no probability": (CARD, "probabilities", "NULLIF(q.{0}, q.{0})"),
    "another leaf": (TREE, "leaf", "CASE q.{0} WHEN 0 THEN 1 WHEN 1 THEN 0 ELSE q.{0} END"),
    "another score": (CARD, "score", "CASE WHEN q.{0} > 0 THEN q.{0} + 1 ELSE q.{0} END"),
    "another reason": (CARD, "reason", "REPLACE(q.{}, '1 ', '')"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_beside_the_label_is_found_by_running(database, slip):
    program, kind, spelled = SLIPS[slip]
    if database.dialect == "sqlite" and "float32" in slip:
        pytest.skip("SQLite has no float32")
    deploy(database, program, f"label,{kind}")
    column = found_of(database, program).compared_columns[-1]
    outputs = (("label", "label"), (kind, column))
    inner = query_of(database, program, f"label,{kind}")

    def run(rows_asked):
        database.execute("DROP VIEW scores")
        database.execute(f"CREATE VIEW scores AS SELECT q.label, {rows_asked} AS {column} FROM ({inner}) q")
        return run_view(AuditInput(program), view_of(read_catalog(database, "scores")), outputs).execution

    assert run(f"q.{column}").different == 0
    wrong = run(spelled.format(column))
    assert wrong.different > 0
    assert wrong.first["source"]["label"] == wrong.first["target"]["label"]
    assert wrong.first["source"][column] != wrong.first["target"][column]


def test_a_row_that_gets_another_rows_answer_is_found_whatever_the_order():
    rows = witnesses(CARD)
    expected = expected_answers(CARD, rows, [("label", "label"), *(("score", f"score_{c}") for c in CARD.classes)])
    answers = list(expected.answers)
    place = next(i for i, answer in enumerate(answers) if answer != answers[0])
    assert all(part.wrong(part.answers[::-1]) == 0 for parts in expected.parts() for part in parts)
    swapped = {0: answers[place], place: answers[0]}
    answer_of = {rows[i].tobytes(): swapped.get(i, answer) for i, answer in enumerate(answers)}
    counts = [
        sum(part.wrong([answer_of[row.tobytes()] for row in part.rows]) for part in parts) for parts in expected.parts()
    ]
    assert max(counts) == 2


MACROS = {
    "another exp": ("CREATE MACRO exp(x) AS 1.0e0", "different", "it answers p_no 0.5 where"),
    "another +": ('CREATE MACRO "+"(a, b) AS a', "different", "it answers p_no 1.0 where"),
    "an exp that answers alike": (
        "CREATE MACRO exp(x) AS pow(2.718281828459045235e0, x)",
        "unread",
        "the function exp,",
    ),
    "a greatest that fails": ("CREATE MACRO greatest(a, b, c) AS a", "unread", "the function greatest,"),
}


@pytest.mark.parametrize("how", MACROS)
def test_a_macro_in_place_of_a_built_in_function_is_never_equal(how):
    statement, verdict, reason = MACROS[how]
    database = opened("duckdb")
    deploy(database, CARD)
    database.execute("CREATE MACRO income(x) AS x")
    assert found_of(database, CARD).verdict == "equal", "a macro by the name of a column is not called"
    database.execute(statement)
    found = found_of(database, CARD)
    assert (found.verdict, reason in found.reason) == (verdict, True)
    assert (found.not_executed is not None) == ("fails" in how)
    database.close()


def test_a_type_of_the_users_that_is_called_double_is_not_mistaken_for_one():
    database = opened("postgres")
    database.execute('CREATE DOMAIN "double" AS real')
    deploy(database, TREE)
    assert found_of(database, TREE).verdict == "equal"
    database.execute("DROP VIEW scores")
    columns = ", ".join(f'CAST(CAST({name} AS "double") AS DOUBLE PRECISION) AS {name}' for name in TREE.features)
    query = query_of(database, TREE, "label").replace('FROM "data"', f"FROM (SELECT {columns} FROM data) AS data")
    assert '"double"' in query
    database.execute(f"CREATE VIEW scores AS {query}")
    found = found_of(database, TREE)
    assert (found.verdict, found.reason.startswith("the type public: ")) == ("unread", True)
    assert "value out of range" in found.not_executed
    database.close()


def test_a_function_of_ones_own_in_the_search_path_is_named():
    database = opened("postgres")
    deploy(database, CARD)
    database.execute("CREATE FUNCTION exp(real) RETURNS double precision LANGUAGE sql AS 'SELECT 1e0'")
    found = found_of(database, CARD)
    assert (found.verdict, "the function exp" in found.reason) == ("unread", True)
    database.close()


BREAKS = [
    ("sqlite", "DROP TABLE data", "not run (read as equal)"),
    ("duckdb", "DROP TABLE data", "not run (read as equal)"),
    # SQLite renames it in its views too
    ("duckdb", "ALTER TABLE data RENAME COLUMN income TO earnings", "unread (unread)"),
]


@pytest.mark.parametrize(("engine", "statement", "words"), BREAKS)
def test_a_view_that_is_broken_is_not_run(engine, statement, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(TREE, tmp_path / "approved.json")
    opening = sqlite3.connect if engine == "sqlite" else pytest.importorskip("duckdb").connect
    connection = opening("loans.db")
    connection.execute("CREATE TABLE data (income DOUBLE, age DOUBLE, debt DOUBLE, years DOUBLE)")
    make_view(from_connection(engine, connection), TREE)
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert main(["audit", "approved.json", "--database", f"{engine}:///loans.db", "--view", "scores"]) == 3
    printed = capsys.readouterr().out
    assert words in printed
    assert "the view itself cannot be queried: " in printed


def test_a_view_that_also_reads_another_table_is_read_and_run_on_copies_of_both():
    """A second table that no answer comes from: the view is not in the strict form."""
    database = opened("postgres")
    database.execute("CREATE TABLE other (n DOUBLE PRECISION)")
    body = "CREATE VIEW scores AS SELECT q.label, (SELECT max(n) FROM other) AS most FROM ({query}) q"
    deploy(database, TREE, "label", body)
    found = found_of(database, TREE)
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "read as equal", 0), found
    database.close()
