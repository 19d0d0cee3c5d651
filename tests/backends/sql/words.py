"""What the tests of words in SQL share: programs of every kind, rows that look alike, tables with hostile columns."""

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import read_script, run_values
from gbfl_compile.backends.sql.text import blocks, identifier, staged_column
from gbfl_compile.checking.witnesses import find_witnesses
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import decode_rows
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, Scorecard, leaf, split
from tests.checking.respelling import random_list, random_tree

KINDS = ("number", "category", "boolean", "date", "timestamp")
CLAUSES = (
    Clause((Interval(0, 1000.0), OneOf(1, ("Month-to-month", "a", "it's", "\u00e1")))),
    Clause((OneOf(2, (TRUE,)), Interval(3, None, 19782.0, "right"))),
    Clause((OneOf(1, ("A", "b"), negated=True, if_missing=True), OneOf(2, (TRUE,), negated=True))),
    Clause((Interval(4, 0.0, 1.7e15, if_missing=True), OneOf(1, ("", "a"), negated=True))),
    Clause(
        (Interval(4, 500_000.0, None, "neither"), OneOf(1, (), negated=True), Interval(3, -5.0, 10.0, "both", True))
    ),
    Clause((OneOf(2, (), if_missing=True), OneOf(1, ("a ",)))),
)
FEATURES = ("income", "contract", "smoker", "opened", "seen")
TREE = Program(
    FEATURES,
    ("no", "yes"),
    CLAUSES,
    split(
        0,
        split(1, leaf(0.2, 0.8), split(5, leaf(0.0, 1.0), leaf(0.7, 0.3))),
        split(2, leaf(1.0, 0.0), split(3, split(4, leaf(0.4, 0.6), leaf(0.9, 0.1)), leaf(0.5, 0.5))),
    ),
    kinds=KINDS,
)
POINTS = ((1, 2, 3), (0, -1, 1), (2, 2, 0), (0, 0, -3), (1, 0, 0), (0, 5, 0))
CARD = Program(FEATURES, ("no", "yes", "so"), CLAUSES, Scorecard((0, 1, 0), POINTS, 3), kinds=KINDS)


def rule_list():
    tree = leaf(1.0, 0.0)
    for number in range(len(CLAUSES)):
        tree = split(number, leaf(number / 10, 1 - number / 10), tree)
    return Program(FEATURES, ("no", "yes"), CLAUSES, tree, kinds=KINDS)


EACH = {"tree": TREE, "list": rule_list(), "rules": CARD}


def random_atom(choose, feature):
    """An atom on a feature of KINDS, with words that look alike."""
    missing, negated = choose.random() < 0.3, choose.random() < 0.4
    match KINDS[feature]:
        case "number":
            return Interval(
                feature, choose.choice((None, 0.0, 0.1)), choose.choice((None, 1.0, 2.0)), if_missing=missing
            )
        case "category":
            words = choose.sample(("", "a", "A", "a ", "\u00e1", "a\u0301", "it's", "b\\s"), choose.randint(0, 3))
            return OneOf(feature, tuple(sorted(words)), negated, missing)
        case "boolean":
            return OneOf(feature, choose.choice(((TRUE,), (TRUE,), ())), negated, missing)
        case "date":
            return Interval(
                feature, choose.choice((None, 0.0, 1.0)), choose.choice((None, 2.0, 19782.0)), if_missing=missing
            )
        case "timestamp":
            low, high = choose.choice((None, 0.0, 500_000.0)), choose.choice((None, 500_001.0, 1.7e15))
            return Interval(feature, low, high, if_missing=missing)


def random_program(choose):
    """A tree, a rule list or a rule set over features of every kind."""
    clauses = []
    for _ in range(choose.randint(1, 4)):
        used = choose.sample(range(len(KINDS)), choose.randint(1, 3))
        clauses.append(Clause(tuple(random_atom(choose, feature) for feature in used)))
    classes = choose.choice((2, 3))
    match choose.choice(("tree", "list", "scorecard")):
        case "tree":
            decision = random_tree(choose, len(clauses), classes, choose.randint(1, 3))
        case "list":
            decision = random_list(choose, len(clauses), classes)
        case _:
            rows = [tuple(choose.randint(-4, 4) for _ in range(classes)) for _ in range(len(clauses) + 1)]
            decision = Scorecard(rows[0], tuple(rows[1:]), 1)
    return Program(FEATURES, ("no", "yes", "so")[:classes], tuple(clauses), decision, kinds=KINDS)


def text_of(program, dialect, **options):
    return emit(program, f"sql:{dialect}", options={"table": "data", **options}).files["model.sql"].decode()


def witness_rows(program):
    """The rows a check runs, as Python values: every bound, every text and what looks like one of them."""
    found = find_witnesses(program)
    return decode_rows(program, found.rows.tolist(), found.book)


def assert_same(program, database, folder, rows, **options):
    """Every answer is the definition's, `==`; a rule set's probabilities are within the bound that a check allows."""
    path = folder / "model.sql"
    path.write_text(text_of(program, database.dialect, **options), encoding="utf-8", newline="\n")
    found = run_values(DIALECTS[database.dialect], read_script(path), database, rows)
    expected = [evaluate(program, finite(database, row)) for row in rows]
    assert found.labels.tolist() == [answer.label for answer in expected]
    if isinstance(program.decision, Scorecard):
        assert found.scores is None or found.scores.tolist() == [list(answer.scores) for answer in expected]
    elif found.probabilities.shape[1]:
        assert found.probabilities.tolist() == [list(answer.probabilities) for answer in expected]


def finite(database, row):
    """The row as the engine is given it: MariaDB has no infinities."""
    most = 1.7976931348623157e308
    if database.holds_infinity:
        return row
    return [min(max(value, -most), most) if type(value) is float and value == value else value for value in row]


# contract, smoker, opened, seen: columns whose own comparisons are not exact, or depend on the session's time zone
HOSTILE_COLUMNS = {
    "sqlite": [
        ("TEXT COLLATE NOCASE", "BOOLEAN", "DATE", "TIMESTAMP"),
        ("VARCHAR(9) COLLATE RTRIM", "INTEGER", "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM"),
    ],
    "duckdb": [
        ("VARCHAR COLLATE NOCASE", "BOOLEAN", "DATE", "TIMESTAMPTZ"),
        ("VARCHAR COLLATE NOCASE.NOACCENT", "TINYINT", "DATE", "TIMESTAMP"),
        ("VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP"),
    ],
    "postgres": [("VARCHAR(90)", "BOOLEAN", "DATE", "TIMESTAMPTZ"), ("TEXT", "BOOLEAN", "DATE", "TIMESTAMP")],
    "datafusion": [("VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP")],
    "mariadb": [
        ("VARCHAR(90)", "BOOLEAN", "DATE", "DATETIME(6)"),
        ("VARCHAR(90) COLLATE utf8mb4_bin", "BIT(1)", "DATE", "DATETIME(6)"),
        ("LONGTEXT COLLATE utf8mb4_unicode_ci", "INTEGER", "DATE", "DATETIME(6)"),
    ],
    "clickhouse": [
        ("Nullable(String)", "Nullable(Bool)", "Nullable(Date32)", "Nullable(DateTime64(6, 'America/New_York'))"),
        ("LowCardinality(Nullable(String))", "Nullable(UInt8)", "Nullable(Date32)", "Nullable(DateTime64(6))"),
    ],
    "spark": [
        ("STRING COLLATE UTF8_LCASE", "BOOLEAN", "DATE", "TIMESTAMP"),
        ("STRING COLLATE UNICODE_CI", "BOOLEAN", "DATE", "TIMESTAMP_NTZ"),
    ],
}

SESSIONS = {
    "duckdb": (
        ["SET TimeZone = 'UTC'", "SET default_collation = 'binary'"],
        ["SET TimeZone = 'America/New_York'", "SET default_collation = 'nocase'"],
    ),
    "postgres": (["SET TIME ZONE 'UTC'"], ["SET TIME ZONE 'America/New_York'"]),
    "mariadb": (["SET time_zone = '+00:00'"], ["SET time_zone = '-05:00'"]),
    "clickhouse": (["SET transform_null_in = 0"], ["SET transform_null_in = 1"]),
    "spark": (["SET TIME ZONE 'UTC'"], ["SET TIME ZONE 'America/New_York'"]),
}
"""What is set while rows go in, and what while they are scored."""

DOUBLES = {"sqlite": "REAL", "postgres": "DOUBLE PRECISION", "clickhouse": "Nullable(Float64)"}
WHOLES = {"clickhouse": "Int64"}
ENDS = {"clickhouse": " ENGINE = MergeTree ORDER BY tuple()"}


def hostile_table(database, program, rows, types, table="people", key="id"):
    """Fill a table with the rows, in columns of these types."""
    dialect = DIALECTS[database.dialect]
    (block,) = blocks(dialect, program.kinds, rows)
    database.execute(f"DROP TABLE IF EXISTS {table}")
    columns = zip(program.features, (DOUBLES.get(dialect.name, "DOUBLE"), *types), strict=True)
    fields = ", ".join(f"{identifier(dialect, name)} {kind}" for name, kind in columns)
    whole = WHOLES.get(dialect.name, "BIGINT")
    database.execute(f"CREATE TABLE {table} ({key} {whole}, {fields}){ENDS.get(dialect.name, '')}")
    database.insert("gbfl_copied", program.features, block.matrix)
    values = [
        staged_column(dialect, kind, block.values[feature], name) if kind != "number" else identifier(dialect, name)
        for feature, (kind, name) in enumerate(zip(program.kinds, program.features, strict=True))
    ]
    row = identifier(dialect, "gbfl_row")
    database.execute(f"INSERT INTO {table} SELECT {row} AS {key}, {', '.join(values)} FROM gbfl_copied")
