"""Hostile names and labels through the JavaScript target: the module is imported by Node.js, and put into a page."""

import json
import re
import subprocess

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard
from tests.backends.javascript import node
from tests.security.attacks import (
    RAW,
    ROWS,
    TEMPLATE,
    Attack,
    Harmless,
    all_of,
    anything_goes,
    armed,
    cleaned_only,
    code_ran,
    every_kind,
    labels_of,
    program_of,
    put,
    rendered_twice,
    texts,
    unprintable,
)

RUNS = """
import { readFileSync } from "node:fs";
globalThis.fs = await import("node:fs");
const { FEATURES, CLASSES, score, scoreColumns } = await import("./model.mjs");
const rows = JSON.parse(readFileSync(0, "utf8"));
const names = FEATURES.map(({ name }) => name);
const named = rows.map((row) => Object.fromEntries(row.map((value, i) => [names[i], value])));
const columns = Object.fromEntries(names.map((name, i) => [name, rows.map((row) => row[i])]));
const labels = (answers) => answers.map(({ label }) => label);
console.log(JSON.stringify([names, CLASSES, labels(named.map(score)), labels(scoreColumns(columns))]));
"""

OPENS_C = "fs.writeFileSync(String.fromCharCode(99),String())"
"""Code that leaves a file "c", without a quote."""


def literals(written):
    """The backend's way to write a text, replaced; numbers stay as they are."""

    def literal(value):
        return (
            written(value) if isinstance(value, str) else repr(value) if isinstance(value, float) else json.dumps(value)
        )

    return put("gbfl_compile.backends.js.literal", literal)


def as_it_is(text):
    return text


COMMENTS = put("gbfl_compile.backends.js.comment", as_it_is)


def nothing_escaped(monkeypatch):
    """Names in the comments are printed as they are."""
    monkeypatch.setattr("gbfl_compile.ir.text.printable", as_it_is)
    COMMENTS(monkeypatch)


NAIVE = literals(lambda text: f'"{text}"')

ATTACKS = every_kind(
    {
        "single quote": Attack(f"'+{OPENS_C}+'", literals(lambda text: f"'{text}'"), "code ran"),
        "double quote": Attack(f'"+{OPENS_C}+"', NAIVE, "code ran"),
        "backslash": Attack(
            f'\\"+{OPENS_C}+"', literals(lambda text: '"' + text.replace('"', '\\"') + '"'), "does not run"
        ),
        "newline": Attack(f"a\n{OPENS_C}\n//", NAIVE, "does not run"),
        "carriage return": Attack(f"a\r{OPENS_C}\r//", nothing_escaped, "code ran"),
        "comment": Attack("*/ //", literals(as_it_is), "does not run"),
        "template": Attack(TEMPLATE, rendered_twice, "code ran"),
        "template block": Attack("{% raw %}", rendered_twice, "does not run"),
        "format": Attack(f"${{{OPENS_C}}}", literals(lambda text: f"`{text}`"), "code ran"),
        "percent": Attack("100%%", literals(lambda text: json.dumps(text) % {}), "other names"),
        "nul": Attack("a\0b", all_of(anything_goes, NAIVE, nothing_escaped), "raw character"),
        "surrogate": Attack("a\ud800b", all_of(anything_goes, NAIVE), "does not run"),
        **{
            kind: Attack(text, nothing_escaped, "does not run" if kind == "line separator" else "raw character")
            for kind, text in RAW.items()
        },
        "trigraph": Harmless("JavaScript has none"),
        "names meet": Attack(
            "a b", put("gbfl_compile.backends.js.parameter_names", cleaned_only), "does not run", "feature", "a-b"
        ),
        "markup": Attack("</script><b>", literals(json.dumps), "ends its script"),
    }
)


def outcome(program, folder):
    """What came of emitting the program, importing the module and asking it."""
    try:
        source = emit(program, "js").files["model.js"]
    except BadInput:
        return "refused"
    except Exception:
        return "code ran" if code_ran(folder) else "does not run"
    (folder / "model.mjs").write_bytes(source)
    (folder / "runs.mjs").write_text(RUNS)
    rows = json.dumps([[None if value != value else value for value in row] for row in ROWS.tolist()])
    run = subprocess.run([node(), "runs.mjs"], input=rows, cwd=folder, capture_output=True, text=True, timeout=60)
    if code_ran(folder):
        return "code ran"
    if run.returncode:
        return "does not run"
    features, classes, labels, by_column = json.loads(run.stdout)
    if (features, classes) != (list(program.features), list(program.classes)):
        return "other names"
    if labels != labels_of(program) or by_column != labels:
        return "another answer"
    if re.search(rb"<[/!]|<script", source, re.IGNORECASE):
        return "ends its script"
    return "raw character" if unprintable(source.decode()) else "held"


@pytest.mark.parametrize(("text", "place", "beside", "expected"), texts(ATTACKS))
def test_a_hostile_name_stays_a_name(text, place, beside, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert outcome(program_of(text, place, beside), tmp_path) == expected


@pytest.mark.parametrize("kind", armed(ATTACKS))
def test_the_attack_succeeds_against_a_weakened_target(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attack = ATTACKS[kind]
    attack.weakened(monkeypatch)
    assert outcome(program_of(attack.text, attack.place, attack.beside), tmp_path) == attack.seen


INHERITED = (
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "arguments",
    "eval",
    "undefined",
    "NaN",
    "row",
    "SET0",
)


@pytest.mark.parametrize("name", INHERITED)
def test_a_name_that_means_something_in_javascript_stays_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert outcome(program_of(name), tmp_path) == "held"


@pytest.mark.parametrize(
    "label", ["@ts-nocheck", "# sourceMappingURL=x", "/ <reference path='x'/>", "< a", "//", " @x"]
)
def test_a_label_does_not_become_a_comment_that_tools_obey(label):
    """The labels of a rule set begin a line of the comment that lists the rules."""
    clauses = (Clause((Interval(0, 1.0),)),)
    program = Program(("age",), (label, "other"), clauses, Scorecard((0, 1), ((3, 0),), 3))
    files = emit(program, "js").files
    assert prove_artifact(program, "js", files).answer == "proved"
    assert not re.search(r"^\s*(///|//\s*[@#])", files["model.js"].decode(), re.MULTILINE)
