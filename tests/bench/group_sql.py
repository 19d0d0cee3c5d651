"""Group `sql`: ours against orbital's SQL, flat CASEs and pulling the rows into Python; 1,000,000 rows x 20 doubles.

DuckDB on one thread and PostgreSQL without parallel workers, wall clock. Each query is summed up inside the database,
so that what is timed is the scoring and not the way of the answers to the client; a plan is what EXPLAIN takes.
GBFL_BENCH_ROWS=100000 makes it shorter.
"""

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.databases import duckdb as in_process
from gbfl_compile.databases.base import Database
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Split, Tree, leaf, paths, split
from tests.bench import peers
from tests.bench.shapes import FEATURES, NAMES, clause_tree, data, fitted_tree
from tests.bench.timing import Timing

ROWS = int(os.environ.get("GBFL_BENCH_ROWS", "1000000"))
ROUNDS = 3
PULLED = min(ROWS, 100_000)
"""Rows that are pulled into Python: all of them would take minutes."""
TABLE = "rows"


def run() -> list[Timing]:
    """Every shape in every engine that is here."""
    rows, labels = data(ROWS)
    found: list[Timing] = []
    for dialect in ("duckdb", "postgres"):
        if reason := availability(dialect):
            sys.stderr.write(f"{dialect}: not run: {reason}\n")
            continue
        connection = importlib.import_module("duckdb").connect() if dialect == "duckdb" else None
        database = scratch(dialect) if connection is None else in_process.over(connection, temporary=False)
        database.execute("SET threads = 1" if dialect == "duckdb" else "SET max_parallel_workers_per_gather = 0")
        database.insert(TABLE, NAMES, rows)
        if dialect == "postgres":
            database.execute(f"VACUUM ANALYZE {TABLE}")
        for shape, contenders in shapes(database, connection, rows, labels):
            found += time_rounds(database, shape, contenders)
        database.close()
    return found


def shapes(database: Database, connection: Any, rows: Any, labels: Any) -> Any:
    """(shape, who -> query or call)."""
    dialect, engine = database.dialect, database.version
    _, raw = fitted_tree(rows, labels)
    both = {"outputs": "label,probabilities"}
    contenders: dict[str, Any] = {
        "gbfl": ours(raw, dialect, both),
        "gbfl, columns cast": ours(raw, dialect, both, "any"),
    }
    if (peer := orbital_sql().get(dialect)) is not None:
        contenders["orbital"] = peer
    contenders["rows pulled into Python"] = (lambda: evaluate_many(raw, pull_rows(database)), PULLED)
    if connection is not None:
        contenders["columns pulled into numpy"] = (lambda: evaluate_many(raw, pulled_columns(connection)), PULLED)
    yield f"{engine}: tree of depth 5, label and probabilities", contenders
    if peer is not None:
        labels_alone = {
            "gbfl": ours(raw, dialect, {"outputs": "label"}),
            "orbital": f'SELECT "output_label" FROM ({peer}) AS o',
        }
        yield f"{engine}: tree of depth 5, label", labels_alone

    wide = wide_tree(500)
    contenders = {"gbfl": ours(wide, dialect, {"outputs": "label"}), "one WHEN per leaf": flat_case(wide)}
    assert_equal(database, contenders)
    yield f"{engine}: tree of 500 leaves, label", contenders

    tree = clause_tree(3)
    contenders = {"gbfl": ours(tree, dialect, {"outputs": "label"}), "each comparison once, summed": comparisons(tree)}
    yield f"{engine}: tree over 31 clauses, label", contenders


def ours(program: Program, dialect: str, options: dict[str, str], types: str = "double") -> str:
    options = {"table": TABLE, "types": types, **options}
    return emit(program, f"sql:{dialect}", "model", options).files["model.sql"].decode().split("\n;\n")[0]


def orbital_sql() -> dict[str, str]:
    """orbital's query by dialect, made in the peers' environment; {} where it is not installed."""
    if "orbital" in peers.install():
        return {}
    command = [peers.PYTHON, "-W", "ignore", "-m", "tests.bench.orbital_sql"]
    run = subprocess.run(command, cwd=peers.ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.stderr.write(f"orbital: not raced: {run.stderr.strip().splitlines()[-1:]}\n")
        return {}
    made: dict[str, str] = json.loads(run.stdout[run.stdout.index("{") :])
    return made


def pull_rows(database: Database) -> Any:
    """The features as the client hands them over, rows of Python values."""
    return np.array(database.fetch(f"SELECT {', '.join(NAMES)} FROM {TABLE} LIMIT {PULLED}"), dtype=np.float64)


def pulled_columns(connection: Any) -> Any:
    """The features as DuckDB hands them over quickest, columns of numpy."""
    query = f"SELECT {', '.join(NAMES)} FROM {TABLE} LIMIT {PULLED}"
    return np.column_stack(list(connection.execute(query).fetchnumpy().values()))


def wide_tree(leaves: int) -> Program:
    """A balanced tree of single comparisons."""
    choose = np.random.default_rng(5)
    clauses: list[Clause] = []

    def grown(size: int) -> Tree:
        if size == 1:
            return leaf(0.25, 0.75) if choose.random() < 0.5 else leaf(0.75, 0.25)
        clauses.append(Clause((Interval(int(choose.integers(FEATURES)), float(choose.normal()), None),)))
        last = len(clauses) - 1
        return split(last, grown(size // 2), grown(size - size // 2))

    tree = grown(leaves)
    return Program(NAMES, (0, 1), tuple(clauses), tree)


def flat_case(program: Program) -> str:
    """One WHEN per leaf, each with all comparisons on the way to it: what many exporters write."""
    tree = program.decision
    assert isinstance(tree, Tree)
    whens = []
    for index, steps in paths(tree).items():
        node = tree.nodes[index]
        if isinstance(node, Leaf):
            label = program.classes[int(np.argmax(node.probabilities))]
            whens.append(f"WHEN {' AND '.join(step_text(program, tree, step) for step in steps)} THEN {label}")
    return f"SELECT CASE {' '.join(whens)} END AS label FROM {TABLE}"


def step_text(program: Program, tree: Tree, step: tuple[int, bool]) -> str:
    node = tree.nodes[step[0]]
    assert isinstance(node, Split)
    (atom,) = program.clauses[node.clause].atoms
    return f"{NAMES[atom.feature]} {'>=' if step[1] else '<'} {atom.lo!r}"


def comparisons(program: Program) -> str:
    """Each distinct comparison of the program as 0 or 1, added up."""
    last = {
        (atom.feature, sign, cut)
        for clause in program.clauses
        for atom in clause.atoms
        for sign, cut in ((">=", atom.lo), ("<", atom.hi))
        if cut is not None
    }
    terms = [f"CAST({NAMES[f]} {sign} {cut!r} AS INTEGER)" for f, sign, cut in sorted(last)]
    return f"SELECT {' + '.join(terms)} AS label FROM {TABLE}"


def assert_equal(database: Database, contenders: dict[str, str]) -> None:
    """The same answer per row, or the race means nothing."""
    first, second = (f"SELECT label, count(*) FROM ({query}) AS q GROUP BY label" for query in contenders.values())
    assert sorted(database.fetch(first)) == sorted(database.fetch(second))


def sum_answers(database: Database, query: str) -> Callable[[], object]:
    """The query, all of its columns added up by the database."""
    (columns,) = [[row[0] for row in describe(database, query)]]
    sums = ", ".join(f"sum({database.quote(name)})" for name in columns)
    return lambda: database.fetch(f"SELECT {sums} FROM ({query}) AS q")


def describe(database: Database, query: str) -> list[tuple[Any, ...]]:
    if database.dialect == "duckdb":
        return database.fetch(f"DESCRIBE {query}")
    database.execute("DROP VIEW IF EXISTS described")
    database.execute(f"CREATE VIEW described AS {query}")
    found = database.fetch(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'described' ORDER BY ordinal_position"
    )
    database.execute("DROP VIEW described")
    return found


def time_rounds(database: Database, shape: str, contenders: dict[str, Any]) -> list[Timing]:
    """Wall clock, rounds interleaved: nanoseconds per row, then nanoseconds per plan."""
    queries = {who: made for who, made in contenders.items() if isinstance(made, str)}
    calls = {
        who: (sum_answers(database, made), ROWS) if isinstance(made, str) else made for who, made in contenders.items()
    }
    plans = {who: (partial(database.fetch, f"EXPLAIN {query}"), 1) for who, query in queries.items()}
    scoring = race_calls(f"{shape} (wall clock, per row)", calls)
    return scoring + race_calls(f"{shape}: plan (wall clock, a query)", plans)


def race_calls(shape: str, calls: dict[str, tuple[Callable[[], object], int]]) -> list[Timing]:
    taken: dict[str, list[float]] = {who: [] for who in calls}
    for call, _ in calls.values():
        call()
    for _ in range(ROUNDS):
        for who, (call, items) in calls.items():
            began = time.perf_counter_ns()
            call()
            taken[who].append((time.perf_counter_ns() - began) / items)
    return [Timing("sql", shape, who, statistics.median(times)) for who, times in taken.items()]
