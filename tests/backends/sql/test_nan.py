"""Every condition we write is exact on every double: NaNs of both signs and any payload, both zeros, denormals, infinities."""

import itertools
import math

import numpy as np
import pytest

from gbfl_compile.backends.sql.conditions import clause_fails, clause_holds
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.backends.sql.programs import assert_same, text_of

NAN_BITS = (
    0x7FF8000000000000,  # the NaN of CAST('NaN' AS DOUBLE) and of Python
    0xFFF8000000000000,  # what 0.0/0.0 is on x86
    0x7FF8000000000001,
    0xFFF8000000000123,
    0x7FFFFFFFFFFFFFFF,
    0xFFFFFFFFFFFFFFFF,
)
NANS = np.array(NAN_BITS, dtype=np.uint64).view(np.float64)
LARGEST = 1.7976931348623157e308
SMALL = (0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.0, -1.0, 5.0, math.nextafter(5.0, 0.0))
NUMBERS = np.array([*SMALL, LARGEST, -LARGEST, math.inf, -math.inf])
BOUNDS = (None, 0.0, 5.0, -LARGEST, LARGEST)

ATOMS = [
    Interval(0, lo, hi, closed, if_missing)
    for lo, hi in itertools.product(BOUNDS, BOUNDS)
    if lo is None or hi is None or lo < hi
    for closed, if_missing in itertools.product(("left", "right", "both", "neither"), (True, False))
]


def column(database):
    """Every value the engine can hold, as the table `t`."""
    values = np.concatenate([NUMBERS if database.holds_infinity else NUMBERS[:-2], NANS if database.holds_nan else []])
    database.insert("t", ["x"], values.reshape(-1, 1), missing="nan")
    return values.tolist()


def holds(atom, value):
    program = Program(("x",), ("no", "yes"), (Clause((atom,)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
    return evaluate(program, [value]).label == "yes"


@pytest.mark.parametrize("side", [clause_holds, clause_fails], ids=["holds", "fails"])
def test_a_condition_is_exact_on_every_double(database, side):
    values = column(database)
    dialect = DIALECTS[database.dialect]
    name = database.quote("x")
    cases = ", ".join(
        f"CASE WHEN {side(dialect, Clause((atom,)), {0: name})} THEN 1 ELSE 0 END AS c{number}"
        for number, atom in enumerate(ATOMS)
    )
    rows = sorted(database.fetch(f"SELECT {database.quote('gbfl_row')}, {cases} FROM t"))
    wrong = [
        (atom, value)
        for (_, *answers), value in zip(rows, values, strict=True)
        for atom, answer in zip(ATOMS, answers, strict=True)
        if bool(answer) != (holds(atom, value) == (side is clause_holds))
    ]
    assert wrong == []


@pytest.mark.parametrize("options", [{}, {"types": "double"}, {"form": "expression"}], ids=str)
def test_an_artifact_answers_every_nan_as_missing(database, tmp_path, options):
    rows = np.concatenate([NANS, NUMBERS]).reshape(-1, 1)
    clauses = (Clause((Interval(0, None, 5.0),)), Clause((Interval(0, 5.0, if_missing=True),)))
    program = Program(
        ("x",),
        ("a", "b", "c"),
        clauses,
        split(0, leaf(1.0, 0.0, 0.0), split(1, leaf(0.0, 1.0, 0.0), leaf(0.0, 0.0, 1.0))),
    )
    assert_same(program, database, tmp_path, rows, **options)


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_a_query_over_arrow_columns_of_nans_is_exact(engine):
    library, pa = pytest.importorskip(engine), pytest.importorskip("pyarrow")
    program = Program(
        ("x",), ("no", "yes"), (Clause((Interval(0, None, 5.0),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    values = np.concatenate([NANS, NUMBERS])
    content = pa.table({"x": pa.array(values)})
    text = text_of(program, engine).strip().removesuffix(";")
    if engine == "duckdb":
        labels = library.connect().register("data", content).execute(text).fetchall()
        answers = [label for label, *_ in labels]
    else:
        session = library.SessionContext()
        session.register_record_batches("data", [content.to_batches()])
        answers = [row["label"] for row in session.sql(text).to_pylist()]
    assert answers == [evaluate(program, [value]).label for value in values.tolist()]
