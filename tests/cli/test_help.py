"""Every command helps: it says what it does and shows an example that starts with its own name and could be run."""

import re

import click
import pytest
from click.testing import CliRunner

from gbfl_compile.cli.entry import gbfl
from tests.cli.spelling import misspelt


def commands(group, before=()):
    """Every command by its words, those of a group and the group itself too."""
    for name, one in group.commands.items():
        yield " ".join((*before, name))
        if isinstance(one, click.Group):
            yield from commands(one, (*before, name))


@pytest.mark.parametrize("name", sorted(commands(gbfl)))
def test_help_has_an_example(name):
    run = CliRunner().invoke(gbfl, [*name.split(), "--help"])
    assert run.exit_code == 0
    text = " ".join(run.output.split())
    assert f"Example: gbfl {name}" in text
    for example in re.findall(r"Example: (gbfl .*?)(?= Example: | Options: | Commands: |$)", text):
        assert misspelt(example) is None


def test_an_example_that_could_not_be_run_is_noticed():
    assert misspelt("gbfl mine loans.csv --target default -o p.json") is None
    assert misspelt("gbfl nonsense p.json") == "there is no command nonsense"
    assert misspelt("gbfl mine loans.csv --nonsense") == "gbfl mine has no --nonsense"
    assert misspelt("gbfl audit-log nonsense a.jsonl") == "there is no command audit-log nonsense"


def test_no_command_is_cut_short_in_the_list():
    run = CliRunner().invoke(gbfl, ["--help"])
    listed = run.output.partition("Commands:")[2]
    assert "..." not in listed
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == list(gbfl.commands)
