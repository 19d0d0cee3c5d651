"""What the SQL target wrote answers as the program does in the slower engines: witnesses, sizes, types, forms.

GBFL_SQL_PROGRAMS=100 python -m pytest tests/engines/test_sql.py runs 100 random programs per engine; otherwise 12.
"""

import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings

from gbfl_compile.backends import backend, emit, write_artifact
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from tests.engines.sizes import rule_list, rule_set, wide_tree
from tests.programs import programs

PROGRAMS = int(os.environ.get("GBFL_SQL_PROGRAMS", "12"))

THREE_LEAVES = Program(
    ("age", "income"),
    ("no", "it's", "yes"),
    (Clause((Interval(0, 18.0, None), Interval(1, None, 1e5))), Clause((Interval(1, 0.1, 0.3, "both", True),))),
    split(0, leaf(0.0, 0.1, 0.9), split(1, leaf(0.2, 0.7, 0.1), leaf(1.0, 0.0, 0.0))),
)
THREE_RULES = Program(
    THREE_LEAVES.features,
    (0, 1),
    (*THREE_LEAVES.clauses, Clause((Interval(0, None, -2.5, "right"),))),
    Scorecard((3, 0), ((-4, 4), (1, 2), (7, -7)), 4),
)


def assert_same_answers(program, target, rows, folder, options=None):
    artifact = emit(program, target, "model", options or {})
    path = write_artifact(artifact, folder)[0]
    predictor = backend(target).load(path)
    found = predictor.answer(rows)
    if not predictor.holds_infinity:  # the largest doubles stand in for them, and that is what is asked
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    expected = evaluate_many(program, rows)
    assert found.labels.tolist() == expected.labels.tolist(), path.read_text()
    if expected.scores is None:
        assert np.array_equal(found.probabilities, expected.probabilities)
    else:
        assert np.array_equal(found.scores, expected.scores)
        assert np.abs(found.probabilities - expected.probabilities).max(initial=0) <= 1e-12
    return path


def test_random_programs_have_no_difference_on_their_witnesses(database, tmp_path):
    @settings(
        max_examples=PROGRAMS,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(("tree", "scorecard", "banded")))
    def check(program):
        try:
            assert_same_answers(program, f"sql:{database.dialect}", witnesses(program), tmp_path)
        except BadInput as refused:
            assert "one in" in str(refused)  # noqa: PT017 - names that are one column to the engine
            reject()  # another one in its place

    check()


def test_spark_refuses_a_rule_set_it_would_plan_for_hours_when_it_is_emitted():
    with pytest.raises(BadInput, match=r"3900 terms: Spark does not plan more than 1500"):
        emit(rule_set(1300), "sql:spark", "model", {})


@pytest.mark.parametrize("large", [rule_set, rule_list, wide_tree])
def test_large_programs_run(database, tmp_path, large):
    program = large(SIZES.get(f"{large.__name__} {database.dialect}", SIZES[large.__name__]))
    rows = np.random.default_rng(0).normal(size=(300, len(program.features)))
    rows[::7, 3] = np.nan
    cuts = [cut for clause in program.clauses for atom in clause.atoms for cut in (atom.lo, atom.hi) if cut is not None]
    rows[100 : 100 + len(cuts[:100]), 0] = cuts[:100]
    assert_same_answers(program, f"sql:{database.dialect}", rows, tmp_path)


SIZES = {"rule_set": 1300, "rule_list": 1000, "wide_tree": 500}
if os.environ.get("GBFL_LARGE"):
    SIZES |= {"rule_set spark": 500}  # of three classes: the most it is given
else:  # Spark reads and plans large queries for minutes
    SIZES |= {"rule_set spark": 60, "rule_list spark": 200, "wide_tree spark": 100}


@pytest.mark.parametrize("form", ["select", "view", "table", "expression", "macro"])
@pytest.mark.parametrize("program", [THREE_LEAVES, THREE_RULES], ids=["tree", "rules"])
def test_every_form_is_run(database, tmp_path, form, program):
    options = {"form": form, "table": "people", "view": "scored", "outputs": "label,probabilities"}
    if isinstance(program.decision, Scorecard):
        options["outputs"] += ",score"
    path = assert_same_answers(program, f"sql:{database.dialect}", witnesses(program), tmp_path, options)
    assert b"people" in path.read_bytes()


def test_a_created_view_answers_as_its_program(database):
    program = THREE_LEAVES
    rows = witnesses(program)
    rows = rows[~np.isinf(rows).any(axis=1)]
    database.insert("people", program.features, rows)
    options = {"form": "view", "table": "people", "view": "scored_people", "key": "gbfl_row", "outputs": "label"}
    for statement in statements(emit(program, f"sql:{database.dialect}", "model", options)):
        database.execute(statement)
    view = database.quote("scored_people")
    found = dict(database.fetch(f"SELECT gbfl_row, label FROM {view}"))
    assert [found[number] for number in range(len(rows))] == evaluate_many(program, rows).labels.tolist()
    database.execute(f"DROP VIEW {view}")


def statements(artifact):
    text = artifact.files[f"{artifact.name}.sql"].decode()
    return [part for part in text.split("\n;\n") if part.strip()]


TYPES = {
    "clickhouse": {"float32": "Float32", "integer": "Int32", "decimal": "Decimal(18, 4)", "bigint": "Int64"},
    "mariadb": {"float32": "FLOAT", "integer": "INT", "decimal": "DECIMAL(18, 4)", "bigint": "BIGINT"},
    "spark": {"float32": "FLOAT", "integer": "INT", "decimal": "DECIMAL(18, 4)", "bigint": "BIGINT"},
}
WRITTEN = {
    "float32": [np.float32(0.1), np.float32(0.3), np.float32(-1.7), np.float32(2.5), np.float32(16777216.0)],
    "integer": [-3, 0, 1, 7, 2**31 - 1],
    "decimal": [-1.7, 0.1, 0.3, 2.5, 12345678901234.5678],
    "bigint": [-3, 0, 2**53, 2**53 + 1, 2**53 + 2],
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_column_of_another_type_means_its_value_as_a_double(database, kind):
    values = WRITTEN[kind]
    doubles = np.array([[float(value)] for value in values])
    cuts = sorted({float(v) for value in values for v in (value, math.nextafter(float(value), math.inf))})
    column, table = database.quote("x"), database.quote("typed")
    texts = [repr(float(value)) if kind == "float32" else str(value) for value in values]
    number_type, ending = ("Int64", " ENGINE = Memory") if database.dialect == "clickhouse" else ("BIGINT", "")
    database.execute(f"DROP TABLE IF EXISTS {table}")
    database.execute(f"CREATE TABLE {table} (gbfl_row {number_type}, {column} {TYPES[database.dialect][kind]}){ending}")
    made = ", ".join(f"({number}, {text})" for number, text in enumerate(texts))
    database.execute(f"INSERT INTO {table} VALUES {made}")
    for cut in cuts:
        program = Program(
            ("x",), ("low", "high"), (Clause((Interval(0, cut, None),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
        )
        options = {"table": "typed", "key": "gbfl_row", "outputs": "label"}
        (query,) = statements(emit(program, f"sql:{database.dialect}", "model", options))
        found = dict(database.fetch(query))
        assert [found[i] for i in range(len(values))] == evaluate_many(program, doubles).labels.tolist(), query


def test_a_bound_at_the_end_of_the_doubles_is_checked_on_the_values_that_the_engine_got(database, tmp_path):
    """MariaDB holds no infinities: -inf is given as the smallest double, which such a bound lets in."""
    end = float(np.finfo(np.float64).max)
    clauses = (Clause((Interval(0, -end, 0.5),)), Clause((Interval(0, 0.5, end, "both"),)))
    program = Program(("a",), ("no", "yes"), clauses, Scorecard((0, 0), ((0, 3), (2, 0)), 0))
    path = write_artifact(emit(program, f"sql:{database.dialect}", "model", {}), tmp_path)[0]
    verdict = compare(expectation(program), backend(f"sql:{database.dialect}").load(path))
    assert (verdict.verdict, verdict.execution.different) == ("equal", 0)
