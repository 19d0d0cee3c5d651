"""The C target answers what the program answers: every kernel, both number types, whatever it is called."""

import math
import re
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import emit, load_artifact, write_artifact
from gbfl_compile.backends.c.expressions import Threshold, bounds, literal, used_features
from gbfl_compile.backends.c.kernels import choose
from gbfl_compile.checking.run import compare, differing_rows, expectation
from gbfl_compile.checking.witnesses import value_pools, witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import atom_holds, evaluate
from gbfl_compile.ir.intervals import float32_at_or_above
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from gbfl_compile.ir.validate import validate
from tests.backends.c.programs import (
    CARD,
    STRICT,
    TREE,
    build_many,
    cc,
    kernels,
    needs_a_compiler,
    ordinary_rows,
    quick_to_build,
    random_card,
    random_tree,
)
from tests.programs import intervals, programs, programs_with_rows

SHAPES = {
    "a tree": random_tree(1, 32),
    "a rule set": random_card(2, 40),
    "two groups of bits": random_card(3, 450, features=6, atoms=2, classes=3),
    "rules of one interval": random_card(4, 30, atoms=1),
    "points of 50 bits": random_card(5, 20, points=2**45),
    "one class": random_card(6, 4, classes=1),
}


def source(program, name="model", **options):
    return emit(program, "c", name, options).files[f"{name}.c"].decode("utf-8")


def float32_rows(program, seed=0, count=400):
    """Rows of float32 numbers: cuts rounded both ways, their neighbours, extremes, mixtures."""
    rng = np.random.default_rng(seed)
    pools = []
    for pool in value_pools(program):
        with np.errstate(all="ignore"):  # past the largest float32 lies infinity, and it is wanted here
            near = np.array(pool, dtype=np.float64).astype(np.float32)
            numbers = near[~np.isnan(near)]
            around = [np.nextafter(numbers, np.float32(side)) for side in (-np.inf, np.inf)]
        pools.append(np.unique(np.concatenate([near, *around])))
    return np.column_stack([rng.choice(pool, count) for pool in pools])


def answers(scorer, rows):
    from gbfl_compile.backends.c.scorer import as_predictor

    return as_predictor(scorer).answer(rows)


def assert_same(program, scorer, rows):
    expected = evaluate_many(program, rows)
    got = answers(scorer, rows)
    assert not differing_rows(program.has_exact_probabilities, expected, got).any()
    columns = np.asfortranarray(rows.astype(scorer.real))  # the columnar entry points
    decided = expected.leaves if expected.scores is None else expected.scores
    np.testing.assert_array_equal(scorer.score(columns), decided)
    assert [scorer.classes[c] for c in scorer.predict(columns)] == expected.labels.tolist()


def assert_single_rows_same(program, scorer, rows):
    buffer, call = scorer.bound_row()
    for row in rows:
        answer = evaluate(program, row)
        buffer[:] = row
        assert program.classes[call()] == answer.label
        number, held = scorer.explain(row)
        assert held == tuple(sorted(set(answer.held)))  # a tree may ask a clause twice; a bit is set once
        assert number == (len(held) if answer.leaf is None else answer.leaf)
    assert scorer.selftest() == 0


@needs_a_compiler
@settings(
    max_examples=3, phases=(Phase.generate,), suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large)
)  # shrinking compiles for minutes
@given(st.lists(programs_with_rows(("tree", "scorecard", "banded"), rows=8), min_size=4, max_size=4))
def test_it_answers_what_the_program_answers(tmp_path_factory, cases):
    wanted = [
        (program, np.array(rows), {"kernel": kernel, "dtype": dtype})
        for program, rows in cases
        for kernel in kernels(program)
        for dtype in ("float64", "float32")
    ]
    folder = tmp_path_factory.mktemp("many")
    scorers = build_many([(program, options) for program, _, options in wanted], folder, ("-O0",))
    for scorer, (program, rows, options) in zip(scorers, wanted, strict=True):
        if options["dtype"] == "float32":
            rows = float32_rows(program, count=60).astype(np.float64)
        assert scorer.digest == digest(program)
        assert (scorer.features, scorer.classes) == (program.features, program.classes)
        assert [type(label) for label in scorer.classes] == [type(label) for label in program.classes]
        assert_same(program, scorer, rows)
        if options["kernel"] == "ifelse":
            assert_single_rows_same(program, scorer, rows[:8])


@needs_a_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_kernel_is_exact_on_witnesses(shape, dtype, tmp_path):
    program = SHAPES[shape]
    rows = np.concatenate([witnesses(program)[:4000], ordinary_rows(program, 1000)])
    if dtype == "float32":
        rows = np.concatenate([float32_rows(program), rows.clip(-3e38, 3e38).astype(np.float32)]).astype(np.float64)
    scorers = build_many([(program, {"kernel": k, "dtype": dtype}) for k in quick_to_build(program)], tmp_path)
    for scorer in scorers:
        assert_same(program, scorer, rows)
    assert_single_rows_same(program, scorers[0], rows[:50])


@needs_a_compiler
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_a_folder_is_checked_like_any_target(program, tmp_path):
    write_artifact(emit(program, "c"), tmp_path)
    found = compare(expectation(program), load_artifact(tmp_path / "c"))
    assert found.verdict == "equal"
    assert found.digest == digest(program)


@needs_a_compiler
def test_a_one_ulp_slip_is_caught(tmp_path):
    write_artifact(emit(TREE, "c"), tmp_path)
    path = tmp_path / "c/model.c"
    path.write_text(path.read_text().replace(literal(65.0), literal(math.nextafter(65.0, 0.0))))
    assert compare(expectation(TREE), load_artifact(tmp_path / "c")).verdict == "different"


@needs_a_compiler
def test_a_float32_scorer_is_its_source_on_float32_rows_and_the_check_knows(tmp_path):
    write_artifact(emit(TREE, "c", options={"dtype": "float32"}), tmp_path)
    predictor = load_artifact(tmp_path / "c")
    assert predictor.dtype == "float32"
    found = compare(expectation(TREE), predictor)
    assert (found.verdict, found.execution.different) == ("equal", 0)
    assert predictor.answer(np.array([[0.5, math.nan]])).leaves.tolist() == [1]


def float32_neighbours(value):
    """Float32 numbers on both sides of a double, and the ends of the line."""
    with np.errstate(all="ignore"):
        near = np.float32(value)
        found = [near]
        for side in (-np.inf, np.inf):
            step = near
            for _ in range(3):
                step = np.nextafter(step, np.float32(side))
                found.append(step)
    top = np.finfo(np.float32).max
    return [*found, np.float32(0.0), np.float32(-0.0), top, -top, np.float32(np.inf), np.float32(-np.inf)]


COMPARE = {">=": float.__ge__, ">": float.__gt__, "<=": float.__le__, "<": float.__lt__}


@settings(max_examples=500)
@given(intervals(0) | intervals(0).map(lambda a: Interval(0, a.hi, None, a.closed)))
def test_float32_bounds_give_every_float32_the_double_answer(atom):
    made = bounds(atom, "float")
    for cut in (atom.lo, atom.hi):
        for value in [] if cut is None else float32_neighbours(cut):
            number = float(value)
            found = all(COMPARE[bound.comparison](number, bound.value) for bound in made)
            assert found == atom_holds(atom, number), (atom, number, made)
    for bound in made:
        assert np.isfinite(bound.value)
        assert float(np.float32(bound.value)) == bound.value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_float32_above_is_the_nearest_above(value):
    found = float32_at_or_above(value)
    assert found >= value
    with np.errstate(all="ignore"):
        assert float(np.nextafter(np.float32(found), np.float32(-np.inf))) < value or value == -math.inf


def test_float32_bounds_past_the_largest_float32_are_about_infinity():
    assert bounds(Interval(0, 1e300, None), "float") == (Threshold(">", 3.4028234663852886e38),)
    assert bounds(Interval(0, None, 1e300), "float") == (Threshold("<=", 3.4028234663852886e38),)
    assert bounds(Interval(0, None, -1e300, "right"), "float") == (Threshold("<", -3.4028234663852886e38),)
    assert bounds(Interval(0, -1e300, None, "neither"), "float") == (Threshold(">=", -3.4028234663852886e38),)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_literal_reads_back_as_the_same_number(value):
    assert struct.pack("<d", float.fromhex(literal(value))) == struct.pack("<d", value)


def test_it_is_readable():
    text = source(TREE)
    age, income = f"(x[0] >= {literal(18.0)}) && (x[0] < {literal(65.0)})", f"(x[1] >= {literal(1e5)})"
    assert f"    if ({age} && {income}) {{\n        return 0;\n    }}\n" in text
    assert " *     IF 18 <= age < 65 AND income >= 100000 THEN yes (0.75)\n" in text


HOSTILE = (
    "*/", "a */ int x; /*", "\\", "a\\", "??/", "??/\n", "a\nb", "a\rb", "a\u2028b", '"', "%s", "int", "class", "x0", "größe",
    "数", "{{ 7*7 }}", "//", "/*", "\t", " ", "\x7f", "\N{PILE OF POO}", "'", "#define x", "\\u0041", "0", "a" * 1000,
)  # fmt: skip


@needs_a_compiler
def test_hostile_names_come_out_as_themselves(tmp_path):
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(len(HOSTILE) - 1, None, 1.0),)))
    trees = split(0, leaf(1.0, *[0.0] * (len(HOSTILE) - 1)), leaf(*[0.0] * (len(HOSTILE) - 1), 1.0))
    card = Scorecard((0,) * len(HOSTILE), ((1,) * len(HOSTILE), (2,) * len(HOSTILE)))
    made = [validate(Program(HOSTILE, HOSTILE, clauses, decision)) for decision in (trees, card)]
    for scorer, program in zip(build_many([(p, {}) for p in made], tmp_path), made, strict=True):
        assert scorer.features == scorer.classes == HOSTILE
        assert_same(program, scorer, witnesses(program)[:500])
    cc(*STRICT, "-trigraphs", "-Wno-trigraphs", "-c", "m0.c", "-o", "m0.o", folder=tmp_path)


def rule_list(rules, *, nested):
    clauses = tuple(Clause((Interval(0, float(i), i + 0.5),)) for i in range(rules))
    nodes = []
    if nested:
        nodes = [Split(i, i + 1, 2 * rules - i) for i in range(rules)] + [Leaf((1.0, 0.0))] * (rules + 1)
    else:
        for i in range(rules):
            nodes += [Split(i, 2 * i + 1, 2 * i + 2), Leaf((1.0, 0.0) if i % 2 else (0.0, 1.0))]
        nodes.append(Leaf((0.5, 0.5)))
    return validate(Program(("a",), ("x", "y"), clauses, Tree(tuple(nodes))))


@needs_a_compiler
def test_a_thousand_rules_compile(tmp_path):
    made = [rule_list(1000, nested=nested) for nested in (False, True)]
    rows = np.array([[0.0], [500.25], [999.0], [999.75], [-1.0], [math.nan]])
    for scorer, program in zip(build_many([(p, {}) for p in made], tmp_path, ("-O0",)), made, strict=True):
        assert_same(program, scorer, rows)
        assert_single_rows_same(program, scorer, rows)


@needs_a_compiler
def test_wide_rows_and_many_classes_still_work(tmp_path):
    wide = random_tree(7, 300, features=400, atoms=2)
    many = random_card(8, 10, features=3, classes=100)
    for scorer, program in zip(build_many([(wide, {}), (many, {})], tmp_path), (wide, many), strict=True):
        assert_same(program, scorer, ordinary_rows(program, 300))
    assert len(used_features(wide)) > 256
    for forced in (wide, many):
        with pytest.raises(BadInput, match="kernel='select' cannot run this program"):
            emit(forced, "c", options={"kernel": "select"})


def test_what_cannot_be_emitted_is_refused():
    for name in ("math", "stdint", "Stdint", "gbfl"):
        with pytest.raises(BadInput, match="header that C programs include"):
            emit(TREE, "c", name)
    for options, message in (
        ({"kernel": "bits"}, "kernel='bits' cannot run this program: use select or ifelse"),
        ({"dtype": "float16"}, "dtype='float16' is not one of float64, float32"),
        ({"speed": "1"}, "unknown option 'speed'"),
    ):
        with pytest.raises(BadInput, match=re.escape(message)):
            emit(TREE, "c", options=options)


def test_the_compiler_chooses_the_kernel():
    def chosen(program):
        return choose(program, "auto", "double")

    assert "/* Batch kernel: select (" in source(TREE)

    assert chosen(random_tree(1, 32, atoms=1)) == "select"
    assert chosen(random_tree(1, 2000, atoms=1)) == "ifelse"
    assert chosen(random_card(1, 20)) == "select"
    assert chosen(random_card(1, 1300, width=30)) == "bits"


@settings(max_examples=5)
@given(programs())
def test_the_same_program_gives_the_same_bytes(program):
    assert emit(program, "c").files == emit(program, "c").files
