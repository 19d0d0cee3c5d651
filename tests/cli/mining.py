"""Running `gbfl mine` on a few invented loans, and what came of it."""

import json
from pathlib import Path

from gbfl_compile.cli import main
from gbfl_compile.ir.json import load
from gbfl_compile.tables.read import read_table

SMALL = ["--target", "default", "--head", "tree", "--depth", "3"]


def table():
    return read_table(Path("loans.csv"))


def mined(capsys, *arguments, code=0):
    """What `gbfl mine --json` says, and the program it wrote."""
    capsys.readouterr()
    assert main(["mine", *arguments, "--json"]) == code, capsys.readouterr().err
    form = json.loads(capsys.readouterr().out)
    return form, load(Path(form["out"]))


def refused(capsys, *arguments, code=2):
    """The one line on standard error."""
    capsys.readouterr()
    assert main(["mine", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    *notes, line = captured.err.strip().split("\n")
    assert all("--rows takes more" in note for note in notes)
    return line
