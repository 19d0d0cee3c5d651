"""A table is scored inside its database; nothing is lost, and a wrong name is reported with the reason."""

from dataclasses import replace

import numpy as np
import pytest

from gbfl_compile.backends.sql.score import score_in_database
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

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


def test_a_table_that_is_there_is_not_overwritten_unless_asked(people):
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
