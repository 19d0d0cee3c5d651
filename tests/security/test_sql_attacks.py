"""Hostile names and labels through the SQL targets: run in the engines themselves, beside a table that must survive.

The text is run as people run it, a script or an expression in a query of theirs, and by our own runner.
"""

import sqlite3

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run
from gbfl_compile.databases import availability, scratch, sqlite
from gbfl_compile.errors import BadInput
from tests.security.attacks import (
    RAW,
    ROWS,
    TEMPLATE,
    Attack,
    Harmless,
    all_of,
    anything_goes,
    armed,
    code_ran,
    every_kind,
    labels_of,
    nothing_escaped,
    program_of,
    put,
    rendered_twice,
    texts,
    unprintable,
)

BACKENDS = "gbfl_compile.backends"
NAIVE_STRINGS = put(f"{BACKENDS}.sql.text.string", lambda dialect, text: f"'{text}'")
DOUBLED_ONLY = put(f"{BACKENDS}.sql.text.string", lambda dialect, text: "E'" + text.replace("'", "''") + "'")
OPEN_COMMENTS = all_of(nothing_escaped, put(f"{BACKENDS}.sql.comment", lambda text: text))


def bare(dialect, name):
    return f"{dialect.identifier}{name}{dialect.identifier}"


NAIVE_NAMES = all_of(put(f"{BACKENDS}.sql.identifier", bare), put(f"{BACKENDS}.sql.options.identifier", bare))


def formatted_twice(dialect, column):
    return dialect.cast.format(column=column, type=dialect.double).format(column="plain")


def attacks(dialect):
    quote = DIALECTS[dialect].identifier
    column = Attack(
        f"x{quote}=1 THEN 1 END FROM data;DELETE FROM c;SELECT CASE WHEN {quote}x", NAIVE_NAMES, "code ran", "feature"
    )
    line_end = Attack("a\rDELETE FROM c;--", OPEN_COMMENTS, "code ran", "feature")
    return every_kind(
        {
            "single quote": Attack(
                "' END FROM data; DELETE FROM c; SELECT CASE WHEN 1 = 1 THEN '", NAIVE_STRINGS, "code ran", "label"
            ),
            "double quote": column,  # or a back quote, where those are what names stand in
            "backslash": Attack(
                "\\' END FROM data; DELETE FROM c; SELECT CASE WHEN 1 = 1 THEN NULL --", DOUBLED_ONLY, "code ran", "label"
            )
            if dialect == "postgres"
            else Harmless("a backslash is a letter in its strings"),
            "newline": Attack(
                "a\n;\nDELETE FROM c\n;\n",
                put(f"{BACKENDS}.sql._refuse_misreadable", lambda text, count: None),
                "does not run",
                "label",
                sound="refused",
            ),
            "carriage return": Harmless("only a line feed ends its comments") if dialect == "sqlite" else line_end,
            "comment": Harmless("comments of ours are lines of their own: what ends them is a line's end"),
            "template": Attack(TEMPLATE, rendered_twice, "code ran"),
            "template block": Attack("{% raw %}", rendered_twice, "does not run"),
            "format": Attack(
                "{column}", put(f"{BACKENDS}.sql.conditions.as_double", formatted_twice), "another answer", "feature"
            ),
            "percent": Harmless("nothing is bound to the statement when it runs, so no mark in it stands for anything"),
            "nul": Harmless("its strings hold NUL; as a name it is refused twice")
            if dialect == "duckdb"
            else Attack("a\0b", anything_goes, "does not run", "label"),
            "surrogate": Attack("a\ud800b", anything_goes, "does not run", "label"),
            **{kind: Attack(text, OPEN_COMMENTS, "raw character", "feature") for kind, text in RAW.items()},
            "trigraph": Harmless("SQL has none"),
            "names meet": Attack(
                "x1", put(f"{BACKENDS}.sql.options.inner_names", lambda _, columns, beside: dict.fromkeys(columns, "x1")),
                "does not run" if dialect == "postgres" else "another answer", "feature", "a b",
            ),
            "markup": Harmless("a query is not a page"),
        }
    )  # fmt: skip


ENGINES = ("sqlite", "duckdb", "postgres")


class Place:
    """An engine with the rows, and a table with one row that nobody may touch."""

    def __init__(self, dialect):
        self.dialect = dialect
        connection = sqlite3.connect(":memory:", isolation_level=None) if dialect == "sqlite" else None
        self.database = scratch(dialect) if connection is None else sqlite.over(connection, temporary=False)
        self.script = self.database.execute if connection is None else connection.executescript

    def prepare(self, features):
        for leftover in ("VIEW IF EXISTS model", "TABLE IF EXISTS data", "TABLE IF EXISTS c"):
            self.database.execute(f"DROP {leftover}")
        self.database.execute("CREATE TABLE c AS SELECT 1 AS one")
        columns = dict(zip(features, ROWS.T, strict=True))
        self.database.insert(
            "data", [*columns, *({"x"} - set(columns))], ROWS[:, [*range(len(columns)), *[0] * ("x" not in columns)]]
        )

    def touched(self):
        try:
            return self.database.fetch("SELECT one FROM c") != [(1,)]
        except Exception:
            return True


@pytest.fixture(scope="module")
def place(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = Place(request.param)
    yield made
    made.database.close()


def emitted(program, dialect, **options):
    return emit(program, f"sql:{dialect}", options=options).files["model.sql"].decode()


def answers(place, program, expression, view, folder):
    """The labels, three ways: an expression in somebody's query, a view, and by our own runner."""
    query = f"SELECT gbfl_row,\n{expression}\nFROM data ORDER BY gbfl_row"
    place.script(query)
    yield [label for _, label in place.database.fetch(query)]
    place.script(view)
    yield [label for (label,) in place.database.fetch("SELECT label FROM model ORDER BY gbfl_row")]
    place.script("DROP VIEW model")
    (folder / "model.sql").write_text(emitted(program, place.dialect), encoding="utf-8", newline="")
    found = run(DIALECTS[place.dialect], read_script(folder / "model.sql"), place.database, ROWS)
    yield found.labels.tolist()


def outcome(place, program, folder):
    """What came of emitting the program and running the text beside a table that must survive."""
    try:
        expression = emitted(program, place.dialect, form="expression", outputs="label", types="double")
        view = emitted(program, place.dialect, form="view", table="data", key="gbfl_row")
    except BadInput:
        return "refused"
    except Exception:
        return "code ran" if code_ran(folder) else "does not run"
    try:
        place.prepare(program.features)
        found = list(answers(place, program, expression, view, folder))
    except Exception as error:
        if isinstance(error, BadInput) and not place.touched():
            return "refused"
        view_ran(place, view)
        return "code ran" if place.touched() or code_ran(folder) else "does not run"
    if place.touched() or code_ran(folder):
        return "code ran"
    if any(labels != labels_of(program) for labels in found):
        return "another answer"
    header = [line for line in f"{expression}\n{view}".split("\n") if line.startswith("-- ")]
    return "raw character" if any(unprintable(line) for line in header) else "held"


def view_ran(place, view):
    """The view's script, whatever became of the expression before it."""
    try:
        place.script(view)
    except Exception:
        return False
    return True


HELD = [
    pytest.param(engine, *attack.values, id=f"{engine}-{attack.id}")
    for engine in ENGINES
    for attack in texts(attacks(engine))
]
ARMED = [(engine, kind) for engine in ENGINES for kind in armed(attacks(engine))]


@pytest.mark.parametrize(("place", "text", "where", "beside", "expected"), HELD, indirect=["place"], scope="module")
def test_a_hostile_name_stays_a_name(place, text, where, beside, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert outcome(place, program_of(text, where, beside), tmp_path) == expected


@pytest.mark.parametrize(("place", "kind"), ARMED, indirect=["place"], scope="module")
def test_the_attack_succeeds_against_a_weakened_target(place, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attack = attacks(place.dialect)[kind]
    attack.weakened(monkeypatch)
    assert outcome(place, program_of(attack.text, attack.place, attack.beside), tmp_path) == attack.seen
