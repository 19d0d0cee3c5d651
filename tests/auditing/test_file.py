"""An equal file passes; each tampering is found, named by its clause, and shown by a row that really differs."""

import numpy as np
import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.auditing.verdict import AuditReport, report_form, verdict_lines
from gbfl_compile.backends import backend, emit
from gbfl_compile.checking.artifact import READERS, was_run
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.validate import validate
from tests.auditing.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE

SLOW = ("sql:mariadb", "sql:clickhouse", "sql:datafusion", "sql:spark")
"""Those that start an engine: tests/engines has them."""

TARGETS = [target for target in READERS if target not in SLOW]
NAMED_AT_LEAST = 0.9


def write(program, target, folder):
    artifact = emit(validate(program), target)
    for file, content in artifact.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return folder / f"model{backend(target).extension}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_what_was_approved_is_proved(program, target, tmp_path):
    found = audit_file(AuditInput(program), write(program, target, tmp_path))
    if was_run(target):
        assert (found.verdict, found.evidence().split(";")[0], found.reason) == ("equal", "proved", None)
    elif program is CARD:  # probabilities through EXP are read in the strict form alone
        assert (found.verdict, found.is_proved) == ("unread", False)
        return
    else:
        assert (found.verdict, found.evidence(), found.is_proved) == ("not run", "read as equal", False)
        assert found.reason.startswith("read as equal, but not run; ")
    assert found.changes == ()
    assert found.carried_digest == digest(program)


@pytest.mark.parametrize(("target", "table"), [("sql:sqlite", "`data`"), ("sql:postgres", '"data"')])
def test_sql_rewritten_by_hand_is_read_as_equal_and_not_proved(target, table, tmp_path):
    path = write(TREE, target, tmp_path)
    text = path.read_text()
    assert f"FROM {table}" in text
    path.write_text(text.replace(f"FROM {table}", "FROM data"))
    found = audit_file(AuditInput(TREE), path)
    rows = found.execution.rows
    assert (found.verdict, found.evidence()) == ("equal", f"read as equal; 0 different of {rows} witnesses")
    assert rows > 0
    assert not found.is_proved
    report = AuditReport(digest(TREE), (found,))
    assert (report.is_accepted(), report.is_accepted(only_proved=True)) == (True, False)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_sql_without_its_header_needs_none_to_be_proved(dialect, tmp_path):
    path = write(TREE, f"sql:{dialect}", tmp_path)
    path.write_text("\n".join(line for line in path.read_text().split("\n") if not line.startswith("--")))
    found = audit_file(AuditInput(TREE), path, dialect)
    assert (found.verdict, found.evidence(), found.carried_digest) == ("equal", "proved", None)
    assert "digest" in found.not_executed


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("program", "cases"), [(TREE, TAMPERED_TREES), (CARD, TAMPERED_CARDS)], ids=["tree", "rule set"]
)
def test_every_tampering_is_found_and_nearly_every_one_named(program, cases, target, tmp_path):
    if program is CARD and not was_run(target):
        pytest.skip("rule sets for databases that are never run are not read")
    assert_tamperings_are_found(program, cases, target, tmp_path)


def assert_tamperings_are_found(program, cases, target, tmp_path):
    """Each is found, shown by a row that really differs, and nearly always named by its clause."""
    named = 0
    for number, (name, tampered, where) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = audit_file(AuditInput(program, mends=False), write(tampered, target, folder))
        assert found.verdict == "different", name
        assert found.carried_digest == digest(tampered) != digest(program)
        row = [np.nan if value is None else value for value in found.region.row.values()]
        assert evaluate(program, row) != evaluate(tampered, row), name
        assert evaluate(program, row).label == found.region.approved
        assert evaluate(tampered, row).label == found.region.deployed
        named += any(where in change.where for change in found.changes)
    assert named >= NAMED_AT_LEAST * len(cases)


def test_the_words_are_the_ones_people_use(tmp_path):
    _name, tampered, _ = next(case for case in TAMPERED_TREES if case[0] == "greater for at least")
    found = audit_file(AuditInput(TREE), write(tampered, "python", tmp_path))
    assert "clause 0: income >= 50000 is deployed as income > 50000" in [change.text() for change in found.changes]
    assert found.region.row["income"] == 50000.0
    assert "income = 50000" in found.region.rule


def test_rows_of_data_that_move_are_counted(tmp_path):
    _name, tampered, _ = next(case for case in TAMPERED_TREES if case[0] == "another number")
    rows = np.random.default_rng(0).uniform([0, 18, 0, 0], [120000, 70, 1, 20], size=(2000, 4))
    found = audit_file(AuditInput(TREE, rows), write(tampered, "c", tmp_path))
    truth = evaluate_many(TREE, rows).labels != evaluate_many(tampered, rows).labels
    assert found.moves.rows == truth.sum() > 0
    assert found.moves.of == 2000
    assert sum(count for _, _, count in found.moves.moves) == found.moves.rows


def test_a_deployed_python_file_is_never_executed(tmp_path):
    path = write(TREE, "python", tmp_path)
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + path.read_text())
    found = audit_file(AuditInput(TREE), path)
    assert found.verdict == "unread"
    assert not (tmp_path / "ran").exists()


def test_the_report_says_it_in_text_and_in_json(tmp_path):
    _name, tampered, _ = TAMPERED_CARDS[0]
    found = audit_file(AuditInput(CARD), write(tampered, "python", tmp_path))
    lines = list(verdict_lines(found, digest(CARD)))
    assert lines[0].endswith("different (counterexample)")
    assert any("clause 0: income >= 50000 is deployed as income > 50000" in line for line in lines)
    form = report_form(AuditReport(digest(CARD), (found,)))
    assert form["schema"] == 1
    assert form["audited"][0]["differences"][0]["where"] == "clause 0"
    assert form["audited"][0]["differences"][0]["kind"] == "tightened"
    assert form["audited"][0]["digest_matches"] is False


def test_what_is_not_an_artifact_is_refused(tmp_path):
    (tmp_path / "m.txt").write_text("hello")
    with pytest.raises(BadInput, match=r"\.py, \.c, \.js, \.onnx or \.sql"):
        audit_file(AuditInput(TREE), tmp_path / "m.txt")
    with pytest.raises(BadInput, match="No such file"):
        audit_file(AuditInput(TREE), tmp_path / "none.py")
    (tmp_path / "m.sql").write_text("SELECT 1")
    with pytest.raises(BadInput, match="--dialect"):
        audit_file(AuditInput(TREE), tmp_path / "m.sql")


REPORT_KEYS = {"schema", "verdict", "source", "audited"}
AUDITED_KEYS = {
    *("what", "kind", "verdict", "evidence", "reason", "digest", "digest_matches", "fingerprint", "engine", "proof"),
    *("execution", "rows", "consistency", "differences", "region", "moved", "story"),
}
DIFFERENCE_KEYS = {"where", "approved", "deployed", "kind", "text"}


def test_the_json_form_keeps_its_keys(tmp_path):
    """A reader of schema 1 finds these whatever was audited; a kind may have more beside them."""
    _name, tampered, _ = TAMPERED_CARDS[0]
    for program in (CARD, tampered):
        form = report_form(
            AuditReport(digest(CARD), (audit_file(AuditInput(CARD), write(program, "python", tmp_path)),))
        )
        assert set(form) == REPORT_KEYS
        assert set(form["audited"][0]) == AUDITED_KEYS
        assert all(set(each) == DIFFERENCE_KEYS for each in form["audited"][0]["differences"])
    assert set(form["audited"][0]["region"]) == {"rule", "row", "approved", "deployed"}
