"""When a deployed text is different, the report names the clause that was changed: of random programs, after one edit."""

import pytest

from gbfl_compile.auditing.audit import audit
from tests.auditing.forms.edits import edited_program, is_named_right, sql_of
from tests.counts import shorten

NAMED_RIGHT = 0.9


def different_reports(tmp_path, count, first=0):
    """(what was edited, the verdict) of every random program whose edit changes an answer."""
    path = tmp_path / "deployed.sql"
    for seed in range(first, first + count):
        edited = edited_program(seed)
        path.write_text(edited.sql)
        (found,) = audit(edited.approved, file=path, dialect="sqlite").verdicts
        assert found.verdict in ("equal", "different"), (seed, found)
        if found.verdict == "different":
            yield seed, edited, found


def test_the_clause_named_is_the_one_that_was_edited(tmp_path):
    reports = list(different_reports(tmp_path, shorten(120)))
    wrong = [
        (seed, edited.edit, found.changes)
        for seed, edited, found in reports
        if not is_named_right(edited.places, found.changes)
    ]
    assert len(wrong) <= (1 - NAMED_RIGHT) * len(reports), wrong


@pytest.mark.parametrize("seed", range(3))
def test_a_text_without_an_edit_is_not_called_different(tmp_path, seed):
    approved = edited_program(seed).approved
    path = tmp_path / "deployed.sql"
    path.write_text(sql_of(approved))
    assert audit(approved, file=path, dialect="sqlite").verdict == "equal"
