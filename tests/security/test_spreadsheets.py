"""Labels that a spreadsheet would run are written unchanged, with a warning: an answer is never altered."""

import csv

import pytest

from gbfl_compile.backends import emit, write_artifact
from gbfl_compile.cli import main
from tests.security.attacks import ROWS, labels_of, program_of

FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(1)", '=HYPERLINK("http://x","y")')


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["asked,plain", *(",".join("" if value != value else repr(value) for value in row) for row in ROWS.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.parametrize("label", FORMULAS)
def test_a_formula_is_written_as_it_is_and_reported(label, table, capsys):
    program = program_of(label, "label")
    write_artifact(emit(program, "python"), table / "build")
    assert main(["score", "build/python", "rows.csv", "-o", "scored.csv"]) == 0
    with (table / "scored.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["label", f"p_{label}", "p_no"]
    assert [row[0] for row in rows] == labels_of(program)
    assert f"takes the label {label!r} for a formula" in capsys.readouterr().err


@pytest.mark.parametrize(("label", "out"), [("yes", "scored.csv"), ("=1", "scored.parquet")])
def test_an_ordinary_label_and_a_file_without_formulas_are_not_warned_of(label, out, table, capsys):
    pytest.importorskip("pyarrow")
    write_artifact(emit(program_of(label, "label"), "python"), table / "build")
    assert main(["score", "build/python", "rows.csv", "-o", out]) == 0
    assert "formula" not in capsys.readouterr().err
