"""Audits a real database by its URL, from the command line, and compares the database before and after."""

import contextlib
import io
import json

import numpy as np

from gbfl_compile.auditing.answers import answers_of
from gbfl_compile.cli import main
from gbfl_compile.ir.json import save
from tests.auditing.diagnose.unread_cases import rows_with_boundaries
from tests.auditing.tampering import TAMPERED_TREES, TREE
from tests.auditing.view.cases import make_view

SECRET = "very-secret/42"
ENCODED = "very-secret%2F42"
TAMPERED = TAMPERED_TREES[3][1]
assert TAMPERED_TREES[3][0] == "greater for at least"


def fill(database):
    """A table of numbers, one scored as approved and one not, and two views, as an owner would have them."""
    rows = rows_with_boundaries(TREE)[:300]
    for table, program in (("data", TREE), ("scored", TREE), ("scored_otherwise", TAMPERED)):
        codes = answers_of(program, rows).classes
        database.insert("numbers", [*TREE.features, "code"], np.column_stack([rows, codes]))
        names = " ".join(f"WHEN code = {c} THEN '{label}'" for c, label in enumerate(TREE.classes))
        columns = ", ".join(map(database.quote, TREE.features))
        engine = "ENGINE = Memory " if database.dialect == "clickhouse" else ""
        label = "" if table == "data" else f", CASE {names} END AS label"
        database.execute(f"CREATE TABLE {table} {engine}AS SELECT {columns}{label} FROM numbers")
    database.execute("DROP TABLE numbers")
    make_view(database, TREE)
    make_view(database, TAMPERED, view="other_scores")


OBJECTS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2",
    "duckdb": "SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY 1, 2",
    "postgres": "SELECT c.oid, relname, relkind, nspname FROM pg_class c JOIN pg_namespace n "
    "ON n.oid = relnamespace WHERE nspname NOT LIKE 'pg\\_%' ORDER BY 1",
    "mariadb": "SELECT table_name, table_type, create_time FROM information_schema.tables "
    "WHERE table_schema = DATABASE() ORDER BY 1",
    "clickhouse": "SELECT name, engine, toString(uuid), create_table_query FROM system.tables "
    "WHERE database = currentDatabase() ORDER BY 1",
}


def everything_in(database):
    """All tables and views, and all rows of the tables."""
    columns = ", ".join(map(database.quote, TREE.features))
    rows = [database.fetch(f"SELECT {columns} FROM data ORDER BY 1, 2, 3, 4")]
    rows += [database.fetch(f"SELECT {columns}, label FROM {name} ORDER BY 1, 2, 3, 4, 5") for name in SCORED]
    return repr((database.fetch(OBJECTS[database.dialect]), rows))


SCORED = ("scored", "scored_otherwise")


def run(arguments):
    """Exit code, what was printed, and what was printed as errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def assert_audits_over(url, folder):
    """Views and scored tables, equal and not, in text, JSON, HTML and the log; the secret is in none of them."""
    save(TREE, folder / "approved.json")
    command = ["audit", str(folder / "approved.json"), "--database", url]
    kept = ["--log", str(folder / "log.jsonl"), "--html", str(folder / "page.html")]
    printed = []
    for more, code, words in (
        (["--view", "scores"], 0, "equal (proved; 0 different of"),
        (["--view", "other_scores"], 1, "clause 0: income >= 50000 is deployed as income > 50000"),
        (["--scored", "scored"], 0, "checked on 300 rows, 0 different"),
        (["--scored", "scored_otherwise"], 1, "clause 0: income >= 50000 is deployed as income > 50000"),
        (["--view", "no_such_view"], 2, "has no view 'no_such_view'"),
        (["--scored", "no_such_table"], 2, "no_such_table"),
    ):
        found, out, err = run([*command, *more, *kept])
        assert found == code, (more, out, err)
        assert words in out + err
        printed += [out, err]
    found, out, err = run([*command, "--view", "scores", "--json"])
    assert json.loads(out)["audited"][0]["proof"]["answer"] == "proved"
    printed += [out, err, (folder / "log.jsonl").read_text(), (folder / "page.html").read_text()]
    for text in printed:
        assert SECRET not in text
        assert ENCODED not in text
        assert "very-secret" not in text
