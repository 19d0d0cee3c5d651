"""A loaded C scorer takes what people have, refuses what it cannot take, and is built once."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.c import available, load, load_scorer
from gbfl_compile.backends.c.build import build_extension, cache_folder, size_table
from gbfl_compile.backends.c.inputs import Columns, Rows, as_input
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from tests.backends.c.programs import CARD, TREE, needs_a_compiler, ordinary_rows, random_card, random_tree, write

pytestmark = needs_a_compiler

PROGRAMS = {"tree": random_tree(11, 16, features=5), "rule set": random_card(12, 12, features=5)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Scorers by kind and number type, built into a cache of their own."""
    folder = tmp_path_factory.mktemp("scorers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GBFL_CACHE", str(folder / "cache"))
        patch.delenv("CFLAGS", raising=False)
        return {
            (kind, dtype): load_scorer(write(emit(program, "c", "m", {"dtype": dtype}), folder / f"{kind[:4]}{dtype}"))
            for kind, program in PROGRAMS.items()
            for dtype in ("float64", "float32")
        }


def expected(kind, rows):
    found = evaluate_many(PROGRAMS[kind], np.asarray(rows, dtype=np.float64))
    return found.leaves if found.scores is None else found.scores


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_any_memory_layout_gives_the_same_answers(made, kind, dtype):
    scorer = made[kind, dtype]
    rows = ordinary_rows(PROGRAMS[kind], 333).astype(dtype)
    want = expected(kind, rows)
    misaligned = np.frombuffer(b"\0" + rows.tobytes(), dtype=np.uint8)[1:].view(dtype).reshape(rows.shape)
    read_only = rows.copy()
    read_only.flags.writeable = False
    wide = np.zeros((333, 9), dtype=dtype)
    wide[:, 2:7] = rows
    spread = np.zeros((333, 10), dtype=dtype)
    spread[:, ::2] = rows
    packed = np.zeros(333, dtype=[("flag", "u1"), ("x", dtype, 5)])
    packed["x"] = rows
    swapped = rows.astype(rows.dtype.newbyteorder())
    for table in (
        rows,
        np.asfortranarray(rows),
        misaligned,
        read_only,
        wide[:, 2:7],
        spread[:, ::2],
        packed["x"],
        swapped,
    ):
        np.testing.assert_array_equal(scorer.score(table), want)
    np.testing.assert_array_equal(scorer.score(rows[::-1]), want[::-1])
    np.testing.assert_array_equal(scorer.score(np.asfortranarray(rows)[::-1]), want[::-1])
    np.testing.assert_array_equal(scorer.score(rows[::3]), want[::3])
    np.testing.assert_array_equal(scorer.score(np.broadcast_to(rows[0], (7, 5))), np.repeat(want[:1], 7, axis=0))
    np.testing.assert_array_equal(scorer.score(rows[:1]), want[:1])


def test_nothing_is_copied_where_nothing_must_be():
    used = (True, False, True)
    rows = np.zeros((10, 3))
    wide = np.zeros((10, 8))
    real = np.dtype(np.float64)
    for table, stride in ((rows, 3), (wide[:, 2:5], 8), (rows[::2], 6), (rows[::-1], -3)):
        found = as_input(table, ("a", "b", "c"), used, real)
        assert isinstance(found, Rows)
        assert found.stride == stride
        assert np.shares_memory(found.values, table)
    turned = np.asfortranarray(rows)
    frame = pd.DataFrame({"c": np.zeros(10), "a": np.ones(10), "b": ["text"] * 10})
    for table in (turned, frame):
        found = as_input(table, ("a", "b", "c"), used, real)
        assert isinstance(found, Columns)
        assert found.values[1] is None  # a column no rule looks at is not even converted
    assert np.shares_memory(as_input(turned, ("a", "b", "c"), used, real).values[0], turned)
    assert np.shares_memory(as_input(frame, ("a", "b", "c"), used, real).values[0], frame["a"].to_numpy())


@pytest.mark.parametrize("kind", PROGRAMS)
def test_tables_are_read_by_name(made, kind):
    scorer = made[kind, "float64"]
    rows = ordinary_rows(PROGRAMS[kind], 100)
    want = expected(kind, rows)
    columns = dict(zip(scorer.features, rows.T, strict=True))
    turned = {"id": np.arange(100), **dict(reversed(columns.items()))}
    frame = pd.DataFrame(turned)
    np.testing.assert_array_equal(scorer.score(frame), want)
    np.testing.assert_array_equal(scorer.score(frame.astype(dict.fromkeys(columns, "Float64"))), want)
    pyarrow = pytest.importorskip("pyarrow")
    as_nulls = {name: [None if np.isnan(v) else v for v in column] for name, column in columns.items()}
    table = pyarrow.table(as_nulls)
    np.testing.assert_array_equal(scorer.score(table), want)
    np.testing.assert_array_equal(scorer.score(table.to_batches()[0]), want)
    np.testing.assert_array_equal(scorer.score(pyarrow.concat_tables([table[:30], table[30:]])), want)
    polars = pytest.importorskip("polars")
    np.testing.assert_array_equal(scorer.score(polars.DataFrame(as_nulls)), want)


def test_whole_numbers_flags_and_objects_are_numbers(made):
    scorer = made["tree", "float64"]
    rows = np.arange(-10, 10).reshape(4, 5)
    want = expected("tree", rows)
    for table in (rows, rows.astype(np.int8), rows.astype(np.float16), rows.astype(object), rows.tolist()):
        np.testing.assert_array_equal(scorer.score(table), want)
    np.testing.assert_array_equal(scorer.score(rows > 0), expected("tree", rows > 0))
    with_none = rows.astype(object)
    with_none[0, :] = None
    missing = np.where(np.arange(4)[:, None] == 0, np.nan, rows)
    np.testing.assert_array_equal(scorer.score(with_none), expected("tree", missing))
    masked = np.ma.masked_array(rows.astype(float), mask=np.isnan(missing))
    np.testing.assert_array_equal(scorer.score(masked), expected("tree", missing))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((3, 4)), "4 values, the model has 5 features"),
        (np.zeros((3, 6)), "6 values"),
        (np.zeros(5), "1 dimensions"),
        (np.zeros((1, 1, 5)), "3 dimensions"),
        (7.0, "0 dimensions"),
        (np.full((2, 5), "x"), "are not numbers"),
        (np.full((2, 5), "x", dtype=object), "'x' is not a number"),
        (np.zeros((2, 5), dtype=complex), "complex128 values are not numbers"),
        (np.zeros((2, 5), dtype="datetime64[s]"), "are not numbers"),
        ([[1, 2], [3]], "not a table"),
        (pd.DataFrame({"f0": [1.0]}), "no column 'f1'"),
        (pd.DataFrame([[1.0] * 6], columns=["f0", "f0", "f1", "f2", "f3", "f4"]), "2 columns 'f0'"),
        (pd.DataFrame({f"f{i}": ["x"] for i in range(5)}), "column 'f[0-4]'"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_a_typed_error(made, table, message):
    for scorer in made.values():
        with pytest.raises(BadInput, match=message):
            scorer.score(table)
        with pytest.raises(BadInput, match=message):
            scorer.predict(table)


def test_a_float32_scorer_takes_no_number_it_would_have_to_change(made):
    scorer = made["tree", "float32"]
    assert scorer.score(np.full((1, 5), 0.5)).shape == (1,)
    for table in (np.full((1, 5), 0.1), np.full((1, 5), 1e300), np.full((1, 5), 2**24 + 1)):
        with pytest.raises(BadInput, match="is not a float32 number"):
            scorer.score(table)


def test_no_rows_give_no_answers(made):
    for (kind, _), scorer in made.items():
        assert scorer.score(np.zeros((0, 5))).shape == ((0,) if kind == "tree" else (0, 2))
        assert scorer.predict(np.zeros((0, 5))).shape == (0,)
        assert scorer.probabilities(np.zeros((0, 5))).shape[0] == 0
        with pytest.raises(BadInput, match="0 values, the model has 5"):
            scorer.score(np.zeros((3, 0)))


def test_out_is_the_callers_and_checked(made):
    scorer = made["tree", "float64"]
    rows = ordinary_rows(PROGRAMS["tree"], 50)
    out = np.full(50, -1, dtype=np.int32)
    assert scorer.score(rows, out=out) is out
    np.testing.assert_array_equal(out, expected("tree", rows))
    read_only = np.zeros(50, dtype=np.int32)
    read_only.flags.writeable = False
    for bad in (np.zeros(49, np.int32), np.zeros(50), np.zeros(100, np.int32)[::2], read_only, [0] * 50):
        with pytest.raises(BadInput, match="out: give"):
            scorer.score(rows, out=bad)


def test_threads_change_no_answer(made):
    for (kind, dtype), scorer in made.items():
        rows = ordinary_rows(PROGRAMS[kind], 20_000).astype(dtype)
        one, two = scorer.score(rows), scorer.score(np.asfortranarray(rows), threads=2)
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(scorer.score(rows, threads=3), one)
        np.testing.assert_array_equal(scorer.predict(rows, threads=3), scorer.predict(rows))


def test_other_threads_run_while_c_does(made):
    """The GIL is released: two threads scoring at once, each into its own memory, both get all answers."""
    scorer = made["rule set", "float64"]
    rows = ordinary_rows(PROGRAMS["rule set"], 5_000)
    found = [np.empty((5_000, 2), dtype=np.int64) for _ in range(2)]
    threads = [threading.Thread(target=scorer.score, args=(rows, out)) for out in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out in found:
        np.testing.assert_array_equal(out, expected("rule set", rows))


def test_a_bound_row_is_read_at_each_call(made):
    scorer = made["tree", "float64"]
    rows = ordinary_rows(PROGRAMS["tree"], 40)
    buffer, call = scorer.bound_row()
    for row, number in zip(rows, scorer.predict(rows), strict=True):
        buffer[:] = row
        assert call() == number


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("GBFL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CFLAGS", raising=False)
    monkeypatch.delenv("CC", raising=False)
    return write(emit(TREE, "c"), tmp_path / "c")


def test_a_second_load_builds_nothing(fresh, monkeypatch):
    first = build_extension(fresh)
    stamp = first.stat().st_mtime_ns
    assert build_extension(fresh) == first
    assert first.stat().st_mtime_ns == stamp
    assert [path.name for path in cache_folder().iterdir()] == [first.name]  # nothing half made is left
    monkeypatch.setenv("CFLAGS", "-DOTHER")
    assert build_extension(fresh) != first
    monkeypatch.delenv("CFLAGS")
    fresh.write_text(fresh.read_text() + "\n")
    assert build_extension(fresh) != first


def test_two_processes_may_build_at_once(fresh):
    code = "import sys; from pathlib import Path; from gbfl_compile.backends.c import load_scorer; print(load_scorer(Path(sys.argv[1])).selftest())"
    runs = [
        subprocess.Popen([sys.executable, "-c", code, fresh], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for run in runs:
        out, error = run.communicate()
        assert (run.returncode, out) == (0, "0\n"), error
    assert len(list(cache_folder().iterdir())) == 1


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("GBFL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "gbfl-compile"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache_folder() == Path.home() / ".cache/gbfl-compile"


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only", "-O2 -funsafe-math-optimizations"])
def test_inexact_flags_are_refused(fresh, monkeypatch, flag):
    monkeypatch.setenv("CFLAGS", flag)
    with pytest.raises(BadInput, match="makes comparisons inexact"):
        load_scorer(fresh)


def test_without_a_compiler_the_ways_out_are_named(fresh, monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    assert "no C compiler" in available().cannot_run
    assert available().cannot_emit is None
    with pytest.raises(CannotRun, match=r"install gcc or clang .* or use the python target"):
        load_scorer(fresh)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CannotRun, match="CC='no-such-compiler' does not run"):
        load_scorer(fresh)


def test_what_does_not_compile_is_a_typed_error(fresh):
    fresh.write_text("int broken(")
    with pytest.raises(BadInput, match="does not compile"):
        load_scorer(fresh)
    fresh.with_suffix(".h").write_text("int nothing;")
    with pytest.raises(BadInput, match="is not a header this target emits"):
        load_scorer(fresh)
    fresh.with_name("gbfl.h").unlink()
    with pytest.raises(BadInput, match=r"gbfl.h: No such file"):
        load_scorer(fresh)


def test_a_scorer_without_batches_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("GBFL_CACHE", str(tmp_path / "cache"))
    scorer = load_scorer(write(emit(CARD, "c", options={"batch": "no"}), tmp_path))
    assert scorer.selftest() == 0
    with pytest.raises(CannotRun, match=r"c.batch=yes"):
        scorer.score(np.zeros((1, 2)))


def test_the_size_table_says_what_a_model_takes(tmp_path):
    found = size_table(write(emit(CARD, "c", options={"layout": "arduino"}), tmp_path))
    assert found.text > 0
    assert found.data == found.bss == 0  # nothing is written, so all of it can live in flash
    assert 0 < found.stack < 1000


@pytest.mark.parametrize("program", [CARD, TREE], ids=["rule set", "tree"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_scorer_without_batches_is_checked_row_by_row(program, dtype, tmp_path, monkeypatch):
    monkeypatch.setenv("GBFL_CACHE", str(tmp_path / "cache"))
    path = write(emit(program, "c", options={"batch": "no", "dtype": dtype}), tmp_path)
    verdict = compare(expectation(program), load(path))
    assert (verdict.verdict, verdict.execution.different) == ("equal", 0)


@pytest.mark.parametrize("function", ["predict", "predict_rows", "predict_columns"])
def test_a_slip_in_one_way_to_ask_is_seen(function, tmp_path, monkeypatch):
    """One row, rows and columns are code of their own: each is run by a check."""
    monkeypatch.setenv("GBFL_CACHE", str(tmp_path / "cache"))
    path = write(emit(TREE, "c"), tmp_path)
    assert compare(expectation(TREE), load(path)).verdict == "equal"
    text = path.read_text()
    opening = text.index("{", text.index(f"{path.stem}_{function}("))
    wrong = "return 0;" if function == "predict" else "if (n > 0) { out[0] = 0; return; }"
    path.write_text(f"{text[: opening + 1]}\n    {wrong}{text[opening + 1 :]}")
    assert compare(expectation(TREE), load(path)).verdict == "different"
