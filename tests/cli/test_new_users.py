"""What people try first: the wrong file, a misspelled command, a pipe that is closed, a library that is missing.

Each is answered with the command that was meant, which can be pasted.
"""

import datetime as dt
import gzip
import io
import json
import os
import pickle
import pty
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import joblib
import numpy as np
import pytest

import gbfl_compile.version
from gbfl_compile.backends import BACKENDS, folder_name
from gbfl_compile.cli.entry import COMMANDS, main
from gbfl_compile.files.formats import TARGET_FOLDER, shell_command
from gbfl_compile.ir.json import to_json
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from gbfl_compile.version import install_command

PROGRAM = Program(("x",), ("no", "yes"), (Clause((Interval(0, 0.5),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))
ROOT = Path(__file__).parents[2]
ODD_NAME = "a folder with $signs & 'quotes'"


NAMES = [command.name for command in COMMANDS]
LONG = tuple(f"a_feature_with_a_long_name_{number}" for number in range(4))
WIDE = Program(
    LONG,
    ("no", "yes"),
    (Clause(tuple(Interval(f, 0.5, 1.5) for f in range(4))), Clause((Interval(0, 0.5),))),
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), leaf(0.0, 1.0))),
)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    home = tmp_path_factory.mktemp("compiled")
    for program, file, out, targets in (
        (PROGRAM, "p.gbfl.json", "build", "python,c,js,onnx,sql:sqlite"),
        (WIDE, "wide.json", "build-wide", "python,c,js,onnx,sql:sqlite,sql:duckdb"),
    ):
        (home / file).write_text(to_json(program))
        assert main(["compile", str(home / file), "--to", targets, "-o", str(home / out), "-q", "--no-check"]) == 0
    return home


@pytest.fixture
def folder(tmp_path, monkeypatch, compiled):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def refusal(capsys, *arguments):
    """The one line that a command is refused with."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.strip().split("\n")
    return line


def commands_in(line):
    """Every command that a message suggests, split as a shell splits it."""
    return [shlex.split(text) for text in re.findall(rf"gbfl (?:{'|'.join(NAMES)}) .*?(?=; |$)", line)]


def parquet():
    pyarrow, written = pytest.importorskip("pyarrow"), io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"x": [1.0]}), written)
    return written.getvalue()


def joblib_bytes():
    written = io.BytesIO()
    joblib.dump({"a": np.zeros(3)}, written, compress=3)
    return written.getvalue()


def npz():
    written = io.BytesIO()
    np.savez(written, x=np.zeros((1, 1)))
    return written.getvalue()


FILES = {
    "model.pkl": (lambda: pickle.dumps({"a": 1}), "a pickled model", ["mine", "--black-box"]),
    "model.joblib": (joblib_bytes, "a pickled model", ["mine", "--black-box"]),
    "model": (lambda: pickle.dumps({"a": 1}), "a pickled model", ["mine", "--black-box"]),
    "model.skops": (lambda: b"PK\x03\x04", "a skops model", ["mine", "--black-box"]),
    "other.onnx": (lambda: b"\x08\x08\x12\x07pytorch", "an ONNX model", ["mine", "--black-box"]),
    "loans.csv": (lambda: b"x,y\n1,2\n", "a table", ["mine", "--train"]),
    "loans.csv.gz": (lambda: gzip.compress(b"x,y\n1,2\n"), "a table", ["mine", "--train"]),
    "loans.parquet": (parquet, "a table", ["mine", "--train"]),
    "loans.duckdb": (lambda: bytes(8) + b"DUCK" + bytes(100), "a database", ["mine", "duckdb:///"]),
    "mine.npz": (npz, "a file of explained rows", ["check", "--triplets"]),
    "scorer.py": (lambda: b"def score(rows): ...\n", "a Python file", ["mine", "scorer:FUNCTION"]),
    "view.sql": (lambda: b"SELECT 1", "SQL", ["audit", "--dialect"]),
    "page.html": (lambda: b"<!doctype html>", "an HTML page", []),
    "loans.xlsx": (lambda: b"PK\x03\x04", "a spreadsheet", []),
    "empty.json": (lambda: b"", "an empty file", []),
}


MINE = ["mine", "t.csv", "--target"]
INSIDE = ["score", "p.gbfl.json", "--table", "t", "--to-table", "s", "--database"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_kind_is_answered_with_its_command(folder, capsys, name):
    content, what, words = FILES[name]
    Path(name).write_bytes(content())
    line = refusal(capsys, "compile", name, "--to", "python", "-o", "b")
    assert f"{name}: is {what}" in line
    assert "not a rule program" in line
    assert [all(any(word in part for part in command) for word in words) for command in commands_in(line)] == [
        True
    ] * bool(words)
    assert not words or name in line.split("; ", 1)[1] or name == "scorer.py"


def test_a_sqlite_database_is_answered_with_its_address(folder, capsys):
    with closing(sqlite3.connect("loans.db")) as database:
        database.execute("CREATE TABLE loans (x)")
    (command,) = commands_in(refusal(capsys, "show", "loans.db"))
    assert command[:4] == ["gbfl", "mine", "--database", "sqlite:///loans.db"]


def test_what_these_commands_write_is_answered_with_what_it_is_for(folder, capsys):
    assert main(["check", "p.gbfl.json", "build", "--json", "check.json", "-q"]) == 0
    assert main(["audit", "p.gbfl.json", "--file", "build/python/model.py", "--json", "-o", "audit.json"]) == 0
    assert main(["audit", "p.gbfl.json", "--file", "build/c/model.c", "--log", "a.jsonl", "--evidence", "pack"]) == 0
    suggestions = {
        "check.json": ["gbfl", "report", "PROGRAM.json", "-o", "report.html", "--verdict", "check.json"],
        "audit.json": ["gbfl", "report", "PROGRAM.json", "-o", "report.html", "--audit", "audit.json"],
        "a.jsonl": ["gbfl", "audit-log", "verify", "a.jsonl"],
        "pack": ["gbfl", "audit-evidence", "verify", "pack"],
        "build": ["gbfl", "check", "PROGRAM.json", "build"],
        "build/python": ["gbfl", "score", "build/python", "TABLE.csv", "-o", "scored.csv"],
        "build/onnx/model.onnx": ["gbfl", "score", "build/onnx", "TABLE.csv", "-o", "scored.csv"],
        "build/sql-sqlite/model.sql": ["gbfl", "score", "build/sql-sqlite", "TABLE.csv", "-o", "scored.csv"],
    }
    for file, command in suggestions.items():
        assert commands_in(refusal(capsys, "show", file)) == [command]
    for log, verb in (("a.jsonl", "audit-log"), ("pack", "audit-evidence")):  # and the suggestion does what it says
        assert commands_in(refusal(capsys, verb, log)) == [["gbfl", verb, "verify", log]]
        assert main([verb, "verify", log]) == 0


def test_every_targets_folder_is_known_as_one():
    assert all(TARGET_FOLDER.fullmatch(folder_name(target)) for target in BACKENDS)


def test_a_broken_program_is_not_mistaken_for_another_file(folder, capsys):
    Path("broken.json").write_text(to_json(PROGRAM).replace("0.5", "0.6"))
    assert "hex 0x1.0000000000000p-1 is 0.5" in refusal(capsys, "show", "broken.json")
    Path("half.json").write_text(to_json(PROGRAM)[:-30])
    assert "half.json: not JSON" in refusal(capsys, "show", "half.json")
    assert "nothing.csv: No such file" in refusal(capsys, "show", "nothing.csv")


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["mine", "p.gbfl.json", "--target", "y", "--train", "gbm"], "gbfl show p.gbfl.json"),
        (["check", "build", "p.gbfl.json"], "gbfl check p.gbfl.json build"),
        (["check", "p.gbfl.json", "build/c"], "give the one above it, build"),
        (["check", "p.gbfl.json", "build/c/model.c"], "gbfl score build/c TABLE.csv -o scored.csv"),
        (["audit", "p.gbfl.json", "build"], "gbfl check p.gbfl.json build"),
        (["audit", "p.gbfl.json", "--file", "build"], "gbfl check p.gbfl.json build"),
        (["audit", "p.gbfl.json", "build/c"], "gbfl check p.gbfl.json build"),
        (["audit", "p.gbfl.json", "t.db"], "--database sqlite:///t.db --view VIEW"),
        (["audit", "p.gbfl.json", "--database", "sqlite:///t.db"], "--view VIEW, or --scored TABLE"),
        (["audit", "build/c/model.c", "p.gbfl.json"], "gbfl audit p.gbfl.json build/c/model.c"),
        (["score", "t.csv", "build/c"], "gbfl score build/c t.csv -o scored.csv"),
        (["compile", "t.csv"], "gbfl mine t.csv --target COLUMN"),
        (["complie", "p.gbfl.json"], "did you mean gbfl compile?"),
        (["predict", "t.csv"], "did you mean gbfl score?"),
        (["help"], "did you mean gbfl --help?"),
        (["compile", "p.gbfl.json", "--to", "javascript", "-o", "b"], "did you mean js?"),
        (["compile", "p.gbfl.json", "--to", "postgresql", "-o", "b"], "did you mean sql:postgres?"),
        (["show", "p.gbfl.jsn"], "did you mean p.gbfl.json?"),
        (["score", "build", "t.csv", "-o", "s.csv"], "several artifacts: give one of them, build/c, build/js"),
        (["score", "build/pyton", "t.csv", "-o", "s.csv"], "did you mean build/python?"),
        (["check", "p.gbfl.json", "biuld"], "did you mean build?"),
        (["lint", "p.gbfl.json", "--data", "tt.csv"], "did you mean t.csv?"),
        (["audit", "p.gbfl.json", "--database", "sqlite:///tt.db", "--view", "v"], "did you mean t.db?"),
        (["audit-evidence", "verify", "build"], "build: is not an evidence pack: it has no manifest.json"),
        (["reasons", "p.gbfl.json", "t.csv"], "gbfl reasons p.gbfl.json t.csv -o NEW.gbfl.json"),
        (["compile", "p.gbfl.json", "--to", "sql:sqlite", "-o", "b", "--set", "sql.form=veiw"], "did you mean 'view'?"),
        (["compile", "p.gbfl.json", "--to", "c", "-o", "b", "--set", "c.dtype=flaot32"], "did you mean 'float32'?"),
        (["mine", "t.csv", "--target", "y", "--train", "gbm", "--explainer", "gredy"], "did you mean 'greedy'?"),
        (["compile", "p.gbfl.json", "--to", "c,,js", "-o", "b"], "a name is missing between two commas"),
        (["compile", "p.gbfl.json", "--to", "c", "-o", "t.csv"], "a file is where a folder is needed"),
        (["compile", "p.gbfl.json", "--to", "c", "-o", "b", "--name", "my model"], "such as my_model"),
        (["compile", "p.gbfl.json", "--to", "c", "-o", "b", "--set", "c.dtpye=float32"], "did you mean 'dtype'?"),
        (["compile", "p.gbfl.json", "--to", "sql:sqlite", "-o", "b", "--set", "form=view"], "--set sql.form=view"),
        (["compile", "p.gbfl.json", "--to", "sql:sqlite", "-o", "b", "--set", "sql.tabel=t"], "did you mean 'table'?"),
        ([*MINE, "Y", "--train", "gbm"], "did you mean 'y'?"),
        ([*MINE, "y", "--train", "gbm", "--features", "x,y"], "--features names the target, 'y'"),
        ([*MINE, "y", "--train", "gbm", "--features", "x", "--drop", "x"], "'x' is both in --features and in --drop"),
        ([*MINE, "y", "--black-box", "scoring.predict"], "--black-box scoring:predict"),
        ([*MINE, "y", "--black-box", "scoring.py:predict"], "--black-box scoring:predict"),
        ([*MINE, "y", "--black-box", "scoring:predcit"], "did you mean 'predict'?"),
        ([*MINE, "y", "--black-box", "no_such_module:predict"], "neither installed nor no_such_module.py in"),
        ([*MINE, "y", "--black-box", "scoring:labels"], "it must return probabilities, as predict_proba does"),
        (["mine", "tables", "--target", "y", "--train", "gbm"], "a table in it: tables/loans.csv"),
        ([*INSIDE, "t.db"], "a database is named by a URL: sqlite:///t.db"),
        ([*INSIDE, "sqlite://t.db"], "three slashes: sqlite:///t.db"),
        ([*INSIDE, "duckdb:///t.db"], "name it sqlite:///t.db"),
        (["p.gbfl.json"], "gbfl show p.gbfl.json"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(folder, capsys, command, meant):
    Path("t.csv").write_text("x,y\n" + "1,a\n2,b\n" * 40)
    Path("scoring.py").write_text("def predict(x): return x[:, 0] - 1\n\ndef labels(x): return ['a'] * len(x)\n")
    Path("tables").mkdir()
    Path("tables/loans.csv").write_text("x,y\n")
    with closing(sqlite3.connect("t.db")) as database:
        database.execute("CREATE TABLE t (x)")
    assert meant in refusal(capsys, *command)


def test_a_black_box_of_the_wrong_kind_is_answered_too(folder, capsys):
    Path("t.csv").write_text("x,y\n" + "1,a\n2,b\n" * 40)
    line = refusal(capsys, "mine", "t.csv", "--target", "y", "--black-box", "p.gbfl.json")
    assert "p.gbfl.json: is a rule program, not a black box" in line


def test_suggestions_can_be_pasted_whatever_the_names_are(folder, capsys):
    odd = folder / ODD_NAME
    odd.mkdir()
    (odd / "t.csv").write_text("x,y\n" + "1,a\n2,b\n3,a\n4,b\n" * 40)
    program = f"{ODD_NAME}/p.json"
    assert main(["mine", f"{ODD_NAME}/t.csv", "--target", "y", "--train", "gbm", "-o", program]) == 0
    (suggested,) = commands_in(" ".join(capsys.readouterr().out.split("\n")[-2:]).strip())
    assert suggested == ["gbfl", "compile", program, "--to", "python", "-o", "build"]
    (suggested,) = commands_in(refusal(capsys, "show", f"{ODD_NAME}/t.csv"))
    assert suggested[2] == f"{ODD_NAME}/t.csv"
    assert main(["init", f"{ODD_NAME}/start"]) == 0
    assert f"next: {shell_command('cd', f'{ODD_NAME}/start')}," in capsys.readouterr().out
    assert main(["compile", "p.gbfl.json", "--to", "python", "-o", ODD_NAME, "--no-check"]) == 0
    assert commands_in(capsys.readouterr().out.strip().split("\n")[-1])[0][-1] == ODD_NAME


CLOSED = {
    "show --json": ["show", "p.gbfl.json", "--json"],
    "show": ["show", "p.gbfl.json"],
    "check --json": ["check", "p.gbfl.json", "build", "--json"],
    "doctor --json": ["doctor", "--json"],
    "help": ["mine", "--help"],
    "all help": ["--help"],
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_pipe_that_is_closed_early_ends_a_command_quietly(folder, name):
    reading, writing = os.pipe()
    os.close(reading)  # as `head` does, once it has seen enough
    command = [sys.executable, "-m", "gbfl_compile", *CLOSED[name]]
    run = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (run.returncode, run.stderr) == (141, b"")


def test_an_extra_is_installed_from_where_the_package_came_from(monkeypatch):
    words = shlex.split(install_command("onnx"))
    assert words[words.index("install") - 1] == "pip"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    place, _, extra = words[-1].rstrip("]").partition("[")
    if Path(place).is_dir():
        assert (Path(place) / "pyproject.toml").is_file()
    assert extra in extras
    monkeypatch.setattr(gbfl_compile.version, "_origin", lambda: None)
    assert sorted(shlex.split(install_command("sql"))[-2:]) == sorted(extras["sql"])
    nested = shlex.split(install_command("engines"))
    assert set(extras["sql"] + extras["parquet"] + extras["dask"]) < set(nested)
    assert not [word for word in nested if word.startswith("gbfl-compile")]


def on_terminal(*arguments, **environment):
    """What a terminal of 80 columns shows."""
    main_end, other_end = pty.openpty()
    settings = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color", **environment}
    settings = {name: value for name, value in settings.items() if value is not None}
    command = [sys.executable, "-m", "gbfl_compile", *arguments]
    run = subprocess.Popen(command, stdout=other_end, stderr=other_end, stdin=subprocess.DEVNULL, env=settings)
    os.close(other_end)
    shown = b""
    try:
        while chunk := os.read(main_end, 65536):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(main_end)
    run.wait()
    return shown.decode().replace("\r\n", "\n")


NARROW = {
    "show": ["show", "wide.json"],
    "check": ["check", "wide.json", "build-wide"],
    "lint": ["lint", "wide.json"],
    "doctor": ["doctor"],
    "reasons": ["reasons", "wide.json"],
    "audit": ["audit", "wide.json", "--file", "build-wide/c/model.c"],
    "diff": ["diff", "wide.json", "p.gbfl.json"],
    "sizes": ["sizes", "build-wide/c/model.c"],
    "help": ["mine", "--help"],
}


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.mark.parametrize("name", NARROW)
def test_a_terminal_of_80_columns_is_enough_and_no_color_is_respected(folder, name):
    plain = on_terminal(*NARROW[name], NO_COLOR="1")
    assert [line for line in re.split("[\r\n]", ESCAPES.sub("", plain)) if len(line) > 80] == []
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", plain)


def test_a_terminal_has_colours(folder):
    assert "\x1b[32m" in on_terminal(*NARROW["check"], NO_COLOR=None)


def test_json_stays_json_on_a_terminal(folder):
    assert json.loads(on_terminal("show", "p.gbfl.json", "--json"))["digest"]


@pytest.mark.parametrize("command", [["compile", "p.gbfl.json"], ["check", "p.gbfl.json"], ["mine", "t.csv"], ["show"]])
def test_what_is_missing_is_shown_by_an_example(folder, capsys, command):
    assert main(command) == 2
    captured = capsys.readouterr()
    assert (captured.out, "Missing" in captured.err) == ("", True)
    assert captured.err.splitlines()[-1].startswith(f"Example: gbfl {command[0]} ")


@pytest.mark.parametrize("rows", [[], ["--rows", "200"]])
def test_a_quantity_as_target_is_refused_with_the_way_to_make_classes(folder, capsys, rows):
    Path("t.csv").write_text("x,y\n" + "".join(f"{n % 7},{n}\n" for n in range(300)))
    line = refusal(capsys, *MINE, "y", "--train", "gbm", *rows)
    assert "'y'" in line
    assert "different values" in line
    assert "pandas.cut" in line


@pytest.mark.parametrize(("form", "first"), [("%m/%d/%Y", "01/01/2020"), ("%d %b %Y", "01 Apr 2020")])
def test_dates_in_another_form_are_nobodys_key(folder, capsys, form, first):
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=n) for n in range(120)]
    Path("t.csv").write_text("x,d,y\n" + "".join(f"{n % 7},{day:{form}},{n % 2}\n" for n, day in enumerate(days)))
    assert main([*MINE, "y", "--train", "forest", "--explainer", "greedy"]) == 0
    noted = next(line for line in capsys.readouterr().err.splitlines() if "'d'" in line)
    assert f"such as '{first}', and is left out; write dates as 2024-03-01" in noted
    assert "key" not in noted


def test_of_dates_in_several_forms_one_that_has_to_change_is_shown(folder, capsys):
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=n % 40) for n in range(120)]
    forms = ("%Y-%m-%d", "%b %d %Y")
    Path("t.csv").write_text(
        "x,d,y\n" + "".join(f"{n % 7},{day:{forms[n % 2]}},{n % 2}\n" for n, day in enumerate(days))
    )
    assert main([*MINE, "y", "--train", "forest", "--explainer", "greedy"]) == 0
    noted = next(line for line in capsys.readouterr().err.splitlines() if "'d'" in line)
    assert "such as 'Feb 01 2020': write dates as 2024-03-01" in noted


def test_rules_that_always_say_the_same_say_so(folder, capsys):
    Path("t.csv").write_text("x,y\n" + "".join(f"{n % 7},{int(n % 20 == 0)}\n" for n in range(200)))
    assert main([*MINE, "y", "--train", "gbm", "--explainer", "greedy"]) == 0
    assert "these rules give every training row the same class" in capsys.readouterr().out
    Path("t.csv").write_text("x,y\n" + "".join(f"{n % 7},{int(n % 7 > 3)}\n" for n in range(200)))
    assert main([*MINE, "y", "--train", "gbm", "--explainer", "greedy", "-o", "other.json"]) == 0
    assert "the same class, so they decide" not in capsys.readouterr().out
