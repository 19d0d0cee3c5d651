"""All functions of an emitted library are called, with batches of several sizes too, and their outputs compared."""

import shutil
import subprocess

import pytest

from gbfl_compile.auditing.scorer.library import IN_PIECES, audit_library
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from tests.auditing.scorer.test_library import RULES, TREE, emitted
from tests.word_programs import CHURN

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

NAN = "0.0 / 0.0"

MANY = Program(
    ("a", "b"),
    ("no", "yes"),
    (Clause((Interval(0, 0.5),)), Clause((Interval(1, 0.5),))),
    split(0, split(1, leaf(0.25, 0.75), leaf(0.5, 0.5)), leaf(1.0, 0.0)),
)
CARD = Program(MANY.features, MANY.classes, MANY.clauses, Scorecard((1, 0), ((0, 2), (3, 0)), 2))

ROWS = "predict_rows(const double *x, size_t n, ptrdiff_t stride, int32_t *out)\n{"
COLUMNS = "predict_columns(const double *const *columns, size_t n, int32_t *out)\n{"
SCORES = "score_rows(const double *x, size_t n, ptrdiff_t stride, int64_t *out)\n{"

SLIPS = {
    "probabilities that are no numbers": (TREE, "out[c] = model_leaf_probabilities[leaf][c];", f"out[c] = {NAN};", "probabilities"),
    "a score that no program has": (RULES, "    return gbfl_winner(out, 3);", "    const int best = gbfl_winner(out, 3); out[0] = out[1] = out[2] = INT64_MIN; return best;", "the scores [0, 3, 5] is answered [None, None, None]"),
    "scores of batches that no program has": (RULES, SCORES, f"{SCORES} for (size_t i = 0; i < 3 * n; ++i) {{ out[i] = INT64_MIN; }} return;", "model_score_rows: witness"),
    "one row alone": (MANY, ROWS, f"{ROWS} if (n == 1) {{ out[0] = 0; return; }}", "model_predict_rows one by one: witness"),
    "one row alone, by columns": (MANY, COLUMNS, f"{COLUMNS} if (n == 1) {{ out[0] = 0; return; }}", "model_predict_columns one by one: witness"),
    "rows that lie apart": (MANY, ROWS, f"{ROWS} stride = 2;", "model_predict_rows in pieces: witness"),
    "one row too many": (CARD, ROWS, f"{ROWS} if (n > 1) {{ out[n] = 7; }}", "model_predict_rows in pieces: witness"),
    "the last row of a batch": (MANY, COLUMNS, f"{COLUMNS} if (n > 2) {{ --n; }}", "model_predict_columns: witness"),
    "probabilities of points": (RULES, "const int64_t *points, size_t n, double *out)\n{", "const int64_t *points, size_t n, double *out)\n{ if (n > 2) { n -= 2; }", "model_probabilities: witness"),
    "a self-test that fails": (TREE, "int model_selftest(void)\n{", "int model_selftest(void)\n{ return 3;", "model_selftest: of 0: 0 is answered 3"),
}  # fmt: skip

FLAGS = ("-O1", "-DGBFL_WITH_LIBM")


@pytest.mark.parametrize("slip", SLIPS)
def test_what_a_library_fills_is_compared_however_it_is_called(tmp_path, slip):
    program, old, new, reason = SLIPS[slip]
    flags = FLAGS if "of points" in slip else ("-O1",)
    library, source = emitted(tmp_path, program, *flags)
    assert audit_library(program, library, "model").verdict == "equal"
    text = source.read_text()
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    command = ["cc", *flags, "-shared", "-fPIC", "model.c", "-o", str(library), "-lm"]
    subprocess.run(command, cwd=source.parent, check=True)
    found = audit_library(program, library, "model")
    assert found.verdict == "different"
    assert reason in found.reason


@pytest.mark.parametrize(
    ("program", "kernel"), [(TREE, "ifelse"), (TREE, "select"), (CARD, "ifelse"), (RULES, "select"), (RULES, "bits")]
)
def test_every_kernel_of_an_emitted_library_is_equal_in_pieces(tmp_path, program, kernel):
    library, _ = emitted(tmp_path, program, *FLAGS, options={"kernel": kernel})
    found = audit_library(program, library, "model")
    assert (found.verdict, found.reason) == ("equal", None)
    assert {"model_predict_columns", IN_PIECES} <= set(found.compared.split("; "))


@pytest.mark.parametrize("real", ["float64", "float32"])
def test_texts_go_in_by_the_codes_of_a_library_of_either_type(tmp_path, real):
    library, _ = emitted(tmp_path, CHURN, *FLAGS, options={"dtype": real})
    found = audit_library(CHURN, library, "model", real=real)
    assert (found.verdict, found.reason) == ("equal", None)
