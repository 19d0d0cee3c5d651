"""SQL files of the slower engines, read back, proved and run: equal ones pass, tampered ones are found and named."""

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.databases import availability
from tests.auditing.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE
from tests.auditing.test_file import assert_tamperings_are_found, write


@pytest.fixture(params=["mariadb", "clickhouse", "datafusion"])
def dialect(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    return request.param


@pytest.mark.parametrize(
    ("program", "cases"), [(TREE, TAMPERED_TREES), (CARD, TAMPERED_CARDS)], ids=["tree", "rule set"]
)
def test_every_tampering_is_found_and_nearly_every_one_named(program, cases, dialect, tmp_path):
    same = audit_file(AuditInput(program), write(program, f"sql:{dialect}", tmp_path))
    assert (same.verdict, same.proof.answer, same.execution.different) == ("equal", "proved", 0)
    assert_tamperings_are_found(program, cases, f"sql:{dialect}", tmp_path)
