"""Every artifact that is emitted is read to the last token and proved, and so are edits that change nothing."""

import itertools
import math
import random
import re

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_readings, read
from gbfl_compile.checking.reading.evaluate import run_reading
from gbfl_compile.checking.strict.c import read_strict_c
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from gbfl_compile.ir.validate import validate
from tests.backends.c.programs import CARD, TREE, kernels, random_card, random_tree
from tests.checking.reader_artifacts import random_artifact
from tests.checking.strict.c.edits import edited, files_of, verdict
from tests.counts import count

ARTIFACTS = count("GBFL_ARTIFACTS", 150)

OPTIONS = [
    {"dtype": dtype, "batch": batch, "layout": layout}
    for dtype, batch, layout in itertools.product(
        ("float64", "float32"), ("yes", "no"), ("plain", "arduino", "platformio", "cmake")
    )
]


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_every_option_gives_an_artifact_that_is_proved(program):
    for kernel, options in itertools.product(("auto", *kernels(program)), OPTIONS):
        assert verdict(program, files_of(program, kernel=kernel, **options)) == "proved", (kernel, options)


def test_random_artifacts_are_proved():
    for seed in range(ARTIFACTS):
        program, artifact = random_artifact(random.Random(seed), "c")
        assert verdict(program, dict(artifact.files)) == "proved", seed


@pytest.mark.parametrize("kernel", ["auto", "ifelse", "select", "bits"])
def test_large_artifacts_are_proved(kernel):
    programs = [random_tree(3, 120), random_card(4, 300, classes=3)]
    for program in programs if kernel != "bits" else programs[1:]:
        for dtype in ("float64", "float32"):
            assert verdict(program, files_of(program, kernel=kernel, dtype=dtype)) == "proved"


def test_both_readers_find_the_same():
    """Each reading answers random rows as the general reader's of the same function does, reasons and all."""
    for seed in range(40):
        choose = random.Random(seed)
        program, artifact = random_artifact(choose, "c")
        general = {place: reading for reading in read("c", artifact.files) for place in reading.place.split(", ")}
        strict = {place: reading for reading in read_strict_c(artifact.files) for place in reading.place.split(", ")}
        assert general.keys() == strict.keys()
        for place, reading in strict.items():
            assert (reading.features, reading.classes) == (general[place].features, general[place].classes)
            assert (reading.dtype, reading.digest) == (general[place].dtype, general[place].digest)
            for _ in range(20):
                row = [choose.choice((-1.5, 0.0, -0.0, 0.5, 1.0, 2.5, math.nan, math.inf)) for _ in program.features]
                one, other = run_reading(reading, row), run_reading(general[place], row)
                assert (one.label, one.scores) == (other.label, other.scores)
                assert one.label == evaluate(program, row).label
                assert other.leaf is None or one.leaf == other.leaf
                assert other.probabilities is None or one.probabilities == other.probabilities


def test_missing_values_are_answered_as_the_program_answers_them():
    atoms = [Interval(0, 1.0, 2.0, "both", missing) for missing in (False, True)]
    atoms += [Interval(0, None, None, "left", False), Interval(0, None, 1.0, "right", True)]
    for atom in atoms:
        program = Program(("a",), ("no", "yes"), (Clause((atom,)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))
        (reading, *_) = read_strict_c(files_of(program))
        for value in (math.nan, 0.0, 1.0, 1.5, 2.0, math.inf, -math.inf):
            assert run_reading(reading, [value]).label == evaluate(program, [value]).label


HOSTILE = (
    "*/ int x; /*",
    "??/",
    '"; return 1; "',
    "back\\slash",
    "new\nline",
    "\u00e9",
    "e\u0301",
    "\U0001f600",
    "%s%n",
    "a\tb",
    "//",
    "#define",
    "$number:features",
    "@NAME@",
    "\x7f",
    " ",
)


@pytest.mark.parametrize("kernel", ["ifelse", "select"])
def test_hostile_names_are_only_names(kernel):
    program = Program(
        HOSTILE,
        HOSTILE[::-1],
        (Clause((Interval(3, 0.5),)),),
        split(0, leaf(1.0, *[0.0] * (len(HOSTILE) - 1)), leaf(*[0.0] * (len(HOSTILE) - 1), 1.0)),
    )
    program = with_reasons(validate(program), {0: '*/ ??/ "\\'})
    assert verdict(program, files_of(program, kernel=kernel)) == "proved"
    swapped = Program(HOSTILE[::-1], program.classes, program.clauses, program.decision)
    assert verdict(swapped, files_of(program, kernel=kernel)) in ("other names", "counterexample")


@pytest.mark.parametrize("name", ["model", "_m", "int", "x", "n0", "GBFL", "INT64", "a" * 60, "NAME", "double", "held"])
def test_models_may_have_any_name_that_is_emitted(name):
    for program in (TREE, CARD):
        try:
            files = emit(program, "c", name).files
        except BadInput:
            continue
        assert prove_readings(program, read_strict_c(files)).answer == "proved"


@pytest.mark.parametrize("classes", [(True, False), (-(2**62), 2**62), (0.1, -1e-300), ("True", "1")])
def test_labels_of_every_kind(classes):
    program = Program(TREE.features, classes, TREE.clauses, TREE.decision)
    assert verdict(program, files_of(program)) == "proved"
    other = Program(TREE.features, tuple(map(str, classes)), TREE.clauses, TREE.decision)
    assert verdict(other, files_of(program)) in ("other names", "proved" if isinstance(classes[0], str) else "")


@pytest.mark.parametrize("largest", [2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**50])
@pytest.mark.parametrize("kernel", ["ifelse", "select", "bits"])
def test_points_at_the_edges_of_their_types(largest, kernel):
    for edge in (largest - 1, largest, -largest, -largest - 1, 1 - largest):
        program = validate(
            Program(CARD.features, CARD.classes, CARD.clauses, Scorecard((edge, 1), ((1, edge), (0, -edge)), 0))
        )
        files = files_of(program, kernel=kernel)
        assert verdict(program, files) == "proved"
        narrower = re.sub(rb"int(16|32|64)_t model_rule_points", b"int8_t model_rule_points", files["model.c"])
        assert verdict(program, {**files, "model.c": narrower}) == (
            "proved" if -128 <= edge <= 127 and -edge <= 127 else "unread"
        )


@pytest.mark.parametrize("bound", [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.0, -1e-310, 0.1, 1 / 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bounds_at_the_edges_of_their_type(bound, dtype):
    for closed in ("left", "neither"):
        clause = Clause((Interval(0, bound, None, closed), Interval(1, None, bound)))
        program = validate(Program(CARD.features, CARD.classes, (clause, *CARD.clauses[:1]), CARD.decision))
        for kernel in kernels(program):
            assert verdict(program, files_of(program, kernel=kernel, dtype=dtype)) == "proved"


HARMLESS = [
    ("    ", "\t"),
    ("\n", "\r\n"),
    (" ", "  "),
    (";\n", "; // looked at\n"),
    ("{", "{ /* looked at */"),
    ("0x1.2p+4", "18.0"),
    ("0x1.2p+4", "0X1.20P4"),
    ("0x1.2p+4", "1.8e1"),
    ("0x1.2p+4", "0x12p0"),
    ("        return 1;", "        return 0x1;"),
    ("(x[0] >= 0x1.2p+4) && (x[0] < 0x1.04p+6)", "(x[0] < 0x1.04p+6) && (x[0] >= 0x1.2p+4)"),
    ("(x[0] >= 0x1.2p+4)", "((x[0] >= 0x1.2p+4))"),
    ("(x[0] >= 0x1.2p+4)", "x[0] >= 0x1.2p+4"),
    ("(x[0] >= 0x1.2p+4)", "!(!(x[0] >= 0x1.2p+4))"),
    ("(x0 >= 0x1.2p+4) & (x0 < 0x1.04p+6)", "(x0 < 0x1.04p+6) & x0 >= 0x1.2p+4"),
    ('"age"', '"\\141ge"'),
]


@pytest.mark.parametrize(("old", "new"), HARMLESS)
@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
def test_edits_that_change_nothing_stay_proved(program, old, new):
    for kernel in kernels(program):
        files = files_of(program, kernel=kernel)
        text = re.sub(r"/\*.*?\*/", "", files["model.c"].decode(), flags=re.DOTALL)
        lines = [
            line if line.startswith("#") and new != "\r\n" else line.replace(old, new) for line in text.split("\n")
        ]
        changed = "\n".join(lines) if "\n" not in old else text.replace(old, new)
        assert verdict(program, {**files, "model.c": changed.encode()}) == "proved", kernel


def test_rules_in_another_order_are_the_same_rules():
    files = files_of(CARD, kernel="ifelse")
    lines = [line for line in files["model.c"].decode().split("\n") if "held[0] |=" in line]
    assert len(lines) == 2
    swapped = files["model.c"].decode().replace("\n".join(lines), "\n".join(lines[::-1]))
    assert verdict(CARD, {**files, "model.c": swapped.encode()}) == "proved"


def test_a_refusal_says_where_and_what_is_known_there():
    files = edited(files_of(TREE, kernel="ifelse"), "        return 0;", "        return x;")
    line = files["model.c"].decode().split("\n").index("        return x;") + 1
    with pytest.raises(Exception, match=rf"^model\.c: line {line}: found return, known here is if \(rule\)"):
        read_strict_c(files)
