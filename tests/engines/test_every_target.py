"""The promise of tests/backends/test_every_target.py, kept by the engines that take longer to start."""

import pytest

from tests.backends.test_every_target import PROGRAMS, in_engine


@pytest.mark.parametrize("dialect", ["postgres", "mariadb", "clickhouse", "spark"])
def test_an_engine_with_a_server_of_its_own_agrees(dialect, tmp_path):
    most = PROGRAMS if dialect != "spark" else PROGRAMS // 5
    assert in_engine(dialect, tmp_path, most) >= 0.5 * most
