"""dbt models: a plain config, the name of a table and a list of tests are read; whatever dbt would run is refused."""

import re
from dataclasses import replace

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import read_strict_files
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, OneOf, Program, leaf, split
from tests.checking.strict.sql.cases import SMALL


def assert_refused(files, name, old, new, why):
    text = files[name].decode()
    assert old in text
    other = {**files, name: text.replace(old, new).encode()}
    with pytest.raises(Unread, match=re.escape(why)):
        read_strict_files("duckdb", other, SMALL, {"form": "dbt", "table": "data"})
    assert prove_artifact(SMALL, "sql:duckdb", other).answer == "unread"


@pytest.mark.parametrize(
    "config",
    [
        "config(materialized='table', post_hook=\"UPDATE model SET label = 'yes'\")",
        "config(materialized='incremental')",
        "config(materialized=var('how'))",
        "config(pre_hook='DELETE FROM data', materialized='view')",
    ],
)
def test_a_dbt_model_has_no_hooks(config):
    files = dict(emit(SMALL, "sql:duckdb", "model", {"form": "dbt", "table": "data"}).files)
    assert_refused(
        files, "model.sql", "config(materialized='view')", config, "a template that is not part of the strict form"
    )


@pytest.mark.parametrize(
    "source", ["ref('data') ~ (' WHERE 1 = 0')", "ref('data') if true else ref('b')", "source('a', 'b') | f('c')"]
)
def test_a_dbt_source_is_a_name_and_nothing_more(source):
    files = dict(emit(SMALL, "sql:duckdb", "model", {"form": "dbt", "table": "data"}).files)
    assert_refused(files, "model.sql", "ref('data')", source, "a template that is not part of the strict form")


@pytest.mark.parametrize(
    "schema",
    [
        b"models:\n  - name: model\n    config:\n      post_hook: \"update model set label='yes'\"\n",
        b"{emitted}    config:\n      post_hook: drop\n",
        b"{emitted}\n{{ run_query('DROP TABLE data') }}\n",
        b"",
        b"\xff",
    ],
)
def test_a_schema_says_names_and_tests_alone(schema):
    files = dict(emit(SMALL, "sql:duckdb", "model", {"form": "dbt", "table": "data"}).files)
    assert prove_artifact(SMALL, "sql:duckdb", files).answer == "proved"
    files["schema.yml"] = schema.replace(b"{emitted}", files["schema.yml"])
    with pytest.raises(Unread, match=r"schema\.yml: "):
        read_strict_files("duckdb", files, SMALL, {"form": "dbt", "table": "data"})
    assert prove_artifact(SMALL, "sql:duckdb", files).answer == "unread"


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "datafusion"])
@pytest.mark.parametrize("ending", ["\r", "\r\n"])
def test_a_carriage_return_is_refused_because_dbt_replaces_it(dialect, ending):
    program = Program(
        ("word",),
        ("no", "yes"),
        (Clause((OneOf(0, ("a\nb",)),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("category",),
    )
    files = dict(emit(program, f"sql:{dialect}", "model", {"form": "dbt", "table": "data"}).files)
    other = replace(program, clauses=(Clause((OneOf(0, (f"a{ending}b",)),)),))
    with pytest.raises(BadInput, match=r"carriage return, which dbt replaces|clients of SQLite substitute"):
        emit(other, f"sql:{dialect}", "model", {"form": "dbt", "table": "data"})
    edited = {**files, "model.sql": files["model.sql"].replace(b"'a\nb'", f"'a{ending}b'".encode())}
    assert edited != files
    assert prove_artifact(program, f"sql:{dialect}", files).answer == "proved"
    assert prove_artifact(other, f"sql:{dialect}", edited).answer == "unread"
