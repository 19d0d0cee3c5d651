"""The README tells the truth: its example prints what it says, its commands run."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_breast_cancer

from gbfl_compile.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says():
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    said = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == said


def test_the_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = load_breast_cancer(as_frame=True).data.head(20).rename(columns=lambda name: name.replace(" ", "_"))
    pd.DataFrame({"id": range(20)}).join(data).to_csv("new.csv", index=False)
    commands = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("    gbfl ")]
    assert len(commands) == 8
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, command
    assert pd.read_csv("scored.csv").columns.tolist() == ["id", "label", "p_benign", "p_malignant"]


def test_links_and_paths_in_the_readme_exist():
    named = re.findall(r"`((?:tests|gbfl_compile)/[\w/.]+)`", README) + re.findall(r"\b([A-Z]{5,}\.md)\b", README)
    assert named
    for path in named:
        assert (ROOT / path).exists(), path
