"""The C reader gives C its real meaning: literals, conversions, kernels, files around it; the rest is refused."""

import re

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact, read
from gbfl_compile.checking.reading.nodes import Unread
from tests.backends.c.programs import CARD, TREE
from tests.checking.reader_artifacts import findings


def files_of(program, **options):
    return emit(program, "c", "model", options).files


def edited(files, old, new, name="model.c"):
    text = files[name].decode()
    assert old in text, old
    return {**files, name: text.replace(old, new, 1).encode()}


def test_a_runtime_laid_out_otherwise_is_the_same_and_one_with_a_slip_is_not():
    files = files_of(CARD)
    spaced = re.sub(rb"/\*.*?\*/", b"", files["gbfl.h"].replace(b"    ", b"\t"), flags=re.DOTALL)
    assert set(findings(CARD, "c", {**files, "gbfl.h": spaced})) == {"proved"}
    for old, new in (
        (b"sums[c] > sums[best]", b"sums[c] >= sums[best]"),
        (b"++c", b"+ +c"),
        (b"GBFL_BLOCK 64", b"GBFL_BLOCK 32"),
    ):
        with pytest.raises(Unread, match=r"gbfl\.h"):
            read("c", {**files, "gbfl.h": files["gbfl.h"].replace(old, new)})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('#include "gbfl.h"', '#include "gbfl.h"\n#define double float'),
        ('#include "gbfl.h"', "#include <math.h>"),
        ('#include "gbfl.h"', '#include "gbfl.h"\n#pragma GCC optimize("fast-math")'),
        ("        return 0;", "#ifdef GBFL_WITH_LIBM\n        return 1;\n#endif\n        return 0;"),
        ("        return 0;", '        _Pragma("omp x")\n        return 0;'),
        ("#if DBL_MANT_DIG != 53", "#if DBL_MANT_DIG == 53"),
        ("return 0;", "return 0; /* ??/ */"),
        ("return 0;", "return \\\n0;"),
        ("        block[0][i] = x[0];", "        const int stride = 1;\n        block[0][i] = x[0];"),
        ("        block[0][i] = x[0];", "        block[0][i] = x[7];"),
        ("        block[0][i] = x[0];", "        block[2][i] = x[0];"),
        ("        block[0][i] = x[0];", ""),
        ("    picked[0] = columns[0];", ""),
        (
            "static const unsigned char model_feature_used[2] = {\n    1, 1",
            "static const unsigned char model_feature_used[2] = {\n    1, 0",
        ),
        ("model_leaf_class[3] = {\n    1, 0, 0", "model_leaf_class[3] = {\n    1, 0, 2"),
        ("model_leaf_class[3] = {\n    1, 0, 0", "model_leaf_class[3] = {\n    1, 0"),
        ("static const int32_t model_leaf_class", "static int32_t model_leaf_class"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 5, 5, 4"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 0, 5, 99"),
        ("return (int)model_leaf_class[model_leaf_of(x)];", "return (int)model_leaf_class[0];"),
        ("(x[0] >= 0x1.2p+4)", "(x[0] >= x[1])"),
        ("(x[0] >= 0x1.2p+4)", "(x[0] + 1.0 >= 0x1.2p+4)"),
        ("(x[0] >= 0x1.2p+4)", "((float)x[0] >= 0x1.2p+4)"),
        ("(x[0] >= 0x1.2p+4)", "(x[0] >= 0x1.2p+4L)"),
        ("(x[0] >= 0x1.2p+4)", "(model_predict(x))"),
        ("(x[0] >= 0x1.2p+4)", "(held = 1)"),
        ("        return 0;", "        return 3;"),
        ("        return 0;", "        goto end;"),
        ("    return 2;\n}", "}"),
        ("static int32_t model_leaf_of(", "static int32_t __attribute__((pure)) model_leaf_of("),
        ("int model_uses(int feature)", "int helper(void)\n{\n    return 0;\n}\n\nint model_uses(int feature)"),
        ("return 's';", "return 'i';"),
        ('"age",', '"income",'),
        ('"age",', '"ag" "e",'),
        ('"age",', '"\\xe4",'),
    ],
)
def test_what_is_not_understood_is_refused(old, new):
    files = files_of(TREE, kernel="select")
    with pytest.raises(Unread, match=r"model\."):
        read("c", edited(files, old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("model.h", "model_FEATURES = 2", "model_FEATURES = 3"),
        ("model.h", "model_REAL_BITS = 64", "model_REAL_BITS = 32"),
        ("model.h", "model_LEAVES = 3", "model_LEAVES = 0"),
        ("model.h", "model_HAS_BATCH = 1", "model_HAS_BATCH = 0"),
        ("model.h", "model_x_age = 0", "model_x_age = 1"),
        ("model.h", "int model_predict(const double *x);", "int model_predict(const float *x);"),
        ("model.h", "int model_predict(const double *x);", ""),
        ("model.h", "#ifndef GBFL_MODEL_model_H", "#ifndef GBFL_H"),
        ("model.h", 'extern "C" {', 'extern "C" { int more;'),
        ("CMakeLists.txt", "-ffp-contract=off", "-ffast-math"),
        ("CMakeLists.txt", "enable_testing()", "enable_testing()\nadd_compile_options(-Ofast)"),
        ("examples/selftest/main.c", "wrong != 0", "wrong == 0"),
    ],
)
def test_files_around_the_source_are_read_too(name, old, new):
    files = files_of(TREE, layout="cmake")
    with pytest.raises(Unread):
        read("c", edited(files, old, new, name))


def test_flags_of_other_layouts_are_read_and_strange_files_refused():
    files = files_of(TREE, layout="platformio")
    with pytest.raises(Unread, match=r"library\.json"):
        read("c", edited(files, "-ffp-contract=off", "-ffast-math", "library.json"))
    with pytest.raises(Unread, match=r"makefile"):
        read("c", {**files, "makefile": b"all:\n\trm -rf build\n"})


@pytest.mark.parametrize(
    ("program", "kernel", "old", "new"),
    [
        (TREE, "ifelse", "(x[1] >= 0x1.86ap+16)", "!(x[1] < 0x1.86ap+16)"),
        (TREE, "ifelse", "(x[1] != x[1]) || ", ""),
        (TREE, "ifelse", "0x1.999999999999ap-4", "0.1f"),
        (TREE, "ifelse", "0x1.999999999999ap-4", "0x1.999999999999bp-4"),
        (TREE, "ifelse", "(x[0] >= 0x1.2p+4)", "(0x1.2p+4 <= x[0] < 1)"),
        (TREE, "ifelse", "row[1] = columns[1][i];", "row[1] = columns[0][i];"),
        (TREE, "ifelse", "row[1] = columns[1][i];", ""),
        (TREE, "select", "(x1 >= 0x1.86ap+16)", "(x1 > 0x1.86ap+16)"),
        (TREE, "select", "2 ^ ((1 ^ 2)", "1 ^ ((2 ^ 1)"),
        (TREE, "select", "block[0][i] = x[0];", "block[0][i] = x[1];"),
        (TREE, "select", "picked[0] = columns[0];", "picked[0] = columns[1];"),
        (TREE, "select", "{ 0x1p+0, 0x0p+0 }", "{ 0x1.fffffffffffffp-1, 0x0p+0 }"),
        (CARD, "select", "s1 += 3 & h0;", "s1 += 4 & h0;"),
        (CARD, "select", "s1 += 3 & h0;", "s0 += 3 & h0;"),
        (CARD, "select", "s1 += 3 & h0;", "if (x0 > 20.0) { s1 += 3 & h0; }"),
        (CARD, "bits", "0x1.2p+4, 0x1.04p+6", "0x1.2p+4, 0x1.05p+6"),
        (CARD, "bits", "{ 2u, 2u, 4u }", "{ 1u, 2u, 4u }"),
        (CARD, "bits", "{ 0x0000000000000001u", "{ 0x0000000000000000u"),
        (CARD, "bits", "model_bit_points[1][2] = {\n    { 0, 3 }", "model_bit_points[1][2] = {\n    { 0, 2 }"),
        (CARD, "bits", "{ 0, -1 }", "{ 1, -1 }"),
        (CARD, "bits", "sums[1][i] += model_bin_points[bins[u][i]][1];", ""),
        (CARD, "ifelse", "held[0] |= 0x2u;", "held[0] |= 0x1u;"),
        (CARD, "ifelse", "out[1] = -2;", "out[1] = 2;"),
        (CARD, "ifelse", "{ 0, -1 }", "{ 0, -2 }"),
    ],
)
def test_a_bad_edit_of_any_kernel_is_shown_or_refused(program, kernel, old, new):
    """Only where a reading of the edited place is left: what reads outside a table is refused instead."""
    found = findings(program, "c", edited(files_of(program, kernel=kernel), old, new))
    assert any(isinstance(each, tuple) for each in found) or found == ["unread"]
    assert "proved" not in found or len(found) > 1


def test_points_that_cannot_be_added_in_64_bits_are_refused():
    files = files_of(CARD, kernel="ifelse")
    wide = edited(files, "static const int8_t model_rule_points", "static const int64_t model_rule_points")
    large = edited(wide, "{ 0, 3 }", "{ 0, INT64_C(9223372036854775807) }")
    with pytest.raises(Unread, match="64 bits"):
        read("c", large)


def test_harmless_edits_outside_the_strict_form_are_refused():
    files = files_of(TREE, kernel="select")
    for old, new in (
        ("if ((x[0] >= 0x1.2p+4) && ", "if ((x[0] > 17.999999999999996) && "),
        ("x[1] >= 0x1.86ap+16", "x[model_x_income] >= 100000"),
        ("    return 2;\n}", "    else {\n        return 2;\n    }\n}"),
        ("    return 2;\n}", "    const int32_t last = 2;\n    return last;\n}"),
        ("        return 0;", "        return 0 * 1;"),
    ):
        with pytest.raises(Unread):
            read("c", edited(files, old, new))
    card = files_of(CARD, kernel="select")
    for old, new in (
        ("s1 += 3 & h0;", "s1 += 3 * -h0;"),
        ("s1 += 3 & h0;", "if (h0 != 0) { s1 += 3; }"),
        ("s1 += 3 & h0;", "s1 = s1 + (h0 ? 1 : 0) + (h0 ? 2 : 0);"),
    ):
        with pytest.raises(Unread):
            read("c", edited(card, old, new))
    assert set(findings(CARD, "c", edited(card, "held[0] |= 0x1u;", "held[0] |= 1;"))) == {"proved"}
    negated = edited(files, "(x[0] >= 0x1.2p+4)", "!(x[0] < 0x1.2p+4)")  # true for NaN, but the next comparison is not
    assert set(findings(TREE, "c", negated)) == {"proved"}


@pytest.mark.parametrize(
    ("program", "old", "new"),
    [
        (TREE, "model_golden_class[3] = { 0, 0, 1 }", "model_golden_class[3] = { 0, 1, 1 }"),
        (TREE, "model_golden_leaf[3] = { 1, 2, 0 }", "model_golden_leaf[3] = { 1, 1, 0 }"),
        (CARD, "{ 0, -2 }", "{ 0, -1 }"),
        (TREE, "{0x7ff0000000000000u}, {0x7ff0000000000000u}", "{0x4032000000000000u}, {0x40f86a0000000000u}"),
    ],
)
def test_a_self_test_that_would_fail_is_another_artifact(program, old, new):
    files = edited(files_of(program), old, new)
    assert prove_artifact(program, "c", files).answer == "other reasons"


def test_a_self_test_has_bits_of_its_type():
    files = edited(files_of(TREE, dtype="float32"), "{0x7f800000u}", "{0x17f800000u}")
    assert prove_artifact(TREE, "c", files).answer == "unread"
