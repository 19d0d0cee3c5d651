"""What was not read is reported with its line and a command that gives evidence; columns only run are named."""

import sqlite3
from contextlib import closing

import pytest

from gbfl_compile.auditing.audit import audit
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import scratch
from gbfl_compile.ir.json import save
from tests.auditing.forms.corpus import ONE

RULE = "CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END AS label"
ODD = "\n  CASE WHEN income >= 30000 THEN {} ELSE {} END AS p_decline,\n  CASE WHEN income >= 30000 THEN 1.0 ELSE 0.0 END AS p_approve"


def test_a_file_that_is_not_read_names_the_line_and_the_command(tmp_path):
    save(ONE, tmp_path / "one.gbfl.json")
    (tmp_path / "fill.sql").write_text("INSERT INTO decided\nSELECT id,\n  my_rule(income) AS label\nFROM applications")
    (found,) = audit(tmp_path / "one.gbfl.json", file=tmp_path / "fill.sql", dialect="postgres", label="label").verdicts
    assert found.verdict == "unread"
    assert found.reason.startswith("line 3 is not understood (my_rule(income) AS label)")
    assert (
        f"gbfl audit {tmp_path / 'one.gbfl.json'} --database URL --scored decided --label label" in found.other_command
    )


def test_a_view_that_is_not_read_names_the_command_with_its_own_names(tmp_path):
    save(ONE, tmp_path / "one.gbfl.json")
    with closing(sqlite3.connect(tmp_path / "bank.db")) as database:
        database.execute("CREATE TABLE applications (income REAL, debt REAL, age REAL, rate REAL)")
        database.execute(
            f"CREATE VIEW odd AS SELECT income, debt, age,\n  {RULE.replace('30000', 'abs(rate) * 3')} FROM applications"
        )
    url = f"sqlite:///{tmp_path / 'bank.db'}"
    (found,) = audit(tmp_path / "one.gbfl.json", database=url, view="odd").verdicts
    assert found.verdict == "unread"
    assert f"gbfl audit {tmp_path / 'one.gbfl.json'} --database {url} --scored odd" in found.other_command
    assert "strict form" not in found.reason


@pytest.mark.parametrize(
    ("values", "verdict"), [(("exp(0) - 1.0", "exp(0)"), "equal"), (("exp(0) - 1.0", "exp(1)"), "different")]
)
@pytest.mark.parametrize("layer", ["applications", "(SELECT * FROM applications WHERE age > 0) q"])
def test_probabilities_that_were_not_read_are_run_and_named(values, verdict, layer):
    pytest.importorskip("duckdb")
    with closing(scratch("duckdb")) as database:
        database.execute("CREATE TABLE applications (income INTEGER, debt INTEGER, age INTEGER)")
        database.execute(f"CREATE VIEW scores AS SELECT {RULE},{ODD.format(*values)} FROM {layer}")
        found = audit_view(AuditInput(ONE), database, "scores", "scores")
    assert found.verdict == verdict
    if verdict == "equal":
        assert set(found.run_only_columns) == {"p_decline", "p_approve"}
        assert found.evidence().startswith("labels read as equal; p_")
        assert "not read" in found.evidence()
