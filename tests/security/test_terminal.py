"""Names on a terminal, a real one: what they say is shown, what they would do to the terminal is not done."""

import json
import os
import subprocess
import sys

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.ir.json import save, to_json
from tests.security.attacks import program_of

pty = pytest.importorskip("pty", reason="terminals like this are of Unix")

CLEAR = "\x1b[2J"
TITLE = "\x1b]0;owned\x07"
HOSTILE = f"a{CLEAR}{TITLE}\u202eb\x9b31m"

RUN = "import sys; from gbfl_compile.cli import main; sys.exit(main(sys.argv[1:]))"
WEAKENED = f"""
import gbfl_compile.ir.text as readable
readable.printable = lambda name: name
{RUN}
"""


def on_a_terminal(code, *arguments, cwd):
    """All that a command sends to its terminal, and its exit code."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    running = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    printed = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        printed += piece
    os.close(ours)
    return printed.decode("utf-8", "replace"), running.wait()


@pytest.fixture
def folder(tmp_path):
    save(program_of(HOSTILE), tmp_path / "p.json")
    save(program_of("other"), tmp_path / "q.json")
    form = json.loads(to_json(program_of("asked")))
    (tmp_path / "wrong.json").write_text(json.dumps({**form, HOSTILE: 1}))
    (tmp_path / f"{HOSTILE}.json").write_text("{}")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    (tmp_path / "build" / "python").mkdir(parents=True)
    source = emit(program_of("asked"), "python").files["model.py"]
    (tmp_path / "build" / "python" / "model.py").write_bytes(source.replace(b"'asked'", repr(HOSTILE).encode()))
    (tmp_path / "build" / HOSTILE.replace("/", "")).mkdir()
    return tmp_path


COMMANDS = {
    "show": ["show", "p.json"],
    "lint": ["lint", "p.json"],
    "diff": ["diff", "p.json", "q.json"],
    "reasons": ["reasons", "p.json"],
    "check": ["check", "p.json", "build"],
    "check another": ["check", "q.json", "build"],
    "audit": ["audit", "q.json", "--file", "build/python/model.py"],
    "a wrong key": ["show", "wrong.json"],
    "a wrong file": ["show", f"{HOSTILE}.json"],
    "a missing column": ["check", "p.json", "build", "--data", "rows.csv"],
    "compile": ["compile", "p.json", "--to", "python", "-o", "out"],
    "report": ["report", "p.json", "-o", f"{HOSTILE}.html"],
}


def does_something(printed):
    """Whether a terminal would do what a name asks: clear the screen, change its title, turn the writing around."""
    return any(mark in printed for mark in (CLEAR, TITLE, "\x9b31m", "\u202e"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_does_nothing_to_the_terminal(command, folder):
    printed, code = on_a_terminal(RUN, *COMMANDS[command], cwd=folder)
    assert not does_something(printed), printed
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in printed
    if command in ("show", "a wrong key", "a wrong file"):
        assert "owned" in printed, "the name is shown, what it would do is not done"


@pytest.mark.parametrize("command", ["show", "a wrong file"])
def test_a_name_does_what_it_likes_where_nothing_is_escaped(command, folder):
    printed, _ = on_a_terminal(WEAKENED, *COMMANDS[command], cwd=folder)
    assert does_something(printed)
