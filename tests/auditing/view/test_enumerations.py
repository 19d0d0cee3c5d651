"""Columns that are enumerations: scored where they are, audited, and what they cannot hold is not used against a view."""

from contextlib import closing

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.score import score_in_database
from gbfl_compile.backends.sql.text import string
from gbfl_compile.databases import availability, catalog_of, scratch
from gbfl_compile.databases.catalog import TableName, enumeration
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, OneOf, Program, leaf, split
from gbfl_compile.ir.validate import validate
from tests.auditing.view.cases import make_view


@pytest.fixture(params=["duckdb", "postgres"])
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


HOSTILE = ("a", "A", "a ", "á", "a\u0301", "", "ß", "it's", "x, 'y", "q)", "back\\slash", "日本", "\u202eabc", "1")
MEMBERS = dict.fromkeys(("duckdb", "postgres", "clickhouse"), HOSTILE)
MEMBERS["mariadb"] = ("a", "ß", "it's", "x, 'y", "q)", "back\\slash", "日本", "\u202eabc", "1")
"""MariaDB has no two members that its collation takes for one, and cuts blanks off their ends."""


def program_listing(listed):
    """A program that lists some members, and a text that is none."""
    listed = tuple(sorted({*listed, "no member"}))
    tree = split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    return validate(Program(("word",), ("no", "yes"), (Clause((OneOf(0, listed),)),), tree, kinds=("category",)))


def make_words(database):
    """A table of all members, and NULL; the members."""
    if database.dialect not in MEMBERS:
        pytest.skip("has no enumerations")
    for what in ("VIEW IF EXISTS scores", "TABLE IF EXISTS words", "TABLE IF EXISTS scored_words"):
        database.execute(f"DROP {what}")
    members = MEMBERS[database.dialect]
    quoted = [string(DIALECTS[database.dialect], member) for member in members]
    kind, engine = f"ENUM({', '.join(quoted)})", ""
    if database.dialect in ("duckdb", "postgres"):
        database.execute(f"CREATE TYPE word_type AS {kind}")
        kind = "word_type"
    if database.dialect == "clickhouse":
        numbered = ", ".join(f"{text} = {number}" for number, text in enumerate(quoted))
        kind, engine = f"Nullable(Enum8({numbered}))", " ENGINE = MergeTree ORDER BY tuple()"
    database.execute(f"CREATE TABLE words (id INTEGER, word {kind}){engine}")
    for number, text in enumerate([*quoted, "NULL"]):
        database.execute(f"INSERT INTO words VALUES ({number}, {text})")
    return members


def test_members_are_known_and_scored_as_they_are(database):
    members = make_words(database)
    (_, column) = catalog_of(database).columns(database, TableName("", "words"))
    assert column.members == members
    program = program_listing(members[::2])
    score_in_database(program, database, "words", "scored_words", keys=["id"])
    found = [label for _, label in sorted(database.fetch("SELECT id, label FROM scored_words"))]
    assert found == [evaluate(program, [value]).label for value in (*members, None)]


def test_an_emitted_view_is_proved_and_a_slip_found(database):
    members = make_words(database)
    program = program_listing(members[::2])
    make_view(database, program, table="words")
    found = audit_view(AuditInput(program, mends=False), database, "scores", "it")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found.reason
    for dropped in members[::2]:
        database.execute("DROP VIEW scores")
        make_view(database, program_listing(member for member in members[::2] if member != dropped), table="words")
        found = audit_view(AuditInput(program, mends=False), database, "scores", "it")
        assert (found.verdict, found.region.row) == ("different", {"word": dropped}), found.reason
        assert found.execution.different > 0


def test_what_is_not_a_member_is_not_used_against_a_view(database):
    make_words(database)
    approved = program_listing(["1", "q)"])
    deployed = Program(
        ("word",), approved.classes, (Clause((OneOf(0, ("1", "q)")),)),), approved.decision, kinds=("category",)
    )
    make_view(database, validate(deployed), table="words")
    found = audit_view(AuditInput(approved, mends=False), database, "scores", "it")
    assert (found.verdict, found.execution.different) == ("equal", 0), found.reason


def test_a_view_by_hand_over_an_enumeration_is_read(database):
    make_words(database)
    approved = program_listing(["1", "q)"])
    text = {"postgres": "word::text", "mariadb": "CAST(CONVERT(word USING utf8mb4) AS BINARY)"}
    word = text.get(database.dialect, "word")
    for listed, verdict in (("'1', 'q)'", "equal"), ("'1'", "different")):
        database.execute(
            f"CREATE VIEW scores AS SELECT CASE WHEN {word} IN ({listed}) THEN 'yes' ELSE 'no' END AS label FROM words"
        )
        found = audit_view(AuditInput(approved, mends=False), database, "scores", "it")
        assert (found.verdict, found.execution.different > 0) == (verdict, verdict == "different"), found.reason
        database.execute("DROP VIEW scores")


@pytest.mark.parametrize("declared", ["enum('a'", "enum('a\\x')", "enum('a' 'b')", "set('a')", "enumeration('a')"])
def test_a_type_that_is_not_understood_has_no_members(declared):
    assert enumeration(declared, escapes=True) is None


def test_a_text_that_mariadb_keeps_though_it_is_no_member_is_not_overlooked():
    """INSERT IGNORE, and any INSERT without strict mode, leaves an empty text in the place of what is no member."""
    if reason := availability("mariadb"):
        pytest.skip(reason)
    with closing(scratch("mariadb")) as database:
        approved = program_listing(["a"])
        others = Program(
            ("word",),
            approved.classes,
            (Clause((OneOf(0, ("b",), negated=True),)),),
            approved.decision,
            kinds=("category",),
        )
        database.execute("CREATE TABLE words (id INTEGER, word ENUM('a', 'b'))")
        make_view(database, validate(others), table="words")
        before = audit_view(AuditInput(approved, mends=False), database, "scores", "it")
        assert (before.verdict, before.proof.answer) == ("unread", "counterexample"), before
        database.execute("INSERT IGNORE INTO words VALUES (1, 'c')")
        assert database.fetch("SELECT word, label FROM words, scores") == [("", "yes")], "which is approved as no"
        database.execute("CREATE TABLE with_empty (id INTEGER, word ENUM('', 'a', 'b'))")
        (_, column) = catalog_of(database).columns(database, TableName("", "with_empty"))
        assert (column.members, column.strays) == (("", "a", "b"), ())
