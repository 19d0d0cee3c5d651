"""Edits made to slip past a reader: each was once proved although it behaves differently, and is refused now."""

import math
import os
import py_compile
import subprocess
import sys

import numpy as np
import pytest

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import artifact_files, prove_artifact
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from tests.backends.javascript import answers_in_node, same
from tests.checking.reader_artifacts import said_by_c, said_by_onnx


def tree(threshold):
    clauses = (Clause((Interval(0, threshold),)),)
    return Program(("age", "income"), ("no", "yes"), clauses, split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))


def card(bias):
    return Program(("age", "income"), ("no", "yes"), tree(1.0).clauses, Scorecard((0, bias), ((0, 9),), 0))


def answer(program, target, old, new, file=None, options=None):
    """What the proof says of an artifact in which one text was replaced."""
    files = dict(emit(program, target, options=options).files)
    name = file or {"python": "model.py", "c": "model.c"}[target]
    assert old in files[name].decode(), files[name].decode()
    files[name] = files[name].decode().replace(old, new).encode()
    return prove_artifact(program, target, files).answer


@pytest.mark.parametrize("annotation", ["globals().update(CLASSES=('yes', 'no'))", "(CLASSES := ('yes', 'no'))"])
def test_an_annotation_of_the_rules_is_code(annotation):
    assert answer(tree(1.0), "python", "def _leaf(x):", f"def _leaf(x) -> {annotation}:") == "unread"


def test_math_that_is_no_longer_math():
    assert answer(tree(1.0), "python", "    age = x[0]\n", "    age = x[0]\n    _math = 1\n") == "unread"


def test_words_of_a_clause_are_its_own():
    assert answer(tree(1.0), "python", "'age >= 1'", "'income >= 1'") == "other reasons"


def test_the_story_of_a_leaf_is_its_own():
    assert answer(tree(1.0), "python", "(-1, 0, True)", "(-1, 0, False)") == "other reasons"


CHAIN = Program(
    ("age", "income"),
    ("no", "yes"),
    tuple(Clause((Interval(0, bound),)) for bound in (3.0, 2.0, 1.0)),
    split(0, leaf(0.0, 1.0), split(1, leaf(0.25, 0.75), split(2, leaf(0.5, 0.5), leaf(1.0, 0.0)))),
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(1, 1, False)", "(1, 2, False)"),  # another clause is said not to have held
        ("(1, 1, False)", "(1, 1, True)"),
        ("(1, 1, False)", "(-1, 1, False)"),  # the first question is left out
        ("(1, 1, True)", "(1, 1, True), (2, 1, True)"),  # and here one is told twice
        ("(3, 2, False)", "(1, 2, False)"),
        ("(-1, 0, False)", "(-1, 1, False)"),
    ],
)
def test_the_whole_way_to_a_leaf_is_its_own(old, new):
    files = dict(emit(CHAIN, "python").files)
    before = files["model.py"].decode()
    assert prove_artifact(CHAIN, "python", files).answer == "proved"
    assert old in before, before
    text = before.replace(old, new)
    if "), (" in new:  # the leaf that ended at step 2 now ends at the step that was put behind it
        text = text.replace("(1, (0.25, 0.75), 2)", "(1, (0.25, 0.75), 3)")
    assert prove_artifact(CHAIN, "python", {"model.py": text.encode()}).answer == "other reasons"


def test_equal_tree_nodes_in_a_row():
    """ONNX Runtime merges them and forgets where the second sends a missing value: it would answer no here."""
    onnx = pytest.importorskip("onnx")
    clauses = tuple(Clause((Interval(0, at, at, "both", missing),)) for at, missing in ((1.0, False), (2.0, True)))
    program = Program(
        tree(1.0).features, ("no", "yes"), clauses, split(0, leaf(0.1, 0.9), split(1, leaf(0.1, 0.9), leaf(0.8, 0.2)))
    )
    model = onnx.ModelProto()
    model.ParseFromString(emit(program, "onnx", options={"lowering": "tree"}).files["model.onnx"])
    node = next(node for node in model.graph.node if node.op_type == "TreeEnsemble")
    whole = {
        "nodes_featureids": [0, 0],
        "nodes_truenodeids": [0, 0],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 2],
        "nodes_falseleafs": [0, 1],
        "nodes_missing_value_tracks_true": [0, 1],
    }
    arrays = {"nodes_splits": np.array([1.0, 2.0]), "nodes_modes": np.array([4, 4], np.uint8)}
    for attribute in node.attribute:
        if attribute.name in whole:
            attribute.ints[:] = whole[attribute.name]
        if attribute.name in arrays:
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(arrays[attribute.name], attribute.name))
    content = model.SerializeToString()
    assert prove_artifact(program, "onnx", {"model.onnx": content}).answer == "unread"
    pytest.importorskip("onnxruntime")
    ((label, *_),) = said_by_onnx({"model.onnx": content}, [[math.nan, 0.0]], program.features)
    assert (label, evaluate(program, [math.nan, 0.0]).label) == ("no", "yes")


@pytest.mark.parametrize("space", [" ", "\t", "\v", "\f"])
@pytest.mark.parametrize("file", ["model.c", "model.h", "gbfl.h"])
def test_a_line_continued_behind_spaces(space, file):
    first = '#include "model.h"\n' if file == "model.c" else "#include <stddef.h>\n"
    assert answer(tree(1.0), "c", first, f"{first}// a comment \\{space}\n", file) == "unread"


@pytest.mark.parametrize(
    ("threshold", "spelled"),
    [
        (-5.0, "-INT64_C(5u)"),
        (-5.0, "-INT32_C(5u)"),
        (-5.0, "(INT32_C(5u) - 10)"),
        (1e10, "100000 * 100000"),
        (1e5, "(50000 + 50000)"),
        (2.0**64, "18446744073709551616"),
        (-(2.0**63), "-9223372036854775808"),
    ],
)
def test_whole_numbers_that_wrap_around(threshold, spelled):
    written = float(threshold).hex()
    mantissa, power = written.split("p")
    mantissa = mantissa.rstrip("0").removesuffix(".") if "." in mantissa else mantissa
    literal = f"{mantissa}p{power}"
    assert answer(tree(threshold), "c", f">= {literal})", f">= {spelled})", options={"kernel": "ifelse"}) == "unread"


@pytest.mark.parametrize("spelled", ["-INT32_C(7u)", "2147483647 + 2147483642"])
def test_points_that_wrap_around(spelled):
    assert answer(card(-7), "c", "out[1] = -7;", f"out[1] = {spelled};") == "unread"


def test_an_unsigned_number_in_a_table_of_points():
    program = Program(("age", "income"), ("no", "yes"), tree(1.0).clauses, Scorecard((0, 3), ((0, -7),), 0))
    assert answer(program, "c", "{ 0, -7 }", "{ 0, -7u }") == "unread"


@pytest.mark.parametrize("ahead", ["1 / (1 - 1)", "*x", "x[0]"])
def test_a_prefetch_that_does_something(ahead):
    old = "GBFL_PREFETCH(x, "
    assert answer(tree(1.0), "c", old, f"GBFL_PREFETCH(x, {ahead} + ", options={"kernel": "select"}) == "unread"


def test_a_bracket_comment_in_a_build_file():
    old = "if(NOT MSVC)"
    assert answer(tree(1.0), "c", old, f"#[[\n{old}", "CMakeLists.txt", {"layout": "cmake"}) == "unread"


def test_a_comment_of_a_sketch_that_takes_the_next_line_with_it():
    old = "  if (wrong == 0) {"
    sketch, options = "examples/selftest/selftest.ino", {"layout": "arduino"}
    assert answer(tree(1.0), "c", old, f"  // a note\n{old}", sketch, options) == "proved"
    assert answer(tree(1.0), "c", old, f"  // a note \\\n{old}", sketch, options) == "unread"


def test_a_comment_opened_in_a_preprocessor_line():
    old = "#if DBL_MANT_DIG != 53\n#error "
    assert answer(tree(1.0), "c", old, f"{old}/* ") == "unread"


def test_a_constant_that_appears_twice():
    """A runtime may take either of the two."""
    onnx = pytest.importorskip("onnx")
    model = onnx.ModelProto()
    model.ParseFromString(emit(tree(1.0), "onnx", options={"lowering": "logic"}).files["model.onnx"])
    bound = next(tensor for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.DOUBLE)
    bound.double_data.append(7.0)
    assert prove_artifact(tree(1.0), "onnx", {"model.onnx": model.SerializeToString()}).answer == "unread"


@pytest.mark.parametrize("kept", [{"raw_data": b"\x02"}, {"int32_data": [256]}, {"int32_data": [-1]}])
def test_a_truth_value_that_is_neither(kept):
    """What `and` makes of a byte that is neither 0 nor 1 is not documented."""
    onnx = pytest.importorskip("onnx")
    model = onnx.ModelProto()
    model.ParseFromString(emit(tree(1.0), "onnx", options={"lowering": "logic"}).files["model.onnx"])
    model.graph.initializer.append(onnx.TensorProto(name="odd", data_type=onnx.TensorProto.BOOL, dims=[1], **kept))
    assert prove_artifact(tree(1.0), "onnx", {"model.onnx": model.SerializeToString()}).answer == "unread"


@pytest.mark.parametrize(("old", "new"), [("size_t n", "size_t x"), ("size_t n", "size_t int64_t")])
def test_a_header_that_no_compiler_takes(old, new):
    assert answer(tree(1.0), "c", old, new, "model.h") == "unread"


def written(program, target, folder, options=None):
    for name, content in emit(program, target, options=options).files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_a_compiled_module_beside_the_source_is_not_overlooked(tmp_path):
    written(tree(1.0), "python", tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "model.cpython-311.pyc").write_bytes(b"anything")
    assert prove_artifact(tree(1.0), "python", artifact_files(tmp_path / "model.py", ".py")).answer == "unread"


@pytest.mark.parametrize("decoy", ["stdint", "CMakeLists"])
def test_a_file_cannot_hide_behind_a_name(decoy, tmp_path):
    written(tree(1.0), "c", tmp_path, {"layout": "cmake"})
    (tmp_path / f"{decoy}.c").write_text("/* notes */\n")
    (tmp_path / ("stdint.h" if decoy == "stdint" else "CMakeLists.txt")).write_text("changed\n")
    assert prove_artifact(tree(1.0), "c", artifact_files(tmp_path / "model.c", ".c")).answer == "unread"


@pytest.mark.parametrize("place", ["return 0\n", "(-1, 0, True)"])
def test_numbers_of_thousands_of_digits(place):
    assert answer(tree(1.0), "python", place, place.replace("0", "0x" + "F" * 5000)) in ("unread", "other reasons")


C_TREE = "    if ((x[0] >= 0x1.8p+0)) {\n        return 0;\n    }\n    return 1;\n"


@pytest.mark.parametrize(
    "rules",
    [
        "const int32_t t = 1.5; if (x[0] >= t) { return 0; } return 1;",  # t is 1
        "const _Bool t = 1.5; if (x[0] >= t) { return 0; } return 1;",
        "int t; t = 1.5; if (x[0] >= t) { return 0; } return 1;",
        "int32_t t = 1; if (x[0] >= 1.5) { int32_t t = 0; (void)t; } return t;",  # the outer t stays 1
        "int32_t t = -2147483648; int64_t u = -t; if (x[0] >= 1.5 && u > 0) { return 0; } return 1;",  # overflows
    ],
)
def test_c_that_computes_something_else_than_it_seems(rules, tmp_path):
    program, options = tree(1.5), {"kernel": "ifelse"}
    assert answer(program, "c", C_TREE, rules, options=options) == "unread"
    files = dict(emit(program, "c", options=options).files)
    files["model.c"] = files["model.c"].decode().replace(C_TREE, rules).encode()
    if (answers := said_by_c(files, [[1.0, 0.0], [2.0, 0.0]], program, tmp_path)) is None:
        pytest.skip("no C compiler here")
    assert answers["predict"] != [0, 1]


def test_a_real_number_put_into_a_counter():
    """The loop over rows would end."""
    start = "    const double *const c0 = columns[0] + first;\n"
    assert answer(card(1), "c", start, f"{start}    n = 0.0;\n", options={"kernel": "select"}) == "unread"


@pytest.mark.parametrize("link", ["model", "__pycache__"])
def test_a_link_to_a_folder_is_not_a_place_to_hide(link, tmp_path):
    """Python would import the package rather than the module, and the compiled module rather than its source."""
    folder, elsewhere = tmp_path / "python", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    written(tree(1.0), "python", folder)
    source = folder / "model.py"
    own = source.read_bytes()
    other = own.replace(b"return 0", b"return 1")
    (elsewhere / "__init__.py").write_bytes(other)
    source.write_bytes(other)
    os.utime(source, (1e9, 1e9))
    py_compile.compile(str(source), str(elsewhere / f"model.{sys.implementation.cache_tag}.pyc"))
    source.write_bytes(own)
    os.utime(source, (1e9, 1e9))
    (folder / link).symlink_to(elsewhere)
    run = subprocess.run(
        [sys.executable, "-c", "import model; print(model.predict([2.0, 0.0]))"], cwd=folder, capture_output=True
    )
    assert run.stdout.split() == [b"no"]
    with pytest.raises(BadInput, match="link to a folder"):
        artifact_files(source, ".py")


@pytest.mark.parametrize("hidden", ["model.h.gch/made.o", "model.h.gch/.made"])
def test_a_precompiled_header_is_not_overlooked(hidden, tmp_path):
    written(tree(1.0), "c", tmp_path)
    (tmp_path / "model.h.gch").mkdir()
    (tmp_path / hidden).write_bytes(b"gpch\xff")
    assert prove_artifact(tree(1.0), "c", artifact_files(tmp_path / "model.c", ".c")).answer == "unread"


@pytest.mark.parametrize("decoy", ["features", "stdc-predef", "limits"])
def test_a_header_that_the_system_headers_ask_for(decoy, tmp_path):
    """With the folder among those searched, as a CMake build has it, it would be taken for the system's own."""
    written(tree(1.0), "c", tmp_path, {"layout": "cmake"})
    (tmp_path / f"{decoy}.c").write_text("/* notes */\n")
    (tmp_path / f"{decoy}.h").write_text("#define model_leaf_class model_leaf_node\n")
    assert prove_artifact(tree(1.0), "c", artifact_files(tmp_path / "model.c", ".c")).answer == "unread"


def test_another_model_in_the_folder_is_another_matter(tmp_path):
    written(tree(1.0), "c", tmp_path)
    for name, content in emit(card(1), "c", "second").files.items():
        (tmp_path / name).write_bytes(content)
    for name, program in (("model", tree(1.0)), ("second", card(1))):
        assert prove_artifact(program, "c", artifact_files(tmp_path / f"{name}.c", ".c")).answer == "proved"


def test_a_hidden_schema_is_read_by_dbt(tmp_path):
    written(tree(1.0), "sql:duckdb", tmp_path, {"form": "dbt", "table": "data"})
    (tmp_path / "schema.yml").rename(tmp_path / ".schema.yml")
    (tmp_path / ".schema.yml").write_text("models:\n  - name: model\n    config: {post_hook: drop}\n")
    assert prove_artifact(tree(1.0), "sql:duckdb", artifact_files(tmp_path / "model.sql", ".sql")).answer == "unread"


JS_EDITS = [
    ("return 0;", "return 9;"),  # a leaf that there is not
    ("return 0;", "return 0.5;"),
    ("[-1, 0, true]", "[-1, 0, null]"),
    ("[-1, 0, true]", "[-1, 7, true]"),
    ("ANSWERS = [];", "ANSWERS = [{ probabilities: [1, 0] }];"),  # what was answered before the first row
    ("CLASSES[index], index", "CLASSES[0], index"),
    ("function rules(", "async function rules("),
    ("function rules(", "function* rules("),
    ("age >= 1.0", "age >= 1.0 >= 0.0"),  # false >= 0, which is true
    ("age >= 1.0", "age >= 1.0, true"),
    ("age >= 1.0", "age >= 1n + 1n"),
    ("age >= 1.0", "age >= (age = 2.0)"),
    ("age >= 1.0", "age >= `2`"),
    ("[0.25, 0.75]", "[0.25, , 0.75]"),
    ("[0.25, 0.75]", "[0.25, 0.75, 0.0]"),
    ('"no", "yes"]', '"no", "yes\\u200b"]'),
    ('"no", "yes"]', '"no", , "yes"]'),
    ("export function score(", "score = null;\nexport function score("),
    ("export const DIGEST", "Object.hasOwn = () => false;\nexport const DIGEST"),
    ("export const DIGEST", "Object.freeze = (value) => value.reverse?.() ?? value;\nexport const DIGEST"),
    ("// The leaf", "/* */ Array.prototype.push = () => 0; // The leaf"),
    ("// The leaf", "// The leaf\u2028Array.prototype.push = () => 0;"),
]


def test_javascript_that_answers_otherwise_is_never_proved():
    """Every edit changes an answer, or ends in an error, in Node.js."""
    program, rows = tree(1.0), [[0.5, 0.0], [1.0, 0.0], [1.5, 0.0], [None, 0.0]]
    files = emit(program, "js").files
    text = files["model.js"].decode()
    assert [old for old, _ in JS_EDITS if old not in text] == []
    edits = [text.replace(old, new, 1).encode() for old, new in JS_EDITS]
    proofs = [prove_artifact(program, "js", {**files, "model.js": edit}).answer for edit in edits]
    assert [edit for edit, proof in zip(JS_EDITS, proofs, strict=True) if proof == "proved"] == []
    assert set(proofs) <= {"unread", "other names"}
    (right,) = answers_in_node([(files["model.js"], rows)])
    assert same(program, right, rows)
    # each in its own process: some of them change what every module of a process inherits
    assert [old for old, edit in zip(JS_EDITS, edits, strict=True) if answers_in_node([(edit, rows)]) == [right]] == []


def test_a_javascript_table_that_leads_back_to_itself():
    """Node.js would follow it for ever."""
    assert answer(tree(1.0), "js", "[-1, 0, true]", "[0, 0, true]", "model.js") == "unread"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("package.json", b'{"private": true, "type": "module", "type": "commonjs"}'),
        ("package.json", b'{"type": "module", "imports": {"#x": "./x.js"}}'),
        ("model.mjs", b"export * from './model.js';"),
        ("node_modules/x/index.js", b"process.exit();"),
        ("model.js.map", b"{}"),
        ("tsconfig.json", b"{}"),
    ],
)
def test_what_is_put_beside_a_javascript_module_is_not_overlooked(file, content):
    files = {**emit(tree(1.0), "js").files, file: content}
    assert prove_artifact(tree(1.0), "js", files).answer == "unread"


@pytest.mark.parametrize("decoy", ["datetime", "_datetime", "_pydatetime", "operator", "time", "math"])
def test_a_module_that_python_imports_is_not_taken_for_another_model(decoy, tmp_path):
    written(tree(1.0), "python", tmp_path)
    model = tmp_path / "model.py"
    (tmp_path / "other.py").write_text("")
    assert list(artifact_files(model, ".py")) == ["model.py"]
    (tmp_path / f"{decoy}.py").write_text("")
    assert prove_artifact(tree(1.0), "python", artifact_files(model, ".py")).answer == "unread"


@pytest.mark.parametrize("file", ["model.js", "model.d.ts"])
@pytest.mark.parametrize("comment", ['/// <reference path="other.d.ts" />', "// @ts-nocheck", "//@ts-ignore", "// # x"])
def test_a_comment_that_tools_obey_is_more_than_a_comment(file, comment):
    files = dict(emit(tree(1.0), "js").files)
    plain = {**files, file: b"// Read this first.\n" + files[file]}
    assert prove_artifact(tree(1.0), "js", plain).answer == "proved"
    files[file] = comment.encode() + b"\n" + files[file]
    assert prove_artifact(tree(1.0), "js", files).answer == "unread"
