"""Hostile category values and names of columns of words, in every target: quoted or refused, never more than a text."""

from contextlib import closing

import pytest

from gbfl_compile.backends import backend, emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run_values
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import from_json, to_json
from gbfl_compile.ir.nodes import Clause, OneOf, Program, Scorecard
from gbfl_compile.ir.validate import validate
from tests.security.attacks import BENIGN

LONG = "x" * 10_240
HOSTILE = {
    **BENIGN,
    "long": LONG,
    "long with quotes": "'" * 990,
    "ends a string": "'); import os; os.mkdir('9'); ('",
    "ends a C string": '"; system("mkdir 9"); "',
    "ends a JavaScript string": '"; require("fs").mkdirSync("9"); "',
    "a template in JavaScript": "`${require('fs').mkdirSync('9')}`",
    "ends an SQL string": "' OR '1'='1",
    "another statement": "'; DROP TABLE data; --",
    "a backslash before the end": "\\' OR 1=1 -- ",
    "dollar quotes": "$$ $tag$ ${x}",
    "a template for dbt": "{{ target.name }}",
    "right to left override": "\u202efdp.exe",
    "a byte order mark": "\ufeffa",
    "a private character": "\ue000",
    "an emoji": "\U0001f600",
}
"""Texts that would like to be more than texts."""

TARGETS = ("python", "c", "onnx", "js", "sql:sqlite", "sql:duckdb", "sql:datafusion", "sql:postgres")

MOST_REFUSED = 6
"""Of values and of names, by any target: a target that refuses everything shows nothing."""


def program_of(columns):
    """A rule set that says yes where some column has its text; columns is a list of (name, text)."""
    clauses = tuple(Clause((OneOf(feature, (text,)),)) for feature, (_, text) in enumerate(columns))
    names = tuple(name for name, _ in columns)
    card = Scorecard((1, 0), ((0, 2),) * len(columns), 1)
    return validate(Program(names, ("no", "yes"), clauses, card, kinds=("category",) * len(columns)))


def is_written(target, columns):
    """Whether a target writes these, rather than refuse them."""
    try:
        emit(program_of(columns), target)
    except BadInput:
        return False
    return True


def rows_for(columns):
    """Each text and its neighbours in its own column, the others as they never are listed."""
    for feature, (_, text) in enumerate(columns):
        near = [
            text,
            text + "x",
            text + " ",
            text[:-1],
            text.upper(),
            text.replace("\\", ""),
            text.replace("'", "''"),
            None,
        ]
        for value in near:
            yield ["listed by no rule"] * feature + [value] + ["listed by no rule"] * (len(columns) - feature - 1)


def answers(target, path, rows):
    """What the artifact answers, by the real thing."""
    dialect = target.removeprefix("sql:")
    if dialect == target:
        return backend(target).load(path).answer_rows(rows).labels.tolist()
    with closing(scratch(dialect)) as database:
        return run_values(DIALECTS[dialect], read_script(path), database, rows).labels.tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_values_and_names_are_quoted_or_refused(target, tmp_path, monkeypatch):
    if target.startswith("sql:") and (reason := availability(target.removeprefix("sql:"))):
        pytest.skip(reason)
    if (reason := backend(target).available().cannot_run) is not None:
        pytest.skip(reason)
    monkeypatch.chdir(tmp_path)
    texts = [text for text in HOSTILE.values() if is_written(target, [("word", text)])]
    names = [text for text in HOSTILE.values() if is_written(target, [(text, "a")])]
    assert len(texts) >= len(HOSTILE) - MOST_REFUSED
    assert len(names) >= len(HOSTILE) - MOST_REFUSED
    columns = [(names[place] if place < len(names) else f"column {place}", text) for place, text in enumerate(texts)]
    program = program_of(columns)
    assert from_json(to_json(program)) == program
    files = emit(program, target).files
    assert prove_artifact(program, target, files).answer == "proved"
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    rows = list(rows_for(columns))
    path = next(tmp_path.glob(f"*{backend(target).extension}"))
    assert answers(target, path, rows) == [evaluate(program, row).label for row in rows]
    assert not (tmp_path / "9").exists()


@pytest.mark.parametrize("kind", ["nul", "surrogate", "long"])
def test_what_no_target_can_write_is_not_a_value(kind):
    with pytest.raises(BadInput):
        program_of([("word", HOSTILE[kind])])
