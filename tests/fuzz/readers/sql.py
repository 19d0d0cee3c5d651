"""The two SQL readers against one engine: random texts, read and run on rows at the boundaries of all they mention."""

import itertools
import random
import time
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from gbfl_compile.checking.general.sql import TextLayout, read_sql
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql import ExpectedText, read_strict, read_strict_view
from gbfl_compile.databases import ENGINES, catalog_of, scratch
from gbfl_compile.databases.catalog import TableName
from gbfl_compile.errors import CannotRun
from tests.fuzz.readers.conditions import commented, condition
from tests.fuzz.readers.known import known
from tests.fuzz.readers.queries import query
from tests.fuzz.readers.spellings import meanings, quoted, random_pool, text

READERS = ("strict", "general")

TOGETHER = {"spark": 2000, "clickhouse": 500}
"""Texts over one table, where a query takes long: 150 elsewhere."""

WIDEST = 200
"""Conditions in one query."""

KINDS = {"condition": 0.81, "type": 0.06, "comment": 0.04, "text": 0.03, "query": 0.05, "view": 0.01}
"""How much of each kind there is: the last four are run one by one, for they might spill over into others."""

TABLE_AS = {"clickhouse": "CREATE TABLE {} ENGINE = Memory AS {}"}
SCHEMA = {
    "clickhouse": "SELECT currentDatabase()",
    "mariadb": "SELECT DATABASE()",
    "postgres": "SELECT current_schema()",
}
"""Where a catalog names the schema of a view's table: which one it is."""

TYPES = {
    "sqlite": ("INTEGER", "TEXT", "NUMERIC"),
    "duckdb": ("INTEGER", "FLOAT", "DECIMAL(12,3)", "VARCHAR", "BIGINT"),
    "postgres": ("INTEGER", "REAL", "NUMERIC(12,3)", "TEXT", "NUMERIC"),
    "mariadb": ("SIGNED", "FLOAT", "DECIMAL(12,3)", "CHAR(30)"),
    "clickhouse": ("Nullable(Int32)", "Nullable(Float32)", "Nullable(String)", "Nullable(Decimal(12,3))"),
    "spark": ("INT", "FLOAT", "DECIMAL(12,3)", "STRING"),
    "datafusion": ("INTEGER", "REAL", "DECIMAL(12,3)", "VARCHAR"),
}
"""Types of columns that have to be cast before they are compared."""

MODEST = (-3.0, -1.5, -1.0, 0.0, 0.1, 0.125, 0.3, 1.0, 2.0, 2.5, 3.0, 5.0, 100.0, 16777217.0)
"""Values that every type holds, or rounds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A text for the readers, and the expression in it that may be run together with those of others."""

    kind: str
    text: str
    expression: str | None
    classes: tuple[str, ...] = ("no", "yes")


@dataclass(frozen=True, slots=True)
class Rows:
    """A source of rows: what a query reads from, and the values, None for NULL."""

    source: str
    values: list[list[float | None]]


@dataclass
class Result:
    """What came of the texts for one engine."""

    counts: Counter = field(default_factory=Counter)
    disagreements: dict[tuple[str, str], str] = field(default_factory=dict)
    """By reader and text: the first row that shows it."""


def fuzz_engine(dialect, count, seed=0, seconds=float("inf"), readers=READERS):
    """Random texts for one engine until so many were read and run, or until the time is over; every disagreement, and
    what was read, refused or not taken.
    """
    database, result, until = scratch(dialect), Result(), time.monotonic() + seconds
    try:
        for batch in itertools.count():
            if result.counts["read and run"] >= count or time.monotonic() > until:
                break
            _batch(database, random.Random(f"{dialect} {seed} {batch}"), readers, result, count)
    finally:
        database.close()
    return result


def _batch(database, choose, readers, result, count):
    pool = random_pool(choose, database.dialect)
    rows, typed = _rows(database, choose, pool), _typed(database, choose, pool)
    together = min(TOGETHER.get(database.dialect, 150), max(20, 3 * count))
    read, views = {False: [], True: []}, []
    for kind in choose.choices([*KINDS], [*KINDS.values()], k=together):
        trial = _trial(choose, pool, kind)
        result.counts["texts"] += 1
        if kind == "view":
            views.append(trial)
        elif readings := _readings(pool, trial, readers, result.counts):
            read[kind == "type"].append((trial, readings))
    _judge(database, pool, rows, read[False], result)
    _judge(database, pool, typed, read[True], result)
    for trial in views if "strict" in readers and ENGINES[database.dialect].catalog is not None else ():
        _judge_view(database, pool, rows, trial, result)


def _trial(choose, pool, kind):
    lexis = pool.lexis
    if kind == "query" or (kind == "view" and choose.random() < 0.3):
        return Trial(kind, query(choose, pool), None)
    if kind == "text":
        literal = text(choose)
        column = quoted(lexis, "age")
        double = f"CAST(1.0e0 AS {lexis.double})" if lexis.exponent == "numeric" else "1.0e0"
        expression, classes = f"CASE WHEN {column} > {double} THEN {literal} ELSE 'no' END", ("no", *meanings(literal))
    else:
        test = (commented if kind == "comment" else condition)(choose, pool)
        for column in pool.columns if kind == "type" else ():
            plain = quoted(lexis, column)
            double = f"CAST({plain} AS {lexis.double})"
            test = test.replace(double, plain).replace(plain, double if choose.random() < 0.97 else plain)
        expression, classes = f"CASE WHEN {test} THEN 'yes' ELSE 'no' END", ("no", "yes")
    row, label, table = (quoted(lexis, each) for each in ("gbfl_row", "label", "data"))
    whole = f"SELECT {row}, {expression} AS {label} FROM {table}"
    alone = kind in ("comment", "text", "view")
    return Trial(kind, whole, None if alone else expression, tuple(dict.fromkeys(classes)))


def _readings(pool, trial, readers, counts):
    """What each reader makes of a text, by the reader's name. Only the strict one knows of types."""
    expected = _expected_text(pool, trial)
    layout = TextLayout(pool.columns, trial.classes, expected.columns, expected.outputs)
    read = {
        "strict": lambda: read_strict(trial.text, pool.dialect, expected),
        "general": lambda: read_sql(trial.text, pool.dialect, layout),
    }
    found = {}
    for reader in readers:
        if (reader, trial.kind) == ("general", "type"):
            continue
        try:
            found[reader] = read[reader]()
            counts[f"{reader}: read"] += 1
        except Unread:
            counts[f"{reader}: refused"] += 1
    return found


def _expected_text(pool, trial):
    doubles = frozenset() if trial.kind == "type" else frozenset(pool.columns)
    columns, outputs = tuple(enumerate(pool.columns)), (("label", "label"),)
    return ExpectedText(pool.columns, trial.classes, columns, outputs, keys=("gbfl_row",), doubles=doubles)


def _rows(database, choose, pool):
    """One table of all rows: missing values as NULL, as NaN, and as one of them column by column; now and then as NULL
    or as NaN alone, for engines that plan by what a table holds.
    """
    values = pool.values()
    matrix = [[choose.choice(values) for _ in pool.columns] for _ in range(2 * len(values))]
    for number, value in enumerate(values):
        matrix[number][0] = matrix[len(values) + number][1] = value
    rows = np.array(matrix)
    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(float).max, np.finfo(float).max)
    held = {"null": [[None if np.isnan(value) else value for value in row] for row in rows.tolist()]}
    held["nan"] = rows.tolist()
    table = quoted(pool.lexis, "data")
    kind = choose.choices(("both", "null", "nan"), (8, 1, 1))[0] if database.holds_nan else "null"
    if kind != "both":
        database.insert("data", pool.columns, rows, missing=kind)
        return Rows(table, held[kind])
    for name, missing in (("nulls", "null"), ("nans", "nan")):
        database.insert(name, pool.columns, rows, missing=missing)
    row, one, *others = (quoted(pool.lexis, column) for column in ("gbfl_row", *pool.columns))
    nulls, nans = quoted(pool.lexis, "nulls"), quoted(pool.lexis, "nans")
    listed = ", ".join((one, *others))
    mixed = ", ".join((f"l.{one} AS {one}", *(f"r.{other} AS {other}" for other in others)))
    union = (
        f"SELECT {row}, {listed} FROM {nulls} UNION ALL SELECT {row} + {len(rows)} AS {row}, {listed} FROM {nans} "
        f"UNION ALL SELECT l.{row} + {2 * len(rows)} AS {row}, {mixed} FROM {nulls} l JOIN {nans} r ON l.{row} = r.{row}"
    )
    database.execute(f"DROP TABLE IF EXISTS {table}")
    database.execute(TABLE_AS.get(pool.dialect, "CREATE TABLE {} AS {}").format(table, union))
    values = [[left[0], *right[1:]] for left, right in zip(held["null"], held["nan"], strict=True)]
    return Rows(table, [*held["null"], *held["nan"], *values])


def _typed(database, choose, pool):
    """Columns of other types; the engine is asked what they hold as doubles."""
    values = [*MODEST, *(float(each) for each in pool.decimals if 1e-3 < float(each) < 1e8), float("nan")]
    rows = np.array([[choose.choice(values) for _ in pool.columns] for _ in range(40)])
    database.insert("typed", pool.columns, rows, missing="null")
    double, row = pool.lexis.double, quoted(pool.lexis, "gbfl_row")
    casts = [
        f"CAST({name} AS {choose.choice(TYPES[pool.dialect])}) AS {name}"
        for name in (quoted(pool.lexis, column) for column in pool.columns)
    ]
    if pool.dialect == "clickhouse":
        double = "Nullable(Float64)"
    source = f"(SELECT {row}, {', '.join(casts)} FROM {quoted(pool.lexis, 'typed')}) {quoted(pool.lexis, 'data')}"
    doubles = ", ".join(
        f"CAST({quoted(pool.lexis, column)} AS {double}) AS c{n}" for n, column in enumerate(pool.columns)
    )
    return Rows(source, [list(found[1:]) for found in sorted(database.fetch(f"SELECT {row}, {doubles} FROM {source}"))])


def _judge(database, pool, rows, part, result):
    """Run what was read, and compare row by row."""
    together = [trial for trial, _ in part if trial.expression is not None]
    cast = f"CAST({pool.lexis.quote}"  # ClickHouse refuses to cast NULL: those side by side are soon set apart
    together.sort(key=lambda trial: cast in trial.expression)
    found = {}
    for start in range(0, len(together), WIDEST):
        some = together[start : start + WIDEST]
        found |= dict(zip(some, _answers(database, pool, rows, some), strict=True))
    for trial, readings in part:
        answers = found[trial] if trial in found else _alone(database, pool, rows, trial)
        if answers is None:
            result.counts["not taken by the engine"] += 1
            continue
        result.counts["read and run"] += 1
        for reader, ways in readings.items():
            result.counts[f"{reader}: run"] += 1
            if _differ(ways, rows.values, answers) is None:
                continue
            again = _alone(database, pool, rows, trial)  # in a batch, one text may spill over into the next
            if again is None or _differ(ways, rows.values, again) is None:
                result.counts["spilt over in a batch"] += 1
            else:
                _record(database, rows, trial, reader, ways, again, result)


def _judge_view(database, pool, rows, trial, result):
    """Make a view of a text, read it as the catalog prints it, and compare it with its own rows."""
    view = quoted(pool.lexis, "scored")
    try:
        database.execute(f"CREATE VIEW {view} AS {trial.text}")
    except CannotRun:
        result.counts["not taken by the engine"] += 1
        return
    try:
        stored = catalog_of(database).view(database, TableName("", "scored"))
        schema = str(database.fetch(SCHEMA[pool.dialect])[0][0]) if pool.dialect in SCHEMA else ""
        columns = catalog_of(database).columns(database, TableName("", rows.source.strip(pool.lexis.quote)))
        types = tuple((column.name, column.declared) for column in columns)
        expected = replace(_expected_text(pool, trial), form="view", made="scored", schema=schema, types=types)
        ways = read_strict_view(stored.statement or stored.definition, pool.dialect, expected)
        answers = [answer for _, answer in sorted(database.fetch(f"SELECT * FROM {view}"), key=lambda each: each[0])]
    except Unread:
        result.counts["views: refused"] += 1
    except (CannotRun, ValueError):  # what fails on a row, or more or other columns than two
        result.counts["not taken by the engine"] += 1
    else:
        result.counts["views: read"] += 1
        result.counts["read and run"] += 1
        if _differ(ways, rows.values, answers) is not None:
            _record(database, rows, trial, "strict", ways, answers, result)
    finally:
        database.execute(f"DROP VIEW {view}")


def _record(database, rows, trial, reader, ways, answers, result):
    """Keep a disagreement, unless it is a known one and there is no other in these rows."""
    others = list(zip(rows.values, answers, strict=True)) if len(rows.values) == len(answers) else []
    excuses = known(reader, database.dialect, trial.text) if others else []
    for each in excuses:
        others = [(row, answer) for row, answer in others if not each.has_row(row)]
    if excuses and _differ(ways, [row for row, _ in others], [answer for _, answer in others]) is None:
        result.counts[f"known: {excuses[0].what}"] += 1
        return
    left = others or list(zip(rows.values, answers, strict=False))
    difference = _differ(ways, [row for row, _ in left], [answer for _, answer in left])
    where, expected, engine = difference or ("all", f"{len(rows.values)} rows", f"{len(answers)} rows")
    result.disagreements[reader, trial.text] = (
        f"{database.version}, {reader} reader, {trial.kind}: {trial.text!r} from {rows.source}\n"
        f"  row {where}: the engine answers {engine!r}, the reading {expected!r}"
    )


def _differ(readings, rows, answers):
    """The first row that is answered otherwise than by the reading for its kind of missing values."""
    if len(answers) != len(rows):
        return "all", f"{len(rows)} rows", f"{len(answers)} rows"
    for reading in readings:
        for row, answer in zip(rows, answers, strict=True):
            if _speaks_of(reading, row) and run_reading(reading, row).label != answer:
                return dict(zip(reading.features, row, strict=True)), run_reading(reading, row).label, answer
    return None


def _speaks_of(reading, row):
    """Whether a reading is about rows with NULL and NaN where this one has them."""
    if reading.nan_features is None:
        return True
    return all(
        (value == value and value is not None) or (value is not None) == (feature in reading.nan_features)
        for feature, value in enumerate(row)
    )


def _answers(database, pool, rows, trials):
    """The answers to each expression, row by row; None for those the engine does not take."""
    if not trials:
        return []
    columns = ", ".join(f"{trial.expression} AS c{number}" for number, trial in enumerate(trials))
    row = quoted(pool.lexis, "gbfl_row")
    source = rows.source if rows.source.startswith("(") else f"{rows.source} AS {quoted(pool.lexis, 'data')}"
    try:
        found = sorted(database.fetch(f"SELECT {row}, {columns} FROM {source}"), key=lambda each: each[0])
    except CannotRun:
        if len(trials) == 1:
            return [None]
        half = len(trials) // 2
        return [*_answers(database, pool, rows, trials[:half]), *_answers(database, pool, rows, trials[half:])]
    return [[each[1 + number] for each in found] for number in range(len(trials))]


def _alone(database, pool, rows, trial):
    """The answers to a text as it is, but for the table it reads where that is another one."""
    table = quoted(pool.lexis, "data")
    made = trial.text
    if rows.source != table:
        source = rows.source if rows.source.startswith("(") else f"{rows.source} AS {table}"
        made = f"{made[: made.rindex(f' FROM {table}')]} FROM {source}"
    try:
        return [answer for _, answer in sorted(database.fetch(made), key=lambda each: each[0])]
    except (CannotRun, ValueError):  # more or other columns than two
        return None
