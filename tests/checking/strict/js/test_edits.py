"""JavaScript with an edit in it: refused, shown a row on which it really differs, or proved and then run as equal.

GBFL_JS_EDITS=2000 pytest tests/checking/strict/js -s     prints the counts
"""

import random
import re
import sys
from collections import Counter

import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split
from gbfl_compile.ir.text import with_reasons
from tests.backends.javascript import answers_in_node, same
from tests.backends.test_js import EVERY_KIND, drawn
from tests.checking.strict.js.edits import edit
from tests.counts import count

TREE = Program(
    ("age", "debt"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0),)), Clause((Interval(1, None, 0.5, if_missing=True),))),
    split(0, split(1, leaf(0.0, 1.0), leaf(0.9, 0.1)), leaf(1.0, 0.0)),
)
MANY = tuple("abcdefghijkl")
WORDS = Program(
    ("grade", "ok"),
    ("no", "yes"),
    (Clause((OneOf(0, MANY, negated=True),)), Clause((OneOf(0, ("a", "b"), if_missing=True), OneOf(1, ("true",))))),
    Scorecard((0, 1), ((3, 0), (0, 2)), 3),
    kinds=("category", "boolean"),
)


def test_an_edit_is_refused_refuted_or_really_equal():
    edits = count("GBFL_JS_EDITS", 2000)
    choose = random.Random(19)
    pairs = drawn(60, rows=30)
    outcomes, equal = Counter(), []
    for number in range(edits):
        program, rows = pairs[number % len(pairs)]
        text = emit(program, "js").files["model.js"].decode()
        while (changed := edit(choose, text)) == text:
            pass
        proof = prove_artifact(program, "js", {"model.js": changed.encode()})
        outcomes[proof.answer] += 1
        if proof.answer == "proved":
            equal.append((program, changed.encode(), rows))
    sys.stdout.write(f"{dict(outcomes)}\n")
    answers = answers_in_node([(module, rows) for _, module, rows in equal])
    wrong = [
        module.decode()
        for (program, module, rows), theirs in zip(equal, answers, strict=True)
        if not same(program, theirs, rows)
    ]
    assert wrong == []
    assert set(outcomes) <= {"unread", "counterexample", "other names", "other reasons", "proved"}
    assert outcomes["counterexample"] > edits // 100


@pytest.mark.parametrize(
    ("program", "old", "new"),
    [
        (TREE, "age >= 18.0", "age > 18.0"),
        (TREE, "18.0", "18.000000000000004"),
        (TREE, "(debt !== debt || debt < 0.5)", "debt < 0.5"),
        (TREE, "&& age < 65.0", "&& age <= 65.0"),
        (TREE, "return 1;", "return 0;"),
        (TREE, "[0, [0.0, 1.0]", "[0, [0.5, 0.5]"),
        (WORDS, '"l"])', '"l "])'),
        (WORDS, "!SET0.has(grade)", "SET0.has(grade)"),
        (WORDS, "ok === true", "ok !== false"),
        (WORDS, "grade === null || ", ""),
        (WORDS, "[3, 0]", "[3, 1]"),
        (WORDS, "WORTH = 0.125", "WORTH = 0.25"),
    ],
)
def test_a_slip_is_refuted(program, old, new):
    text = emit(program, "js").files["model.js"].decode()
    if old not in text:  # the order of classes in a leaf
        old, new = "[1, [0.0, 1.0]", "[1, [0.25, 0.75]"
    assert old in text
    assert prove_artifact(program, "js", {"model.js": text.replace(old, new, 1).encode()}).answer == "counterexample"


REFUSED = [
    ("export function score(row) {", "Object.prototype.age = 5; export function score(row) {"),
    ("return answer(", "return\n  answer("),
    ("throw new TypeError", "throw // a comment ends the line\n new TypeError"),
    ('typeof value === "number"', 'typeof value !== "number"'),
    ("? NaN :", "? 0 :"),
    (
        '"age" in BASE ? own(row, "age") : row["age"], "age", row',
        '"age" in BASE ? own(row, "age") : row["debt"], "age", row',
    ),
    ('"age" in BASE ? own(row, "age") : row["age"], "age", row', 'row["age"], "age", row'),
    ("age >= 18.0", "age >= 18.0e0000000000000000000000000000000000000000"),
    ("age >= 18.0", "age >= 0x12"),
    ("age >= 18.0", "age >= 1_8"),
    ("age >= 18.0", "age >= 18.00000000000000000000001"),
    ("age >= 18.0", "age >= 1e999"),
    ("age >= 18.0", "age >= debt"),
    ("age >= 18.0", 'age >= "18"'),
    ("age >= 18.0", "!age >= 18.0"),
    ("age >= 18.0", "age >= 18.0 & true"),
    ("age >= 18.0", "\\u0061ge >= 18.0"),
    ("age >= 18.0", "age >= /* hidden */ 18.0"),
    ("// The rules", "// The rules\u2028CLASSES = 1"),
    ("// The rules", "// The rules\rCLASSES = 1"),
    ("// The rules", "//# sourceMappingURL=x"),
    ("// The rules", "// </script>"),
    ("function rules(age, debt)", "function rules(age, age)"),
    ("function rules(age, debt)", "function rules(age, eval)"),
    ("function rules(age, debt)", "function rules(age, debt = 1)"),
    ("function rules(age, debt)", "function rules(age, ...debt)"),
    ("held.sort((a, b) => a - b);", ""),
    ("export const DIGEST", "export\nconst DIGEST"),
    ("function rules", "function // a comment\nrules"),
    ("const BASE = Object.prototype;", "const BASE = {};"),
    ('CLASSES = Object.freeze(["no", "yes"])', 'CLASSES = Object.freeze(["no", `yes`])'),
    ('CLASSES = Object.freeze(["no", "yes"])', 'CLASSES = (["no", "yes"])'),
    ('CLASSES = Object.freeze(["no", "yes"])', 'CLASSES = Object.freeze(["no", "\\x79es"])'),
    ('own(columns, "debt")', 'own(columns, "age")'),
    ("number(column1[i]", "number(column0[i]"),
]


@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_what_is_not_understood_is_refused(old, new):
    text = emit(TREE, "js").files["model.js"].decode()
    assert old in text
    assert prove_artifact(TREE, "js", {"model.js": text.replace(old, new, 1).encode()}).answer == "unread"


def test_a_feature_called_as_another_one_is_spelled_is_a_feature_of_its_own():
    clauses = (Clause((Interval(0, 1.0),)), Clause((Interval(1, 2.0),)))
    tree = split(0, split(1, leaf(0.1, 0.9), leaf(0.6, 0.4)), leaf(0.8, 0.2))
    program = Program(("a", '"a"'), ("no", "yes"), clauses, tree)
    files = dict(emit(program, "js").files)
    assert prove_artifact(program, "js", files).answer == "proved"
    twice = files["model.js"].replace(b'\\"a\\"', b"a")
    assert twice != files["model.js"]
    assert prove_artifact(program, "js", {"model.js": twice}).answer == "unread"


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("model.d.ts", "number | null", "string | null"),
        ("model.d.ts", 'readonly "age"', 'readonly\n  "age"'),
        ("model.d.ts", "declare function score(", "declare\nfunction score("),
        ("model.d.ts", '"no" | "yes"', '"yes" | "no"'),
        ("package.json", "module", "commonjs"),
        ("extra.js", "", "export const x = 1;"),
        ("notes.txt", "", "anything"),
    ],
)
def test_the_files_beside_the_module_are_read_too(file, old, new):
    files = dict(emit(TREE, "js").files)
    text = files.get(file, b"").decode()
    assert old in text
    files[file] = text.replace(old, new, 1).encode() if old else new.encode()
    assert prove_artifact(TREE, "js", files).answer == "unread"


@pytest.mark.parametrize("program", [TREE, WORDS, EVERY_KIND, with_reasons(TREE, {0: "Too young <b>"})])
def test_harmless_edits_are_proved(program):
    files = dict(emit(program, "js").files)
    text = files["model.js"].decode()
    for changed in (text.replace("\n", "\n\n"), text.replace("  ", " "), re.sub(r"//[^\n]*", "// other words", text)):
        assert prove_artifact(program, "js", {**files, "model.js": changed.encode()}).answer == "proved"


def test_other_reasons_are_reported():
    program = with_reasons(TREE, {0: "Too young"})
    text = emit(program, "js").files["model.js"].decode()
    for old, new in (
        ("Too young", "Too old"),
        ('"18 \\u003c= age', '"19 \\u003c= age'),
        ("[-1, 0, true]", "[-1, 0, false]"),
    ):
        assert old in text
        proof = prove_artifact(program, "js", {"model.js": text.replace(old, new, 1).encode()})
        assert proof.answer == "other reasons", (old, proof)
