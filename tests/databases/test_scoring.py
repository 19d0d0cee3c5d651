"""A table is scored inside its database; nothing is lost, and a wrong name is reported with the reason."""

import re
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.backends.sql.score import score_in_database
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split

PROGRAM = Program(
    ("age", "in come"),
    ("no", "it's", "yes"),
    (Clause((Interval(0, 18.0, None), Interval(1, None, 1e5))), Clause((Interval(1, 0.1, 0.3, "both", True),))),
    split(0, leaf(0.0, 0.1, 0.9), split(1, leaf(0.2, 0.7, 0.1), leaf(1.0, 0.0, 0.0))),
)
ROWS = np.array([[17.9, 1.0], [18.0, 1.0], [18.0, 1e5], [18.0, 0.3], [1.0, np.nan], [np.nan, 0.2], [np.nan, np.nan]])


@pytest.fixture
def people(database):
    database.insert("people", ["age", "in come"], ROWS)
    yield database
    database.execute(f"DROP TABLE IF EXISTS {database.quote('scored_people')}")


def scored(database):
    return sorted(database.fetch(f"SELECT gbfl_row, label, p_0, p_1, p_2 FROM {database.quote('scored_people')}"))


def expected():
    answers = evaluate_many(PROGRAM, ROWS)
    return [
        (i, label, *p) for i, (label, p) in enumerate(zip(answers.labels, answers.probabilities.tolist(), strict=True))
    ]


def test_a_table_is_scored_inside_the_database(people):
    made = score_in_database(PROGRAM, people, "people", "scored_people", keys=("gbfl_row",))
    assert (made.rows, made.engine) == (len(ROWS), people.version)
    assert scored(people) == expected()


def test_columns_are_mapped_to_features(people):
    people.insert("others", ["years", "salary"], ROWS)
    columns = {"age": "years", "in come": "salary"}
    score_in_database(PROGRAM, people, "others", "scored_people", columns=columns, keys=("gbfl_row",))
    assert scored(people) == expected()


def test_an_existing_table_is_overwritten_only_on_request(people):
    score_in_database(PROGRAM, people, "people", "scored_people", keys=("gbfl_row",), outputs="label")
    with pytest.raises(BadInput, match="this table exists already"):
        score_in_database(PROGRAM, people, "people", "scored_people", keys=("gbfl_row",))
    score_in_database(PROGRAM, people, "people", "scored_people", keys=("gbfl_row",), replace=True)
    assert scored(people) == expected()


@pytest.mark.parametrize(
    ("table", "keys", "says"),
    [
        ("nowhere", (), "cannot be read: .*nowhere"),
        ("people", ("no_such_key",), "cannot be read: .*no_such_key"),
        ("scored_people", (), "into itself"),
        ("people", ("a,b",), "comma"),
    ],
)
def test_a_wrong_name_is_reported_before_anything_is_created(people, table, keys, says):
    with pytest.raises(BadInput, match=says):
        score_in_database(PROGRAM, people, table, "scored_people", keys=keys)
    with pytest.raises(GbflError):
        scored(people)


def test_a_table_in_the_way_of_a_replacement_is_named_and_nothing_is_lost(people):
    people.execute(f"CREATE TABLE fresh_gbfl {MEMORY.get(people.dialect, '')} AS SELECT 1 AS a")
    score_in_database(PROGRAM, people, "people", "scored_people", keys=("gbfl_row",))
    with pytest.raises(BadInput, match=r"fresh_gbfl.* in the way"):
        score_in_database(PROGRAM, people, "people", "scored_people", keys=("gbfl_row",), replace=True)
    assert scored(people) == expected()
    people.execute("DROP TABLE fresh_gbfl")


def category(*texts):
    """A program that asks whether a column holds one of these texts."""
    return Program(
        *(("code",), ("no", "yes"), (Clause((OneOf(0, texts),)),), split(0, leaf(0.1, 0.9), leaf(0.9, 0.1))),
        kinds=("category",),
    )


OTHER_TEXTS = {
    "decimals": ("DECIMAL(9,2)", ("0.50", "1.00"), "0.5", "the column 'code' has 0.50?, which"),
    "doubles": ("DOUBLE", ("1e-7", "0.25"), "1e-07", "the column 'code' has 1e-07, which"),
    "truth values": ("BOOLEAN", ("TRUE", "FALSE"), "true", "the column 'code' has the number 1, and .* 'true'"),
}


@pytest.mark.parametrize(("type_", "values", "text", "says"), OTHER_TEXTS.values(), ids=OTHER_TEXTS)
def test_a_category_whose_texts_the_engine_writes_otherwise_is_never_misread(database, type_, values, text, says):
    if database.dialect == "spark":
        pytest.skip("Spark makes no table here, only views")
    double = {"postgres": "DOUBLE PRECISION"}.get(database.dialect, type_) if type_ == "DOUBLE" else type_
    with_null = f"Nullable({double})" if database.dialect == "clickhouse" else double
    tail = "ENGINE = Memory" if database.dialect == "clickhouse" else ""
    database.execute(f"CREATE TABLE codes (code {with_null}) {tail}")
    try:
        database.execute(f"INSERT INTO codes VALUES {', '.join(f'({value})' for value in values)}")
        refusal = ""
        try:
            score_in_database(category(text), database, "codes", "scored_codes")
        except BadInput as error:
            refusal = str(error)
        if refusal:
            assert re.search(says, refusal)
        else:
            assert sorted(database.fetch("SELECT label FROM scored_codes")) == [("no",), ("yes",)]
    finally:
        for table in ("codes", "scored_codes"):
            database.execute(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.skipif(availability("duckdb") is not None, reason=str(availability("duckdb")))
@pytest.mark.parametrize(("text", "is_refused"), [("0.5", True), ("0.50", False), ("7.5", False)])
def test_a_text_as_the_engine_writes_it_is_compared(text, is_refused):
    with closing(scratch("duckdb")) as database:
        database.execute("CREATE TABLE codes AS SELECT CAST(0.5 AS DECIMAL(9,2)) AS code")
        if is_refused:
            with pytest.raises(BadInput, match=r"has 0.50, which DuckDB .* writes '0.50' and the table .* '0.5'"):
                score_in_database(category(text), database, "codes", "scored_codes")
        else:
            score_in_database(category(text), database, "codes", "scored_codes")
            assert database.fetch("SELECT label FROM scored_codes") == [("yes" if text == "0.50" else "no",)]


MEMORY = {"clickhouse": "ENGINE = Memory"}


@pytest.mark.skipif(availability("duckdb") is not None, reason=str(availability("duckdb")))
def test_a_replacement_that_fails_half_way_in_duckdb_is_undone():
    database = scratch("duckdb")
    database.insert("people", ["age", "in come"], ROWS)
    score_in_database(PROGRAM, database, "people", "scored_people", keys=("gbfl_row",))

    def breaks(statement):
        if statement.startswith("ALTER TABLE"):
            raise CannotRun("the lights went out")
        database.execute(statement)

    with pytest.raises(CannotRun, match="the lights went out"):
        score_in_database(
            PROGRAM, replace(database, execute=breaks), "people", "scored_people", outputs="label", replace=True
        )
    assert scored(database) == expected()
    database.close()
