"""The JavaScript target: the program's answers in Node.js and in a browser, and strict about what a row is."""

import base64
import json
import re
import subprocess
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import backend, emit
from gbfl_compile.checking.artifact import artifact_files, prove_artifact
from gbfl_compile.checking.check import check_artifacts
from gbfl_compile.checking.run import expectation
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Band, Clause, Interval, OneOf, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from tests.backends.javascript import ANSWERS, answers_in_node, cases, node, same
from tests.counts import count
from tests.programs import programs_of_kinds_with_rows, programs_with_rows

KINDS = ("number", "category", "boolean", "date", "timestamp")
EVERY_KIND = Program(
    ("age", "city", "smoker", "opened", "seen"),
    ("no", "yes"),
    (
        Clause((Interval(0, 18.0, 65.0), OneOf(1, ("Bonn", "Köln")))),
        Clause((OneOf(2, ("true",)), Interval(3, 0.0, None, if_missing=True))),
        Clause((Interval(4, None, 1_000_000.0),)),
    ),
    Scorecard((0, 0), ((0, 4), (2, 0), (0, 1))),
    kinds=KINDS,
)
ROW = {"age": 30, "city": "Bonn", "smoker": True, "opened": "2024-02-29", "seen": "1970-01-01T00:00:00.999999Z"}


def drawn(number, rows=12):
    """So many random programs, each with rows at and beside its bounds, of every kind and missing."""
    pairs = []

    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        programs_of_kinds_with_rows(rows=rows)
        | programs_with_rows(rows=rows)
        | programs_with_rows(("banded",), rows=rows)
    )
    def collect(pair):
        pairs.append(pair)

    collect()
    return pairs


def modules(pairs):
    return [(emit(program, "js").files["model.js"], rows) for program, rows in pairs]


def test_node_answers_as_the_definition_does():
    pairs = drawn(count("GBFL_JS_PROGRAMS", 500))
    answers = answers_in_node(modules(pairs))
    wrong = [pair for pair, theirs in zip(pairs, answers, strict=True) if not same(pair[0], theirs, pair[1])]
    assert wrong == []


def test_a_browser_answers_as_the_definition_does(tmp_path):
    from tests.reporting.browser import chromium

    pairs = drawn(count("GBFL_JS_PROGRAMS", 500))
    page = tmp_path / "page.html"
    text = json.dumps(cases(modules(pairs)))
    page.write_text(
        f"<!doctype html><meta charset=utf-8><script>{ANSWERS}\n"
        f"answersOf({text}).then((answers) => {{ window.answers = answers; }});</script>"
    )
    with chromium(tmp_path / "profile") as running:
        running.set_script_timeout(120)
        running.get(page.as_uri())
        answers = running.execute_async_script(
            "const done = arguments[0]; const look = () => window.answers ? done(window.answers) : setTimeout(look, 20);"
            "look();"
        )
    answers = json.loads(answers)
    wrong = [pair for pair, theirs in zip(pairs, answers, strict=True) if not same(pair[0], theirs, pair[1])]
    assert wrong == []


@settings(max_examples=40, deadline=None)
@given(programs_of_kinds_with_rows(rows=1) | programs_with_rows(("tree", "scorecard", "banded"), rows=1))
def test_every_program_is_proved(pair):
    assert prove_artifact(pair[0], "js", emit(pair[0], "js").files).answer == "proved"


@settings(max_examples=10, deadline=None)
@given(programs_of_kinds_with_rows(rows=1) | programs_with_rows(rows=1))
def test_a_check_proves_the_module_and_runs_it_on_witnesses(pair):
    node()
    verdict = check_artifacts(expectation(pair[0]), [emit(pair[0], "js")])
    assert verdict.verdict == "equal", verdict.as_json()


def score(script, program=EVERY_KIND):
    """What a script prints that has the module and a row; an error is its message."""
    module = emit(program, "js").files["model.js"].decode()
    text = f"""{module}
    const row = {json.dumps(ROW)};
    const attempt = (action) => {{ try {{ return action(); }} catch (error) {{ return error.name + ": " + error.message; }} }};
    console.log(JSON.stringify(attempt(() => {script})));"""
    ran = subprocess.run(
        [node(), "--input-type=module", "-e", text], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(ran.stdout)


def test_an_answer_has_its_reason():
    answer = score("score(row)")
    shares = answer.pop("probabilities")
    assert answer == {"label": "yes", "index": 1, "leaf": None, "scores": [2, 5], "held": [0, 1, 2]}
    assert sum(shares) == pytest.approx(1.0, abs=1e-12)  # they go through exp


def test_the_types_name_what_the_module_exports_and_what_an_answer_has():
    """tests/engines/test_typescript.py compiles them with the TypeScript compiler."""
    reasons = with_reasons(EVERY_KIND, {0: "Too young"})
    for program in (EVERY_KIND, reasons, replace(EVERY_KIND, decision=leaf(1.0, 0.0), clauses=())):
        files = emit(program, "js").files
        types = files["model.d.ts"].decode()
        module = base64.b64encode(files["model.js"]).decode()
        text = f"""const module = await import("data:text/javascript;base64,{module}");
        const typed = Object.entries(module).map(([name, value]) => [name, typeof value === "function"]);
        console.log(JSON.stringify([typed, Object.keys(module.score({json.dumps(ROW)}))]));"""
        ran = subprocess.run([node(), "--input-type=module", "-e", text], capture_output=True, text=True, check=True)
        exported, keys = json.loads(ran.stdout)
        declared = re.findall(r"^export declare (const|function) (\w+)", types, re.MULTILINE)
        assert sorted(map(tuple, exported)) == sorted((name, kind == "function") for kind, name in declared)
        answer = types.partition("interface Answer {")[2].partition("}")[0]
        assert sorted(keys) == sorted(re.findall(r"readonly (\w+):", answer))


PREFIX = 'TypeError: feature "%s": '

WRONG = {
    "age": ('"30"', "30n", "true", "{}", "[30]", "new Number(30)", "{ valueOf: () => 30 }", "() => 30"),
    "city": ("1", "true", 'new String("Bonn")', '["Bonn"]', '{ toString: () => "Bonn" }'),
    "smoker": ("1", "0", '"true"', "new Boolean(true)"),
    "opened": (
        '"2023-02-29"',
        '"2024-2-9"',
        '"0000-01-01"',
        '"2024-01-01T00:00:00"',
        '"+02024-01-01"',
        "new Date()",
        "0",
    ),
    "seen": (
        '"1970-01-01"',
        '"1970-01-01T24:00:00"',
        '"1970-01-01T00:00:60"',
        '"1970-01-01T00:00:00.1234567"',
        '"1970-01-01T00:00:00+1:00"',
        '"1970-01-01T00:00:00z"',
        '"2255-06-05T23:47:34.740993"',
        '"1684-07-28T00:12:25.259007"',
        "new Date(NaN)",
        "new Date(8.64e15)",
        "0",
    ),
}


@pytest.mark.parametrize("feature", WRONG)
def test_a_value_of_another_type_is_a_type_error_that_names_the_feature(feature):
    column = "scoreColumns({ age: [1], city: ['a'], smoker: [true], opened: [null], seen: [null]"
    attempts = [
        call
        for value in WRONG[feature]
        for call in (f"score({{ ...row, {feature}: {value} }})", f"{column}, {feature}: [{value}] }})")
    ]
    errors = score(f"[{', '.join(f'attempt(() => {call})' for call in attempts)}]")
    assert len(errors) == 2 * len(WRONG[feature])
    wrong = [call for call, error in zip(attempts, errors, strict=True) if not str(error).startswith(PREFIX % feature)]
    assert wrong == []


@pytest.mark.parametrize("value", ["null", "undefined", "NaN"])
def test_null_undefined_and_nan_are_missing_for_every_kind(value):
    all_missing = ", ".join(f"{name}: {value}" for name in EVERY_KIND.features)
    answer = score(f"score({{ {all_missing} }})")
    assert (answer["held"], answer["scores"]) == ([], [0, 0])


SAME_MOMENT = (
    "1970-01-01T00:00:01Z",
    "1970-01-01 00:00:01",
    "1970-01-01T01:00:01+01:00",
    "1969-12-31T18:30:01.000-05:30",
)


@pytest.mark.parametrize("text", [*(json.dumps(text) for text in SAME_MOMENT), "new Date(1000)"])
def test_a_timestamp_is_the_same_moment_however_it_is_written(text):
    assert score(f"score({{ ...row, seen: {text} }}).held") == [0, 1]
    assert 2 in score("score({ ...row, seen: '1970-01-01T00:00' }).held")


def test_a_feature_missing_from_the_row_is_an_error_only_if_a_rule_uses_it():
    assert score("score({})") == 'TypeError: there is no feature "age"'
    unused = Program(
        ("a", "b"), ("no", "yes"), (Clause((Interval(1, 1.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    assert score("score({ b: 2 }).label", unused) == "yes"
    assert score("scoreColumns({ b: Float64Array.of(0, 2, NaN) }).map((a) => a.index)", unused) == [0, 1, 0]
    assert score("scoreColumns({ a: [1, 2], b: [1] })", unused).startswith('TypeError: feature "b"')
    assert score("scoreColumns({ b: BigInt64Array.of(1n) })", unused).startswith('TypeError: feature "b"')


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"])
def test_what_an_object_inherits_is_not_a_value_of_a_row(name):
    program = Program((name,), ("no", "yes"), (Clause((Interval(0, 1.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    assert score("score({})", program) == f'TypeError: there is no feature "{name}"'
    assert score(f"score(JSON.parse('{{\"{name}\": 2}}')).label", program) == "yes"
    polluted = "(Object.prototype.age = 30, delete row.age, score(row))"
    assert score(polluted) == 'TypeError: there is no feature "age"'


def test_an_answer_cannot_be_changed_for_the_next_row():
    program = Program(("a",), ("no", "yes"), (Clause((Interval(0, 1.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    change = "attempt(() => { score({ a: 1 }).probabilities[0] = 9; }), attempt(() => { score({ a: 1 }).label = 'x'; })"
    assert score(f"({change}, score({{ a: 1 }}))", program) == {
        "label": "yes",
        "index": 1,
        "probabilities": [0, 1],
        "leaf": 0,
        "scores": None,
        "held": [0],
    }


@given(st.text(max_size=20).filter(lambda text: text and "\0" not in text))
@settings(max_examples=60, deadline=None)
def test_no_name_can_end_a_script_or_a_line(text):
    program = Program(
        (text, f"{text}</script><!--\u2028"), (f"<{text}", "b"), (Clause((Interval(0, 1.0),)),), leaf(1.0, 0.0)
    )
    for content in emit(program, "js").files.values():
        assert content.isascii()
        assert b"</" not in content
        assert b"<!" not in content
        assert b"\r" not in content


def test_labels_that_are_not_doubles_are_refused():
    with pytest.raises(BadInput, match="use texts"):
        emit(Program(("x",), (0, 2**53 + 1), (), leaf(1.0, 0.0)), "js")


def test_leads_that_are_not_doubles_are_refused_and_the_largest_one_is_distinguished_from_its_neighbours():
    """One class has 2^53 - 4 points less to start with: the lead goes past 2^53, where doubles are two apart."""

    def banded(least):
        bands = ((Band(0, (0.5, 0.5)), Band(least, (0.75, 0.25))), (Band(0, (0.25, 0.75)),))
        points = ((1, 0), (2, -1), (3, -1))
        clauses = tuple(Clause((Interval(f, 1.0),)) for f in range(3))
        return Program(("a", "b", "c"), ("no", "yes"), clauses, Scorecard((0, 4 - 2**53), points, 0, bands))

    with pytest.raises(BadInput, match="at most 2"):
        emit(banded(2**53 + 1), "js")
    program, rows = banded(2**53), [[float(bits >> f & 1) for f in range(3)] for bits in range(8)]
    assert prove_artifact(program, "js", emit(program, "js").files).answer == "proved"
    assert {evaluate(program, row).probabilities for row in rows} == {(0.5, 0.5), (0.75, 0.25)}
    (theirs,) = answers_in_node([(emit(program, "js").files["model.js"], rows)])
    assert same(program, theirs, rows)


def test_without_node_the_module_is_emitted_and_not_run(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "Node.js is not installed" in backend("js").available().cannot_run
    with pytest.raises(CannotRun, match=r"Node\.js is not installed"):
        backend("js").load(tmp_path / "model.js")
    verdict = check_artifacts(expectation(EVERY_KIND), [emit(EVERY_KIND, "js")])
    assert (verdict.verdict, verdict.targets[0].proof.answer) == ("not run", "proved")


def test_two_models_in_one_folder_are_two_artifacts(tmp_path):
    for name in ("one", "two"):
        for file, content in emit(EVERY_KIND, "js", name).files.items():
            (tmp_path / file).write_bytes(content)
    for name in ("one", "two"):
        files = artifact_files(tmp_path / f"{name}.js", ".js")
        assert prove_artifact(EVERY_KIND, "js", files).answer == "proved"
