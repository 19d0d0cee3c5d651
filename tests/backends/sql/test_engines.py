"""The SQL target answers what the program answers, in SQLite, DuckDB, PostgreSQL and DataFusion themselves.

GBFL_SQL_PROGRAMS=1000 python -m pytest tests/backends/sql/test_engines.py runs that many random programs per engine.
"""

import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from gbfl_compile.backends import emit, load_artifact, write_artifact
from gbfl_compile.backends.sql import conditions as sql_conditions
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, Tree, leaf, split
from tests.backends.sql.programs import CARD, EACH, HOSTILE, THREE, TREE, answers, assert_same, hostile_program, text_of
from tests.counts import count, shorten
from tests.engines.sizes import rule_list, rule_set, wide_tree
from tests.programs import programs

RANDOM = {"sqlite": 50, "duckdb": 50, "postgres": 20, "datafusion": 20}


def random_programs(examples, check, **which):
    """Run `check` on random programs; a failing one is reported as it is: shrinking it would take an engine minutes."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(**which))
    def each(program):
        check(program)

    each()


def test_random_programs_have_no_difference_on_their_witnesses(database, tmp_path):
    random_programs(
        count("GBFL_SQL_PROGRAMS", RANDOM[database.dialect]), lambda program: assert_same(program, database, tmp_path)
    )


@pytest.mark.parametrize("options", [{"form": "expression"}, {"form": "view", "key": "id"}], ids=["expression", "view"])
def test_random_programs_in_other_forms_have_no_difference(database, tmp_path, options):
    def check(program):
        kinds = "label,probabilities,reason" + (",leaf" if isinstance(program.decision, Tree) else ",score")
        assert_same(program, database, tmp_path, outputs=kinds, **options)

    random_programs(shorten(RANDOM[database.dialect] // 5), check)


@pytest.mark.parametrize("form", ["expression", "select", "view", "table", "dbt", "macro"])
@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
def test_every_form_is_really_run(database, tmp_path, form, program):
    if form == "macro" and database.dialect in ("sqlite", "datafusion"):
        with pytest.raises(BadInput, match="use form=expression"):
            text_of(program, database.dialect, form=form)
        return
    assert_same(program, database, tmp_path, form=form, table="people", view="scored", outputs="label,probabilities")


@pytest.mark.parametrize("form", ["select", "view", "table"])
def test_a_schema_keys_and_mapped_columns_are_used(database, tmp_path, form):
    options = {"schema": "sales", "table": "people", "key": "id,age", "column.age": "years", "types": "double"}
    assert_same(TREE, database, tmp_path, form=form, **options)


@pytest.mark.parametrize("large", [rule_set, rule_list, wide_tree])
def test_large_programs_run(database, tmp_path, large):
    program = large()
    rows = np.random.default_rng(0).normal(size=(300, len(program.features)))
    rows[::7, 3] = np.nan
    cuts = [cut for clause in program.clauses for atom in clause.atoms for cut in (atom.lo, atom.hi) if cut is not None]
    rows[100:200, 0] = cuts[:100]
    assert_same(program, database, tmp_path, rows)


def test_a_tree_a_thousand_deep_on_its_then_side_runs(database, tmp_path):
    tree = leaf(1.0, 0.0)
    for number in range(1000):
        tree = split(number, tree, leaf(number / 1000, 1 - number / 1000))
    clauses = tuple(Clause((Interval(n % 3, n / 100, 20.0 - n / 100, "left", n % 5 == 0),)) for n in range(1000))
    program = Program(("a", "b", "c"), ("no", "yes"), clauses, tree)
    rows = np.random.default_rng(0).uniform(-1, 21, size=(400, 3))
    rows[::9, 1] = np.nan
    assert_same(program, database, tmp_path, rows)


def test_hostile_names_and_labels_are_only_names_and_labels(database, tmp_path):
    features = tuple(name for name in HOSTILE if name.isascii())
    assert_same(
        hostile_program(features),
        database,
        tmp_path,
        table="t\"`]'; DROP TABLE x; --",
        outputs="label,probabilities,reason",
    )
    assert_same(hostile_program(), database, tmp_path, form="view", view="v\"`]'\\ {{ 1 }}", key="id")


@pytest.mark.parametrize("labels", [(0, 1, -(2**63)), (2**63 - 1, -5), (False, True), (0.1, -1e15, 1.5), ("one",)])
def test_labels_come_back_as_they_were(database, tmp_path, labels):
    program = hostile_program(("a", "b", "c", "d"), labels)
    rows = np.eye(4)
    found = answers(program, database, tmp_path, np.vstack([rows, np.zeros(4)])).labels.tolist()
    expected = evaluate_many(program, np.vstack([rows, np.zeros(4)])).labels.tolist()
    assert [(type(label), label) for label in found] == [(type(label), label) for label in expected]


def test_points_beyond_32_bits_and_far_apart_scores_are_added_exactly(database, tmp_path):
    clauses = tuple(Clause((Interval(0, float(n)),)) for n in range(4))
    for classes in (("a", "b"), ("a", "b", "c")):
        points = tuple(tuple((-1) ** c * (2**50 + n + c) for c in range(len(classes))) for n in range(4))
        card = Scorecard(tuple(range(len(classes))), points, 3)
        assert_same(Program(("x",), classes, clauses, card), database, tmp_path)
        assert_same(
            Program(("x",), classes, clauses, card),
            database,
            tmp_path,
            form="expression",
            outputs="label,probabilities,score",
        )


TYPES = {
    "sqlite": {"float32": "REAL", "integer": "INTEGER", "decimal": "DECIMAL(18, 4)", "bigint": "BIGINT"},
    "duckdb": {"float32": "REAL", "integer": "INTEGER", "decimal": "DECIMAL(18, 4)", "bigint": "BIGINT"},
    "postgres": {"float32": "REAL", "integer": "INTEGER", "decimal": "DECIMAL(18, 4)", "bigint": "BIGINT"},
    "datafusion": {"float32": "REAL", "integer": "INTEGER", "decimal": "DECIMAL(18, 4)", "bigint": "BIGINT"},
}
VALUES = {
    "float32": [float(np.float32(value)) for value in (0.1, 0.3, -1.7, 2.5, 16777217.0, 1e30)],
    "integer": [-3, 0, 1, 7, 2**31 - 1],
    "decimal": ["-1.7000", "0.1000", "0.3000", "2.5000", "12345678901234.5678", "1234567890.1235"],
    "bigint": [-3, 0, 2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1],
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_column_of_another_type_means_its_value_as_a_double(database, kind):
    values = VALUES[kind]
    name, row = database.quote("x"), database.quote("gbfl_row")
    database.execute("DROP TABLE IF EXISTS typed")
    rows = " UNION ALL ".join(
        f"SELECT {n} AS {row}, CAST({v!r} AS {TYPES[database.dialect][kind]}) AS {name}" for n, v in enumerate(values)
    )
    database.execute(f"CREATE TABLE typed AS {rows}")
    doubles = np.array([[float(value)] for value in values])
    for cut in sorted({float(c) for v in doubles[:, 0] for c in (v, np.nextafter(v, np.inf))}):
        program = Program(
            ("x",), ("low", "high"), (Clause((Interval(0, cut),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
        )
        statement = text_of(program, database.dialect, table="typed", key="gbfl_row", outputs="label").removesuffix(
            "\n;\n"
        )
        found = dict(database.fetch(statement))
        assert [found[n] for n in range(len(values))] == evaluate_many(program, doubles).labels.tolist(), cut
    database.execute("DROP TABLE typed")


def test_a_filter_on_a_view_in_postgres_still_reaches_the_index(tmp_path):
    if reason := availability("postgres"):
        pytest.skip(reason)
    database = scratch("postgres")
    database.insert("people", ("id", "age", "income"), np.random.default_rng(0).normal(size=(5000, 3)))
    database.execute("CREATE INDEX ON people (id)")
    database.execute("ANALYZE people")
    for number, program in enumerate(EACH.values()):
        made = text_of(program, "postgres", form="view", table="people", view=f"v{number}", key="id")
        database.execute(made.removesuffix("\n;\n"))
        plan = "\n".join(line for (line,) in database.fetch(f"EXPLAIN SELECT label FROM v{number} WHERE id = 0.5"))
        assert "Index" in plan, plan
    database.close()


@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
def test_check_finds_no_difference_and_names_the_engine(database, tmp_path, program):
    target = f"sql:{database.dialect}"
    write_artifact(emit(program, target), tmp_path)
    predictor = load_artifact(tmp_path / f"sql-{database.dialect}")
    verdict = compare(expectation(program), predictor)
    assert verdict.verdict == "equal", verdict
    assert predictor.engine == database.version
    assert (predictor.digest, predictor.features, predictor.classes) == (
        digest(program),
        program.features,
        program.classes,
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("AND \"income\" <> CAST('NaN' AS DOUBLE)", ""),  # NaN lies above every lower bound
        ('OR "income" IS NULL', ""),
        ('"age" >= 18.0e0', '"age" > 18.0e0'),
        ("18.0e0", "18.000000000000004e0"),
        ("65.0e0", "64.99999999999999e0"),
        ('"gbfl_leaf" + 1', '"gbfl_leaf" + 0'),
        ("0.75e0", "0.75000000000000011e0"),
        ("'yes'", "'no'"),
    ],
)
def test_a_slip_in_the_emitted_sql_is_caught(tmp_path, right, wrong):
    write_artifact(emit(TREE, "sql:duckdb"), tmp_path)
    path = tmp_path / "sql-duckdb" / "model.sql"
    text = path.read_text(encoding="utf-8")
    head, begin, body = text.partition("WITH gbfl_rows")
    assert right in body
    path.write_text(head + begin + body.replace(right, wrong), encoding="utf-8", newline="\n")
    assert compare(expectation(TREE), load_artifact(path.parent)).verdict == "different"


def test_an_emitter_without_the_nan_guard_is_caught(database, tmp_path, monkeypatch):
    if not database.holds_nan:
        pytest.skip(f"{database.version} holds no NaN")
    monkeypatch.setattr(sql_conditions, "is_present", lambda dialect, column: "1 = 1")
    with pytest.raises(BadInput, match="NULL and NaN are answered differently"):
        answers(TREE, database, tmp_path, witnesses(TREE))


@pytest.mark.parametrize("program", [CARD, THREE], ids=["two classes", "three"])
def test_an_emitter_that_gives_ties_to_the_later_class_is_caught(tmp_path, program):
    write_artifact(emit(program, "sql:duckdb"), tmp_path)
    path = tmp_path / "sql-duckdb" / "model.sql"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("> 0 THEN 'yes'", ">= -2 THEN 'yes'").replace('WHEN "gbfl_points_0" =', "WHEN 1 +"),
        encoding="utf-8",
    )
    assert compare(expectation(program), load_artifact(path.parent)).verdict == "different"


def test_sqlite_takes_a_column_that_is_not_there_for_an_error_not_for_a_string():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (income REAL)")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute(text_of(TREE, "sqlite").removesuffix("\n;\n"))
