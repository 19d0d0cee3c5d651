"""The ONNX target answers what the program answers, in ONNX Runtime and in onnx's own reference evaluator."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from gbfl_compile.backends import emit
from gbfl_compile.backends.base import artifact_name
from gbfl_compile.backends.onnx import open_model
from gbfl_compile.checking.run import PROBABILITY_BOUND, compare, expectation
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import digest, save
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, split
from gbfl_compile.ir.text import readable
from gbfl_compile.ir.validate import validate
from gbfl_compile.tables.read import read_table
from tests.ir.test_float32 import programs_with_float32_rows
from tests.programs import programs

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
from onnx.reference import ReferenceEvaluator  # noqa: E402 - only where onnx is installed

TREE = Program(
    ("age", "income"),
    ("no", "yes"),
    (Clause((Interval(0, 18.0, 65.0), Interval(1, 1e5))), Clause((Interval(1, None, 0.1, if_missing=True),))),
    split(0, leaf(0.25, 0.75), split(1, leaf(1.0, 0.0), leaf(0.5, 0.5))),
)
CARD = Program(TREE.features, TREE.classes, TREE.clauses, Scorecard((0, -2), ((0, 3), (0, -1)), 1))
LOWERINGS = ("logic", "tree")


def model(program, **options):
    return onnx.load_from_string(emit(program, "onnx", options=options).files["model.onnx"])


def in_runtime(made):
    settings_ = onnxruntime.SessionOptions()
    settings_.intra_op_num_threads = 1
    settings_.log_severity_level = 4
    return onnxruntime.InferenceSession(made.SerializeToString(), settings_, providers=["CPUExecutionProvider"])


def loaded(program, folder, **options):
    path = folder / "model.onnx"
    path.write_bytes(emit(program, "onnx", options=options).files["model.onnx"])
    return open_model(path)


def fed(made, rows):
    """The rows as the model takes them."""
    names = [each.name for each in made.graph.input]
    return {"input": rows} if names == ["input"] else {name: rows[:, [i]] for i, name in enumerate(names)}


def assert_same(program, made, engine, rows):
    """One engine's outputs for `rows`, against the definition."""
    names = [output.name for output in made.graph.output]
    found = dict(zip(names, engine.run(names, fed(made, rows)), strict=True))
    expected = evaluate_many(program, rows.astype(np.float64))
    assert found["label"].tolist() == expected.labels.tolist()
    assert found["probabilities"].dtype == np.float64
    if isinstance(program.decision, Tree):
        assert (found["probabilities"] == expected.probabilities).all()
        if "reason" in found:
            assert found["reason"].tolist() == expected.leaves.tolist()
    else:
        assert np.abs(found["probabilities"] - expected.probabilities).max(initial=0.0) <= PROBABILITY_BOUND
        assert found["score"].dtype == np.int64
        assert found["score"].tolist() == expected.scores.tolist()
        if "reason" in found:
            assert found["reason"].shape == (len(rows), len(program.clauses))


def assert_sound(made):
    onnx.checker.check_model(made, full_check=True)
    onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True, data_prop=True)


def variants(program, dtype):
    """The program in each lowering it can have, with each kind of input."""
    for lowering, inputs, reason in (("logic", "tensor", "yes"), ("logic", "columns", "no"), ("tree", "tensor", "no")):
        if reason == "yes" and not program.clauses:
            reason = "no"
        try:
            yield model(program, dtype=dtype, lowering=lowering, inputs=inputs, reason=reason)
        except BadInput as error:
            assert lowering == "tree"
            assert "as a TreeEnsemble" in str(error)  # noqa: PT017 - which variants there are depends on it


@settings(max_examples=200, deadline=None)
@given(programs(("tree", "scorecard", "banded")))
def test_float64_models_answer_as_the_program_does(program):
    rows = witnesses(program)
    for made in variants(program, "float64"):
        assert_sound(made)
        assert_same(program, made, in_runtime(made), rows)
        if len(made.graph.input) == 1:  # with columns it is the same graph but for its inputs
            assert_same(program, made, ReferenceEvaluator(made), rows)


@settings(max_examples=200, deadline=None)
@given(programs_with_float32_rows())
def test_float32_models_answer_every_float32_row_as_the_program_does(case):
    program, rows = case
    for made in variants(program, "float32"):
        assert_sound(made)
        assert_same(program, made, in_runtime(made), rows)
        if len(made.graph.input) == 1:
            assert_same(program, made, ReferenceEvaluator(made), rows)


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("inputs", ["tensor", "columns"])
def test_check_finds_no_difference(program, lowering, inputs, tmp_path):
    predictor = loaded(program, tmp_path, lowering=lowering, inputs=inputs)
    verdict = compare(expectation(program), predictor)
    assert verdict.verdict == "equal", verdict
    assert predictor.engine == f"onnxruntime {onnxruntime.__version__}"
    assert predictor.digest == digest(program)
    assert predictor.features == program.features
    assert predictor.classes == program.classes


def test_a_float32_model_says_that_it_rounds_and_is_exact_on_float32_rows(tmp_path):
    predictor = loaded(TREE, tmp_path, dtype="float32", reason="yes")
    assert predictor.engine.endswith("rows rounded to float32")
    assert predictor.digest == digest(TREE)
    with np.errstate(over="ignore"):
        rows = witnesses(TREE).astype(np.float32).astype(np.float64)
    expected, found = evaluate_many(TREE, rows), predictor.answer(rows)
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.leaves.tolist() == expected.leaves.tolist()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_the_command_line_compiles_checks_and_scores(ending, tmp_path, capsys):
    save(TREE, tmp_path / "program.json")
    table = pd.DataFrame({"id": [1, 2, 3], "income": [2e5, None, 1.0], "age": [30, 70, 70], "unused": ["a", "b", "c"]})
    (table.to_parquet if ending == ".parquet" else table.to_csv)(tmp_path / f"rows{ending}", index=False)
    program, build, scored = str(tmp_path / "program.json"), str(tmp_path / "build"), str(tmp_path / f"scored{ending}")
    assert main(["compile", program, "--to", "onnx", "-o", build, "--set", "onnx.inputs=columns"]) == 0
    assert main(["check", program, build]) == 0
    assert main(["score", f"{build}/onnx", str(tmp_path / f"rows{ending}"), "-o", scored, "--key", "id"]) == 0
    assert read_table(tmp_path / f"scored{ending}")["label"].tolist() == ["yes", "no", "no"]


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_denormals_are_not_flushed(lowering, dtype):
    tiny = 5e-324 if dtype == "float64" else 2.0**-149
    clauses = (Clause((Interval(0, tiny),)), Clause((Interval(0, None, -tiny, "right"),)))
    program = validate(
        Program(
            ("x",),
            (0, 1, 2),
            clauses,
            split(0, leaf(1.0, 0.0, 0.0), split(1, leaf(0.0, 1.0, 0.0), leaf(0.0, 0.0, 1.0))),
        )
    )
    made = model(program, lowering=lowering, dtype=dtype)
    rows = np.array([[tiny], [-tiny], [0.0], [-0.0], [2 * tiny], [-2 * tiny]], dtype=dtype)
    found = in_runtime(made).run(["label"], {"input": rows})[0]
    assert found.tolist() == [0, 1, 2, 2, 0, 1]


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_large_points_add_up_exactly(lowering):
    half = 2**51 + 1
    clauses = tuple(Clause((Interval(0, float(i)),)) for i in range(3))
    card = Scorecard((0, 1), ((half, -half), (half, half), (-1, 3)), 40)
    program = validate(Program(("x",), ("a", "b"), clauses, card))
    made = model(program, lowering=lowering)
    assert_same(program, made, in_runtime(made), np.array([[-1.0], [0.0], [1.0], [2.0], [math.nan]]))


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_points_that_need_more_than_float32_are_still_exact(lowering):
    clauses = tuple(Clause((Interval(0, float(i)),)) for i in range(2))
    program = validate(Program(("x",), ("a", "b"), clauses, Scorecard((0, 0), ((2**24, 1), (1, 2**24)), 20)))
    rows = np.array([[-1.0], [0.0], [1.0]], dtype=np.float32)
    if lowering == "tree":
        with pytest.raises(BadInput, match="past what float32 adds exactly: use lowering=logic"):
            model(program, lowering=lowering, dtype="float32")
    else:
        made = model(program, lowering=lowering, dtype="float32")
        assert_same(program, made, in_runtime(made), rows)


def test_ties_go_to_the_lower_class():
    program = Program(("x",), ("b", "a", "c"), (Clause((Interval(0, 0.0),)),), Scorecard((1, 1, 0), ((0, 0, 1),)))
    found = in_runtime(model(program)).run(["label"], {"input": np.array([[1.0], [-1.0]])})[0]
    assert found.tolist() == ["b", "b"]


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "rule set"])
@pytest.mark.parametrize("lowering", LOWERINGS)
def test_any_number_of_rows_at_once(program, lowering, tmp_path):
    predictor = loaded(program, tmp_path, lowering=lowering)
    rows = np.tile(witnesses(program), (400, 1))[:70_001]
    expected = evaluate_many(program, rows)
    found = predictor.answer(rows)
    assert found.labels.tolist() == expected.labels.tolist()
    for count in (0, 1, 2):
        part = predictor.answer(rows[:count])
        assert part.labels.tolist() == expected.labels[:count].tolist()
        assert part.probabilities.shape == (count, 2)


def test_threads_change_nothing(tmp_path):
    (tmp_path / "model.onnx").write_bytes(emit(CARD, "onnx").files["model.onnx"])
    rows = np.tile(witnesses(CARD), (200, 1))
    one, two = (open_model(tmp_path / "model.onnx", threads).answer(rows) for threads in (1, 2))
    assert one.labels.tolist() == two.labels.tolist()
    assert (one.probabilities == two.probabilities).all()


@pytest.mark.parametrize(
    "classes", [("no", "yes"), (7, -3), (False, True), (0.5, 2.0), ("größe", "it's \u2028")], ids=str
)
def test_labels_keep_their_type(classes, tmp_path):
    program = Program(TREE.features, classes, TREE.clauses, TREE.decision)
    predictor = loaded(program, tmp_path)
    found = predictor.answer(np.array([[30.0, 2e5], [70.0, 0.0]])).labels
    assert [(type(label), label) for label in found] == [(type(classes[i]), classes[i]) for i in (1, 0)]
    assert predictor.classes == classes


def test_the_reason_is_the_leaf_or_the_rules_that_held(tmp_path):
    rows = np.array([[30.0, 2e5], [70.0, math.nan], [70.0, 1.0]])
    assert in_runtime(model(TREE, reason="yes")).run(["reason"], {"input": rows})[0].tolist() == [0, 1, 2]
    held = in_runtime(model(CARD, reason="yes")).run(["reason"], {"input": rows})[0]
    assert held.tolist() == [[True, False], [False, True], [False, False]]
    assert loaded(TREE, tmp_path, reason="yes").answer(rows).leaves.tolist() == [0, 1, 2]
    with pytest.raises(BadInput, match="use lowering=logic"):
        model(CARD, reason="yes", lowering="tree")


def test_the_model_says_where_it_comes_from():
    made = model(TREE, inputs="columns", lowering="logic")
    properties = {prop.key: json.loads(prop.value) for prop in made.metadata_props}
    assert properties["gbfl.digest"] == digest(TREE)
    assert properties["gbfl.features"] == ["age", "income"]
    assert properties["gbfl.classes"] == ["no", "yes"]
    assert properties["gbfl.generator"].startswith("gbfl-compile ")
    assert (properties["gbfl.dtype"], properties["gbfl.inputs"], properties["gbfl.reason"]) == (
        "float64",
        "columns",
        "no",
    )
    assert made.doc_string == made.graph.doc_string == readable(TREE)
    assert made.ir_version == 8
    assert [(opset.domain, opset.version) for opset in made.opset_import] == [("", 15)]


def test_the_graph_reads_like_the_rules():
    made = model(TREE, lowering="logic")
    outputs = [name for node in made.graph.node for name in node.output]
    for name in ("age", "income", "age >= 18.0", "age < 65.0", "income >= 100000.0", "rule 0", "income is missing"):
        assert name in outputs
    (rule,) = (node for node in made.graph.node if node.output[0] == "rule 0")
    assert rule.doc_string == "18 <= age < 65 AND income >= 100000"


HOSTILE = (
    "input", "label", "probabilities", "rule 0", "age >= 18.0", "0.1", "", " ", "a b", "a'b", 'a"b', "a\nb", "a\u2028b", "größe", "数",
    "{{ 7*7 }}", "%s", "/a/b", "a:0", "\N{PILE OF POO}", "leaf 0", "first", "flat",
)  # fmt: skip


@pytest.mark.parametrize("inputs", ["tensor", "columns"])
@pytest.mark.parametrize("name", [name for name in HOSTILE if name])
def test_a_hostile_name_works_or_is_refused_clearly(name, inputs, tmp_path):
    clauses = (Clause((Interval(0, 1.0), Interval(1, None, 0.1))), Clause((Interval(1, 18.0),)))
    decision = split(0, leaf(1.0, 0.0), split(1, leaf(0.0, 1.0), leaf(0.5, 0.5)))
    program = validate(Program((name, f"{name} (2)", "unused"), (name, f"{name}!"), clauses, decision))
    if inputs == "columns" and name in ("label", "probabilities"):
        with pytest.raises(BadInput, match=f"feature '{name}' is also the name of an output: rename"):
            model(program, inputs=inputs)
        return
    made = model(program, inputs=inputs)
    assert_sound(made)
    assert_same(program, made, in_runtime(made), witnesses(program))
    assert compare(expectation(program), loaded(program, tmp_path, inputs=inputs)).verdict == "equal"


def rule_list(rules):
    clauses = tuple(Clause((Interval(0, float(i), i + 0.5), Interval(1, None, float(i)))) for i in range(rules))
    nodes = []
    for i in range(rules):
        nodes += [Split(i, 2 * i + 1, 2 * i + 2), Leaf((1.0, 0.0) if i % 2 else (0.0, 1.0))]
    return validate(Program(("a", "b"), ("x", "y"), clauses, Tree((*nodes, Leaf((0.5, 0.5))))))


def rule_set(rules):
    program = rule_list(rules)
    points = tuple((0, i % 7 - 3) for i in range(rules))
    return validate(Program(program.features, program.classes, program.clauses, Scorecard((0, 1), points, 2)))


@pytest.mark.parametrize("make", [rule_list, rule_set])
def test_1300_clauses_are_emitted_and_run(make, tmp_path):
    program = make(1300)
    predictor = loaded(program, tmp_path)
    rows = np.array([[i / 4, float(i % 1500)] for i in range(0, 5300, 7)])
    assert predictor.answer(rows).labels.tolist() == evaluate_many(program, rows).labels.tolist()


def test_a_tree_that_would_grow_too_large_is_refused():
    with pytest.raises(BadInput, match=r"as a TreeEnsemble the rules need more than .* use lowering=logic"):
        model(rule_list(1300), lowering="tree")


def test_auto_takes_what_was_measured_to_be_quicker():
    chosen = [
        json.loads(next(prop.value for prop in model(program).metadata_props if prop.key == "gbfl.lowering"))
        for program in (TREE, CARD, rule_list(1300), Program(("x",), (0, 1), (), leaf(1.0, 0.0)))
    ]
    assert chosen == ["tree", "logic", "logic", "logic"]


def test_unknown_options_are_refused():
    with pytest.raises(BadInput, match="unknown option 'zipmap'"):
        model(TREE, zipmap="yes")
    with pytest.raises(BadInput, match="dtype='float16' is not one of float64, float32"):
        model(TREE, dtype="float16")


def test_the_same_program_gives_the_same_bytes():
    assert emit(TREE, "onnx").files == emit(TREE, "onnx").files
    assert list(emit(TREE, "onnx", artifact_name("iris")).files) == ["iris.onnx"]


def test_what_is_not_a_model_of_ours_is_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        open_model(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(BadInput, match="cannot load it"):
        open_model(tmp_path / "bad.onnx")
    made = model(TREE)
    del made.metadata_props[:]
    (tmp_path / "other.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(BadInput, match="is not a model this target emits"):
        open_model(tmp_path / "other.onnx")


def test_a_row_too_short_is_refused(tmp_path):
    with pytest.raises(BadInput, match="the model has 2 features"):
        loaded(TREE, tmp_path).answer(np.zeros((3, 1)))


@pytest.mark.parametrize("module", ["onnx", "onnxruntime"])
def test_without_the_libraries_it_says_which_extra_brings_them(module, monkeypatch, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(emit(TREE, "onnx").files["model.onnx"])
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(CannotRun, match=r"pip install .*\[onnx\]'$"):
        emit(TREE, "onnx") if module == "onnx" else open_model(path)
