"""The emitted C is clean: warnings, sanitizers, freestanding and C++ builds, other compilers, other processors.

GBFL_RANDOM_ROWS=100000000 runs that many random-bit rows per dtype under the sanitizers, shared out evenly over every
program, kernel and level of optimisation.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.backends.c.build import size_table
from gbfl_compile.files import resource_folder
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.backends.c.oracle import oracle_source
from tests.backends.c.programs import (
    CARD,
    STRICT,
    TREE,
    WORD_CARD,
    WORD_TREE,
    cc,
    needs_a_compiler,
    quick_to_build,
    random_card,
    random_tree,
    write,
)

pytestmark = needs_a_compiler

ROWS = 10_000
LONG_RUN = int(os.environ.get("GBFL_RANDOM_ROWS", "0"))
LEVELS = ("-O0", "-O2", "-O3")

DOCS = Path(__file__).parent.parent.parent.parent / "docs"

SHAPES = {
    "tree": random_tree(21, 12, features=6, atoms=2),
    "rule set": random_card(22, 12, features=6, points=2**40),
    "many rules": random_card(23, 420, features=6, atoms=2, classes=3),
}
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")


def needs(tool):
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")


def expect_success(*command, folder):
    found = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True)
    assert found.returncode == 0, (found.stdout + found.stderr)[-3000:]
    return found


def sanitizers_work(folder):
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    compiler = shutil.which("gcc") or shutil.which("cc")
    made = subprocess.run([compiler, *SANITIZERS, "probe.c", "-o", "probe"], cwd=folder, capture_output=True)
    return made.returncode == 0 and subprocess.run([folder / "probe"], capture_output=True).returncode == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_random_bits_find_no_difference_and_no_undefined_behaviour(shape, dtype, tmp_path):
    """Every kernel at one level of optimisation each; at all of them if GBFL_RANDOM_ROWS sets a long run."""
    if not sanitizers_work(tmp_path):
        pytest.skip("this compiler has no address and undefined-behaviour sanitizers")
    program = SHAPES[shape]
    builds = len(LEVELS) * sum(len(quick_to_build(other)) for other in SHAPES.values())
    rows = -(-LONG_RUN // builds) or (ROWS if len(program.clauses) < 100 else ROWS // 10)
    for number, kernel in enumerate(quick_to_build(program)):
        write(emit(program, "c", "m", {"kernel": kernel, "dtype": dtype}), tmp_path)
        (tmp_path / "main.c").write_text(oracle_source(program, "double" if dtype == "float64" else "float"))
        for level in LEVELS if LONG_RUN else LEVELS[(number + len(dtype)) % 3 :][:1]:
            flags = ("-std=c99", level, *SANITIZERS, "-ffp-contract=off")
            cc(*flags, "m.c", "main.c", "-o", "test", "-lm", folder=tmp_path)
            expect_success(tmp_path / "test", rows, folder=tmp_path)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_vectorised_build_finds_no_difference(shape, tmp_path):
    """What Python loads: -O3 with the vector units, no sanitizer; more rows."""
    program = SHAPES[shape]
    write(emit(program, "c", "m"), tmp_path)
    (tmp_path / "main.c").write_text(oracle_source(program, "double"))
    cc("-std=gnu99", "-O3", "-ffp-contract=off", "m.c", "main.c", "-o", "test", "-lm", folder=tmp_path)
    expect_success(tmp_path / "test", 30 * ROWS if len(program.clauses) < 100 else ROWS, folder=tmp_path)


def test_the_oracle_sees_a_slip(tmp_path):
    program = SHAPES["tree"]
    path = write(emit(program, "c", "m", {"kernel": "ifelse"}), tmp_path)
    (tmp_path / "main.c").write_text(oracle_source(program, "double"))
    path.write_text(path.read_text().replace(" >= ", " > "))
    cc("-std=c99", "-O1", "m.c", "main.c", "-o", "test", "-lm", folder=tmp_path)
    assert subprocess.run([tmp_path / "test", "20000"], capture_output=True).returncode == 1


@pytest.mark.parametrize(
    "compiler", [pytest.param("gcc", marks=needs("gcc")), pytest.param("clang", marks=needs("clang"))]
)
@pytest.mark.parametrize("program", [TREE, CARD, SHAPES["many rules"]], ids=["tree", "rule set", "many rules"])
def test_no_compiler_warns(program, compiler, tmp_path):
    for dtype in ("float64", "float32"):
        for kernel in quick_to_build(program):
            write(emit(program, "c", "m", {"kernel": kernel, "dtype": dtype}), tmp_path)
            expect_success(compiler, *STRICT, "-O2", "-DGBFL_WITH_LIBM", "-c", "m.c", "-o", "m.o", folder=tmp_path)
    for more in ("-O0", "-DGBFL_NO_BATCH"):
        expect_success(compiler, *STRICT, more, "-c", "m.c", "-o", "m.o", folder=tmp_path)


@pytest.mark.parametrize("program", [TREE, SHAPES["many rules"], WORD_TREE], ids=["tree", "rule set", "words"])
def test_it_needs_no_library_at_all(program, tmp_path):
    write(emit(program, "c", "m"), tmp_path)
    (tmp_path / "main.c").write_text(
        '#include "m.h"\nint start(const double *x) { return m_predict(x) + m_selftest(); }\n'
    )
    flags = (
        "-std=c99",
        "-O2",
        "-ffreestanding",
        "-nostdlib",
        "-fno-stack-protector",
        "-fno-tree-loop-distribute-patterns",
    )
    cc(*flags, "-Wl,--no-undefined", "-shared", "-fPIC", "m.c", "main.c", "-o", "m.so", folder=tmp_path)
    assert (tmp_path / "m.so").is_file()


def test_the_shared_header_does_what_it_says(tmp_path):
    home = resource_folder("runtime_c")
    cc(*STRICT, "-DGBFL_WITH_LIBM", f"-I{home}", home / "test_gbfl.c", "-o", "test", "-lm", folder=tmp_path)
    expect_success(tmp_path / "test", folder=tmp_path)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        *((flag, "-ffast-math, or a part of it") for flag in ("-ffast-math", "-ffinite-math-only", "-Ofast")),
        ("-funsafe-math-optimizations", "-ffast-math, or a part of it"),
        ("-fsingle-precision-constant", "gbfl_literals_are_doubles"),
    ],
)
@needs("gcc")
def test_flags_that_change_comparisons_are_refused_by_the_header(tmp_path, flag, message):
    write(emit(TREE, "c", "m"), tmp_path)
    found = subprocess.run(["gcc", flag, "-c", "m.c"], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode != 0
    assert message in found.stderr


@needs("clang")
def test_the_selftest_finds_a_build_that_treats_no_value_as_missing(tmp_path):
    """clang does not reveal this flag to the header, and computes the answers to known rows at compile time."""
    (tmp_path / "main.c").write_text('#include "m.h"\nint main(void) { return m_selftest() != 0; }\n')
    at_least = Program(
        ("age",), ("no", "yes"), (Clause((Interval(0, 1.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
    )
    write(emit(at_least, "c", "m"), tmp_path)
    for flag, ended in (("-O2", 0), ("-fno-honor-nans", 1)):
        command = ["clang", "-O2", flag, "main.c", "m.c", "-o", "main"]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        assert subprocess.run([tmp_path / "main"]).returncode == ended


@needs("g++")
def test_cpp_can_include_the_header(tmp_path):
    for name, program in (("a", TREE), ("b", CARD), ("w", WORD_TREE)):
        write(emit(program, "c", name), tmp_path)
    headers = "".join(f'#include "{name}.h"\n' for name in ("a", "b", "w", "gbfl"))
    text = f"{headers}int main() {{ return a_selftest() + b_selftest() + w_selftest(); }}\n"
    (tmp_path / "main.cpp").write_text(text)
    cc("-std=c99", "-c", "a.c", "b.c", "w.c", folder=tmp_path)
    flags = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
    expect_success("g++", *flags, "main.cpp", "a.o", "b.o", "w.o", "-o", "all", folder=tmp_path)
    expect_success(tmp_path / "all", folder=tmp_path)


@needs("arm-none-eabi-gcc")
@pytest.mark.parametrize("cpu", ["cortex-m0", "cortex-m4"])
def test_it_compiles_for_arm(cpu, tmp_path):
    flags = ("-mthumb", f"-mcpu={cpu}", "-Os")
    for number, (program, dtype) in enumerate(
        ((TREE, "float64"), (CARD, "float32"), (SHAPES["many rules"], "float32"), (WORD_TREE, "float64"))
    ):
        path = write(emit(program, "c", f"m{number}", {"dtype": dtype, "layout": "platformio"}), tmp_path)
        expect_success("arm-none-eabi-gcc", *STRICT, *flags, "-ffreestanding", "-c", path, "-o", "m.o", folder=tmp_path)
        found = size_table(path, ("arm-none-eabi-gcc",), (*flags, "-ffreestanding"))
        assert found.data == found.bss == 0
        assert found.stack < 2000


@needs("valgrind")
def test_valgrind_finds_nothing(tmp_path):
    program = SHAPES["rule set"]
    write(emit(program, "c", "m", {"kernel": "bits"}), tmp_path)
    (tmp_path / "main.c").write_text(oracle_source(program, "double"))
    cc("-std=c99", "-g", "-O1", "-DGBFL_NO_CLONES", "m.c", "main.c", "-o", "test", "-lm", folder=tmp_path)
    expect_success("valgrind", "-q", "--error-exitcode=9", tmp_path / "test", 2000, folder=tmp_path)


@needs("cppcheck")
def test_cppcheck_finds_nothing(tmp_path):
    """Suppressed, each for a reason: `unusedFunction` is what a library is made of; `missingIncludeSystem` is not ours;
    `duplicateExpression` is `x == x`, the test for NaN; `knownConditionTrueFalse` comes of tables with one row;
    `bitwiseOnBoolean` is what lets the batch kernels be vectorised; `unusedStructMember` is written by initialisers only."""
    for number, program in enumerate((TREE, CARD)):
        write(emit(program, "c", f"m{number}"), tmp_path)
    quiet = (
        "unusedFunction",
        "missingIncludeSystem",
        "duplicateExpression",
        "knownConditionTrueFalse",
        "bitwiseOnBoolean",
        "unusedStructMember",
    )
    options = [f"--suppress={name}" for name in (*quiet, "unmatchedSuppression")]
    known = ("-DNULL=0", "-DFLT_RADIX=2", "-DFLT_MANT_DIG=24", "-DDBL_MANT_DIG=53")
    found = expect_success(
        "cppcheck", "--std=c99", "--enable=all", "--inconclusive", "-q", *known, *options, ".", folder=tmp_path
    )
    assert found.stderr == ""


MISRA_FINDING = re.compile(r"\[misra-c2012-(\d+\.\d+)\]")
MISRA_EXPLAINED = re.compile(r"^\| (\d+\.\d+) \|", re.MULTILINE)


@needs("cppcheck")
def test_every_kind_of_misra_finding_is_listed_and_explained(tmp_path):
    """docs/embedding.md has a line for each rule that cppcheck's addon finds broken."""
    explained = set(MISRA_EXPLAINED.findall((DOCS / "embedding.md").read_text(encoding="utf-8")))
    for number, (program, options) in enumerate(
        (
            (TREE, {}),
            (CARD, {}),
            (CARD, {"kernel": "bits"}),
            (TREE, {"kernel": "ifelse", "dtype": "float32"}),
            (WORD_TREE, {}),
            (WORD_CARD, {"kernel": "bits"}),
        )
    ):
        write(emit(program, "c", f"m{number}", options), tmp_path)
    known = ("-DNULL=0", "-DFLT_RADIX=2", "-DFLT_MANT_DIG=24", "-DDBL_MANT_DIG=53")
    command = ["cppcheck", "--std=c99", "--addon=misra", "-q", *known, "."]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if "misra" not in run.stderr and ("addon" in run.stderr or run.returncode != 0):
        pytest.skip(f"cppcheck has no MISRA addon here: {run.stderr.strip()[:100]}")
    found = set(MISRA_FINDING.findall(run.stderr))
    assert found <= explained


@pytest.mark.parametrize("layout", ["arduino", "platformio", "cmake"])
def test_a_layout_adds_what_its_tools_look_for(layout, tmp_path):
    plain, files = emit(CARD, "c").files, emit(CARD, "c", options={"layout": layout}).files
    assert set(files) > set(plain)
    write(emit(CARD, "c", options={"layout": layout}), tmp_path)
    if layout == "arduino":
        assert {"library.properties", "examples/selftest/selftest.ino"} < set(files)
        properties = dict(line.split("=", 1) for line in files["library.properties"].decode().splitlines())
        assert (properties["name"], properties["architectures"]) == ("model", "*")
    elif layout == "platformio":
        assert json.loads(files["library.json"])["headers"] == "model.h"
    if layout != "arduino":
        cc("-std=c99", "-I.", "model.c", "examples/selftest/main.c", "-o", "selftest", folder=tmp_path)
        assert "every answer is right" in expect_success(tmp_path / "selftest", folder=tmp_path).stdout


@needs("cmake")
def test_cmake_builds_and_tests_it(tmp_path):
    write(emit(CARD, "c", options={"layout": "cmake"}), tmp_path)
    expect_success("cmake", "-S", ".", "-B", "build", folder=tmp_path)
    expect_success("cmake", "--build", "build", folder=tmp_path)
    expect_success("ctest", "--test-dir", "build", folder=tmp_path)
