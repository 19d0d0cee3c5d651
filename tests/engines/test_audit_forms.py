"""The deployed forms in the engines that start slowly."""

import pytest

from tests.auditing.forms.test_forms import assert_forms_are_read


@pytest.mark.parametrize("engine", ["mariadb", "clickhouse"])
def test_no_deployed_form_is_called_what_it_is_not_and_most_are_read(engine):
    assert_forms_are_read(engine)
