"""MariaDB's private server leaves other servers alone, and they leave it alone."""

import subprocess
from pathlib import Path

import pytest

from gbfl_compile.databases import mariadb
from gbfl_compile.errors import CannotRun


def test_temporary_tables_are_in_a_folder_of_its_own(monkeypatch):
    """A server that starts removes `#sql...` from its tmpdir, also what another one on this machine keeps there."""
    commands = []

    def refuse(command, **settings):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(mariadb.shutil, "which", lambda program, path: program)
    monkeypatch.setattr(mariadb.subprocess, "run", refuse)
    with pytest.raises(CannotRun):
        mariadb._server.__wrapped__()
    options = dict(word.split("=", 1) for word in commands[0] if "=" in word)
    assert Path(options["--tmpdir"]) == Path(options["--datadir"]).parent
