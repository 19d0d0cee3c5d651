"""`gbfl init`: a folder in which every command of its README works, and nothing is overwritten."""

import hashlib
import json
import shlex

import pytest

from gbfl_compile.cli import main
from gbfl_compile.files import resource_folder

README = resource_folder("templates") / "starter" / "README.md"


def commands():
    """The commands of the README's session, in order."""
    session = README.read_text().partition("## Then your own data")[0]
    return [shlex.split(line)[1:] for line in session.split("\n") if line.startswith("    gbfl ")]


def test_the_session_of_its_readme_works_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init", "start"]) == 0
    monkeypatch.chdir(tmp_path / "start")
    verbs = []
    for command in commands():
        assert main(command) == 0, (command, capsys.readouterr().err)
        verbs.append(command[0])
    assert verbs == ["mine", "show", "show", "compile", "check", "score", "audit", "report", "reasons", "mine"]
    out = capsys.readouterr().out
    assert "verdict: equal" in out
    assert "Would change it" in out
    scored = (tmp_path / "start/scored.csv").read_text().split("\n")
    assert scored[0] == "loan,label,p_no,p_yes"
    assert len(scored) == 202


def test_it_writes_the_same_bytes_every_time(tmp_path):
    assert main(["init", str(tmp_path / "a"), "--quiet"]) == 0
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in (tmp_path / "a").iterdir()}
    assert found.pop("README.md")
    assert found == {
        "loans.csv": "240be95fd2df270c",
        "loans_words.csv": "340340ca1b4f44e9",
        "new.csv": "fae7e631bceff45f",
    }


@pytest.mark.parametrize("name", ["README.md", "loans.csv", "loans_words.csv", "new.csv"])
def test_nothing_is_overwritten(tmp_path, capsys, name):
    (tmp_path / name).write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert f"{name}: already exists and is not overwritten" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_json(tmp_path, capsys):
    assert main(["init", str(tmp_path / "x"), "--json"]) == 0
    form = json.loads(capsys.readouterr().out)
    assert list(form) == ["folder", "files"]
    assert len(form["files"]) == 4
