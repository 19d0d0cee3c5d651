"""What the tests of the SQL target share: programs, ways to run them, names that would like to be more than names."""

import numpy as np

from gbfl_compile.backends import emit
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.backends.sql.run import fetch_answers, read_script, run
from gbfl_compile.checking.run import differing_rows
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons

TREE = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 1e5))), Clause((Interval(1, None, 0.1, if_missing=True),))),
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), leaf(0.5, 0.5))),
)
CARD = Program(TREE.features, TREE.classes, TREE.clauses, Scorecard((0, -2), ((0, 3), (0, -1)), 1))
THREE = Program(TREE.features, ("a", "b", "c"), TREE.clauses, Scorecard((0, -2, 1), ((0, 3, 1), (2, -1, -1)), 1))
EACH = {"tree": TREE, "rules": CARD, "three classes": THREE}

HOSTILE = (
    'a"; DROP TABLE data; --',
    "a`; DROP TABLE data; --",
    "a]; DROP TABLE data; --",
    "it's",
    "back\\slash\\",
    "\\'; DROP TABLE data; --",
    "*/ SELECT 1 /*",
    "line\nbreak",
    "-- comment",
    "{{ 7*7 }}",
    "{% raw %}",
    "%s %(x)s :x ? $1",
    "größe 数",
    "label",
    "x0",
    "gbfl_leaf",
)


def hostile_program(features=HOSTILE, labels=HOSTILE):
    """A tree that asks every feature and can answer every label."""
    clauses = tuple(Clause((Interval(f, 0.5),)) for f in range(len(features)))
    tree = leaf(*(float(c == 0) for c in range(len(labels))))
    for number in range(len(features)):
        tree = split(number, leaf(*(float(c == number % len(labels)) for c in range(len(labels)))), tree)
    return Program(features, labels, clauses, tree)


def text_of(program, dialect, **options):
    """The artifact's SQL."""
    return emit(program, f"sql:{dialect}", options={"table": "data", **options}).files["model.sql"].decode()


def answers(program, database, folder, rows, **options):
    """What the emitted artifact answers in an engine that is already there."""
    path = folder / "model.sql"
    path.write_text(text_of(program, database.dialect, **options), encoding="utf-8", newline="\n")
    return run(DIALECTS[database.dialect], read_script(path), database, rows)


def assert_same(program, database, folder, rows=None, **options):
    """0 differences from the definition, NULL and NaN included."""
    rows = witnesses(program) if rows is None else rows
    found = answers(program, database, folder, rows, **options)
    differs = differing_rows(program.has_exact_probabilities, evaluate_many(program, rows), found)
    assert not differs.any(), f"{differs.sum()} of {len(rows)} rows, the first is {rows[np.flatnonzero(differs)[0]]}"


REASONS = (
    "say \"hi\", it's ''quoted''",
    "back\\slash ??/ ??' \\' \\n trailing\\",
    "*/ -- /* # ; DROP TABLE data; --",
    "%s %(x)s :x ? $1 $$ {{ 7*7 }} {% raw %} {# no #}",
    "größe 数 😀",
)
"""Texts that would like to be more than texts."""

REASONED = {
    name: with_reasons(program, {0: REASONS[0] + REASONS[1], 1: REASONS[2] + REASONS[3] + REASONS[4]})
    for name, program in {"tree": TREE, "rules": CARD, "three classes": THREE}.items()
}

REASON_ROWS = np.array([[30.0, 2e5], [70.0, np.nan], [70.0, 1.0], [30.0, 0.0]])
"""The first clause holds on the first row, the second on the second and the last, none on the third."""


def reasons_answered(program, database, folder, rows=REASON_ROWS, **options):
    """The reason that an engine really gives for each row."""
    path = folder / "model.sql"
    path.write_text(
        text_of(program, database.dialect, outputs="label,reason", **options), encoding="utf-8", newline="\n"
    )
    found = fetch_answers(DIALECTS[database.dialect], read_script(path), database, rows, "null")
    return [reason for _, reason in found]


def reasons_expected(program):
    """What REASON_ROWS should be told, worked out by hand from the two clauses."""
    first, second = (program.metadata["reasons"][str(clause)] for clause in range(2))
    if isinstance(program.decision, Scorecard):
        return [f"{first}; ", f"{second}; ", "", f"{second}; "]
    failed, other = "NOT (18 <= age < 65 AND income >= 100000)", "NOT ((income < 0.1 OR income is missing))"
    return [first, f"{failed}; {second}", f"{failed}; {other}", f"{failed}; {second}"]
