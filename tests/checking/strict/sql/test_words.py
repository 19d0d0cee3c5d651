"""Words, booleans and dates in the strict form: what is emitted is proved, and no edit is proved that answers otherwise.

GBFL_STRICT_EDITS=5000 tries 5,000 edits per engine, 150 otherwise; GBFL_STRICT_ENGINES adds engines, as in test_engines.
"""

import datetime as dt
import os
import random
import re
from dataclasses import replace
from itertools import islice

import pytest

from gbfl_compile.checking.artifact import prove_readings
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import expected_of, read_strict_view
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, encode_row
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, leaf, split
from tests.backends.sql.words import EACH, HOSTILE_COLUMNS, hostile_table, random_program, witness_rows
from tests.checking.strict.sql.cases import FORMS, RUN, body_of, edited, everything, strict, text_of, verdict

EDITS = int(os.environ.get("GBFL_STRICT_EDITS", "150"))
SLOW = tuple(filter(None, os.environ.get("GBFL_STRICT_ENGINES", "").split(",")))
OPTIONS = {"key": "gbfl_row", "outputs": "label"}


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", EACH.values(), ids=EACH)
def test_every_form_is_proved_with_every_answer(dialect, form, program):
    for outputs in ("label", everything(program)):
        options = {"form": form, "outputs": outputs, "types": "double" if outputs == "label" else "any"}
        try:
            text = text_of(program, dialect, **options)
        except BadInput:
            assert (dialect, form) in {("sqlite", "macro"), ("datafusion", "macro")}
            continue
        assert prove_readings(program, strict(program, text, dialect, **options), 10.0).answer == "proved", text


# IF word in {a, b} THEN 1 ELSE IF word not in {c, d} THEN 2 ELSE IF told AND 2000-01-01 <= day < 2000-02-01 THEN 3 …
EVERY_KIND = Program(
    ("word", "told", "day", "moment"),
    (1, 2, 3, 4, 5),
    (
        Clause((OneOf(0, ("a", "b")),)),
        Clause((OneOf(0, ("c", "d"), negated=True),)),
        Clause((OneOf(1, (TRUE,)), Interval(2, 10957.0, 10988.0))),
        Clause((OneOf(0, ("c",), if_missing=True), Interval(3, None, 500_000.0))),
    ),
    split(
        0,
        leaf(1.0, 0.0, 0.0, 0.0, 0.0),
        split(
            1,
            leaf(0.0, 1.0, 0.0, 0.0, 0.0),
            split(
                2, leaf(0.0, 0.0, 1.0, 0.0, 0.0), split(3, leaf(0.0, 0.0, 0.0, 1.0, 0.0), leaf(0.0, 0.0, 0.0, 0.0, 1.0))
            ),
        ),
    ),
    kinds=("category", "boolean", "date", "timestamp"),
)

SLIPS = {
    "a value dropped": (r"'a', 'b'", "'a'"),
    "a value added": (r"'a', 'b'", "'a', 'b', 'x'"),
    "a value of the other set added": (r"'c', 'd'", "'c', 'd', 'e'"),
    "re-cased": (r"'a', 'b'", "'a', 'B'"),
    "blank-padded": (r"'a', 'b'", "'a', 'b '"),
    "an accent": (r"'a', 'b'", "'á', 'b'"),
    "emptied": (r"'a', 'b'", "'', 'b'"),
    "swapped sets": (r"\('a', 'b'\)(.*)\('c', 'd'\)", r"('c', 'd')\1('a', 'b')"),
    "NULL in a list": (r"'c', 'd'", "'c', 'd', NULL"),
    "a number in a list": (r"'c', 'd'", "'c', 'd', 1"),
    "negated": (r" IN \('a'", " NOT IN ('a'"),
    "no longer negated": (r" NOT IN \(", " IN ("),
    "missing forgotten": (r" OR .word. IS NULL\)", ")"),
    "missing turned round": (r"(= 'c' OR .word. IS) NULL", r"\1 NOT NULL"),
    "true turned false": (r"= (TRUE|1) AND", lambda match: f"= {'FALSE' if match[1] == 'TRUE' else '0'} AND"),
    "true turned into a text": (r"= (TRUE|1) AND", "= 'true' AND"),
    "another truth": (r"= (TRUE|1) AND", "= 2 AND"),
    "another first day": ("2000-01-01", "2000-01-02"),
    "another last day": ("2000-02-01", "2000-01-31"),
    "no day": ("2000-02-01", "2000-02-31"),
    "a day with a blank": ("2000-02-01", "2000-02-01 "),
    "a day without its zeros": ("2000-02-01", "2000-2-1"),
    "one day more": (r"(.day. )<( )", r"\1<=\2"),
    "one day less": (r"(.day. )>=( )", r"\1>\2"),
    "another moment": (r"00:00:00\.5", "00:00:00.500001"),
    "a moment with zeros": (r"00:00:00\.5", "00:00:00.50"),
    "a moment of another zone": (r"00:00:00\.5", "00:00:00.5+01"),
    "a column for another": (r"(.)day(. >=)", r"\1moment\2"),
    "a word compared with a number": (r"IN \('a', 'b'\)", "= 0"),
    "LIKE": (r"= 'c'", "LIKE 'c'"),
    "a range of words": (r"= 'c'", ">= 'c'"),
}


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_refused_or_refuted(dialect, slip):
    text = body_of(text_of(EVERY_KIND, dialect, outputs="label"))
    assert verdict(EVERY_KIND, text, dialect, outputs="label") == "proved", text
    pattern, replacement = SLIPS[slip]
    wrong, count = re.subn(pattern, replacement, text, count=1, flags=re.DOTALL)
    assert count == 1, text
    assert verdict(EVERY_KIND, wrong, dialect, outputs="label") in ("unread", "counterexample"), wrong


CONVERSIONS = {
    "sqlite": [" COLLATE BINARY", ("COLLATE BINARY", "COLLATE NOCASE"), ("AS TEXT", "AS BLOB"), ("INTEGER", "REAL")],
    "duckdb": [" COLLATE C", ("COLLATE C", "COLLATE NOCASE"), ("COLLATE C", 'COLLATE "C"'), ("epoch_us", "epoch_ms")],
    "postgres": [' COLLATE "C"', ('COLLATE "C"', 'COLLATE "und-x-icu"'), ("AS TEXT", "AS CHAR(3)"), ("EPOCH", "HOUR")],
    "mariadb": [("CAST(CONVERT(`word` USING utf8mb4) AS BINARY)", "`word`"), ("USING utf8mb4", "USING latin1")],
    "clickhouse": [("toString(`word`)", "lower(`word`)"), ("toString(`word`)", "`word`"), (", 6, 'UTC'", ", 6, 'CET'")],
    "spark": [" COLLATE UTF8_BINARY", ("UTF8_BINARY", "UTF8_LCASE"), (".5 UTC'", ".5'"), (".5 UTC'", ".5 CET'")],
    "datafusion": [('CAST("word" AS VARCHAR)', 'lower("word")'), ('CAST("day" AS DATE)', '"day"')],
}
CONVERSIONS["clickhouse"] += [
    ("toBool(`told`)", "`told`"),
    ("`moment`, 6)", "`moment`, 3)"),
    ("2000-01-01", "1850-01-01"),
]


@pytest.mark.parametrize(("dialect", "edit"), [(name, edit) for name, edits in CONVERSIONS.items() for edit in edits])
def test_a_column_that_is_not_converted_exactly_is_not_read(dialect, edit):
    old, new = (edit, "") if isinstance(edit, str) else edit
    text = body_of(text_of(EVERY_KIND, dialect, outputs="label"))
    assert old in text, text
    assert verdict(EVERY_KIND, text.replace(old, new), dialect, outputs="label") == "unread"


@pytest.mark.parametrize("dialect", RUN)
def test_a_word_is_not_a_number_nor_a_number_a_word(dialect):
    """Codes of texts are numbers inside: no text may compare them as such."""
    text = body_of(text_of(EVERY_KIND, dialect, outputs="label"))
    numbers = Program(EVERY_KIND.features, EVERY_KIND.classes, EVERY_KIND.clauses[:0], leaf(1.0, 0.0, 0.0, 0.0, 0.0))
    assert verdict(numbers, text, dialect, outputs="label") != "proved"
    for feature in EVERY_KIND.features:
        lone = Program(("x",), (1, 2), (Clause((Interval(0, 1.0),)),), split(0, leaf(1.0, 0.0), leaf(0.0, 1.0)))
        other = Program((feature,), (1, 2), (Clause((OneOf(0, ("a",)),)),), lone.decision, kinds=("category",))
        text = text_of(lone, dialect, outputs="label", **{"column.x": feature})
        assert verdict(other, text, dialect, outputs="label") == "unread"


def test_null_not_in_is_read_where_no_setting_decides():
    text = body_of(text_of(EVERY_KIND, "clickhouse", outputs="label"))
    guarded = "(`word` NOT IN ('c', 'd') AND `word` IS NOT NULL)"
    assert guarded in text
    assert (
        verdict(EVERY_KIND, text.replace(guarded, "`word` NOT IN ('c', 'd')"), "clickhouse", outputs="label")
        == "unread"
    )


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres", "datafusion", *SLOW))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    yield made
    made.close()


def rows_for(database, program):
    """Witnesses without infinities, in a table whose columns compare as inexactly as the engine lets them."""
    rows = [
        [value if value not in (float("inf"), -float("inf")) else 7.0 for value in row]
        for row in islice(witness_rows(program), 250)
    ]
    hostile_table(database, program, rows, HOSTILE_COLUMNS[database.dialect][0], "data", "gbfl_row")
    return rows


def slipped(choose, query):
    """One text re-cased, padded, emptied or exchanged; or any edit of tokens."""
    texts = [
        match for match in re.finditer(r"'(?:[^'\\]|''|\\.)*'", query) if match[0] not in ("'no'", "'yes'", "'so'")
    ]
    if not texts or choose.random() < 0.5:
        return edited(choose, query)
    at = choose.choice(texts)
    other = choose.choice((at[0].upper(), at[0].swapcase(), f"{at[0][:-1]} '", "''", choose.choice(texts)[0], "'á'"))
    return query[: at.start()] + other + query[at.end() :]


def test_what_is_read_and_proved_is_what_the_engine_answers(database):
    choose = random.Random(f"{database.dialect} words")
    read = proved = 0
    for number in range(EDITS):
        if number % 30 == 0:
            program = random_program(choose)
            query = body_of(text_of(program, database.dialect, **OPTIONS)).rstrip().rstrip(";")
            rows = rows_for(database, program)
            labels = [evaluate(program, row).label for row in rows]
        text = slipped(choose, query) if number % 30 else query
        try:
            (reading,) = strict(program, text, database.dialect, **OPTIONS)
        except Unread:
            continue
        encoded = [encode_row(program, row, Codebook(reading.book)) for row in rows]
        found = sorted(database.fetch(text))
        assert found == list(enumerate(run_reading(reading, row).label for row in encoded)), text
        read += 1
        if prove_readings(program, (reading,), 5.0).answer == "proved":
            assert [label for _, label in found] == labels, text
            proved += 1
    assert proved >= EDITS // 30
    assert read > proved


def test_a_view_of_sqlite_is_read_back_with_its_words():
    """Its catalog keeps the text."""
    options = {"form": "view", "table": "data", "outputs": "label"}
    text = body_of(text_of(EVERY_KIND, "sqlite", **options))
    readings = read_strict_view(text, "sqlite", expected_of(EVERY_KIND, options))
    assert prove_readings(EVERY_KIND, readings, 5.0).answer == "proved"


IN_POSTGRES = (
    """SELECT CASE WHEN (((word)::text COLLATE "C") = ANY (ARRAY['a'::text, 'b'::text])) THEN 1 """
    """WHEN told = true AND day < '2000-01-01'::date """
    """AND EXTRACT(epoch FROM moment) >= EXTRACT(epoch FROM '1970-01-01 00:00:00.5'::timestamp without time zone) """
    """THEN 3 ELSE 5 END AS label FROM data;"""
)
TYPES_IN_POSTGRES = (
    ("word", "character varying(40)"),
    ("told", "boolean"),
    ("day", "date"),
    ("moment", "timestamp without time zone"),
)


def read_in_postgres(text, types=TYPES_IN_POSTGRES):
    expected = replace(expected_of(EVERY_KIND, {"form": "view", "table": "data", "outputs": "label"}), types=types)
    return read_strict_view(text, "postgres", expected)


def test_what_postgres_prints_of_words_is_read_for_what_it_means():
    (reading,) = read_in_postgres(IN_POSTGRES)
    early, late = dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, 0, 0, 0, 500_000)
    rows = {
        ("a", None, None, None): 1,
        ("A", None, None, None): 5,
        ("a ", True, None, late): 5,
        (None, True, dt.date(1999, 12, 31), late): 3,
        (None, True, dt.date(1999, 12, 31), early): 5,
        (None, True, dt.date(2000, 1, 1), late): 5,
        (None, False, dt.date(1999, 12, 31), late): 5,
    }
    for row, label in rows.items():
        assert run_reading(reading, encode_row(EVERY_KIND, row, Codebook(reading.book))).label == label, row


@pytest.mark.parametrize(
    ("printed", "edited"),
    [
        (' COLLATE "C"', ""),
        (' COLLATE "C"', ' COLLATE "en_US"'),
        (' COLLATE "C"', ' COLLATE public."C"'),
        ("(word)::text", "(word)::bpchar"),
        ("(word)::text", "word"),
        ("(word)::text", "(word)::text::bpchar"),
        ("'a'::text", "'a'::bpchar"),
        ("'a'::text", "'a'"),
        ("'a'::text", "NULL::text"),
        ("'a'::text", "day"),
        ("= ANY", "<> ANY"),
        ("= ANY", "= ALL"),
        ("= ANY", "< ANY"),
        ("= ANY (ARRAY", "OPERATOR(public.=) ANY (ARRAY"),
        ("::text])", "::text]::character varying[])"),
        ("day <", "moment <"),
        ("day <", "told <"),
        ("'::date", "'::timestamp without time zone"),
        ("'2000-01-01'", "'01-01-2000'"),
        ("'2000-01-01'", "'infinity'"),
        ("without time zone", "with time zone"),
        ("EXTRACT(epoch FROM moment)", "EXTRACT(epoch FROM day)"),
        ("EXTRACT(epoch FROM moment)", "EXTRACT(second FROM moment)"),
        ("EXTRACT(epoch FROM moment)", "moment"),
        ("told = true", "told <> true"),
        ("told = true", "told IS NOT TRUE"),
    ],
)
def test_nothing_else_that_postgres_could_print_is_read(printed, edited):
    assert printed in IN_POSTGRES
    with pytest.raises(Unread):
        read_in_postgres(IN_POSTGRES.replace(printed, edited, 1))


def test_a_column_without_its_cast_is_read_in_postgres_only_where_that_is_its_type():
    for name, kind in (("told", "integer"), ("day", "timestamp without time zone"), ("day", "text")):
        with pytest.raises(Unread):
            read_in_postgres(
                IN_POSTGRES, tuple((own, kind if own == name else as_is) for own, as_is in TYPES_IN_POSTGRES)
            )
