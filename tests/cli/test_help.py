"""Every command helps: it says what it does and shows an example that starts with its own name."""

import click
import pytest
from click.testing import CliRunner

from gbfl_compile.cli import gbfl


@pytest.mark.parametrize(
    "name", sorted(name for name, one in gbfl.commands.items() if not isinstance(one, click.Group))
)
def test_help_has_an_example(name):
    run = CliRunner().invoke(gbfl, [name, "--help"])
    assert run.exit_code == 0
    assert f"Example: gbfl {name}" in " ".join(run.output.split())
