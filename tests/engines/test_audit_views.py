"""Views of MariaDB and ClickHouse, read back as they rewrote them: equal ones are proved, tampered ones found."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile import audit
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split
from gbfl_compile.ir.validate import validate
from tests.auditing.tampering import TAMPERED_TREES, TREE
from tests.auditing.view.cases import (
    CASES,
    WORD_SLIPS,
    assert_audits_are_right,
    assert_the_emitted_view_is_proved,
    assert_the_slip_is_found,
    make_table,
    make_view,
    verdict_on,
)
from tests.counts import count
from tests.word_programs import CHURN, with_one_edit, with_slip, word_programs


@pytest.fixture(scope="module", params=("mariadb", "clickhouse"))
def catalog(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


@pytest.mark.parametrize("kind", CASES)
def test_views_are_proved_or_their_slips_found(catalog, kind):
    assert_audits_are_right(catalog, kind)


YOUNG = Program(
    ("age",), ("no", "yes"), (Clause((Interval(0, None, 65.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)
LABEL = "CASE WHEN age < 65.5 THEN 'yes' ELSE 'no' END AS label"


def table(catalog, kind):
    engine = " ENGINE = Memory" if catalog.dialect == "clickhouse" else ""
    catalog.execute(f"CREATE TABLE loans (id INTEGER, age {kind}){engine}")
    catalog.execute("INSERT INTO loans VALUES (1, 40), (2, 70)")


@pytest.fixture
def fresh(catalog):
    made = scratch(catalog.dialect)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["INTEGER", "BIGINT", "DECIMAL(10, 2)", "DOUBLE"])
def test_a_view_with_a_key_is_equal_for_every_type_of_number(fresh, kind):
    """MariaDB writes every column with its name again: id AS id."""
    table(fresh, f"Nullable({kind})" if fresh.dialect == "clickhouse" else kind)
    fresh.execute(f"CREATE VIEW scores AS SELECT id, {LABEL} FROM loans")
    found = audit_view(AuditInput(YOUNG), fresh, "scores", "view scores")
    assert found.execution is not None, found.not_executed
    assert (found.verdict, found.execution.different) == ("equal", 0), found
    fresh.execute("DROP VIEW scores")
    fresh.execute(f"CREATE VIEW scores AS SELECT id, {LABEL.replace('65.5', '65')} FROM loans")
    found = audit_view(AuditInput(YOUNG), fresh, "scores", "view scores")
    assert (found.verdict, found.execution.different > 0) == ("different", True)


def test_our_own_view_with_keys_is_proved_and_a_tampered_one_found(fresh):
    text, number = ("String", "Nullable(Float64)") if fresh.dialect == "clickhouse" else ("VARCHAR(20)", "DOUBLE")
    engine = " ENGINE = Memory" if fresh.dialect == "clickhouse" else ""
    features = ", ".join(f"{name} {number}" for name in TREE.features)
    fresh.execute(f"CREATE TABLE loans (id INTEGER, branch {text}, {features}){engine}")
    options = {"form": "view", "table": "loans", "view": "scores", "key": "id,branch"}
    for program, verdict in ((TREE, "equal"), (TAMPERED_TREES[3][1], "different")):
        fresh.execute(emit(program, f"sql:{fresh.dialect}", options=options).files["model.sql"].decode().rstrip("; \n"))
        found = audit_view(AuditInput(TREE), fresh, "scores", "view scores")
        assert (found.verdict, found.execution.different == 0) == (verdict, verdict == "equal"), found
        assert found.is_proved == (verdict == "equal")
        assert found.execution.rows > 100
        fresh.execute("DROP VIEW scores")


@pytest.mark.parametrize("labels", [{"yes": "APPROVE", "no": "DENY"}, {"yes": 1, "no": 0}, {"yes": True, "no": False}])
def test_labels_may_be_deployed_as_something_else_than_the_classes_names(fresh, labels):
    table(fresh, "Nullable(Float64)" if fresh.dialect == "clickhouse" else "DOUBLE")
    yes, no = (repr(label) for label in (labels["yes"], labels["no"]))
    nan = " AND NOT isNaN(age)" if fresh.dialect == "clickhouse" else ""
    fresh.execute(
        f"CREATE VIEW scores AS SELECT id, CASE WHEN age < 65.5{nan} THEN {yes} ELSE {no} END AS label FROM loans"
    )
    (found,) = audit(YOUNG, database=fresh, view="scores", classes=labels).verdicts
    assert (found.verdict, found.execution.different) == ("equal", 0), found
    swapped = {"yes": labels["no"], "no": labels["yes"]}
    (found,) = audit(YOUNG, database=fresh, view="scores", classes=swapped).verdicts
    assert (found.verdict, found.execution.different > 0) == ("different", True)
    (found,) = audit(YOUNG, database=fresh, view="scores", classes={"yes": "1", "no": "0"}).verdicts
    assert (found.verdict, found.execution.different > 0) == ("different", True)


@pytest.mark.parametrize("stored", ["TO target", "ENGINE = Memory", "ENGINE = Memory POPULATE"])
def test_a_materialized_view_of_clickhouse_is_unread(fresh, stored):
    """Without POPULATE it has none of the rows that were there before it."""
    if fresh.dialect != "clickhouse":
        pytest.skip("MariaDB has none")
    table(fresh, "Float64")
    fresh.execute("CREATE TABLE target (label String) ENGINE = Memory")
    fresh.execute(f"CREATE MATERIALIZED VIEW scores {stored} AS SELECT {LABEL} FROM loans")
    found = audit_view(AuditInput(YOUNG), fresh, "scores", "view scores")
    assert (found.verdict, found.proof) == ("unread", None)
    assert "--scored scores" in found.reason


def test_an_emitted_view_with_words_is_proved_and_run(fresh):
    make_table(fresh, CHURN)
    assert_the_emitted_view_is_proved(fresh)


@pytest.mark.parametrize("slip", WORD_SLIPS)
def test_a_slip_in_words_is_found_by_the_proof_and_by_the_run(fresh, slip):
    make_table(fresh, CHURN)
    assert_the_slip_is_found(fresh, slip)


COLUMNS_OF_WORDS = {
    "mariadb": (
        "VARCHAR(40) COLLATE utf8mb4_general_ci",
        "VARCHAR(40) COLLATE utf8mb4_bin",
        "VARCHAR(40) CHARACTER SET latin1",
        "CHAR(40)",
        "LONGTEXT",
    ),
    "clickhouse": ("LowCardinality(Nullable(String))", "String"),
}


def test_the_columns_of_words_change_nothing_in_an_emitted_view(catalog):
    for declared in COLUMNS_OF_WORDS[catalog.dialect]:
        database = scratch(catalog.dialect)
        make_table(database, CHURN, {"category": declared})
        found = verdict_on(database, CHURN, CHURN)
        assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found
        assert verdict_on(database, CHURN, with_slip('a re-cased as "A"')).verdict == "different"
        missing = verdict_on(database, CHURN, with_slip("a missing value passes"))
        assert missing.verdict == ("equal" if declared == "String" else "different")
        database.close()


@pytest.mark.parametrize("collation", ["gbk_chinese_ci", "utf16_general_ci"])
def test_a_view_of_a_session_with_other_bytes_is_not_proved(fresh, collation):
    """The same text in the catalog, and another answer: 'a' is two bytes in UTF-16."""
    if fresh.dialect != "mariadb":
        pytest.skip("only MariaDB has character sets of sessions")
    make_table(fresh, CHURN)
    fresh.execute(f"SET collation_connection = {collation}")
    make_view(fresh, CHURN)
    fresh.execute("SET NAMES utf8mb4")
    found = audit_view(AuditInput(CHURN), fresh, "scores", "it")
    assert (found.verdict, found.proof.answer) == ("unread", "unread")
    assert "character set" in found.reason


ACCENTS = Program(
    ("word",),
    ("no", "yes"),
    (Clause((OneOf(0, ("é",)),)),),
    split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    kinds=("category",),
)


@pytest.mark.parametrize(("program", "verdict"), [(CHURN, "equal"), (ACCENTS, "unread")])
def test_a_session_in_latin1_is_as_good_as_any_where_all_texts_are_ascii(fresh, program, verdict):
    """'é' is one byte there, and two in UTF-8."""
    if fresh.dialect != "mariadb":
        pytest.skip("only MariaDB has character sets of sessions")
    make_table(fresh, program)
    fresh.execute("SET collation_connection = latin1_swedish_ci")
    make_view(fresh, program)
    fresh.execute("SET NAMES utf8mb4")
    found = audit_view(AuditInput(program), fresh, "scores", "it")
    assert (found.verdict, found.proof.answer) == (verdict, "proved" if verdict == "equal" else "unread")


@pytest.mark.parametrize(
    "spelling", ["_ucs2 x'{ucs2}'", "_utf16 x'{ucs2}'", "_latin1 x'{latin1}'", "_binary x'{latin1}'"]
)
def test_a_text_with_a_character_set_of_its_own_is_not_mistaken_for_what_the_catalog_prints(fresh, spelling):
    """MariaDB's catalog prints _ucs2 x'0061' as 'a'. The bytes that are compared are two, and no word is equal."""
    if fresh.dialect != "mariadb":
        pytest.skip("only MariaDB has texts with character sets")
    make_table(fresh, ACCENTS)
    options = {"form": "view", "table": "data", "view": "scores"}
    text = emit(validate(ACCENTS), "sql:mariadb", "m", options).files["m.sql"].decode()
    body = "\n".join(line for line in text.split("\n") if not line.startswith("--")).strip().rstrip(";")
    literal = spelling.format(ucs2="é".encode("utf-16-be").hex(), latin1="é".encode("latin-1").hex())
    assert "'é'" in body
    fresh.execute(body.replace("'é'", literal))
    fresh.execute("INSERT INTO data VALUES ('é')")
    assert fresh.fetch("SELECT label FROM scores") == [("no",)], "the approved program says yes"
    found = audit_view(AuditInput(ACCENTS, mends=False), fresh, "scores", "it")
    assert (found.verdict, found.proof.answer) == ("different" if found.execution.different else "unread", "unread")
    assert "character set" in found.reason


TENTHS = Program(
    ("age",), ("no", "yes"), (Clause((Interval(0, None, 0.35),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)


@pytest.mark.parametrize(
    "declared", ["DOUBLE(10,1)", "DOUBLE(22,4)", "FLOAT(7,2)", "FLOAT(5,1)", "DOUBLE(9,2) UNSIGNED"]
)
def test_columns_that_round_are_proved_only_where_the_text_makes_doubles_of_them(fresh, declared):
    """FLOAT(7,2) < 0.35 compares decimals in MariaDB, and an index on such a column rounds what it is compared with."""
    if fresh.dialect != "mariadb":
        pytest.skip("only MariaDB has such columns")
    fresh.execute(f"CREATE TABLE loans (id INTEGER, age {declared}, KEY (age))")
    fresh.execute("INSERT INTO loans VALUES (1, 0.3), (2, 0.35), (3, 7), (4, 0.351)")
    make_view(fresh, TENTHS, table="loans")
    found = audit_view(AuditInput(TENTHS, mends=False), fresh, "scores", "it")
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found.reason
    for test in ("age < 0.35", "age < 0.35e0"):
        fresh.execute("DROP VIEW scores")
        fresh.execute(f"CREATE VIEW scores AS SELECT CASE WHEN {test} THEN 'yes' ELSE 'no' END AS label FROM loans")
        bare = audit_view(AuditInput(TENTHS, mends=False), fresh, "scores", "it")
        assert bare.verdict in ("unread", "different")
        assert bare.execution.different or "CAST(… AS DOUBLE)" in bare.reason


def test_a_float_column_is_run_without_what_it_cannot_hold(fresh):
    if fresh.dialect != "mariadb":
        pytest.skip("only MariaDB has no infinity")
    table(fresh, "FLOAT")
    fresh.execute(f"CREATE VIEW scores AS SELECT {LABEL} FROM loans")
    found = audit_view(AuditInput(YOUNG, mends=False), fresh, "scores", "it")
    assert (found.verdict, found.execution.different) == ("equal", 0), found.not_executed


def test_labels_compared_by_layers_are_known_by_their_bytes(fresh):
    """A label of a session in UCS-2, compared with bytes by the view above: it is never equal."""
    if fresh.dialect != "mariadb":
        pytest.skip("only MariaDB has character sets of sessions")
    table(fresh, "DOUBLE")
    fresh.execute("SET collation_connection = ucs2_general_ci")
    fresh.execute("CREATE VIEW below AS SELECT age, CASE WHEN age < 65.5 THEN 'yes' ELSE 'no' END AS l FROM loans")
    fresh.execute("SET NAMES utf8mb4")
    fresh.execute(
        "CREATE VIEW scores AS SELECT CASE WHEN l = _binary'yes' THEN 'yes' ELSE 'no' END AS label FROM below"
    )
    assert fresh.fetch("SELECT label FROM scores") == [("no",), ("no",)], "the approved program says yes and no"
    found = audit_view(AuditInput(YOUNG, mends=False), fresh, "scores", "it")
    assert (found.verdict, found.proof.answer) == ("unread", "unread")
    assert "other bytes" in found.reason


@settings(
    max_examples=count("GBFL_WORD_VIEWS", 40),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_random_views_with_words_are_proved_and_edits_found(catalog, data):
    approved = data.draw(word_programs())
    wrong = data.draw(with_one_edit(approved))
    database = scratch(catalog.dialect)
    try:
        validate(wrong)
        make_table(database, approved)
        same = verdict_on(database, approved, approved)
        assert (same.verdict, same.proof.answer) == ("equal", "proved"), same
        found = verdict_on(database, approved, wrong)
    except BadInput:
        return
    finally:
        database.close()
    assert found.verdict in ("equal", "different"), found.reason
    assert found.verdict == "different" or found.proof.answer == "proved"
