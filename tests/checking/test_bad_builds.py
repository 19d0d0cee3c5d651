"""Builds that look right and are not: each is found out, by the proof or by running it."""

import re
import subprocess

import numpy as np
import pytest

from gbfl_compile.auditing.scorer.library import audit_library
from gbfl_compile.backends import emit
from gbfl_compile.backends.c.build import find_compiler, why_not
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split

CLAUSES = (
    Clause((Interval(0, 0.1 + 0.2), Interval(1, 1 / 3, 2 / 3))),
    Clause((Interval(1, 0.1, None),)),
    Clause((Interval(2, 5e-324, None),)),
)
TREE = Program(
    ("a", "b", "c"),
    ("no", "yes"),
    CLAUSES,
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), split(2, leaf(0.0, 1.0), leaf(0.75, 0.25)))),
)
CARD = Program(TREE.features, TREE.classes, CLAUSES, Scorecard((0, -1), ((0, 2), (0, -3), (0, 4)), 1))
PROGRAMS = pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])


def proved(program, target, change, **options):
    """The answer for an artifact whose text was changed."""
    files = dict(emit(program, target, **options).files)
    (name,) = [name for name in files if name.endswith((".py", ".c", ".sql")) and name.startswith("model.")]
    before = files[name].decode()
    after = change(before)
    assert after != before, "the change changes nothing"
    files[name] = after.encode()
    return prove_artifact(program, target, files)


def decimals(pattern, parse, start="\n\n", ending=""):
    """Each literal after the header written with 15 digits, as printf("%.15g") would."""

    def change(text):
        header, found, rest = text.partition(start)
        return header + found + re.sub(pattern, lambda match: f"{parse(match.group(0)):.15g}{ending}", rest)

    return change


@PROGRAMS
def test_fifteen_digits_are_not_enough(program):
    in_c = decimals(r"-?0x1[0-9a-f.]*p[+-]\d+", float.fromhex)
    assert proved(program, "c", in_c).answer == "unread"  # 0.3 is not a double: compilers may round it differently
    in_python = decimals(r"\b\d+\.\d{16,}\b", float)
    assert proved(program, "python", in_python).answer == "counterexample"
    in_sql = decimals(r"\b\d+\.\d{15,}e0\b", float, "\nWITH ", "e0")
    assert proved(program, "sql:duckdb", in_sql).answer == "counterexample"


@PROGRAMS
def test_float32_thresholds_are_not_the_float64_program(program):
    def rounded(text):
        return re.sub(r"\b0\.\d{10,}\b", lambda match: repr(float(np.float32(float(match.group(0))))), text)

    assert proved(program, "python", rounded).answer == "counterexample"


@PROGRAMS
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", "datafusion"])
def test_a_missing_nan_guard_shows(program, dialect):
    """A comparison without its guard is not in the strict form. The general reader shows a row where it reads the rest.

    It reads no probabilities, and in DataFusion it reads no comparison that depends on the sign of a NaN.
    """

    def unguarded(text):
        return re.sub(r" AND (\S+ <> CAST\('NaN' AS [A-Z ]+\)|NOT isnan\(\S+\))", "", text)

    assert proved(program, f"sql:{dialect}", unguarded).answer in ("counterexample", "unread")
    by_label = proved(program, f"sql:{dialect}", unguarded, outputs="label").answer
    assert by_label == ("unread" if dialect == "datafusion" else "counterexample")


@PROGRAMS
def test_not_less_is_not_at_least(program):
    def in_c(text):
        return re.sub(r"\((x\[\d\]) >= (0x[^)]*)\)", r"(!(\1 < \2))", text, count=1)

    def in_python(text):
        head, at, body = text.partition("import math")
        return head + at + re.sub(r"\b([abc]) >= ([\d.e-]+)", r"not \1 < \2", body)

    assert proved(program, "c", in_c).answer == "counterexample"
    assert proved(program, "python", in_python).answer == "counterexample"


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@PROGRAMS
def test_fast_math_is_found_by_running_it(program, tmp_path):
    """The header refuses -ffast-math, so a careless builder takes that line out."""
    for file, content in emit(program, "c").files.items():
        text = re.sub(rb'#error "gbfl: -ffast-math[^\n]*', b"", content)
        (tmp_path / file).write_bytes(text)
    flags = ["-O3", "-ffast-math", "-shared", "-fPIC", "-w"]
    build = [*find_compiler().command, *flags, "model.c", "-o", "libmodel.so", "-lm"]
    subprocess.run(build, cwd=tmp_path, check=True)
    found = audit_library(program, tmp_path / "libmodel.so", "model")
    assert found.verdict == "different"
    assert found.execution.different > 0
