"""Group `onnx`: our graphs against skl2onnx's conversion of the same models, in ONNX Runtime on one thread.

Three models over 20 features: a tree of depth 5 over 31 clauses of three intervals, a raw-feature tree of depth 5,
and a set of 50 weighted rules of three intervals (which skl2onnx has no counterpart for).
"""

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto
from skl2onnx import to_onnx, update_registered_converter
from skl2onnx.algebra.onnx_ops import OnnxAnd, OnnxCast, OnnxEqual, OnnxGather, OnnxGreaterOrEqual, OnnxLess, OnnxMatMul
from skl2onnx.common.data_types import FloatTensorType
from skl2onnx.sklapi import CastTransformer
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.backends import emit
from gbfl_compile.backends.onnx import BATCH
from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Leaf, Program, Scorecard, Split, preorder
from gbfl_compile.lowering import lower
from tests.bench.onnx_profile import where_time_goes
from tests.bench.timing import Timing, race

FEATURES = 20
BATCHES = (1, 1_000, 1_000_000)


class ClauseBits(TransformerMixin, BaseEstimator):
    """Clauses as 0/1 columns: what a user without this package writes in front of a tree."""

    def __init__(self, clauses: tuple[Clause, ...]) -> None:
        self.clauses = clauses

    def fit(self, X: Any, y: Any = None) -> "ClauseBits":
        return self

    def transform(self, X: Any) -> Any:
        return np.column_stack([clause_column(clause, X) for clause in self.clauses]).astype(np.float32)


def bits_shape(operator: Any) -> None:
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].type = FloatTensorType([rows, len(operator.raw_operator.clauses)])


def bits_converter(scope: Any, operator: Any, container: Any) -> None:
    """All atoms in one matrix, both bounds compared at once, then a product that counts the atoms of each clause."""
    opset = container.target_opset
    clauses = operator.raw_operator.clauses
    atoms = [(number, atom) for number, clause in enumerate(clauses) for atom in clause.atoms]
    belongs = np.zeros((len(atoms), len(clauses)), dtype=np.float32)
    belongs[np.arange(len(atoms)), [number for number, _ in atoms]] = 1
    x = OnnxGather(operator.inputs[0], np.array([atom.feature for _, atom in atoms]), axis=1, op_version=opset)
    lo, hi = (np.array([[bound(atom) for _, atom in atoms]]) for bound in (lambda a: a.lo, lambda a: a.hi))
    inside = OnnxAnd(OnnxGreaterOrEqual(x, lo, op_version=opset), OnnxLess(x, hi, op_version=opset), op_version=opset)
    counts = OnnxMatMul(OnnxCast(inside, to=1, op_version=opset), belongs, op_version=opset)
    full = OnnxEqual(counts, belongs.sum(axis=0, keepdims=True), op_version=opset)
    OnnxCast(full, to=1, op_version=opset, output_names=operator.outputs).add_to(scope, container)


def run() -> list[Timing]:
    """Every model in batches of 1, 1,000 and 1,000,000 rows; about two minutes and 4 GB."""
    update_registered_converter(ClauseBits, "BenchClauseBits", bits_shape, bits_converter, overwrite=True)
    choose = np.random.default_rng(0)
    x = choose.normal(size=(max(BATCHES), FEATURES))
    found: list[Timing] = []
    for model, contenders in (
        ("tree, 31 clauses", clause_tree(choose, x[:20_000])),
        ("raw tree", raw_feature_tree(choose, x[:20_000])),
        ("50 rules", rule_set(choose)),
    ):
        sessions = {who: session(content) for who, content in contenders.items()}
        for batch in BATCHES:
            shape = f"{model}, {batch:,} rows"
            repeat = max(1, 300 // batch)
            calls = {who: (call(made, x[:batch], repeat), batch * repeat) for who, made in sessions.items()}
            if batch > BATCH:
                calls[f"ours, auto, by {BATCH:,}"] = (call_by_parts(sessions["ours, auto"], x[:batch]), batch)
            found += race("onnx", shape, calls, rounds=3)
        if model == "50 rules":
            found += where_time_goes("50 rules, where the time goes", contenders["ours, auto"], x[: 8 * BATCH])
    return found


def session(content: bytes) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    return onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])


def call(made: Any, rows: Any, repeat: int) -> Any:
    """The whole batch in one run; one column each where the model wants columns."""
    inputs = made.get_inputs()
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}[inputs[0].type]
    rows = rows.astype(kind)
    feed = {inputs[0].name: rows}
    if len(inputs) > 1:
        feed = {each.name: np.ascontiguousarray(rows[:, [f]]) for f, each in enumerate(inputs)}

    def go() -> None:
        for _ in range(repeat):
            made.run(None, feed)

    return go


def call_by_parts(made: Any, rows: Any) -> Any:
    """As the target's Predictor runs it: columns that stay in cache."""

    def go() -> None:
        for start in range(0, len(rows), BATCH):
            made.run(None, {"input": rows[start : start + BATCH]})

    return go


def ours(program: Program) -> dict[str, bytes]:
    options_of = {
        "ours, logic": {"lowering": "logic"},
        "ours, logic, columns": {"lowering": "logic", "inputs": "columns"},
        "ours, logic, float32": {"lowering": "logic", "dtype": "float32"},
        "ours, tree": {"lowering": "tree"},
        "ours, auto": {},
    }
    return {who: emit(program, "onnx", options=options).files["model.onnx"] for who, options in options_of.items()}


def random_clauses(choose: Any, count: int) -> tuple[Clause, ...]:
    clauses = []
    for _ in range(count):
        features = choose.choice(FEATURES, 3, replace=False)
        bounds = np.sort(choose.normal(size=(3, 2)), axis=1) + np.array([-0.5, 0.5])
        clauses.append(
            Clause(tuple(Interval(int(f), float(a), float(b)) for f, (a, b) in zip(features, bounds, strict=True)))
        )
    return tuple(clauses)


def clause_tree(choose: Any, x: Any) -> dict[str, bytes]:
    """A tree over clauses, and the same tree by skl2onnx behind a transformer that makes the clauses' bits."""
    clauses = random_clauses(choose, 60)
    steps = make_pipeline(ClauseBits(clauses), DecisionTreeClassifier(max_depth=5, random_state=0))
    steps.fit(x, (x[:, 0] * x[:, 1] + x[:, 2] > choose.normal(size=len(x))).astype(int))
    program = over_clauses(steps[-1], clauses)
    used = tuple(dict.fromkeys(node.clause for node in program.decision.nodes if isinstance(node, Split)))
    program = Program(program.features, program.classes, tuple(clauses[c] for c in used), renumber(program, used))
    expected = evaluate_many(program, x).labels.astype(int)
    assert (expected == steps.predict(x)).all()
    few = make_pipeline(ClauseBits(program.clauses), DecisionTreeClassifier(max_depth=5, random_state=0))
    few.fit(x, expected)
    return {"skl2onnx, transformer and tree": convert(few, x), **ours(program)}


def over_clauses(fitted: Any, clauses: tuple[Clause, ...]) -> Program:
    arrays = fitted.tree_
    nodes: list[Split | Leaf] = []
    for i in range(arrays.node_count):
        left, right = int(arrays.children_left[i]), int(arrays.children_right[i])
        if left < 0:
            nodes.append(Leaf(tuple(arrays.value[i, 0].tolist())))
        else:
            nodes.append(Split(int(arrays.feature[i]), right, left))
    return Program(tuple(f"x{f}" for f in range(FEATURES)), (0, 1), clauses, preorder(nodes))


def renumber(program: Program, used: tuple[int, ...]) -> Any:
    nodes = program.decision.nodes
    return preorder([n if isinstance(n, Leaf) else Split(used.index(n.clause), n.then, n.otherwise) for n in nodes])


def raw_feature_tree(choose: Any, x: Any) -> dict[str, bytes]:
    fitted = DecisionTreeClassifier(max_depth=5, random_state=0)
    fitted.fit(x, (x[:, 0] * x[:, 1] + x[:, 2] > choose.normal(size=len(x))).astype(int))
    double = convert(make_pipeline(CastTransformer(dtype=np.float32), fitted), x)
    single = convert(fitted, x.astype(np.float32))
    return {"skl2onnx, cast and tree": double, "skl2onnx, tree on float32": single, **ours(lower(fitted))}


def convert(model: Any, x: Any) -> bytes:
    """skl2onnx's own conversion. It declares the probabilities as double where x is, and its tree gives float32."""
    made = to_onnx(model, x[:1], options={"zipmap": False}, target_opset=15)
    made.graph.output[1].type.tensor_type.elem_type = TensorProto.FLOAT
    return made.SerializeToString()


def rule_set(choose: Any) -> dict[str, bytes]:
    points = tuple((0, int(p)) for p in choose.integers(-2000, 2000, 50))
    features = tuple(f"x{f}" for f in range(FEATURES))
    return ours(Program(features, (0, 1), random_clauses(choose, 50), Scorecard((0, 100), points, 10)))
