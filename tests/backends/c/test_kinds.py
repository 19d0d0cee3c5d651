"""Words, booleans and dates in C: every kernel answers what `evaluate` answers, and each text has its own code."""

import datetime
import math
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gbfl_compile.backends import emit, load_artifact, write_artifact
from gbfl_compile.backends.c.expressions import slots_of, text_hash
from gbfl_compile.backends.c.scorer import as_predictor
from gbfl_compile.checking.check import check
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import codebook, encode_row
from gbfl_compile.ir.nodes import Clause, OneOf, Program, leaf, split
from gbfl_compile.ir.validate import validate
from tests.backends.c.kinds import KINDS, TEXTS, programs_of_kinds_with_rows
from tests.backends.c.programs import STRICT, build_many, cc, kernels, needs_a_compiler, write
from tests.backends.c.programs import WORD_CARD as CARD
from tests.backends.c.programs import WORD_CLAUSES as CLAUSES
from tests.backends.c.programs import WORD_FEATURES as FEATURES
from tests.backends.c.programs import WORD_TREE as TREE

ROWS = (
    [2000.0, "two year", True, datetime.date(2020, 1, 1), None],
    [2000.0, "Two year", True, datetime.date(2024, 3, 1), datetime.datetime(2001, 2, 3)],
    [0.0, "a", False, None, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)],
    [None, None, None, None, None],
    [math.inf, "", True, datetime.date.min, datetime.datetime(1970, 1, 1)],
)


def same_everywhere(program, scorer, rows):
    """The answers in batches of rows and columns, one row at a time, and the reasons, are those of `evaluate`."""
    expected = [evaluate(program, row) for row in rows]
    got = as_predictor(scorer).answer_rows(rows)
    assert got.labels.tolist() == [answer.label for answer in expected]
    if got.scores is None:
        assert got.leaves.tolist() == [answer.leaf for answer in expected]
        assert got.probabilities.tolist() == [list(answer.probabilities) for answer in expected]
    else:
        assert got.scores.tolist() == [list(answer.scores) for answer in expected]
    for row, answer in zip(rows, expected, strict=True):
        assert scorer.explain(row)[1] == tuple(sorted(set(answer.held)))
    assert scorer.selftest() == 0


def float32_row(program, row):
    """The row with numbers that a float32 holds; other kinds are whole numbers, which it holds."""
    with np.errstate(over="ignore"):
        return [
            float(np.float32(value)) if kind == "number" and value is not None else value
            for kind, value in zip(program.kinds, row, strict=True)
        ]


@needs_a_compiler
@settings(
    max_examples=4, phases=(Phase.generate,), suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large)
)  # shrinking compiles for minutes
@given(st.lists(programs_of_kinds_with_rows(rows=20), min_size=8, max_size=8))
def test_it_answers_what_the_program_answers(tmp_path_factory, cases):
    wanted = [
        (validate(program), rows, {"kernel": kernel, "dtype": dtype})
        for program, rows in cases
        for kernel in kernels(program)
        for dtype in (("float64",) if "timestamp" in program.kinds else ("float64", "float32"))
    ]
    scorers = build_many([(program, o) for program, _, o in wanted], tmp_path_factory.mktemp("many"), ("-O0",))
    for scorer, (program, rows, options) in zip(scorers, wanted, strict=True):
        assert (scorer.features, scorer.classes) == (program.features, program.classes)
        assert scorer.encoding.kinds == program.kinds
        rows = [float32_row(program, row) for row in rows] if options["dtype"] == "float32" else rows
        same_everywhere(program, scorer, rows)


@needs_a_compiler
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_a_check_proves_and_runs_it(program, tmp_path):
    for kernel in kernels(program):
        write_artifact(emit(program, "c", options={"kernel": kernel}), tmp_path / kernel)
        (found,) = check(program, tmp_path / kernel).targets
        assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0)
        predictor = load_artifact(tmp_path / kernel / "c")
        assert predictor.kinds == program.kinds
        assert predictor.answer_rows(ROWS).labels.tolist() == [evaluate(program, row).label for row in ROWS]


@needs_a_compiler
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_a_matrix_of_codes_is_answered_as_the_program_answers_it(program, tmp_path):
    """Codes that no text has, negative and huge ones, are any other text; so is a code between two codes."""
    odd = [-math.inf, -1.0, 0.0, -0.0, 5.0, 6.0, 1e300, math.inf, math.nan]
    known = encode_row(program, ROWS[0])
    rows = np.array([[*known[:1], code, *known[2:]] for code in [1.0, 2.0, 3.0, 4.0, *odd]])
    for scorer in build_many([(program, {"kernel": kernel}) for kernel in kernels(program)], tmp_path):
        expected = evaluate_many(program, rows).labels.tolist()
        assert as_predictor(scorer).answer(rows).labels.tolist() == expected
        between = [[*known[:1], code, *known[2:]] for code in (1.5, 3.9999999999999996, 0.5, 0.0)]
        decided = scorer.score(np.array(between)).tolist()
        assert decided[:3] == [decided[3]] * 3


@needs_a_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_text_has_its_code_and_no_other_text_has_one(dtype, tmp_path):
    listed = TEXTS[::2]
    program = validate(of_texts(listed))
    (scorer,) = build_many([(program, {"dtype": dtype})], tmp_path)
    book = codebook(program)
    code = scorer.encoding.code
    for text in TEXTS:
        for near in (text, text + " ", text + "\0", text[:-1], text.upper(), "\0" + text):
            assert code(0, near.encode()) == book.code(0, near)
    assert code(0, b"\xff\xfe") == 0.0
    assert code(1, b"a") == -1.0
    assert code(-1, b"a") == -1.0
    assert code(2, b"a") == -1.0
    assert scorer.encoding.rows([["\ud800", 1.0]])[0, 0] == 0.0


def of_texts(texts, *, negated=False):
    """A program that tells the first text, all the others, and any other text apart."""
    ordered = sorted(texts)
    clauses = (Clause((OneOf(0, (ordered[0],)),)), Clause((OneOf(0, tuple(ordered), negated),)))
    return Program(
        ("word", "number"),
        ("first", "listed", "other"),
        clauses,
        split(0, leaf(1.0, 0.0, 0.0), split(1, leaf(0.0, 1.0, 0.0), leaf(0.0, 0.0, 1.0))),
        kinds=("category", "number"),
    )


@needs_a_compiler
@pytest.mark.parametrize("negated", [False, True])
def test_a_feature_of_a_thousand_values(negated, tmp_path):
    texts = [f"value {number}" for number in range(1000)]
    program = validate(of_texts(texts, negated=negated))
    write_artifact(emit(program, "c"), tmp_path)
    (found,) = check(program, tmp_path).targets
    assert (found.verdict, found.proof.answer) == ("equal", "proved")
    (scorer,) = build_many([(program, {})], tmp_path)
    assert [scorer.encoding.code(0, text.encode()) for text in sorted(texts)] == list(map(float, range(1, 1001)))
    same_everywhere(program, scorer, [[text, 0.0] for text in (*texts, "value", "value 1000", "Value 1", "", None)])


@needs_a_compiler
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("program", [TREE, CARD, of_texts(TEXTS)], ids=["tree", "rule set", "hostile"])
def test_no_compiler_warns(program, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    for kernel in kernels(program):
        write(emit(validate(program), "c", "m", {"kernel": kernel}), tmp_path)
        for flags in (("-O2", "-DGBFL_WITH_LIBM"), ("-O0", "-DGBFL_NO_BATCH"), ("-O1", "-trigraphs", "-Wtrigraphs")):
            command = [compiler, *STRICT, "-Wformat=2", *flags, "-c", "m.c", "-o", "m.o"]
            ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr[:3000]


SANITIZED = r"""
#include <stdlib.h>
#include <string.h>
#include "m.h"
int main(void)
{
    static const unsigned char letters[] = {0, 32, 34, 39, 65, 92, 97, 98, 110, 120, 0xc3, 0xa9, 0xff};
    unsigned state = 1u;
    for (int n = 0; n < 200000; ++n) {
        const size_t length = (size_t)((state >> 8) % 7u);
        char *text = malloc(length + 1u);
        for (size_t i = 0; i < length; ++i) {
            state = state * 1664525u + 1013904223u;
            text[i] = (char)letters[(state >> 16) % sizeof(letters)];
        }
        state = state * 1664525u + 1013904223u;
        char *exact = realloc(text, length ? length : 1u);
        const double code = m_code(0, exact, length);
        if (code < 0.0 || code > CODES) return 1;
        free(exact);
    }
    return m_code(0, NULL, 0) == EMPTY ? m_selftest() : 2;
}
"""


@needs_a_compiler
def test_the_look_up_reads_no_byte_that_is_not_there(tmp_path):
    """Texts in memory of exactly their length, under the sanitizers."""
    program = validate(of_texts(TEXTS))
    write(emit(program, "c", "m"), tmp_path)
    codes = f"#define CODES {len(TEXTS)}\n#define EMPTY {codebook(program).code(0, '')}\n"
    (tmp_path / "main.c").write_text(codes + SANITIZED)
    flags = ("-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    probe = subprocess.run(["cc", *flags, "-x", "c", "-", "-o", "p"], cwd=tmp_path, input=b"int main(void){return 0;}")
    if probe.returncode != 0 or subprocess.run([tmp_path / "p"]).returncode != 0:
        pytest.skip("this compiler has no address and undefined-behaviour sanitizers")
    cc(*flags, "m.c", "main.c", "-o", "test", folder=tmp_path)
    ran = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[:2000]


@given(st.lists(st.text(max_size=6), unique=True, max_size=60))
def test_slots_lead_to_every_text(texts):
    slots = slots_of(texts)
    assert sorted(code for code in slots if code) == list(range(1, len(texts) + 1))
    assert slots.count(0) * 2 >= len(slots)
    for code, text in enumerate(texts, 1):
        place = text_hash(text.encode()) % len(slots)
        while slots[place] != code:
            assert slots[place] != 0
            place = (place + 1) % len(slots)


@needs_a_compiler
def test_tables_of_pandas_and_arrow_have_words_and_dates(tmp_path):
    import pandas as pd
    import pyarrow as pa

    (scorer,) = build_many([(TREE, {})], tmp_path)
    expected = [evaluate(TREE, row).label for row in ROWS]
    columns = {name: [row[place] for row in ROWS] for place, name in enumerate(FEATURES)}
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})
    frame["income"] = frame["income"].astype(float)
    assert scorer.labels(frame).tolist() == expected
    types = (pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us"))
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in zip(FEATURES, types, strict=True)})
    assert scorer.labels(table).tolist() == expected
    assert scorer.labels([list(row) for row in ROWS]).tolist() == expected


@needs_a_compiler
@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, 3.0, "'contract' is a category"),
        (2, "yes", "'smoker' is a boolean"),
        (3, "2020-01-01", "'opened' is a date"),
    ],
)
def test_a_value_of_another_kind_is_refused(place, value, message, tmp_path):
    (scorer,) = build_many([(TREE, {})], tmp_path)
    row = [value if at == place else own for at, own in enumerate(ROWS[0])]
    with pytest.raises(BadInput, match=message):
        as_predictor(scorer).answer_rows([row])


def test_float32_and_timestamps_do_not_go_together():
    with pytest.raises(BadInput, match=r"'seen' is a timestamp, and no float32 holds microseconds: use dtype=float64"):
        emit(TREE, "c", options={"dtype": "float32"})
    without = Program(FEATURES, TREE.classes, CLAUSES[:3], split(0, leaf(1.0, 0.0), leaf(0.0, 1.0)), kinds=KINDS)
    emit(without, "c", options={"dtype": "float32"})  # a timestamp that no rule looks at is not an obstacle


def test_the_header_says_what_a_row_holds_and_names_classes_and_codes():
    header = emit(TREE, "c", "m").files["m.h"].decode()
    assert "m_x_opened = 3, /* opened, a date: days since 1970-01-01 */" in header
    assert "m_class_is_yes = 1 /* yes */" in header
    assert "m_code_of_contract_Month_to_month = 1, /* Month-to-month */" in header
    assert "double m_code(int feature, const char *text, size_t length);" in header
    hostile = emit(validate(of_texts(TEXTS)), "c", "m").files["m.h"].decode()
    assert hostile.isascii()
    names = [line.split(" = ")[0].strip() for line in hostile.splitlines() if " = " in line]
    assert len(names) == len(set(names))


@needs_a_compiler
def test_a_wrong_look_up_is_caught_by_running_it(tmp_path):
    write_artifact(emit(TREE, "c"), tmp_path)
    path = tmp_path / "c/model.c"
    path.write_text(path.read_text().replace('{ "two year", 8u }', '{ "two year", 7u }'))
    assert compare(expectation(TREE), load_artifact(tmp_path / "c")).verdict == "different"


@needs_a_compiler
def test_ways_that_disagree_are_found(tmp_path):
    write_artifact(emit(TREE, "c", options={"kernel": "select"}), tmp_path)
    path = tmp_path / "c/model.c"
    path.write_text(path.read_text().replace("(x[1] == 0x1p+0)", "(x[1] == 0x1p+1)"))  # one row at a time
    found = compare(expectation(TREE), load_artifact(tmp_path / "c"))
    assert (found.verdict, found.reason) == (
        "different",
        "running it raised BadInput: one row at a time: other answers than in a batch of rows",
    )
