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


def test_an_edit_that_mends_it_is_reported_for_most_and_the_edited_text_is_equal(tmp_path):
    mended, count = 0, 0
    for seed, edited, found in different_reports(tmp_path, shorten(40), first=1000):
        count += 1
        mend = found.story.mend
        if mend is None:
            continue
        mended += 1
        places = [at for at in range(len(edited.sql)) if edited.sql.startswith(mend.old, at)]
        line = [at for at in places if edited.sql.count("\n", 0, at) + 1 == mend.line.number]
        verdicts = set()
        for at in line:
            path = tmp_path / "mended.sql"
            path.write_text(f"{edited.sql[:at]}{mend.new}{edited.sql[at + len(mend.old) :]}")
            verdicts.add(audit(edited.approved, file=path, dialect="sqlite").verdict)
        assert "equal" in verdicts, (seed, edited.edit, mend)
    assert mended >= 0.8 * count


@pytest.mark.parametrize("seed", range(3))
def test_a_text_without_an_edit_is_not_called_different(tmp_path, seed):
    approved = edited_program(seed).approved
    path = tmp_path / "deployed.sql"
    path.write_text(sql_of(approved))
    assert audit(approved, file=path, dialect="sqlite").verdict == "equal"
