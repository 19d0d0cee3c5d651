"""The published JSON Schema agrees with the loader, as far as a schema can: it accepts what is written and rejects what is broken."""

import copy
import json
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from gbfl_compile.cli import main
from gbfl_compile.cli.start import write_starter
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import from_json, to_json
from gbfl_compile.ir.nodes import Band, Clause, Interval, Leaf, OneOf, Program, Scorecard, Tree, leaf, split
from tests.programs import programs

SCHEMA = json.loads((files("gbfl_compile") / "schema" / "program.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)

CLAUSES = (Clause((Interval(0, 18.0, 65.0), Interval(1, None, -0.5, "both", True))), Clause(()))
TREE = Program(("age", "debt"), ("no", "yes"), CLAUSES, split(0, leaf(0.25, 0.75, rows=3), leaf(1.0, 0.0)), {"seed": 1})
CARD = Program(("age", "debt"), ("no", "yes"), CLAUSES, Scorecard((0, -3), ((0, 5), (0, -1)), 10))
BANDED = replace(
    CARD,
    decision=replace(CARD.decision, bands=((Band(0, (0.5, 0.5)), Band(3, (0.75, 0.25))), (Band(0, (0.25, 0.75)),))),
)
RATED = replace(TREE, decision=split(0, Tree((Leaf((0.75, 0.25), 3, answer=1),)), leaf(1.0, 0.0)))
WORDS = Program(
    ("age", "grade", "smoker", "opened", "seen"),
    ("no", "yes"),
    (
        Clause((Interval(0, 18.0, 65.0), OneOf(1, ("", "A", "b'\n")), OneOf(2, ("true",), negated=True))),
        Clause((OneOf(1, (), negated=True), Interval(3, 19783.0, None, if_missing=True), Interval(4, None, 1.5e15))),
    ),
    split(0, leaf(0.25, 0.75), split(1, leaf(0.5, 0.5), leaf(1.0, 0.0))),
    kinds=("number", "category", "boolean", "date", "timestamp"),
)


def test_a_program_with_kinds_is_valid_and_needs_them():
    form = json.loads(to_json(WORDS))
    assert form["schema"] == 2
    assert list(VALIDATOR.iter_errors(form)) == []
    assert from_json(json.dumps(form)) == WORDS


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


@settings(max_examples=300)
@given(programs(("tree", "scorecard", "banded")))
def test_every_program_that_is_written_is_valid(program):
    assert list(VALIDATOR.iter_errors(json.loads(to_json(program)))) == []


@pytest.mark.parametrize("head", ["rules", "tree", "list"])
def test_what_mine_writes_is_valid(head, tmp_path, monkeypatch):
    write_starter(tmp_path)
    monkeypatch.chdir(tmp_path)
    command = ["mine", "loans.csv", "--target", "default", "--train", "gbm", "--rows", "300", "--head", head]
    assert main([*command, "-o", "p.json", "--quiet"]) == 0
    assert list(VALIDATOR.iter_errors(json.loads((tmp_path / "p.json").read_text()))) == []


def places(form, path=()):
    """Every place in a form but those inside its metadata, which may hold anything."""
    yield path
    if path != ("metadata",):
        inner = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
        for key, value in inner:
            yield from places(value, (*path, key))


def at(form, path):
    for key in path:
        form = form[key]
    return form


def changed(form, path, value):
    made = copy.deepcopy(form)
    at(made, path[:-1])[path[-1]] = value
    return made


NULL_ALLOWED = ("rows", "digest", "metadata_digest")


def broken(form):
    """Forms with a key too few, a key too many, or a value of another type, each with what was done to it."""
    for path in places(form):
        here = at(form, path)
        if isinstance(here, dict) and path != ("metadata",):
            made = copy.deepcopy(form)
            at(made, path)["surplus"] = 1
            yield f"{path} has a surplus key", made
            for key in here:
                if key not in ("lo", "hi", "rows", "answer", "bands"):  # those may be left out
                    made = copy.deepcopy(form)
                    del at(made, path)[key]
                    yield f"{path} lacks {key}", made
        for other in (None, True, "text", 1.5, [], {}, -1):
            same_kind = type(other) is type(here) or {type(other), type(here)} == {int, float}
            if path and not same_kind and not (path[-1] in NULL_ALLOWED and other is None):
                yield f"{path} is {other!r}", changed(form, path, other)


@pytest.mark.parametrize(
    "program", [TREE, CARD, WORDS, BANDED, RATED], ids=["tree", "scorecard", "words", "banded", "rated"]
)
def test_what_the_loader_refuses_for_its_shape_the_schema_refuses(program):
    form = json.loads(to_json(program))
    cases = list(broken(form))
    assert len(cases) > 200
    for what, made in cases:
        with pytest.raises(BadInput) as refused:
            from_json(json.dumps(made))
        assert "digest" in what or "the file was changed" not in str(refused.value), what
        assert not VALIDATOR.is_valid(made), what


VALUES = {
    "another version": (("schema",), 3),
    "kinds announced and absent": (("schema",), 2),
    "kinds in schema 1": (("kinds",), ["number", "category"]),
    "a list of texts in schema 1": (
        ("clauses", 0, 0),
        {"feature": 0, "values": ["a"], "negated": False, "if_missing": False},
    ),
    "no features": (("features",), []),
    "a feature twice": (("features",), ["age", "age"]),
    "an empty name": (("features", 0), ""),
    "a NUL in a name": (("features", 0), "a\0b"),
    "a name too long": (("features", 0), "a" * 1001),
    "no classes": (("classes",), []),
    "mixed classes": (("classes",), ["no", 1]),
    "true beside 1": (("classes",), [True, 1]),
    "a class beyond 64 bits": (("classes",), [0, 2**63]),
    "a negative feature": (("clauses", 0, 0, "feature"), -1),
    "an unknown end": (("clauses", 0, 0, "closed"), "middle"),
    "an infinite bound": (("clauses", 0, 0, "lo"), {"hex": "inf", "decimal": "inf"}),
    "a bound that is NaN": (("clauses", 0, 0, "lo"), {"hex": "nan", "decimal": "nan"}),
    "a bound of -0.0": (("clauses", 0, 0, "lo"), {"hex": "-0x0.0p+0", "decimal": "-0.0"}),
    "an unknown decision": (("decision", "kind"), "forest"),
}
TREE_VALUES = {
    "no nodes": (("decision", "nodes"), []),
    "a cycle to the root": (("decision", "nodes", 0, "then"), 0),
    "a negative probability": (("decision", "nodes", 1, "probabilities", 0), {"hex": "-0x1.0p-2", "decimal": "-0.25"}),
    "negative rows": (("decision", "nodes", 1, "rows"), -1),
}
CARD_VALUES = {
    "a scale too large": (("decision", "scale"), 1001),
    "half a point": (("decision", "points", 0, 1), 0.5),
    "points past 2^53": (("decision", "points", 0, 1), 2**53),
}
WORD_VALUES = {
    "kinds in the schema of numbers": (("schema",), 1),
    "no kinds": (("kinds",), []),
    "numbers alone": (("kinds",), ["number"] * 5),
    "an unknown kind": (("kinds", 1), "colour"),
    "a text twice": (("clauses", 0, 1, "values"), ["A", "A"]),
    "a NUL in a text": (("clauses", 0, 1, "values"), ["a\0"]),
    "a text too long": (("clauses", 0, 1, "values"), ["a" * 1001]),
}


@pytest.mark.parametrize("case", [*VALUES, *TREE_VALUES, *CARD_VALUES, *WORD_VALUES])
def test_values_the_loader_refuses_the_schema_refuses(case):
    path, value = {**VALUES, **TREE_VALUES, **CARD_VALUES, **WORD_VALUES}[case]
    source = CARD if case in CARD_VALUES else WORDS if case in WORD_VALUES else TREE
    made = changed(json.loads(to_json(source)), path, value)
    with pytest.raises(BadInput) as refused:
        from_json(json.dumps(made))
    assert "the file was changed" not in str(refused.value)
    assert not VALIDATOR.is_valid(made)
