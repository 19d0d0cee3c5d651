"""Reasons in the user's own words, from the engines that take longer to start."""

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends.sql.run import read_script
from gbfl_compile.ir.text import with_reasons
from tests.backends.sql.programs import REASON_ROWS, REASONED, reasons_answered, reasons_expected, text_of


@pytest.mark.parametrize("name", REASONED)
@pytest.mark.parametrize("form", ["select", "view"])
def test_an_engine_gives_the_reasons(name, form, database, tmp_path):
    assert reasons_answered(REASONED[name], database, tmp_path, form=form) == reasons_expected(REASONED[name])


@pytest.mark.parametrize("name", ["tree", "rules"])
def test_a_view_is_proved_with_reasons_past_the_basic_plane(name, database, tmp_path):
    """MariaDB's catalog gives such characters as question marks."""
    if database.dialect == "spark":
        pytest.skip("views of Spark are not read")
    program, table = REASONED[name], f"people_{name}"
    database.insert(table, ["age", "income"], REASON_ROWS)
    path = tmp_path / "view.sql"
    text = text_of(program, database.dialect, form="view", table=table, view=f"told_{name}", outputs="label,reason")
    path.write_text(text, encoding="utf-8", newline="\n")
    for statement in read_script(path).statements:
        database.execute(statement)
    for source, verdict in ((program, "equal"), (with_reasons(program, {0: "another"}), "different")):
        found = audit_view(AuditInput(source, None, None, 10.0, {}), database, f"told_{name}", "the view")
        assert found.verdict == verdict, found.reason
    database.execute(f"DROP VIEW told_{name}")
