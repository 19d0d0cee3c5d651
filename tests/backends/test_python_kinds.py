"""The Python target takes words, booleans, dates and missing values as Python has them, and is proved."""

import datetime
import types
from enum import Enum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import backend, emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, leaf, split
from tests.programs import programs_of_kinds

LOANS = Program(
    ("income", "contract", "smoker", "opened"),
    ("no", "yes"),
    (
        Clause((Interval(0, 1000.0), OneOf(1, ("Month-to-month", "two year")))),
        Clause((OneOf(2, (TRUE,)), Interval(3, None, 19783.0))),
        Clause((OneOf(1, ("a",), negated=True), OneOf(2, (TRUE,), negated=True, if_missing=True))),
    ),
    split(0, split(1, leaf(0.2, 0.8), leaf(0.7, 0.3)), split(2, leaf(1.0, 0.0), leaf(0.4, 0.6))),
    kinds=("number", "category", "boolean", "date"),
)


def loaded(artifact, folder):
    path = folder / "model.py"
    path.write_bytes(artifact.files["model.py"])
    return backend("python").load(path)


@settings(max_examples=100, deadline=None)
@given(program=programs_of_kinds())
def test_every_program_is_proved_and_runs_equal(tmp_path_factory, program):
    artifact = emit(program, "python")
    assert prove_artifact(program, "python", artifact.files).answer == "proved"
    verdict = compare(expectation(program), loaded(artifact, tmp_path_factory.mktemp("module")))
    assert (verdict.verdict, verdict.execution.different) == ("equal", 0)


def test_rows_are_taken_by_name_and_by_place(tmp_path):
    namespace = {}
    exec(emit(LOANS, "python").files["model.py"].decode(), namespace)
    row = [2000, "two year", True, datetime.date(2024, 2, 29)]
    assert namespace["predict"](row) == evaluate(LOANS, row).label == "yes"
    assert namespace["predict"](dict(zip(LOANS.features, row, strict=True))) == "yes"


@pytest.mark.parametrize(
    ("place", "value", "kind"),
    [(0, "1000", "number"), (1, 3, "category"), (2, "yes", "boolean"), (3, "2024-03-01", "date")],
)
def test_a_value_of_another_kind_is_refused_by_name(place, value, kind):
    namespace = {}
    exec(emit(LOANS, "python").files["model.py"].decode(), namespace)
    row = [2000, "two year", True, datetime.date(2024, 2, 29)]
    row[place] = value
    with pytest.raises(ValueError, match=f"'{LOANS.features[place]}': .* is not a {kind}"):
        namespace["predict"](row)


EDITS = {
    "a text in other letters": ("'two year'", "'Two year'"),
    "a text with a blank": ("'two year'", "'two year '"),
    "a text lost": ("in ('Month-to-month', 'two year')", "in ('Month-to-month',)"),
    "a text more": ("in ('Month-to-month', 'two year')", "in ('Month-to-month', 'two year', 'x')"),
    "a set turned round": ("contract in (", "contract not in ("),
    "missing let in": ("contract is not None and contract != 'a'", "contract != 'a'"),
    "a day later": ("opened < 19783.0", "opened <= 19783.0"),
    "false for true": ("smoker == 1.0", "smoker == 0.0"),
    "a part of a text": ("contract in ('Month-to-month', 'two year')", "contract in 'Month-to-month two year'"),
    "a part of a text that has a name": (
        "    if income >= 1000.0 and contract in ('Month-to-month', 'two year')",
        "    long = 'Month-to-month two year'\n    if income >= 1000.0 and contract is not None and contract in long",
    ),
    "another kind": ("    'boolean',", "    'number',"),
    "trimmed texts": ("return str.__str__(value)", "return str.__str__(value).strip()"),
    "local dates": ("_datetime.date(1970, 1, 1)", "_datetime.date(1970, 1, 2)"),
}


ONE_TEXT = Program(
    ("contract",),
    ("no", "yes"),
    (Clause((OneOf(0, ("two year",)),)),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    kinds=("category",),
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("contract is not None and contract in wanted", "unread"),  # true for 'two', 'year' and ''
        ("not (contract is None or contract not in wanted)", "unread"),
        ("contract == wanted", "proved"),
        ("not contract != wanted", "proved"),
        ("contract in (wanted,)", "unread"),
        ("contract in several", "proved"),
        ("contract == several", "unread"),  # never true
    ],
)
def test_a_text_that_has_a_name_is_not_a_set_of_texts(question, answer):
    text = emit(ONE_TEXT, "python").files["model.py"].decode()
    old = "    if contract == 'two year':"
    assert old in text
    named = f"    wanted = 'two year'\n    several = ('two year',)\n    if {question}:"
    assert prove_artifact(ONE_TEXT, "python", {"model.py": text.replace(old, named).encode()}).answer == answer


@pytest.mark.parametrize("name", ["datetime", "DateTime", "_datetime"])
def test_a_module_is_not_called_like_one_it_imports(name):
    with pytest.raises(BadInput, match="choose another with --name"):
        emit(LOANS, "python", name)
    files = {f"{name}.py": emit(LOANS, "python").files["model.py"]}
    assert prove_artifact(LOANS, "python", files).answer == "unread"


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_not_proved(name):
    old, new = EDITS[name]
    text = emit(LOANS, "python").files["model.py"].decode()
    assert old in text
    assert prove_artifact(LOANS, "python", {"model.py": text.replace(old, new, 1).encode()}).answer != "proved"


@settings(max_examples=50, deadline=None)
@given(word=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40))
def test_any_text_can_be_a_value(word):
    program = Program(
        ("x",),
        ("no", "yes"),
        (Clause((OneOf(0, (word,)),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("category",),
    )
    artifact = emit(program, "python")
    assert prove_artifact(program, "python", artifact.files).answer == "proved"
    namespace = {}
    exec(artifact.files["model.py"].decode(), namespace)
    assert namespace["predict"]([word]) == "yes"
    assert namespace["predict"]([word + " "]) == "no"


def test_what_pandas_calls_missing_is_missing():
    pandas = pytest.importorskip("pandas")
    namespace = {}
    exec(emit(LOANS, "python").files["model.py"].decode(), namespace)
    rows = [[2000, "two year", True, datetime.date(2024, 2, 29)], [0, "b", False, datetime.date(2024, 3, 2)]]
    for row in rows:
        for place in range(4):
            for missing in (pandas.NA, pandas.NaT, None, float("nan")):
                lacking = [missing if place == other else value for other, value in enumerate(row)]
                assert namespace["predict"](lacking) == evaluate(LOANS, lacking).label


class Grade(str, Enum):  # noqa: UP042 - str() of a StrEnum is its text, of this one its name
    A = "a"


class Shown(str):
    def __str__(self):
        return "shown otherwise"


@pytest.mark.parametrize("value", ["a", Grade.A, Shown("a"), np.str_("a")])
def test_a_text_of_a_class_of_its_own_is_its_text(value):
    clauses = (Clause((OneOf(0, ("a",)),)),)
    program = Program(("g",), ("no", "yes"), clauses, split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)), kinds=("category",))
    model = types.ModuleType("model")
    exec(compile(emit(program, "python").files["model.py"], "model.py", "exec"), model.__dict__)
    assert (evaluate(program, [value]).label, model.predict([value]), model.predict({"g": value})) == ("yes",) * 3
