"""The command line's contract: files where they were promised, exit codes, one-line errors, nothing half-written."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.cli import main
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest, to_json
from gbfl_compile.ir.nodes import Clause, Interval, Scorecard
from gbfl_compile.learning.consistency import Triplets, save_triplets
from tests.cli.samples import PROGRAM, files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(to_json(PROGRAM))
    return tmp_path


def test_show_prints_the_rules(folder, capsys):
    assert main(["show", "p.json"]) == 0
    out = capsys.readouterr().out
    assert "IF 18 <= age < 65 AND the income >= 0.1 THEN yes (0.75, 3 rows)\nELSE no (1.00, 1 row)\n" in out
    assert digest(PROGRAM) in out


def test_a_name_is_never_mistaken_for_markup(folder, capsys):
    (folder / "p.json").write_text(to_json(replace(PROGRAM, features=("[red]age[/red]", "[/]"))))
    assert main(["show", "p.json"]) == 0
    assert "18 <= [red]age[/red] < 65 AND [/] >= 0.1" in capsys.readouterr().out


def test_a_name_is_never_mistaken_for_a_picture(folder, capsys):
    (folder / "p.json").write_text(to_json(replace(PROGRAM, features=("a:snowflake:b", "the income"))))
    assert main(["show", "p.json"]) == 0
    assert "18 <= a:snowflake:b < 65" in capsys.readouterr().out
    assert main(["compile", "p.json", "--to", "sql:snowflake", "-o", "build"]) == 0
    assert "sql:snowflake: build/sql-snowflake/model.sql" in capsys.readouterr().out


def test_compile_writes_a_folder_a_target(folder, capsys):
    assert main(["compile", "p.json", "--to", "python", "-o", "build"]) == 0
    assert files(folder) == ["build/python/model.py", "p.json"]
    printed = capsys.readouterr().out
    assert "proved" in printed
    assert "verdict: equal" in printed


def test_compile_without_a_check_says_so(folder, capsys):
    assert main(["compile", "p.json", "--to", "python", "-o", "build", "--no-check"]) == 0
    assert files(folder) == ["build/python/model.py", "p.json"]
    assert "not checked" in capsys.readouterr().out


def test_compile_leaves_nothing_that_is_different(folder, capsys, monkeypatch):
    """A backend that emits another program is found out before its artifact is anywhere."""
    from gbfl_compile import backends

    right = backends.BACKENDS["python"]

    def slipped(program, name, options):
        made = right.emit(program, name, options)
        files = {file: content.replace(b"<= ", b"< ") for file, content in made.files.items()}
        assert files != made.files
        return replace(made, files=files)

    monkeypatch.setattr(backends, "BACKENDS", {**backends.BACKENDS, "python": replace(right, emit=slipped)})
    assert main(["compile", "p.json", "--to", "python", "-o", "build"]) == 1
    assert files(folder) == ["p.json"]
    printed = capsys.readouterr().out
    assert "counterexample" in printed
    assert "nothing was written" in printed


def test_a_view_is_not_named_for_a_form_that_creates_none(folder, capsys):
    code = main(
        ["compile", str(folder / "p.json"), "--to", "sql:sqlite", "-o", str(folder / "b"), "--set", "sql.view=v"]
    )
    assert code == 2
    assert "sql.form=view" in capsys.readouterr().err
    assert not (folder / "b").exists()


def test_compile_takes_a_name(folder):
    assert main(["compile", "p.json", "--to", "python", "-o", "build", "--name", "loans"]) == 0
    assert files(folder) == ["build/python/loans.py", "p.json"]


ALONE = {
    "--drift": ("--scored", ["--drift"]),
    "--probabilities": ("--scored", ["--probabilities"]),
    "--name": ("--library", ["--name", "model"]),
    "--source": ("--library", ["--source", "model.c"]),
    "--float32": ("--library", ["--float32"]),
}


@pytest.mark.parametrize("flag", ALONE)
def test_an_audit_ignores_no_flag_silently(folder, capsys, flag):
    assert main(["compile", "p.json", "--to", "python", "-o", "build", "-q"]) == 0
    of, arguments = ALONE[flag]
    assert main(["audit", "p.json", "--file", "build/python/model.py", *arguments]) == 2
    assert f"{flag} needs {of}" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_score_writes_label_and_probabilities(folder, ending):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    awkward = 47.36882144582734
    data = pd.DataFrame(
        {"id": [7, 8, 9], "the income": [0.1, None, 1.0], "age": [18.0, 20.0, awkward], "text": ["a", "b", "c"]}
    )
    data.to_parquet("new.parquet", index=False)
    assert main(["score", "build/python", "new.parquet", "-o", f"scored{ending}", "--key", "id"]) == 0
    read = pd.read_parquet if ending == ".parquet" else pd.read_csv
    scored = read(f"scored{ending}")
    assert list(scored.columns) == ["id", "label", "p_no", "p_yes"]
    rows = [[18.0, 0.1], [20.0, None], [awkward, 1.0]]
    assert scored["label"].tolist() == [evaluate(PROGRAM, row).label for row in rows]
    assert scored["p_yes"].tolist() == [evaluate(PROGRAM, row).probabilities[1] for row in rows]
    assert scored["id"].tolist() == [7, 8, 9]


def test_score_reads_doubles_from_csv_exactly(folder):
    value = 0.1 + 0.2
    program = replace(PROGRAM, clauses=(Clause((Interval(0, value, value, "both"),)),))
    (folder / "p.json").write_text(to_json(program))
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    rng = np.random.default_rng(0)
    values = np.concatenate([[value], rng.normal(size=2000)])
    pd.DataFrame({"age": values, "the income": 0.0}).to_csv("d.csv", index=False)
    from pathlib import Path

    from gbfl_compile.tables.read import feature_matrix, read_table

    assert feature_matrix(read_table(Path("d.csv")), program.features, "d.csv")[:, 0].tolist() == values.tolist()
    assert main(["score", "build/python", "d.csv", "-o", "s.csv"]) == 0
    assert pd.read_csv("s.csv")["label"].tolist()[0] == "yes"


def test_key_columns_are_carried_over_as_they_are_written(folder):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    (folder / "d.csv").write_text("id,age,the income\n007,30,1\nNA,,\n1.10,3,1\n,3,1\n")
    assert main(["score", "build/python", "d.csv", "-o", "s.csv", "--key", "id"]) == 0
    assert [line.split(",")[0] for line in (folder / "s.csv").read_text().split("\n")] == [
        "id",
        "007",
        "NA",
        "1.10",
        "",
        "",
    ]


def test_score_of_no_rows_is_an_empty_table(folder):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    (folder / "d.csv").write_text("age,the income\n")
    assert main(["score", "build/python", "d.csv", "-o", "s.csv"]) == 0
    assert (folder / "s.csv").read_text() == "label,p_no,p_yes\n"


def test_integer_labels_stay_integers(folder):
    (folder / "p.json").write_text(to_json(replace(PROGRAM, classes=(0, 1))))
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    (folder / "d.csv").write_text("age,the income\n30,1\n,\n")
    main(["score", "build/python", "d.csv", "-o", "s.csv"])
    assert (folder / "s.csv").read_text() == "label,p_0,p_1\n1,0.25,0.75\n0,1.0,0.0\n"


@pytest.mark.parametrize(
    "command", [["show", "p.json"], ["compile", "p.json", "--to", "python", "-o", "b"], ["doctor"]]
)
def test_json_is_all_that_is_printed(folder, capsys, command):
    assert main([*command, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    assert captured.err == ""


def test_doctor_says_what_can_be_run(folder, capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "python" in out
    assert "scikit-learn" in out


BAD = {
    "missing program": (["show", "absent.json"], "absent.json: No such file"),
    "program is a folder": (["show", "somewhere"], "somewhere: is a folder, not a rule program"),
    "not JSON": (["show", "text.json"], "text.json: not JSON"),
    "not UTF-8": (["show", "bytes.json"], "bytes.json: not UTF-8"),
    "wrong schema": (["show", "schema.json"], "schema.json: schema 9"),
    "compile a missing program": (["compile", "absent.json", "--to", "python", "-o", "out"], "No such file"),
    "unknown target": (["compile", "p.json", "--to", "rust", "-o", "out"], "unknown target 'rust'"),
    "one unknown target of two": (["compile", "p.json", "--to", "python,rust", "-o", "out"], "unknown target 'rust'"),
    "no target": (["compile", "p.json", "--to", "", "-o", "out"], "unknown target ''"),
    "unknown option": (
        ["compile", "p.json", "--to", "python", "-o", "out", "--set", "python.x=1"],
        "unknown option 'x'",
    ),
    "option of another target": (
        ["compile", "p.json", "--to", "python", "-o", "out", "--set", "c.x=1"],
        "'c' is not among",
    ),
    "option without a value": (
        ["compile", "p.json", "--to", "python", "-o", "out", "--set", "python.x"],
        "TARGET.OPTION=VALUE",
    ),
    "bad name": (["compile", "p.json", "--to", "python", "-o", "out", "--name", "../x"], "the name '../x'"),
    "output below a file": (
        ["compile", "p.json", "--to", "python", "-o", "text.json/out"],
        "cannot be written: Not a directory",
    ),
    "output not writable": (["compile", "p.json", "--to", "python", "-o", "/proc/out"], "cannot be written"),
    "demo output not writable": (["demo", "--out", "text.json/out"], "cannot be written"),
    "check a missing folder": (["check", "p.json", "absent"], "there is no such folder"),
    "check an empty folder": (["check", "p.json", "somewhere"], "holds no artifact"),
    "check missing data": (["check", "p.json", "build", "--data", "absent.csv"], "absent.csv: No such file"),
    "check data without a column": (["check", "p.json", "build", "--data", "short.csv"], "no column 'the income'"),
    "check missing triplets": (["check", "p.json", "build", "--triplets", "absent.npz"], "No such file"),
    "check triplets that are none": (["check", "p.json", "build", "--triplets", "text.json"], "not an NPZ file"),
    "check triplets of another program": (
        ["check", "p.json", "build", "--triplets", "other.npz"],
        "features are not the program's",
    ),
    "check JSON that cannot be written": (["check", "p.json", "build", "--json", "text.json/v"], "cannot be written"),
    "score missing data": (["score", "build/python", "absent.csv", "-o", "s.csv"], "No such file"),
    "score missing Parquet data": (["score", "build/python", "absent.parquet", "-o", "s.csv"], "No such file"),
    "score a missing artifact": (
        ["score", "build/fortran", "short.csv", "-o", "s.csv"],
        "no target is called 'fortran'",
    ),
    "score data without a column": (["score", "build/python", "short.csv", "-o", "s.csv"], "no column 'the income'"),
    "score text": (["score", "build/python", "text.csv", "-o", "s.csv"], "column 'age', row 2: 'old' is not a number"),
    "score a repeated column": (["score", "build/python", "twice.csv", "-o", "s.csv"], "column 'age' appears 2 times"),
    "score rows wider than the header": (
        ["score", "build/python", "wide.csv", "-o", "s.csv"],
        "more fields than the header",
    ),
    "score a truncated file": (["score", "build/python", "cut.csv.gz", "-o", "s.csv"], "cannot be read as csv.gz"),
    "score a repeated column after a blank line": (
        ["score", "build/python", "blank.csv", "-o", "s.csv"],
        "column 'age' appears 2 times",
    ),
    "score an empty file": (["score", "build/python", "empty.csv", "-o", "s.csv"], "cannot be read as csv"),
    "score an unknown ending": (["score", "build/python", "text.json", "-o", "s.csv"], "ending"),
    "score to an unknown ending": (["score", "build/python", "good.csv", "-o", "s.xlsx"], "ending"),
    "score to a folder": (["score", "build/python", "good.csv", "-o", "folder.csv"], "is a folder"),
    "score a broken Parquet file": (
        ["score", "build/python", "broken.parquet", "-o", "s.csv"],
        "cannot be read as parquet",
    ),
    "score an unknown key": (["score", "build/python", "good.csv", "-o", "s.csv", "--key", "id"], "no key column 'id'"),
    "score a key called label": (
        ["score", "build/python", "label.csv", "-o", "s.csv", "--key", "label"],
        "rename the key",
    ),
}


@pytest.fixture
def bad_files(folder):
    main(["compile", "p.json", "--to", "python", "-o", "build"])
    (folder / "somewhere").mkdir()
    (folder / "folder.csv").mkdir()
    texts = {
        "text.json": "hello",
        "schema.json": '{"schema": 9}',
        "short.csv": "age\n1\n",
        "text.csv": "age,the income\n1,2\nold,2\n",
        "twice.csv": "age,age,the income\n1,2,3\n",
        "empty.csv": "",
        "wide.csv": "age,the income\n30,1,7\n30,1,8\n",
        "blank.csv": "\nage,the income,age\n1,2,3\n",
        "good.csv": "age,the income\n1,2\n",
        "label.csv": "age,the income,label\n1,2,3\n",
        "broken.parquet": "PAR1nonsense",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"age,the income\n" + b"1,2\n" * 5000)[:-20])
    (folder / "bytes.json").write_bytes(b"\xff\xfe{}")
    x, flags = np.zeros((1, 2)), np.array([True])
    save_triplets(folder / "other.npz", Triplets(x, x, x, flags, flags, np.array(["no"]), ("a", "b")))
    return folder


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_exit_2_and_nothing_written(bad_files, capsys, case):
    arguments, message = BAD[case]
    before = {name: (bad_files / name).read_bytes() for name in files(bad_files)}
    capsys.readouterr()
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("gbfl: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert {name: (bad_files / name).read_bytes() for name in files(bad_files)} == before


@pytest.mark.parametrize("arguments", [["check", "p.json"], ["compile", "p.json"], ["check", "--what"]])
def test_bad_usage_exits_2(folder, capsys, arguments):
    assert main(arguments) == 2
    assert "Usage" in capsys.readouterr().err


def test_an_unknown_command_exits_2(folder, capsys):
    assert main(["nonsense"]) == 2
    assert "nonsense: no such command" in capsys.readouterr().err


def test_help_and_version(folder, capsys):
    for arguments in (
        ["--help"],
        ["--version"],
        *([command, "--help"] for command in ("demo", "show", "compile", "check", "score", "doctor")),
    ):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "Example: gbfl" in out or arguments[0].startswith("--")


def test_a_defect_of_ours_does_not_look_like_a_verdict(folder, capsys, monkeypatch):
    import gbfl_compile.cli.start

    monkeypatch.setattr(gbfl_compile.cli.start, "examine", lambda: 1 / 0)
    assert main(["doctor"]) == 3
    assert "defect" in capsys.readouterr().err


def test_ctrl_c_is_not_a_verdict_either(folder, capsys, monkeypatch):
    import gbfl_compile.cli.start

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(gbfl_compile.cli.start, "examine", interrupt)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err.strip() == "gbfl: interrupted"


def test_a_rule_set_goes_the_whole_way(folder, capsys):
    card = replace(PROGRAM, decision=Scorecard((0, -1), ((0, 3),), 1))
    (folder / "p.json").write_text(to_json(card))
    assert main(["compile", "p.json", "--to", "python", "-o", "build"]) == 0
    assert main(["check", "p.json", "build"]) == 0


def test_the_module_can_be_run_as_a_program(folder):
    run = subprocess.run([sys.executable, "-m", "gbfl_compile", "show", "absent.json"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr == "gbfl: absent.json: No such file or directory\n"
