"""The flags that mean the same everywhere, and what a terminal gets that a file does not."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gbfl_compile.cli.entry import gbfl, main
from gbfl_compile.ir.json import to_json
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

LONG = tuple(f"a_feature_with_a_rather_long_name_{number}" for number in range(6))
PROGRAM = Program(
    LONG,
    ("no", "yes"),
    (Clause(tuple(Interval(f, 0.5, 1.5) for f in range(6))), Clause((Interval(0, 0.5),))),
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), leaf(0.0, 1.0))),
)
ODD = Program(("x",), ("no", "yes"), (Clause(()),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))

COMMANDS = sorted(name for name, one in gbfl.commands.items() if not isinstance(one, click.Group))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(to_json(PROGRAM))
    (tmp_path / "odd.json").write_text(to_json(ODD))
    return tmp_path


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "completion"])
def test_every_command_can_be_quiet_and_speak_json(name):
    flags = {flag for parameter in gbfl.commands[name].params for flag in parameter.opts}
    assert {"--json", "--quiet"} <= flags
    assert name == "init" or "--out" in flags  # init makes a folder, which it is given by name


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["show", "p.json"], 0),
        (["lint", "odd.json"], 1),
        (["diff", "p.json", "p.json"], 0),
        (["compile", "p.json", "--to", "python", "-o", "b"], 0),
        (["doctor"], 0),
    ],
)
def test_quiet_leaves_the_exit_code_alone(folder, capsys, command, code):
    assert main([*command, "--quiet"]) == code
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", [["show", "p.json"], ["lint", "odd.json", "--json"], ["diff", "p.json", "p.json"]])
def test_out_has_what_would_be_printed(folder, capsys, command):
    code = main(command)
    printed = capsys.readouterr().out
    assert main([*command, "--out", "said.txt"]) == code
    assert capsys.readouterr() == ("", "")
    assert printed
    assert (folder / "said.txt").read_text() == printed


def test_out_of_a_check_is_its_verdict(folder, capsys):
    assert main(["compile", "p.json", "--to", "python", "-o", "b", "-q"]) == 0
    assert main(["check", "p.json", "b", "--json", "--out", "verdict.json"]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == "equal"


def test_what_fails_leaves_no_file(folder):
    assert main(["show", "nowhere.json", "--out", "said.txt"]) == 2
    assert not (folder / "said.txt").exists()


def on_a_terminal(*arguments, width=80, **variables):
    """What a command prints on a terminal so wide."""
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "xterm-256color", **variables}
    environment.pop("NO_COLOR", None) if "NO_COLOR" not in variables else None
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "gbfl_compile", *arguments],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as running:
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # how a terminal ends
                break
            if not part:
                break
            output += part
        running.wait(timeout=60)
    os.close(ours)
    return output.decode("utf-8").replace("\r\n", "\n")


def without_styles(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_colours_are_for_terminals_that_want_them(folder, capsys):
    assert main(["compile", "p.json", "--to", "python", "-o", "b", "-q"]) == 0
    assert "\x1b[32m" in on_a_terminal("check", "p.json", "b")
    assert "\x1b[32m" not in on_a_terminal("check", "p.json", "b", NO_COLOR="1")
    assert main(["check", "p.json", "b"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_long_rules_are_wrapped_on_a_terminal_and_nowhere_else(folder, capsys):
    assert main(["show", "p.json"]) == 0
    whole = capsys.readouterr().out
    assert max(map(len, whole.split("\n"))) > 200
    wrapped = on_a_terminal("show", "p.json")
    assert max(map(len, wrapped.split("\n"))) <= 80
    assert wrapped.split() == whole.split()
    assert re.search("\n {8}AND [0-9.a-z]", wrapped)


def test_long_rules_are_broken_between_conditions(folder):
    wrapped = on_a_terminal("show", "p.json")
    for line in wrapped.split("\n"):
        assert not re.search(r"(<|<=|>|>=|AND)$", line.rstrip())
        assert not re.match(r"\s*(<|<=|>|>=)", line)


def test_a_verdict_is_one_line_per_target_on_a_terminal_of_60_columns(folder, capsys):
    targets = "python,sql:sqlite,sql:duckdb"
    assert main(["compile", "p.json", "--to", targets, "-o", "b", "-q"]) == 0
    narrow = without_styles(on_a_terminal("check", "p.json", "b", width=60)).split("\n")
    table = [line for line in narrow if line.startswith(("target ", "python", "sql:"))]
    assert max(map(len, table)) <= 60
    for target in targets.split(","):
        (line,) = [line for line in narrow if re.match(rf"{target} +equal +proved", line)]
        assert re.search(r"0 different of \d+ rows *$", line)
    unwrapped = " ".join(" ".join(narrow).split())
    assert re.search(
        r"run: python by CPython \S+; sql:duckdb by DuckDB \S+; sql:sqlite by SQLite \S+ verdict", unwrapped
    )
    wide = without_styles(on_a_terminal("check", "p.json", "b", width=200))
    assert re.search(r"python +equal +proved +0 different of \d+ rows, CPython", wide)
    assert "run:" not in wide
    assert "consistency" not in wide  # nothing was compared: only --triplets has what to compare with


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_completion(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_GBFL_COMPLETE={shell}_complete" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    run = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_targets_are_completed_after_a_comma():
    environment = {**os.environ, "_GBFL_COMPLETE": "zsh_complete", "COMP_CWORD": "4"}
    environment["COMP_WORDS"] = "gbfl compile p.json --to python,sql:du"
    run = subprocess.run(
        [sys.executable, "-m", "gbfl_compile"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert run.stdout.split("\n")[:2] == ["plain", "python,sql:duckdb"]


def test_the_list_of_commands_fits_a_terminal(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "..." not in out.partition("Commands:")[2]
    assert out.index("  mine") < out.index("  compile") < out.index("  audit")


@pytest.mark.parametrize(
    "command",
    [
        "show p.json -o p.json",
        "lint p.json -o ./p.json",
        "report p.json -o p.json",
        "check p.json build --json p.json",
        "audit p.json --file build/python/model.py --html p.json",
        "score p.json rows.csv -o rows.csv",
        "score p.json rows.csv -o link.csv",
        "mine rows.csv --target age --train gbm -o rows.csv",
        "mine rows.csv --target age --train gbm --triplets rows.csv",
    ],
)
def test_what_is_read_is_never_written_over(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_text(to_json(PROGRAM))
    Path("rows.csv").write_text("age,income\n1,2\n")
    Path("link.csv").symlink_to("rows.csv")
    assert main(["compile", "p.json", "--to", "python", "-o", "build", "--no-check"]) == 0
    before = {path: path.read_bytes() for path in (Path("p.json"), Path("rows.csv"))}
    assert main(command.split()) == 2
    assert "would be lost" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in before} == before


def test_a_reader_that_has_seen_enough_is_not_a_defect():
    command = [sys.executable, "-m", "gbfl_compile", "doctor"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141
