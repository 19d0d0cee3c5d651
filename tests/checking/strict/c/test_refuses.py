"""Wrong C: what once slipped past a reader, what compilers read in two ways, and what no template knows."""

import pytest

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c import is_model_header, read_strict_c
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from tests.backends.c.programs import CARD, TREE
from tests.checking.strict.c.edits import edited, files_of, verdict

AGES = (Clause((Interval(0, 1.5),)), Clause((Interval(1, 2.0, 5.0, "left", True),)))
SMALL_TREE = Program(
    ("age", "income"), ("no", "yes"), AGES, split(0, leaf(0.25, 0.75), split(1, leaf(0.5, 0.5), leaf(1.0, 0.0)))
)
SMALL_CARD = Program(SMALL_TREE.features, SMALL_TREE.classes, AGES, Scorecard((0, 3), ((0, 9), (2, -1)), 0))


def test_code_in_the_size_of_an_array_type():
    """`sizeof` of a variable-length array type evaluates its size: any code, and no warning."""
    old = "(ptrdiff_t)sizeof(*x) + 0)"
    code = "sizeof(char[(block[0][i] = block[0][i] == 12345.0 ? 0.0 : block[0][i]) >= 0.0 ? 1 : 1]))"
    files = edited(files_of(SMALL_TREE, kernel="select"), old, f"(ptrdiff_t)sizeof(*x) + {code}")
    assert verdict(SMALL_TREE, files) == "unread"


@pytest.mark.parametrize("opens", ["// a /*", "///*", "// a // /* b"])
def test_code_between_comments_of_one_line_each(opens):
    """A comment of one line that names `/*` opens nothing: a reader that thinks so skips the code up to `// */`."""
    old = "    return 2;\n"
    code = "if (x[0] * 0x1.8p+1 == 37035.75) { return 0; }"
    files = edited(files_of(SMALL_TREE), old, f"    {opens}\n    {code}\n    // */\n{old}")
    assert verdict(SMALL_TREE, files) == "unread"


@pytest.mark.parametrize("more", ["picked = columns[0];", "picked[1] = columns[1];", "picked[0] = columns[1];"])
def test_a_parameter_turned_to_other_memory(more):
    old = "    picked[0] = columns[0];\n"
    files = edited(files_of(SMALL_TREE, kernel="select"), old, f"    {more}\n{old}")
    assert verdict(SMALL_TREE, files) == "unread"


def test_sums_that_become_null_on_one_row():
    old = "        sums[1][i] = s1;\n"
    files = edited(files_of(SMALL_CARD, kernel="select"), old, f"{old}        if (x0 == 12345.0) {{ sums = 0; }}\n")
    assert verdict(SMALL_CARD, files) == "unread"


IF_18 = "(x[0] >= 0x1.2p+4)"


@pytest.mark.parametrize(
    "spelled",
    [
        "(x[0] >= 18.1)",  # has to be rounded, and compilers round in different places
        "(x[0] >= 18.0f)",
        "(x[0] >= 18.0L)",
        "(x[0] >= 18)",
        "(x[0] >= 022.0p0)",
        "(x[0] >= 0x1.20000000000001p+4)",
        "(x[0] >= 0x1p+1024)",
        "(x[0] >= +0x1.2p+4)",
        "(x[0] >= - -0x1.2p+4)",
        "(x[2] >= 0x1.2p+4)",
        "(x[00] >= 0x1.2p+4)",
        "(x[0u] >= 0x1.2p+4)",
        "(x[-0] >= 0x1.2p+4)",
        "(0[x] >= 0x1.2p+4)",
        "(*x >= 0x1.2p+4)",
        "(x[0] >= x[1])",
        "(x[0] == x[1])",
        "(x[0] == 0x1.2p+4)",
        "(!x[0] >= 0x1.2p+4)",
        "(x[0] >= 0x1.2p+4 == 1)",
        "(x[0] >= 0x1.2p+4 >= 0x1p+0)",
        "(x[0] >= 0x1.2p+4, 1)",
        "(x[0] >= 0x1.2p+4 ? 1 : 1)",
        "(x[0] = 0x1.2p+4)",
        "x[0] >= 0x1.2p+4 ^ 1",
        "~(x[0] >= 0x1.2p+4)",
        "-(x[0] >= 0x1.2p+4)",
        "(int)(x[0] >= 0x1.2p+4)",
        "2",
        "0",
        "1u",
        f"{'(' * 60}{IF_18}{')' * 60}",
    ],
)
def test_conditions_that_are_not_rules(spelled):
    assert verdict(TREE, edited(files_of(TREE), IF_18, spelled)) == "unread"


@pytest.mark.parametrize(
    "spelled",
    [
        "(x[0] > 0x1.2p+4)",
        "(x[0] >= 0x1.2000000000001p+4)",
        "(x[1] >= 0x1.2p+4)",
        "!(x[0] < 0x1.2p+4)",
        "(x[0] == x[0])",
        "1",
        "((x[0] != x[0]) || (x[0] >= 0x1.2p+4))",
        "(x[0] >= 0x1.2p+4) || (x[0] < 0x1p+0)",
        "(x[0] >= 0x1.2p+4) & (x[0] < 0x1p+5)",
        "(x[0] >= -0x1.2p+4)",
    ],
)
def test_rules_that_say_something_else_are_shown(spelled):
    program = SMALL_TREE
    old = "(x[0] >= 0x1.8p+0)"
    files = edited(files_of(program, batch="no"), old, spelled.replace("0x1.2p+4", "0x1.8p+0"))
    assert verdict(program, files) in ("counterexample", "unread")
    assert read_strict_c(edited(files_of(program, batch="no"), old, f"({old})"))


def test_and_binds_closer_than_or():
    """Without its brackets `a || b && c` is another rule than `(a || b) && c`."""
    program = Program(
        ("age", "income"),
        ("no", "yes"),
        (Clause((Interval(0, 1.0, None, "left", True), Interval(1, 2.0))),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    )
    files = files_of(program, kernel="ifelse")
    inner = "(x[0] != x[0]) || (x[0] >= 0x1p+0)"
    assert verdict(program, edited(files, f"({inner})", f"(({inner}))")) == "proved"
    assert verdict(program, edited(files, f"({inner})", inner)) == "counterexample"
    select = files_of(program, kernel="select")
    lanes = "(x0 != x0) | (x0 >= 0x1p+0)"
    assert verdict(program, edited(select, f"({lanes})", lanes)) == "counterexample"
    assert verdict(program, edited(select, f"({lanes})", f"({lanes.replace('|', '||')})")) == "proved"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return 0;", "return 0; /* ??/ */"),
        ("return 0;", "return \\\n0;"),
        ("return 0;", "return 0; // \\\n"),
        ("return 0;", "return 0; // \\ \n"),
        ("return 0;", "return 0; /* /* */"),
        ("return 0;", "return 0; // /*\n"),
        ("return 0;", "return 0; /* é */"),
        ("return 0;", "return\v0;"),
        ("return 0;", "return\r0;"),
        ("return 0;", "return\0 0;"),
        ("return 0;", "return\u00a00;"),
        ("return 0;", "return 0; /*"),
        ("{ 0x1p-2, 0x1.8p-1 }", "<% 0x1p-2, 0x1.8p-1 %>"),
        ("[3][2] = {", "<:3:>[2] = {"),
        ("return 0;", "return 0;\n#define x y"),
        ("return 0;", "return 0;\n%:define x y"),
        ("return 0;", '_Pragma("GCC unroll 2") return 0;'),
        ("return 0;", "/**/ #pragma omp\nreturn 0;"),
        ("return 0;", "return 0;;"),
        ("return 0;", "return (0);"),
        ("return 0;", "return 0; return 1;"),
        ("return 0;", "return 00;"),
        ("return 0;", "return -0;"),
        ("#if DBL_MANT_DIG != 53", "#if DBL_MANT_DIG != 53 /* */"),
        ('#include "gbfl.h"', '#include "gbfl.h"\n#include "gbfl.h"'),
        ('"age"', '"ag" "e"'),
        ('"age"', 'L"age"'),
        ('"age"', '"\\x61ge"'),
        ('"age"', '"\\61ge"'),
        ('"age"', '"\\141ge\\000"'),
        ('"age"', '"\\400ge"'),
        ('"age"', '"\\u0061ge"'),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 0, 5, 4,"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 0, 5, 010"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 0, [3] = 5, 4"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 0, 5, 4u"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 1, 0, 5, 4 + 0"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[5] = {\n    0, 9, 0, 5, 4"),
        ("model_node_above[5] = {\n    0, 1, 0, 5, 4", "model_node_above[6] = {\n    0, 1, 0, 5, 4"),
        ("{ 0x1p-2, 0x1.8p-1 }", "{ 0x1p-2, 0x1.8p-1 }, { 0x1p-2, 0x1.8p-1 }"),
        ("{ 0x1p-2, 0x1.8p-1 }", "{ 0x1p-2 }"),
        ("{ 0x1p-2, 0x1.8p-1 }", "{ 0x1p-2, { 0x1.8p-1 } }"),
    ],
)
def test_text_that_is_not_the_known_one(old, new):
    with pytest.raises(Unread, match=r"^model\.c: "):
        read_strict_c(edited(files_of(TREE, kernel="ifelse"), old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/* gbfl api begins */", ""),
        ("/* gbfl api begins */", "/* gbfl api begins *//* gbfl api begins */"),
        ("/* gbfl api ends */", "/* gbfl api  ends -- */"),
        ("#include <stdint.h>\n", "#include <stdint.h>\n// /* gbfl api begins */ int model_predict(const float *x);\n"),
        ("model_x_age = 0", "model_x_age = 1"),
        ("model_x_age = 0", "model_predict_of = 0"),
        ("model_x_income = 1", "model_x_age = 1"),
        ("model_LEAVES = 3", "model_LEAVES = 0"),
        ("model_HAS_BATCH = 1", "model_HAS_BATCH = 2"),
        ("model_HELD_WORDS = 1", "model_HELD_WORDS = 2"),
        ("const double *x", "const float *x"),
        ('extern "C" {', 'extern "C" { int more;'),
    ],
)
def test_headers_that_are_not_the_known_one(old, new):
    with pytest.raises(Unread):
        read_strict_c(edited(files_of(TREE), old, new, "model.h"))


def test_a_header_is_distinguished_from_another():
    files = files_of(TREE)
    assert is_model_header("model", files["model.h"])
    assert is_model_header("model", files_of(CARD, batch="no", dtype="float32")["model.h"])
    assert not is_model_header("other", files["model.h"])
    assert not is_model_header("model", files["gbfl.h"])
    assert not is_model_header("model", files["model.h"].replace(b"model_x_age", b"NULL"))
    assert not is_model_header(
        "model", files["model.h"].replace(b"#include <stdint.h>", b"#include <stdint.h>\nint x;")
    )


@pytest.mark.parametrize("name", ["stdint", "gbfl", "Float", "stdio"])
def test_a_model_that_takes_the_name_of_a_header(name):
    files = files_of(TREE)
    renamed = {f"{name}.c": files["model.c"], f"{name}.h": files["model.h"], "gbfl.h": files["gbfl.h"]}
    with pytest.raises(Unread, match="header"):
        read_strict_c(renamed)


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        ("select", "int64_t s1 = -2;", "int64_t s1 = -2u;"),
        ("select", "int64_t s1 = -2;", "int64_t s1 = -0x80000000;"),
        ("select", "int64_t s1 = -2;", "int64_t s1 = 9223372036854775808;"),
        ("select", "s1 += 3 & h0;", "s1 += 3 && h0;"),
        ("select", "s1 += 3 & h0;", "s1 += 3 & h1;"),
        ("select", "s1 += 3 & h0;", "s1 += INT64_C(9223372036854775807) & h0; s1 += 3 & h0;"),
        ("select", "s1 += 3 & h0;", "s2 += 3 & h0;"),
        ("select", "sums[1][i] = s1;", "sums[0][i] = s1;"),
        ("ifelse", "held[0] |= 0x2u;", "held[0] |= 0x1u;"),
        ("ifelse", "held[0] |= 0x2u;", "held[0] |= 0x3u;"),
        ("ifelse", "held[0] |= 0x2u;", "held[0] |= 0x0u;"),
        ("ifelse", "held[0] |= 0x2u;", "held[1] |= 0x2u;"),
        ("ifelse", "static const int8_t model_rule_points", "static const uint8_t model_rule_points"),
        ("ifelse", "{ 0, 3 }", "{ 0, 128 }"),
        ("ifelse", "row[1] = columns[1][i];", "row[0] = columns[1][i];"),
        ("ifelse", "row[1] = columns[1][i];", ""),
        ("bits", "{ 2u, 2u, 4u }", "{ 2u, 3u, 4u }"),
        ("bits", "{ 2u, 2u, 4u }", "{ 2u, 2u, 5u }"),
        ("bits", "0x1.2p+4, 0x1.04p+6", "0x1.04p+6, 0x1.2p+4"),
        ("bits", "0x1.2p+4, 0x1.04p+6", "0x1.2p+4, 0x1.2p+4"),
        ("bits", "0x1.2p+4, 0x1.04p+6", "-GBFL_INFINITY, 0x1.04p+6"),
        ("bits", "cut_count <= 64", "cut_count <= 63"),
        ("bits", "i += 16", "i += 32"),
    ],
)
def test_rule_sets_that_are_not_the_known_ones(kernel, old, new):
    assert verdict(CARD, edited(files_of(CARD, kernel=kernel), old, new)) == "unread"


def test_points_that_do_not_fit_in_64_bits():
    files = edited(files_of(CARD, kernel="ifelse"), "static const int8_t model_rule", "static const int64_t model_rule")
    assert verdict(CARD, files) == "proved"
    with pytest.raises(Unread, match="64 bits"):
        read_strict_c(edited(files, "{ 0, 3 }", "{ 0, INT64_C(9223372036854775807) }"))


def test_reasons_of_other_clauses_are_reported():
    program = with_reasons(TREE, {0: "because of age", 1: "because of income"})
    files = files_of(program)
    assert verdict(program, files) == "proved"
    assert verdict(program, edited(files, '"because of age"', '"because"')) == "other reasons"
    assert verdict(program, edited(files, '"because of age"', '""')) == "other reasons"
    assert verdict(program, edited(files, '"because of age",', "")) == "unread"


def test_files_that_do_not_belong():
    files = files_of(TREE, layout="cmake")
    assert verdict(TREE, files) == "proved"
    for name, old, new in (
        ("CMakeLists.txt", "-ffp-contract=off", "-ffast-math"),
        ("CMakeLists.txt", "enable_testing()", "#[[\nenable_testing()"),
        ("CMakeLists.txt", "PRIVATE -ffp", "PRIVATE\u00a0-ffp"),
        ("examples/selftest/main.c", "wrong != 0", "wrong == 0"),
        ("examples/selftest/main.c", "return 0;", "return 0; // \\\n"),
    ):
        assert verdict(TREE, edited(files, old, new, name)) == "unread"
    assert verdict(TREE, {**files, "stdint.h": b""}) == "unread"
    assert verdict(TREE, {**files, "more.c": b""}) == "unread"
    assert verdict(TREE, {name: content for name, content in files.items() if name != "gbfl.h"}) == "unread"
    platformio = files_of(TREE, layout="platformio")
    assert verdict(TREE, platformio) == "proved"
    twice = edited(platformio, '"headers"', '"build": {"flags": ["-ffast-math"]},\n  "headers"', "library.json")
    assert verdict(TREE, twice) == "unread"
    assert verdict(TREE, edited(platformio, '"."', '".."', "library.json")) == "unread"


def test_the_number_of_clauses_in_the_header_is_the_programs():
    """It is the end of every loop over the clauses that held."""
    files = files_of(TREE)
    count = len(TREE.clauses)
    changed = edited(files, f"model_CLAUSES = {count}", f"model_CLAUSES = {count + 1}", "model.h")
    assert (verdict(TREE, files), verdict(TREE, changed)) == ("proved", "other reasons")


def test_no_memory_far_from_the_row_is_fetched_ahead():
    files = files_of(TREE, kernel="select")
    start = "GBFL_PREFETCH(x, GBFL_BLOCK * stride * (ptrdiff_t)sizeof(*x) + "
    assert verdict(TREE, edited(files, f"{start}0)", f"{start}8)")) == "proved"
    assert verdict(TREE, edited(files, f"{start}0)", f"{start}2000000000)")) == "unread"
