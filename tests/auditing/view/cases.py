"""Views made, tampered with and audited in a real database: what tests of all engines share."""

import numpy as np

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.validate import validate
from tests.auditing.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE

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
    """What an audit says of a view that is made for it and gone after."""
    make_view(database, deployed)
    try:
        return audit_view(AuditInput(approved), database, "scores", "view scores")
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
