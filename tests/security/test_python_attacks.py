"""Hostile names and labels through the Python target: the module is imported in a separate process."""

import json
import subprocess
import sys

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.errors import BadInput
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
    nothing_escaped,
    program_of,
    put,
    rendered_twice,
    texts,
    unprintable,
)

RUNS = """
import json, sys
sys.path.insert(0, ".")
import model
rows = [[None if value is None else value for value in row] for row in json.load(sys.stdin)]
named = [dict(zip(model.FEATURES, row)) for row in rows]
print(json.dumps([model.FEATURES, model.CLASSES, model.predict_many(rows), model.predict_many(named)]))
"""

OPENS_C = "open(chr(99),chr(119))"
"""Code that leaves a file "c", without a quote."""


def literals(written):
    """The backend's way to write a text, replaced; numbers and tuples stay as they are."""
    return put(
        "gbfl_compile.backends.python.literal", lambda value: written(value) if isinstance(value, str) else repr(value)
    )


NAIVE = literals(lambda text: f"'{text}'")

ATTACKS = every_kind(
    {
        "single quote": Attack(f"',{OPENS_C},'", NAIVE, "code ran"),
        "double quote": Attack(f'",{OPENS_C},"', literals(lambda text: f'"{text}"'), "code ran"),
        "backslash": Attack(
            f"\\',{OPENS_C},#", literals(lambda text: "'" + text.replace("'", "\\'") + "'"), "code ran"
        ),
        "newline": Attack(f"a\n{OPENS_C}\n#", NAIVE, "does not run"),
        "carriage return": Attack(f"a\r{OPENS_C}\r#", nothing_escaped, "code ran"),
        "comment": Attack(f'""",{OPENS_C},"""', literals(lambda text: f'"""{text}"""'), "code ran"),
        "template": Attack(TEMPLATE, rendered_twice, "code ran"),
        "template block": Attack("{% raw %}", rendered_twice, "does not run"),
        "format": Attack("{0}", literals(lambda text: repr(text).format("leak")), "other names"),
        "percent": Attack("100%%", literals(lambda text: repr(text) % {}), "other names"),
        "nul": Attack("a\0b", all_of(anything_goes, NAIVE), "does not run"),
        "surrogate": Attack("a\ud800b", all_of(anything_goes, NAIVE), "does not run"),
        **{kind: Attack(text, nothing_escaped, "raw character") for kind, text in RAW.items()},
        "trigraph": Harmless("Python has none"),
        "names meet": Attack(
            "a b", put("gbfl_compile.backends.python.variable_names", cleaned_only), "another answer", "feature", "a-b"
        ),
        "markup": Harmless("a module is not a page"),
    }
)


def outcome(program, folder):
    """What came of emitting the program, importing the module and asking it."""
    try:
        source = emit(program, "python").files["model.py"]
    except BadInput:
        return "refused"
    except Exception:
        return "code ran" if code_ran(folder) else "does not run"
    (folder / "model.py").write_bytes(source)
    rows = json.dumps([[None if value != value else value for value in row] for row in ROWS.tolist()])
    run = subprocess.run([sys.executable, "-I", "-c", RUNS], input=rows, cwd=folder, capture_output=True, text=True)
    if code_ran(folder):
        return "code ran"
    if run.returncode:
        return "does not run"
    features, classes, labels, named = json.loads(run.stdout)
    if (features, classes) != (list(program.features), list(program.classes)):
        return "other names"
    if labels != labels_of(program) or named != labels:
        return "another answer"
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
