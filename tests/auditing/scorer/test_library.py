"""A deployed .so: an equal one passes, a wrong one is found, and one that misbehaves does no harm and is an answer."""

import math
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.auditing.scorer.library import audit_library
from gbfl_compile.auditing.scorer.library_worker import flushes_denormals
from gbfl_compile.backends import emit
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

TREE = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 0.1, 50.0),)), Clause((Interval(1, 5e-324, None),))),
    split(0, split(1, leaf(0.25, 0.75), leaf(0.5, 0.5)), leaf(1.0, 0.0)),
)
RULES = Program(("a", "b"), (0, 1, 2), TREE.clauses, Scorecard((0, 1, 0), ((3, 0, 1), (0, 2, 5)), 4))

RIGHT = """
int model_predict(const double *x) {
    BEGIN
    if (x[0] >= 0x1.999999999999ap-4 && x[0] < 50.0) { return x[1] >= 0x1p-1074; }
    return 0;
}
"""


def build(folder, text, *flags, name="deployed.so"):
    """A library of one C text, built by the real compiler."""
    (folder / "built.c").write_text(text)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *flags, "built.c", "-o", name, "-lm"], cwd=folder, check=True)
    return folder / name


def emitted(folder, program, *flags, options=None):
    """The emitted sources in a folder, and a library built from them elsewhere."""
    source = folder / "source"
    source.mkdir()
    for file, content in emit(program, "c", "model", options or {}).files.items():
        (source / file).write_bytes(content)
    library = folder / "libmodel.so"
    command = ["cc", *(flags or ("-O2",)), "-shared", "-fPIC", "model.c", "-o", str(library), "-lm"]
    subprocess.run(command, cwd=source, check=True)
    return library, source / "model.c"


@pytest.mark.parametrize("program", [TREE, RULES])
def test_an_emitted_library_is_equal_and_carries_its_digest(tmp_path, program):
    library, _ = emitted(tmp_path, program)
    found = audit_library(program, library, "model")
    assert (found.verdict, found.reason) == ("equal", None)
    assert found.carried_digest == digest(program)
    assert found.execution.rows > 100
    assert found.execution.different == 0
    assert not found.is_proved
    assert len(found.fingerprint) == 64


def test_a_float32_library_is_run_on_float32_rows(tmp_path):
    library, _ = emitted(tmp_path, TREE, options={"dtype": "float32"})
    assert audit_library(TREE, library, "model", real="float32").verdict == "equal"


def test_a_hand_written_library_without_a_digest_is_enough(tmp_path):
    found = audit_library(TREE, build(tmp_path, RIGHT.replace("BEGIN", "")), "model")
    assert (found.verdict, found.carried_digest) == ("equal", None)


WRONG = {
    "one ulp up": ("0x1.999999999999ap-4", "0x1.999999999999bp-4"),
    "one ulp down": ("0x1.999999999999ap-4", "0x1.9999999999999p-4"),
    "operator": ("x[0] <", "x[0] <="),
    "a column mapped to another": ("x[1]", "x[0]"),
    "swapped class": ("return x[1] >=", "return x[1] <"),
    "missing handled otherwise": (
        "x[0] >= 0x1.999999999999ap-4 && x[0] < 50.0",
        "!(x[0] < 0x1.999999999999ap-4) && !(x[0] >= 50.0)",
    ),
    "dropped clause": ("x[1] >= 0x1p-1074", "1"),
    "no such class": ("return 0;", "return 7;"),
    "float literals": ("50.0", "50.0f + 4e-6f"),
}


@pytest.mark.parametrize("slip", WRONG)
def test_a_wrong_library_is_found_with_a_witness_that_really_differs(tmp_path, slip):
    found = audit_library(TREE, build(tmp_path, RIGHT.replace(*WRONG[slip]).replace("BEGIN", "")), "model")
    assert found.verdict == "different"
    assert found.execution.different > 0
    assert found.region.approved != found.region.deployed
    assert set(found.region.row) == {"age", "income"}


CALLED = "static int calls; calls++;"

MISBEHAVES = {
    "crashes on load": ("__attribute__((constructor)) static void c(void) { *(volatile int *)8 = 1; }", "", "not run", "it crashed (SIGSEGV) while it was loaded"),
    "exits on load": ("#include <stdlib.h>\n__attribute__((constructor)) static void c(void) { exit(0); }", "", "not run", "it ended the process (code 0) while it was loaded"),
    "hangs on load": ("__attribute__((constructor)) static void c(void) { for (volatile int i = 0;; ) { i = 0; } }", "", "not run", "it hung: not done within 2 s while it was loaded"),
    "crashes": ("", f"{CALLED} if (calls == 17) {{ *(volatile int *)8 = 1; }}", "different", "it crashed (SIGSEGV) on witness 17"),
    "aborts": ("#include <stdlib.h>", f"{CALLED} if (calls == 3) {{ abort(); }}", "different", "it crashed (SIGABRT) on witness 3"),
    "exits": ("#include <stdlib.h>", f"{CALLED} if (calls == 5) {{ exit(0); }}", "different", "it ended the process (code 0) on witness 5"),
    "exits with a code": ("#include <stdlib.h>", f"{CALLED} if (calls == 5) {{ exit(9); }}", "different", "it ended the process (code 9) on witness 5"),
    "hangs": ("", f"{CALLED} for (volatile int i = 0; calls == 18; ) {{ i = 0; }}", "not run", "it hung: not done within 2 s on witness 18"),
    "eats memory": ("#include <stdlib.h>\n#include <string.h>", "for (;;) { char *p = malloc(1 << 26); if (!p) { abort(); } memset(p, 1, 1); }", "different", "it crashed (SIGABRT) on witness 1"),
    "closes every file": ("#include <unistd.h>\n__attribute__((constructor)) static void c(void) { for (int i = 0; i < 1024; i++) { close(i); } }", "", "equal", None),
    "closes every file later": ("#include <unistd.h>", "for (int i = 0; i < 256; i++) { close(i); }", "equal", None),
    "eats memory and touches it": ("#include <stdlib.h>\n#include <string.h>", "for (;;) { char *p = malloc(1 << 26); if (!p) { abort(); } memset(p, 1, 1 << 26); }", "different", "it crashed (SIG"),
    "forks at every row": ("#include <unistd.h>", f"{CALLED} if (calls < 20 && fork() == 0) {{ for (;;) {{ pause(); }} }}", "equal", None),
    "leaves the group": ("#include <unistd.h>", f"{CALLED} if (calls == 1) {{ setsid(); setpgid(0, 0); }}", "equal", None),
    "throws its answers away": ("#include <unistd.h>", f"{CALLED} if (calls == 9) {{ if (truncate(\"answers.bin\", 0)) {{ return 0; }} }}", "not run", "it has spoiled the file of its answers"),
    "removes its folder's files": ("#include <unistd.h>", f"{CALLED} if (calls == 9) {{ unlink(\"answers.bin\"); unlink(\"order.json\"); unlink(\"report.json\"); }}", "not run", "it has spoiled the file of its answers"),
    "writes endless files": ("#include <stdio.h>", f"{CALLED} if (calls == 2) {{ FILE *f = fopen(\"big\", \"w\"); for (;;) {{ if (fputs(\"0123456789012345678901234567890123456789\", f) < 0) {{ break; }} }} fclose(f); }}", "equal", None),
    "raises a signal": ("#include <signal.h>", f"{CALLED} if (calls == 4) {{ raise(SIGKILL); }}", "different", "it crashed (SIGKILL) on witness 4"),
    "eats the stack": ("static int deep(volatile int n) { volatile char room[4096]; room[0] = (char)n; return deep(n + 1) + room[0]; }", f"{CALLED} if (calls == 6) {{ return deep(0); }}", "different", "it crashed (SIGSEGV) on witness 6"),
    "crashes when it is let go": ("__attribute__((destructor)) static void d(void) { *(volatile int *)8 = 1; }", "", "different", "it crashed (SIGSEGV) while it gave its names"),
    "remembers": ("", f"{CALLED} if (calls > {len(witnesses(TREE))}) {{ return 1; }}", "different", "the library keeps state"),
}  # fmt: skip


@pytest.mark.parametrize("how", MISBEHAVES)
def test_a_library_that_misbehaves_does_no_harm_and_is_an_answer(tmp_path, how):
    first, begin, verdict, reason = MISBEHAVES[how]
    found = audit_library(
        TREE, build(tmp_path, first + RIGHT.replace("BEGIN", begin)), "model", seconds=2 if "hangs" in how else 60
    )
    assert found.verdict == verdict, found.reason
    assert reason is None or reason in found.reason


PRINTS = '#include <stdio.h>\n__attribute__((constructor)) static void c(void) { puts("{}"); fputs("!", stderr); }'


def test_a_library_that_prints_is_equal_and_its_prints_reach_nobody(tmp_path, capfd):
    library = build(tmp_path, PRINTS + RIGHT.replace("BEGIN", 'printf("1\\n"); fflush(stdout);'))
    assert audit_library(TREE, library, "model").verdict == "equal"
    assert capfd.readouterr() == ("", "")


FLUSHES = (
    "#include <immintrin.h>\n__attribute__((constructor)) static void c(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }"
)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="sets an x86 register")
def test_flush_to_zero_stays_in_the_other_process_and_is_reported(tmp_path):
    found = audit_library(TREE, build(tmp_path, FLUSHES + RIGHT.replace("BEGIN", "")), "model")
    assert "flush to zero" in found.arithmetic
    assert found.verdict == "different", "5e-324 is a cut of this program, and is zero there"
    assert not flushes_denormals()
    assert math.ldexp(1.0, -1074) + 0.0 > 0.0


def test_a_process_that_the_library_started_ends_with_it(tmp_path):
    left = (
        "#include <unistd.h>\n#include <stdio.h>\n__attribute__((constructor)) static void c(void) { if (fork() == 0) {"
    )
    left += f' FILE *f = fopen("{tmp_path}/pid", "w"); fprintf(f, "%d", getpid()); fclose(f); sleep(60); }} else {{ sleep(1); }} }}'
    assert audit_library(TREE, build(tmp_path, left + RIGHT.replace("BEGIN", "")), "model").verdict == "equal"
    pid = int((tmp_path / "pid").read_text())
    status = "Z"
    for _ in range(100):
        try:
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if status == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} still runs: {status}")


def test_the_library_does_not_see_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "hidden")
    text = "#include <stdlib.h>\n" + RIGHT.replace("BEGIN", 'if (getenv("PGPASSWORD")) { return 9; }')
    assert audit_library(TREE, build(tmp_path, text), "model").verdict == "equal"


def test_other_names_are_reported(tmp_path):
    library, _ = emitted(tmp_path, Program(("age", "wealth"), TREE.classes, TREE.clauses, TREE.decision))
    found = audit_library(TREE, library, "model")
    assert found.verdict == "different"
    assert "number 1 is 'wealth', not 'income'" in found.reason


def test_what_is_not_a_library_or_lacks_the_function_is_not_run(tmp_path):
    (tmp_path / "text.so").write_text("not a library")
    found = audit_library(TREE, tmp_path / "text.so", "model")
    assert (found.verdict, found.reason[:20]) == ("not run", "it cannot be loaded:")
    found = audit_library(TREE, build(tmp_path, RIGHT.replace("BEGIN", "")), "other")
    assert found.verdict == "not run"
    assert "no function other_predict" in found.reason
    with pytest.raises(BadInput, match="No such file"):
        audit_library(TREE, tmp_path / "absent.so", "model")
    with pytest.raises(BadInput, match="the name"):
        audit_library(TREE, tmp_path / "text.so", "a b")


def test_a_library_with_the_bytes_of_a_proved_source_is_proved(tmp_path):
    library, source = emitted(tmp_path, TREE)
    found = audit_library(TREE, library, "model", source)
    assert found.rebuild.startswith("same bytes as a build of model.c by ")
    assert found.is_proved
    assert found.verdict == "equal"


def test_a_library_that_is_beside_its_source_does_not_keep_it_from_being_read(tmp_path):
    library, source = emitted(tmp_path, TREE)
    beside = source.parent / "libmodel.so.1"
    beside.write_bytes(library.read_bytes())
    subprocess.run(["cc", "-O2", "-c", "-fPIC", "model.c", "-o", "model.o"], cwd=source.parent, check=True)
    assert audit_library(TREE, beside, "model", source).is_proved
    assert audit_file(AuditInput(TREE), source).is_proved


def test_other_bytes_prove_nothing_and_are_called_so(tmp_path):
    library, source = emitted(tmp_path, TREE, "-Os")
    found = audit_library(TREE, library, "model", source)
    assert found.rebuild.endswith("(compilers and flags differ, this proves nothing)")
    assert found.source_proof == "model.c: proved"
    assert not found.is_proved
    assert found.verdict == "equal"
    again = audit_library(TREE, library, "model", source, flags=("-Os", "-shared", "-fPIC", "-lm"))
    assert again.is_proved


def test_a_source_that_a_flag_makes_another_program_of_is_no_proof(tmp_path):
    """Same bytes, but what the compiler saw is not the text that was proved."""
    library, source = emitted(tmp_path, TREE, "-O2", "-Dmodel_leaf_class=model_renamed")
    flags = ("-O2", "-Dmodel_leaf_class=model_renamed", "-shared", "-fPIC", "-lm")
    found = audit_library(TREE, library, "model", source, flags=flags)
    assert found.rebuild.endswith("so its proof is not the library's")
    assert not found.is_proved
    assert found.verdict == "equal"  # on the witnesses: this macro changes a name and nothing else


def test_a_library_of_a_source_that_was_tampered_with_is_different(tmp_path):
    library, source = emitted(tmp_path, TREE)
    text = source.read_text()
    assert "0x1.999999999999ap-4" in text
    source.write_text(text.replace("0x1.999999999999ap-4", "0x1.999999999999bp-4"))
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "model.c", "-o", str(library), "-lm"], cwd=source.parent, check=True
    )
    found = audit_library(TREE, library, "model", source)
    assert found.verdict == "different"
    assert found.execution.different > 0
    assert "proved" not in found.source_proof


def test_a_source_that_is_not_a_c_file_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"name the \.c file"):
        audit_library(TREE, build(tmp_path, RIGHT.replace("BEGIN", "")), "model", tmp_path / "absent.c")


REASONED = with_reasons(TREE, {0: "Too young"})
REASONED_RULES = with_reasons(RULES, {1: "Too poor"})

BESIDE = {
    "the class beside the probabilities": (TREE, "return model_leaf(model_leaf_of(x), out);", "return model_leaf(model_leaf_of(x), out) * 0;", "model_predict_proba: witness"),
    "the class of a leaf": (TREE, "return (int)model_leaf_class[leaf];", "return leaf == 0 ? 0 : (int)model_leaf_class[leaf];", "model_leaf: of 0: "),
    "a leaf that there is not": (TREE, "return -1;", "return 0;", "model_leaf: of -1: [-1] is answered [0]"),
    "the clauses that held": (TREE, "held[clause / 32] |=", "held[clause / 32] =", "model_explain: witness"),
    "clauses that are left from the row before": (TREE, "held[word] = 0u;", "(void)word;", "model_explain: witness"),
    "a reason": (REASONED, '"Too young"', '"Too old"', "model_reason: of 0: Too young is answered Too old"),
    "a feature that is not used": (TREE, "(int)model_feature_used[feature] : 0", "(int)(feature == 1) : 0", "model_uses: of 0: True is answered False"),
    "the kind of its labels": (TREE, "return 's';", "return 'i';", "model_label_kind: of 0: s is answered i"),
    "a rule set's count": (RULES, "    return count;", "    return count + (count > 1);", "model_explain: witness"),
    "a rule set's class beside its probabilities": (RULES, "return best;", "return 0 * best;", "model_predict_proba: witness"),
    "a rule set's reason": (REASONED_RULES, '"Too poor"', '"Too rich"', "model_reason: of 1: Too poor is answered Too rich"),
}  # fmt: skip


@pytest.mark.parametrize("slip", BESIDE)
def test_everything_that_is_listed_as_compared_was_compared(tmp_path, slip):
    program, old, new, reason = BESIDE[slip]
    flags = ("-O2", "-DGBFL_WITH_LIBM")
    library, source = emitted(tmp_path, program, *flags)
    assert audit_library(program, library, "model").verdict == "equal"
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))
    command = ["cc", *flags, "-shared", "-fPIC", "model.c", "-o", str(library), "-lm"]
    subprocess.run(command, cwd=source.parent, check=True)
    found = audit_library(program, library, "model")
    assert (found.verdict, found.execution.different) == ("different", 0)
    assert reason in found.reason
    assert f"{reason.partition(':')[0]}, different" in found.compared


def test_a_library_says_what_of_it_was_compared(tmp_path):
    library, _ = emitted(tmp_path, REASONED)
    compared = audit_library(REASONED, library, "model").compared.split("; ")
    assert compared[:2] == ["labels, none different", "probabilities, none different"]
    assert {f"model_{name}" for name in ("predict_proba", "explain", "leaf", "reason", "uses", "label_kind")} < set(
        compared
    )
    assert {f"model_{what}_{how}" for what in ("predict", "leaf") for how in ("rows", "columns")} < set(compared)


def test_a_library_that_lies_on_the_rows_of_the_data_alone_is_found(tmp_path):
    library = build(tmp_path, RIGHT.replace("BEGIN", "if (x[0] == 12.125) { return 0; }"))
    assert audit_library(TREE, library, "model").verdict == "equal"
    found = audit_library(TREE, library, "model", data=np.array([[12.125, 1.0], [12.25, 1.0]]))
    assert (found.verdict, found.execution.different) == ("different", 1)
    assert (found.moves.rows, found.moves.of, found.moves.moves) == (1, 2, (("yes", "no", 1),))


def test_a_library_that_lies_on_a_constant_of_its_source_is_found_where_the_source_is_there(tmp_path):
    text = RIGHT.replace("BEGIN", "if (x[1] == -0x1.8p+13) { return 1; }")
    library = build(tmp_path, text)
    assert audit_library(TREE, library, "model").verdict == "equal"
    found = audit_library(TREE, library, "model", tmp_path / "built.c")
    assert (found.verdict, found.region.row["income"]) == ("different", -12288.0)
