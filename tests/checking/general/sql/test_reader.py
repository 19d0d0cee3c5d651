"""SQL is read back from its text alone: what we emit is proved, slips are found, and everything else is refused.

GBFL_RESPELLINGS=1000, GBFL_MUTANTS=2000 and GBFL_SQL_CORRUPTIONS=20000 set the numbers of cases; CI tries 60, 100 and 1,000.
"""

import contextlib
import math
import random
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import read
from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.prove import prove
from gbfl_compile.checking.prove.findings import Counterexample
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.checking.strict.sql.lexis import NEVER_RUN
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from tests.checking.general.sql.edits import mutated, respelled
from tests.checking.respelling import random_program
from tests.counts import count
from tests.programs import programs

RESPELLINGS = count("GBFL_RESPELLINGS", 60)
MUTANTS = count("GBFL_MUTANTS", 100)
CORRUPTIONS = count("GBFL_SQL_CORRUPTIONS", 1000)

FORMS = ("select", "view", "table", "expression", "macro", "dbt")
RUN = [name for name in ENGINES if name not in NEVER_RUN]

ADULT = Program(
    ("age",), ("no", "yes"), (Clause((Interval(0, 18.0, None),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)
LAYOUT = TextLayout(("age",), ("no", "yes"), ((0, "age"),), (("label", "label"),))


def proved(program, readings):
    return all(prove(program, reading).answer == "proved" for reading in readings)


def answers(dialect, condition, *, missing="NULL"):
    """Where `CASE WHEN condition THEN 'yes' ELSE 'no' END` says yes, for a feature of some values."""
    readings = read_sql(f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT)
    reading = readings[0] if missing == "NULL" else readings[-1]
    values = (-math.inf, 0.0, 17.0, 18.0, 19.0, math.inf, math.nan)
    return [value for value in values if run_reading(reading, [value]).label == "yes"]


@settings(
    max_examples=20,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@seed(11)
@given(programs())
def test_queries_that_are_emitted_are_read_and_proved(program):
    """Trees and lists, and labels by points of two classes. More classes may be refused, and are never misread."""
    choose = random.Random(repr(program))
    for dialect, form in zip(choose.choices(RUN, k=4), choose.choices(FORMS, k=4), strict=True):
        options = {"form": form} | ({"outputs": "label"} if choose.random() < 0.6 else {})
        try:
            artifact = emit(program, f"sql:{dialect}", "model", options)
        except BadInput:  # names or numbers that the engine does not take
            continue
        by_points = isinstance(program.decision, Scorecard)
        try:
            readings = read(f"sql:{dialect}", artifact.files)
        except Unread:
            assert form not in ("select", "view", "table") or (
                by_points and ("outputs" not in options or len(program.classes) > 2)
            )
            continue
        assert form in ("select", "view", "table")
        assert proved(program, readings), artifact.files["model.sql"].decode()
        assert readings[0].digest == artifact.digest


def test_respellings_are_proved():
    choose = random.Random(5)
    for _ in range(RESPELLINGS):
        dialect, kind = choose.choice(RUN), choose.choice(("tree", "list"))
        program = random_program(choose, kind)
        outputs = "label"
        try:
            text = emit(program, f"sql:{dialect}", "m", {"outputs": outputs}).files["m.sql"].decode()
        except BadInput:
            continue
        text_respelled = respelled(choose, text, dialect)
        assert proved(program, read_sql(text_respelled, dialect)), text_respelled


def test_mutants_are_refused_or_refuted_or_equal():
    choose = random.Random(6)
    found = {"refused": 0, "refuted": 0, "equal": 0}
    tried = 0
    while tried < MUTANTS:
        dialect, kind = choose.choice(RUN), choose.choice(("tree", "list"))
        program = random_program(choose, kind)
        outputs = "label"
        try:
            text = emit(program, f"sql:{dialect}", "m", {"outputs": outputs}).files["m.sql"].decode()
        except BadInput:
            continue
        slipped = mutated(choose, text, dialect)
        if slipped is None:
            continue
        tried += 1
        found[fate(program, slipped, dialect)] += 1
    if MUTANTS > 1000:
        sys.stderr.write(f"SQL mutants: {found}\n")
    assert min(found["refuted"], found["equal"]) > MUTANTS // 5


def fate(program, text, dialect):
    try:
        readings = read_sql(text, dialect)
    except Unread:
        return "refused"
    proofs = [prove(program, reading) for reading in readings]
    for proof in proofs:
        assert proof.answer != "undecided"
        for finding in proof.findings.values():
            if isinstance(finding, Counterexample):
                return "refuted"
    return "equal"


def test_corrupted_texts_are_refused_or_read_and_never_crash():
    choose = random.Random(8)
    sources = []
    for dialect in RUN:
        for kind in ("tree", "scorecard"):
            program = random_program(choose, kind, features=2, most_clauses=2, cuts=(-2.0, 0.1, 1.0))
            text = emit(program, f"sql:{dialect}", "m", {"outputs": "label"}).files["m.sql"].decode()
            sources.append((dialect, text))
    slowest = 0.0
    for _ in range(CORRUPTIONS):
        dialect, text = choose.choice(sources)
        began = time.monotonic()
        try:
            for reading in read_sql(corrupted(choose, text), dialect):
                assert isinstance(reading, Reading)
                run_reading(reading, [0.5] * len(reading.features))
        except Unread:
            pass
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 10.0


def corrupted(choose, text):
    start = choose.randrange(len(text))
    end = min(len(text), start + choose.choice((1, 1, 1, 2, 5, 40)))
    match choose.randrange(6):
        case 0:
            return text[:start] + text[end:]
        case 1:
            return text[:start] + choose.choice(" \n()[]{}'\"`;,.*+-/<>=!\\#@\0éNULL0123456789eE") + text[end:]
        case 2:
            return text[:start] + text[start:end] * 2 + text[end:]
        case 3:
            return text[:start]
        case 4:
            other = choose.randrange(len(text))
            return text[:start] + text[other : other + 30] + text[end:]
        case _:
            words = [
                "NOT ",
                "NULL",
                "CASE WHEN ",
                " END",
                " OR ",
                " AND ",
                "SELECT ",
                "FROM ",
                "(",
                ")",
                "--",
                "/*",
                "1e400",
            ]
            return text[:start] + choose.choice(words) + text[start:]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_nan_lies_above_every_number_where_the_engine_has_it_so(dialect):
    assert answers(dialect, "age >= 18") == [18.0, 19.0, math.inf]
    assert answers(dialect, "age >= 18", missing="NaN")[:3] == [18.0, 19.0, math.inf]
    assert math.isnan(answers(dialect, "age >= 18", missing="NaN")[-1])
    guarded = "age >= 18 AND age <> CAST('NaN' AS DOUBLE PRECISION)".replace(
        "DOUBLE PRECISION", "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
    )
    assert (
        len(read_sql(f"SELECT CASE WHEN {guarded} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT)) == 1
    )


def test_a_dropped_guard_is_refuted_by_nan_alone():
    text = "SELECT CASE WHEN age >= 18 THEN 'yes' ELSE 'no' END AS label FROM data"
    with_null, with_nan = (prove(ADULT, reading).labels for reading in read_sql(text, "postgres", LAYOUT))
    assert type(with_null).__name__ == "ProvedEqual"
    assert isinstance(with_nan, Counterexample)
    assert math.isnan(with_nan.row[0])


def test_mixed_null_and_nan_are_not_forgotten():
    """The text differs from the program only where one feature is NULL and the other NaN."""
    program = Program(("a", "b"), ("no", "yes"), (Clause(()),), leaf(1.0, 0.0))
    layout = TextLayout(("a", "b"), ("no", "yes"), ((0, "a"), (1, "b")), (("label", "label"),))
    text = "SELECT CASE WHEN a IS NULL AND b = 'NaN' THEN 'yes' ELSE 'no' END AS label FROM data"
    proofs = [prove(program, reading) for reading in read_sql(text, "postgres", layout)]
    assert len(proofs) == 4
    assert [proof.answer for proof in proofs].count("counterexample") == 1


def test_a_text_without_any_guard_is_refuted_however_many_features_it_asks():
    names = tuple(f"f{i}" for i in range(9))
    clause = Clause(tuple(Interval(i, float(i), None) for i in range(9)))
    program = Program(names, ("no", "yes"), (clause,), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    layout = TextLayout(names, ("no", "yes"), tuple(enumerate(names)), (("label", "label"),))
    condition = " AND ".join(f"{name} >= {i}" for i, name in enumerate(names))
    readings = read_sql(f"SELECT CASE WHEN {condition} THEN 'yes' ELSE 'no' END AS label FROM data", "duckdb", layout)
    assert [prove(program, reading).answer for reading in readings] == ["proved", "counterexample"]


def test_clickhouse_compares_nan_as_ieee_does():
    (reading,) = read_sql("SELECT if(age >= 18, 'yes', 'no') AS label FROM data", "clickhouse", LAYOUT)
    assert proved(ADULT, [reading])
    turned = read_sql("SELECT if(NOT (age < 18), 'yes', 'no') AS label FROM data", "clickhouse", LAYOUT)
    assert [prove(ADULT, reading).answer for reading in turned] == ["proved", "counterexample"]


@pytest.mark.parametrize("dialect", ["sqlite", "mariadb"])
def test_a_nan_guard_drops_zeros_where_there_is_no_nan(dialect):
    double = "REAL" if dialect == "sqlite" else "DOUBLE"
    assert answers(dialect, f"age >= 0 AND age <> CAST('NaN' AS {double})") == [17.0, 18.0, 19.0, math.inf]


def test_null_is_unknown_and_not_stays_unknown():
    assert answers("sqlite", "NOT (age < 18)") == [18.0, 19.0, math.inf]
    assert math.isnan(answers("sqlite", "COALESCE(age >= 18, 1)")[-1])
    assert math.isnan(answers("sqlite", "age >= 18 OR age IS NULL")[-1])
    assert answers("sqlite", "age NOT IN (17, NULL)") == []
    assert answers("sqlite", "age NOT BETWEEN 0 AND 18") == [-math.inf, 19.0, math.inf]
    assert answers("duckdb", "(age >= 18) IS NOT TRUE AND age IS NOT NULL") == [-math.inf, 0.0, 17.0]


@pytest.mark.parametrize(
    ("dialect", "literal", "bound"),
    [
        ("duckdb", "CAST('0.1' AS DOUBLE)", 0.1),
        ("duckdb", "0.1", 0.1),
        ("duckdb", "18", 18.0),
        ("postgres", "'0.1'::double precision", 0.1),
        ("postgres", "('-2.5'::numeric)::double precision", -2.5),
        ("postgres", "47.36882144582734", 47.36882144582734),
        ("sqlite", "4.7368821445827342e+01", 47.36882144582734),
        ("sqlite", "(3.0e0 / 1125899906842624.0e0 / 1024.0e0)", 3.0 * 2.0**-60),
        ("clickhouse", "18.", 18.0),
        ("mariadb", "0.30000000000000004", 0.30000000000000004),
    ],
)
def test_a_literal_is_the_double_the_engine_makes_of_it(dialect, literal, bound):
    (reading, *_) = read_sql(
        f"SELECT CASE WHEN age < {literal} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT
    )
    below = math.nextafter(bound, -math.inf)
    assert [run_reading(reading, [value]).label for value in (below, bound)] == ["yes", "no"]


@pytest.mark.parametrize(
    ("dialect", "literal"),
    [
        ("duckdb", "47.36882144582734"),  # a DECIMAL, which older versions convert wrongly
        ("sqlite", "47.36882144582734"),  # SQLite 3.40 reads the next double
        ("sqlite", "1.0e300"),
        ("clickhouse", "CAST('47.36882144582734' AS Float64)"),
        ("postgres", "0.1::real"),
        ("duckdb", "CAST(0.1 AS FLOAT)"),
        ("duckdb", "9007199254740993"),
        ("duckdb", "1e400"),
        ("postgres", "(3.0e0 / 7.0e0)"),  # NUMERIC, rounded to so many digits
        ("mariadb", "0x41"),
        ("duckdb", "random()"),
        ("duckdb", "(SELECT 18)"),
    ],
)
def test_a_number_that_is_not_certain_is_refused(dialect, literal):
    with pytest.raises(Unread):
        read_sql(f"SELECT CASE WHEN age >= {literal} THEN 'yes' ELSE 'no' END AS label FROM data", dialect, LAYOUT)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT {} AS label FROM data WHERE age > 3",
        "SELECT DISTINCT {} AS label FROM data",
        "SELECT {} AS label FROM data LIMIT 10",
        "SELECT {} AS label FROM data OFFSET 1",
        "SELECT {} AS label FROM data, other",
        "SELECT {} AS label FROM data JOIN other ON true",
        "SELECT {} AS label FROM data TABLESAMPLE SYSTEM (10)",
        "SELECT {} AS label FROM data UNION ALL SELECT {} AS label FROM data",
        "SELECT {} AS label FROM data GROUP BY age",
        "SELECT {} AS other FROM data",
        "SELECT {} AS label, {} AS label FROM data",
        "SELECT {} AS label FROM (SELECT age + 1 AS age FROM data) AS t",
        "SELECT {} AS label FROM (SELECT income AS age FROM data) AS t",
        "DELETE FROM data",
        "SELECT CASE WHEN income >= 18 THEN 'yes' ELSE 'no' END AS label FROM data",
        "SELECT CASE WHEN age >= 18 THEN 'yes' END AS label FROM data",
        "SELECT CASE WHEN age >= 18 THEN 'yes' ELSE 'maybe' END AS label FROM data",
        "SELECT CASE WHEN lower(age) >= 18 THEN 'yes' ELSE 'no' END AS label FROM data",
        "SELECT {} AS label FROM data; SELECT 1 AS one",
        "SELECT CASE WHEN age < 3 < age THEN 'yes' ELSE 'no' END AS label FROM data",
        "CREATE MATERIALIZED VIEW v AS SELECT {} AS label FROM data",
        "",
    ],
)
def test_what_could_change_rows_or_is_not_understood_is_refused(query):
    answer = "CASE WHEN age >= 18 AND age <> 'NaN' THEN 'yes' ELSE 'no' END"
    with pytest.raises(Unread):
        read_sql(query.replace("{}", answer), "postgres", LAYOUT)


@pytest.mark.parametrize(
    "query",
    [
        "select case when age >= 18 and age <> 'NaN' then 'yes' else 'no' end as label from data as d",
        "SELECT CASE WHEN (age >= 18) IS TRUE AND NOT age = 'NaN' THEN 'yes' ELSE 'no' END AS \"label\" FROM s.data",
        "SELECT CASE WHEN age < 18 OR age IS NULL OR age = 'NaN' THEN 'no' ELSE 'yes' END AS label FROM data",
        "SELECT CASE WHEN age BETWEEN 18 AND 'Infinity' THEN 'yes' ELSE 'no' END AS label FROM data",
        "SELECT CASE NULLIF(age, 'NaN') >= 18 WHEN true THEN 'yes' ELSE 'no' END AS label FROM data",
        "SELECT CASE WHEN coalesce(nullif(age, 'NaN'), 0) >= 18 THEN 'yes' ELSE 'no' END AS label FROM data",
        "SELECT t.label FROM (SELECT q.years, CASE WHEN q.years > 17.999999999999996 AND q.years <= 'inf' THEN 'yes' "
        "ELSE 'no' END AS label FROM (SELECT age AS years FROM data) q) t",
        "WITH a (x) AS (SELECT age::double precision FROM data) "
        "SELECT CASE WHEN x = ANY (ARRAY[1, 2]) THEN 'no' WHEN x >= 18 AND x < 'NaN' THEN 'yes' ELSE 'no' END AS label FROM a",
    ],
)
def test_hand_written_rules_are_proved(query):
    assert proved(ADULT, read_sql(query, "postgres", LAYOUT))


def test_probabilities_that_are_off_by_an_ulp_are_found():
    program = replace(ADULT, decision=split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))
    text = emit(program, "sql:sqlite", "m", {}).files["m.sql"].decode()
    slipped = text.replace("0.75e0", "7.4999999999999989e-01")
    assert slipped != text
    findings = prove(program, read_sql(slipped, "sqlite")[0]).findings
    assert isinstance(findings["probabilities"], Counterexample)
    assert type(findings["labels"]).__name__ == "ProvedEqual"


def test_deep_nesting_and_large_texts_are_refused_not_crashed():
    answer = "'yes'"
    for _ in range(600):
        answer = f"CASE WHEN age >= 18 THEN {answer} ELSE 'no' END"
    with pytest.raises(Unread, match="nested too deeply"):
        read_sql(f"SELECT {answer} AS label FROM data", "duckdb", LAYOUT)
    with pytest.raises(Unread, match="nested too deeply"):
        read_sql(f"SELECT {'(' * 5000}age{')' * 5000} AS label FROM data", "duckdb", LAYOUT)
    with pytest.raises(Unread, match="at most"):
        read_sql("-" * 9_000_000, "duckdb", LAYOUT)


def test_stages_that_double_what_they_stand_for_are_refused():
    stages = ["s0 AS (SELECT age, age > 1 AS c FROM data)"]
    stages += [
        f"s{i} AS (SELECT age, CASE WHEN c THEN age > {i} ELSE (c OR age < {i}) END AS c FROM s{i - 1})"
        for i in range(1, 60)
    ]
    text = f"WITH {', '.join(stages)} SELECT CASE WHEN c THEN 'yes' ELSE 'no' END AS label FROM s59"
    began = time.monotonic()
    with contextlib.suppress(Unread):
        read_sql(text, "duckdb", LAYOUT)
    assert time.monotonic() - began < 60.0


def test_a_long_rule_list_is_read():
    from tests.engines.sizes import rule_list

    program = rule_list(300)
    text = emit(program, "sql:sqlite", "m", {"outputs": "label"}).files["m.sql"].decode()
    (reading,) = read_sql(text, "sqlite")
    assert len(reading.decision.steps) > 300


def test_an_unknown_dialect_names_those_there_are():
    with pytest.raises(BadInput, match="there are readers for sqlite, duckdb"):
        read_sql("SELECT 1", "access", LAYOUT)
