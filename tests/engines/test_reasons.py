"""Reasons in the user's own words, told by the engines that take longer to start."""

import pytest

from tests.backends.sql_programs import REASONED, reasons_expected, reasons_told


@pytest.mark.parametrize("name", REASONED)
@pytest.mark.parametrize("form", ["select", "view"])
def test_an_engine_tells_them(name, form, database, tmp_path):
    assert reasons_told(REASONED[name], database, tmp_path, form=form) == reasons_expected(REASONED[name])
