"""Views made, tampered with and audited in a real database: what tests of all engines share."""

import numpy as np

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.validate import validate
from gbfl_compile.tables.values import coded_rows
from tests.auditing.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE
from tests.word_programs import CHURN, CHURN_ROWS, SLIPS, with_slip, with_swapped_sets

CASES = {"tree": (TREE, TAMPERED_TREES), "rule set": (CARD, TAMPERED_CARDS)}
NAMED_AT_LEAST = 0.9


def make_view(database, program, view="scores", table="data"):
    """The emitted view, as an analyst would paste it."""
    options = {"form": "view", "table": table, "view": view}
    text = emit(validate(program), f"sql:{database.dialect}", "m", options).files["m.sql"].decode()
    body = "\n".join(line for line in text.split("\n") if not line.startswith("--"))
    for statement in body.split("\n;\n"):
        if statement.strip().strip(";").strip():
            database.execute(statement.strip().rstrip(";"))


def audited(database, approved, deployed):
    """What an audit says of a view that is made for it and gone after; edits that mend it have tests of their own."""
    make_view(database, deployed)
    try:
        return audit_view(AuditInput(approved, mends=False), database, "scores", "view scores")
    finally:
        database.execute("DROP VIEW scores")


def assert_audits_are_right(database, kind):
    """The equal view is proved; every tampering is found, shown by a row that differs, and nearly always named."""
    approved, cases = CASES[kind]
    database.insert("data", list(approved.features), np.zeros((3, len(approved.features))))
    same = audited(database, approved, approved)
    assert (same.verdict, same.proof.answer, same.execution.different) == ("equal", "proved", 0), same
    named = 0
    for name, tampered, where in cases:
        found = audited(database, approved, tampered)
        assert found.verdict == "different", name
        row = [np.nan if value is None else value for value in found.region.row.values()]
        assert evaluate(approved, row) != evaluate(tampered, row), name
        if evaluate(approved, row).label != evaluate(tampered, row).label:
            assert found.execution.different > 0, f"{name}: the engine itself must show it too"
        named += any(where in change.where for change in found.changes)
    assert named >= NAMED_AT_LEAST * len(cases)


TYPES = {
    "sqlite": {"number": "REAL", "category": "TEXT", "boolean": "INTEGER", "date": "TEXT", "timestamp": "TEXT"},
    "duckdb": {
        "number": "DOUBLE",
        "category": "VARCHAR",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    },
    "postgres": {
        "number": "DOUBLE PRECISION",
        "category": "TEXT",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "TIMESTAMP",
    },
    "mariadb": {
        "number": "DOUBLE",
        "category": "VARCHAR(1100)",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "timestamp": "DATETIME(6)",
    },
    "clickhouse": {
        "number": "Nullable(Float64)",
        "category": "Nullable(String)",
        "boolean": "Nullable(Bool)",
        "date": "Nullable(Date32)",
        "timestamp": "Nullable(DateTime64(6, 'UTC'))",
    },
}
"""The column types of each kind, as each engine declares them."""


def make_table(database, program, types=None):
    """The table that the features of a program are columns of."""
    own = TYPES[database.dialect] | (types or {})
    columns = [f"{database.quote(name)} {own[program.kind(f)]}" for f, name in enumerate(program.features)]
    engine = " ENGINE = Memory" if database.dialect == "clickhouse" else ""
    database.execute(f"CREATE TABLE data ({', '.join(columns)}){engine}")


def verdict_on(database, approved, deployed, **options):
    make_view(database, deployed)
    try:
        return audit_view(AuditInput(approved, mends=False, **options), database, "scores", "view scores")
    finally:
        database.execute("DROP VIEW scores")


WORD_SLIPS = (*SLIPS, "swapped sets")


def assert_the_emitted_view_is_proved(database):
    """A view over all kinds is proved, and run with the rows of people and of its own table."""
    database.execute("INSERT INTO data VALUES (2000, 'Month-to-month', NULL, '2024-02-29'), (1, 'zzz', NULL, NULL)")
    rows, book = coded_rows(CHURN_ROWS, CHURN)
    found = verdict_on(database, CHURN, CHURN, data=rows, book=book)
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found
    assert found.execution.rows > len(CHURN_ROWS)


def assert_the_slip_is_found(database, slip):
    """By the proof and by the run, on a row that shows it, and by its name."""
    wrong = with_swapped_sets() if slip == "swapped sets" else with_slip(slip)
    found = verdict_on(database, CHURN, wrong)
    assert (found.verdict, found.proof.answer) == ("different", "counterexample"), found.reason
    assert found.execution.different > 0
    row = [found.region.row[name] for name in CHURN.features]
    assert (evaluate(CHURN, row).label, evaluate(wrong, row).label) == (found.region.approved, found.region.deployed)
    if slip in SLIPS:
        assert any(slip in (change.slip or "") for change in found.changes), found.changes
