"""Runs every form of the corpus in its engine on a grid of boundary rows, and compares the audit's verdict with that.

python -m tests.auditing.forms.measure [engine ...]
"""

import itertools
import sys
import time
from collections import Counter
from contextlib import closing

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import GbflError
from gbfl_compile.ir.evaluate import evaluate
from tests.auditing.forms.corpus import PROGRAMS, forms
from tests.auditing.forms.edits import is_named_right

NAN = float("nan")
GRID = tuple(
    itertools.product((0, 29999, 30000, 30001, None), (-1, 0.39, 0.4, 0.41, 0.6, 0.61, None), (17, 24, 25, 26, None))
)
TYPES = {
    "sqlite": ("INTEGER", "REAL", "TEXT", ""),
    "duckdb": ("INTEGER", "DECIMAL(6,4)", "VARCHAR", ""),
    "postgres": ("INTEGER", "NUMERIC(6,4)", "VARCHAR(20)", ""),
    "mariadb": ("INT", "DECIMAL(6,4)", "VARCHAR(20)", ""),
    "clickhouse": ("Nullable(Int32)", "Nullable(Float64)", "String", " ENGINE = Memory"),
}
TABLES = {
    "applications": "id INT, customer_id INT, income INT, debt REAL, age INT, status TEXT, updated_at INT",
    "applications_core": "id INT, income INT, age INT",
    "features": "id INT, debt REAL",
    "raw_loans": "loan_id INT, annual_inc INT, dti REAL, applicant_age INT",
    "customers": "customer_id INT, segment TEXT",
    "applications_pct": "id INT, income INT, debt_pct REAL, age INT",
    "applications_k": "id INT, income_k INT, debt REAL, age INT",
    "params": "min_income INT, max_debt REAL, min_age INT",
    "settings": "k TEXT, v INT",
    "bins_income": "lo INT, hi INT, points INT",
    "bins_debt": "lo REAL, hi REAL, points INT",
    "bins_age": "lo INT, hi INT, points INT",
}
FIXED = {
    "params": [(30000, 0.4, 25)],
    "settings": [("'min_income'", 30000), ("'max_debt'", 1)],
    "bins_income": [(-1, 30000, 0), (30000, 99999999, 6)],
    "bins_debt": [(-99, 0.4, 5), (0.4, 99, 0)],
    "bins_age": [(-1, 25, 0), (25, 999, 3)],
}


def grid_of(engine):
    """The rows: NaN is among them where a column of the engine's table can hold it."""
    return (*GRID, (30000, NAN, 25), (0, NAN, 26)) if engine == "clickhouse" else GRID


def rows_of(table, engine):
    """The rows of a table, as literals."""
    if table in FIXED:
        yield from FIXED[table]
        return
    for number, (income, debt, age) in enumerate(grid_of(engine)):
        yield {
            "applications": (number, number + 1, income, debt, age, "'active'", 1),
            "applications_core": (number, income, age),
            "features": (number, debt),
            "raw_loans": (number, income, debt, age),
            "customers": (number + 1, "'retail'"),
            "applications_pct": (number, income, None if debt is None else round(debt * 10, 3), age),
            "applications_k": (number, None if income is None else income // 1000, debt, age),
        }[table]


def make_tables(database):
    """The tables of all forms, with the grid in them."""
    whole, real, text, ending = TYPES[database.dialect]
    for table, columns in TABLES.items():
        listed = columns.replace("INT", whole).replace("REAL", real).replace("TEXT", text)
        database.execute(f"CREATE TABLE {table} ({listed}){ending}")
        rows = ", ".join(
            f"({', '.join('NULL' if value is None else str(value) for value in row)})"
            for row in rows_of(table, database.dialect)
        )
        database.execute(f"INSERT INTO {table} VALUES {rows}")


def approved_labels(form):
    """The program's label of every id, with features as the form defines them."""
    labels = {}
    for number, (income, debt, age) in enumerate(grid_of(form.engine)):
        joined = " ".join(form.statements)
        if "applications_k" in joined and income is not None:
            income = income // 1000 * 1000
        if "applications_pct" in joined and debt is not None:
            debt = round(debt * 10, 3) / 100.0
        row = [NAN if value is None else float(value) for value in (income, debt, age)]
        labels[number] = evaluate(PROGRAMS[form.program], row).label
    return labels


def truth(database, form):
    """Whether every row that comes out has the approved label."""
    expected = approved_labels(form)
    answers = database.fetch(f"SELECT id, label FROM {form.view}")
    assert answers, form.name
    return "equal" if all(expected[int(number)] == label for number, label in answers) else "different"


def drop(database, form):
    """Remove what the form made, last first."""
    for statement in reversed(form.statements):
        words = statement.split()
        kind, name = words[1], words[2].partition("(")[0]
        database.execute(f"DROP {kind} {name}")


def measure(engines, step=1):
    """(form, truth, audit's verdict, seconds) of every form, or of each `step`th."""
    for engine in engines:
        if availability(engine):
            continue
        with closing(scratch(engine)) as database:
            make_tables(database)
            for form in [each for each in forms() if each.engine == engine][::step]:
                for statement in form.statements:
                    database.execute(statement)
                began = time.monotonic()
                try:
                    found = audit_view(
                        AuditInput(PROGRAMS[form.program], columns=dict(form.columns)), database, form.view, form.name
                    )
                except GbflError as error:
                    found = error
                seconds = time.monotonic() - began
                yield form, truth(database, form), found, seconds
                drop(database, form)


def say(line):
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main(engines):
    """Print the table, and every form that is not as it should be."""
    table, times, named = Counter(), [], Counter()
    for form, right, found, seconds in measure(engines):
        word = getattr(found, "verdict", "error")
        table[right, word] += 1
        times.append(seconds)
        if right == "different" and word == "different" and form.places:
            is_right = is_named_right(form.places, found.changes)
            named["right" if is_right else "wrong"] += 1
            story = found.story
            named["mended"] += story is not None and story.mend is not None
            named["shown"] += story is not None and story.query is not None
            if not is_right:
                say(f"{form.engine} {form.name}: {set(form.places)} changed, named {[c.text() for c in found.changes]}")
        if word != right:
            say(
                f"{form.engine} {form.name}: {right}, called {word}: {getattr(found, 'reason', found)} | {getattr(found, 'not_executed', '')}"
            )
    say(f"{'truth':<12}{'equal':>8}{'different':>12}{'unread':>8}{'not run':>9}{'error':>7}")
    for right in ("equal", "different"):
        counts = [table[right, word] for word in ("equal", "different", "unread", "not run", "error")]
        say(f"{right:<12}{counts[0]:>8}{counts[1]:>12}{counts[2]:>8}{counts[3]:>9}{counts[4]:>7}")
    of = named["right"] + named["wrong"]
    say(
        f"the changed clause is named right in {named['right']} of {of} planted differences ({named['right'] / max(of, 1):.0%})"
    )
    say(f"an edit that mends it is given in {named['mended']}, a SELECT that shows it in {named['shown']} of {of}")
    say(f"median {sorted(times)[len(times) // 2]:.2f} s over {len(times)} forms")


if __name__ == "__main__":
    main(sys.argv[1:] or ["sqlite", "duckdb", "postgres", "mariadb", "clickhouse"])
