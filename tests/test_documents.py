"""The documents are true: every command and every program in them is run, and prints what they say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gbfl_compile.cli import start as starter
from tests.cli.spelling import misspelt
from tests.documents import DOCUMENTS, ROOT, RUN, blocks, indented_commands, matches

NOT_RUN = {
    "README.md": (
        "it installs, as tests/test_session.py does with the wheel",
        "tests/test_session.py runs it from an installed wheel, in an empty folder",
    ),
    "docs/auditing.md": ("a database of yours",),
    "docs/scale.md": ("a million rows of yours", "a cluster of yours, tests/engines/test_dask.py has one"),
    "docs/sql.md": ("a database of yours",),
    "examples/README.md": ("it is run by tests/test_examples.py",),
}
"""Every block that is not run, and why."""


def empty(folder):
    folder.mkdir()


def model(folder):
    """The loans of `gbfl init`, and the program that docs/language.md writes."""
    starter.write_starter(folder)
    (folder / "README.md").unlink()
    (source, *_) = (block for block in blocks(ROOT / "docs/language.md") if block.language == "python")
    subprocess.run([sys.executable, "-c", source.text], cwd=folder, check=True, capture_output=True)


def checkout(folder):
    """A copy of the checkout, to be changed; and the program of docs/language.md."""
    model(folder)
    for name in ("gbfl_compile", "templates", "runtime_c", "tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)


def audit_example(folder):
    """The example that docs/auditing.md goes through."""
    shutil.copytree(ROOT / "examples/audit", folder)


FOLDERS = {"empty": empty, "model": model, "checkout": checkout, "audited": audit_example}
"""Folders that a document can start in."""


@pytest.fixture(scope="session")
def folder_called(tmp_path_factory):
    """A fresh copy of a folder, which is built once."""
    home = tmp_path_factory.mktemp("documents")

    def copy(name, to):
        if not (home / name).exists():
            FOLDERS[name](home / name)
        shutil.copytree(home / name, to)

    return copy


def environment(folder):
    """This environment, with its own commands first on the path and the package of the folder or of this checkout."""
    home = folder if (folder / "gbfl_compile").is_dir() else ROOT
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("GBFL", "COLUMNS", "FORCE_COLOR"))}
    return {**plain, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{plain['PATH']}", "PYTHONPATH": str(home)}


COMMANDS = {
    "bash": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "diff": ["git", "apply", "-"],
}
"""How a block is run; a diff is applied."""


def run(block, folder):
    command = COMMANDS[block.language]
    done = subprocess.run(
        [*command, block.text] if block.language in RUN else command,
        cwd=folder,
        env=environment(folder),
        input=block.text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == int(block.remark("exit") or 0), f"{block.place}: {done.stdout}"
    if block.output is not None:
        assert matches(block.output, done.stdout), f"{block.place} prints\n{done.stdout}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_does_what_it_says(document, folder_called, tmp_path):
    ran = 0
    folder = None
    for block in blocks(document):
        if (name := block.remark("in")) is not None:
            folder = tmp_path / f"{name}-{block.line}"
            folder_called(name, folder)
        if block.remark("not run") is not None:
            continue
        if (program := block.remark("needs")) is not None and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
        if (file := block.remark("file")) is not None:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(block.text, encoding="utf-8")
        elif block.language in COMMANDS:
            assert folder is not None, f"{block.place}: say in which folder it runs"
            run(block, folder)
            ran += 1
        assert block.language != "text", f"{block.place}: this output follows no command"
    assert ran or str(document.relative_to(ROOT)) in NOTHING_TO_RUN


NOTHING_TO_RUN = ("examples/README.md", "docs/benchmarks.md", "docs/proof.md")
"""Documents without a command that is run."""


NAMING = (ROOT / "CONTRIBUTING.md", ROOT / "runtime_c/README.md")
"""More documents whose paths must exist; nothing in them is run."""


def test_what_is_not_run_is_listed_with_its_reason():
    not_run = {}
    for document in DOCUMENTS:
        reasons = tuple(reason for block in blocks(document) if (reason := block.remark("not run")) is not None)
        if reasons:
            not_run[str(document.relative_to(ROOT))] = reasons
    assert not_run == NOT_RUN


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_are_in_blocks_that_are_run(document):
    assert indented_commands(document) == []


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "docs/paper.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_inline_commands_exist(document):
    """Such as `gbfl lint PROGRAM --data F`: the command and its flags exist."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for command in re.findall(r"`(gbfl [a-z][^`]*)`", text):
        assert (wrong := misspelt(command)) is None, wrong


@pytest.mark.parametrize("document", [*DOCUMENTS, *NAMING], ids=lambda path: str(path.relative_to(ROOT)))
def test_paths_and_links_exist(document):
    text = document.read_text(encoding="utf-8")
    named = [
        ROOT / path
        for path in re.findall(r"`((?:tests|gbfl_compile|examples|docs|templates|runtime_c)/[\w/.-]+)`", text)
    ]
    linked = [document.parent / path for path in re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", text)]
    for path in (*named, *linked):
        assert path.exists(), f"{document.name} names {path}"


def test_an_output_that_differs_is_noticed():
    assert matches("one\n…\nlast\n", "one\ntwo\nthree\nlast\n")
    assert matches("0 of … rows  x\n", "0 of 12 rows  x  \n")
    assert not matches("one\nlast\n", "one\ntwo\nlast\n")
    assert not matches("0 of … rows\n", "1 of 12 rows\n")
    assert not matches("one\n", "one\ntwo\n")
