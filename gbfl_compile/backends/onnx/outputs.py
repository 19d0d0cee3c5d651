"""A whole ONNX graph from a program: inputs, one of two lowerings, and the usual outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from gbfl_compile.backends.onnx.graph import (
    ROWS,
    Graph,
    Holds,
    Input,
    Interface,
    add,
    add_many,
    add_output,
    constant,
    inputs_of,
    label_tensor,
    missing_name,
    numbers,
    refuse_clashes,
    reserve,
    tensor_type,
)
from gbfl_compile.backends.onnx.logic import (
    Codes,
    Sources,
    as_numbers,
    clause_bits,
    column_shape,
    encode,
    everywhere,
    flat_columns,
    leaf_column,
    leaf_tables,
    score_lines,
    split_columns,
    used_features,
    word_atoms,
    word_matrix,
)
from gbfl_compile.backends.onnx.tree import ensemble, score_nodes, tree_nodes, unasked_points
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Program, Scorecard, Tree

NEVER = 2**62
"""A lead that no class has."""

LABEL, PROBABILITIES, SCORE, REASON, REASON_TEXT = "label", "probabilities", "score", "reason", "reason_text"


@dataclass(frozen=True, slots=True)
class FinishedGraph:
    """A finished graph and the value infos of its inputs and outputs."""

    graph: Graph
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def build_graph(program: Program, interface: Interface, words: list[str]) -> FinishedGraph:
    """The graph of a program. For float32 give the narrowed program: thresholds are written as they are.

    `words` are the texts of `reason_text`, one per leaf or rule; empty if it is not an output.
    """
    import numpy as np

    graph = Graph(interface.dtype)
    names = [LABEL, PROBABILITIES]
    names += [SCORE] if isinstance(program.decision, Scorecard) else []
    names += [REASON] if interface.reason else []
    names += [REASON_TEXT] if words else []
    inputs = inputs_of(program.features, program.kinds, interface.columns)
    refuse_clashes(inputs, names)
    feed = Feed(inputs, interface.columns)
    for name in (*(each.name for each in inputs), *names):
        reserve(graph, name)
    match program.decision:
        case Tree():
            leaf = _answer_by_leaf(graph, program, program.decision, interface, feed)
            if words:
                sentences = constant(graph, np.array(words, dtype=object), "reason of each leaf")
                add_output(graph, "Gather", [sentences, leaf], REASON_TEXT, axis=0)
        case Scorecard():
            _answer_by_score(graph, program, program.decision, interface, feed)
            if words:
                texts = constant(graph, np.array(words, dtype=object), "reason of each rule")
                silent = constant(graph, np.array([""], dtype=object), "no reason")
                add_output(graph, "Where", [REASON, texts, silent], REASON_TEXT)
        case _:
            assert_never(program.decision)
    return FinishedGraph(graph, _input_infos(graph, inputs), _output_infos(program, names))


@dataclass(frozen=True, slots=True)
class Feed:
    """The inputs of a graph, and whether they are single columns."""

    inputs: tuple[Input, ...]
    columns: bool

    def holding(self, what: Holds) -> list[Input]:
        """The inputs that hold this."""
        return [each for each in self.inputs if each.holds == what]


def _sources(graph: Graph, program: Program, feed: Feed) -> Sources:
    columns = flat_columns(graph, _narrow_columns(graph, program, feed, "numbers"), program.features)
    return Sources(program, columns, _codes(graph, program, feed), column_shape(graph, feed.inputs[0].name))


def _narrow_columns(graph: Graph, program: Program, feed: Feed, what: Holds) -> dict[int, str]:
    """What the inputs hold of each feature that the rules test, `[rows, 1]`."""
    used = set(used_features(program))
    columns: dict[int, str] = {}
    for each in feed.holding(what):
        if not used & set(each.features):
            continue
        columns |= (
            {each.features[0]: each.name} if feed.columns else split_columns(graph, each.name, program, each.features)
        )
    return columns


def _codes(graph: Graph, program: Program, feed: Feed) -> dict[int, Codes]:
    """The codes of each category that the rules test."""
    texts = flat_columns(graph, _narrow_columns(graph, program, feed, "texts"), program.features)
    names = tuple(map(missing_name, program.features))
    missing = flat_columns(graph, _narrow_columns(graph, program, feed, "missing"), names)
    return {feature: encode(graph, program, feature, texts[feature], missing[feature]) for feature in texts}


def _matrix(graph: Graph, program: Program, feed: Feed) -> str:
    """The columns that a TreeEnsemble compares: numbers, then 1 or 0 for each atom on a category."""
    parts = [each.name for each in feed.holding("numbers")]
    if atoms := word_atoms(program):
        codes = _codes(graph, program, feed)
        parts += [word_matrix(graph, program, codes[feature], own) for feature, own in atoms.items()]
    return add(graph, "Concat", parts, "features side by side", axis=1) if feed.columns or len(parts) > 1 else parts[0]


def _answer_by_leaf(graph: Graph, program: Program, tree: Tree, interface: Interface, feed: Feed) -> str:
    """Label and probabilities are constants of the leaf: two look-ups. Returns the leaf."""
    import numpy as np
    from onnx import TensorProto

    if interface.lowering == "tree":
        nodes = tree_nodes(as_numbers(program), tree)
        weight = ensemble(graph, _matrix(graph, program, feed), nodes, 1, "leaf as a number")
        column = add(graph, "Cast", [weight], "leaf of each row", to=TensorProto.INT64)
    else:
        column = leaf_column(graph, _sources(graph, program, feed), program, tree)
    flat = constant(graph, np.array([-1]), "flat")
    leaf = (add_output if interface.reason else add)(graph, "Reshape", [column, flat], REASON)
    probabilities, winners = leaf_tables(tree)
    labels = constant(graph, label_tensor([program.classes[c] for c in winners]), "label of each leaf")
    table = constant(graph, np.array(probabilities, dtype=np.float64), "probabilities of each leaf")
    add_output(graph, "Gather", [labels, leaf], LABEL, axis=0)
    add_output(graph, "Gather", [table, leaf], PROBABILITIES, axis=0)
    return leaf


def _answer_by_score(graph: Graph, program: Program, card: Scorecard, interface: Interface, feed: Feed) -> None:
    """Points are added exactly; the probabilities are their softmax in double."""
    import numpy as np
    from onnx import TensorProto

    if interface.lowering == "tree":
        points = _points_by_trees(graph, program, card, feed)
    else:
        points = _points_by_rules(graph, program, card, interface, feed)
    best = add(graph, "ArgMax", [points], "class with most points", axis=1, keepdims=0)
    labels = constant(graph, label_tensor(list(program.classes)), "label of each class")
    add_output(graph, "Gather", [labels, best], LABEL, axis=0)
    add_output(graph, "Cast", [points], SCORE, to=TensorProto.INT64)
    if card.bands:
        _band_rates(graph, card, best)
        return
    exact = add(graph, "Cast", [points], "points in double", to=TensorProto.DOUBLE)
    worth = constant(graph, np.array(2.0**-card.scale), "logits a point is worth")
    add_output(graph, "Softmax", [add(graph, "Mul", [exact, worth], "logits")], PROBABILITIES, axis=1)


def _band_rates(graph: Graph, card: Scorecard, best: str) -> None:
    """The constants of the winner's band: of its own leads, the number that it reaches says which row of the table."""
    import numpy as np
    from onnx import TensorProto

    width = max(2, *map(len, card.bands))
    rates = [[band.probabilities for band in own] + [own[-1].probabilities] * (width - len(own)) for own in card.bands]
    leads = [[band.least for band in own[1:]] + [NEVER] * (width - len(own)) for own in card.bands]
    two = constant(graph, np.array([2]), "two")
    most, _ = add_many(graph, "TopK", [SCORE, two], ["two most points", "their classes"], axis=1)
    places = [constant(graph, np.array(place), f"place {place}") for place in (0, 1)]
    first, second = (add(graph, "Gather", [most, place], "points of one place", axis=1) for place in places)
    column = constant(graph, np.array([-1, 1]), "as a column")
    lead = add(graph, "Reshape", [add(graph, "Sub", [first, second], "lead"), column], "lead of each row")
    own = add(graph, "Gather", [constant(graph, np.array(leads), "leads of each class"), best], "own leads", axis=0)
    reached = add(graph, "GreaterOrEqual", [lead, own], "leads that are reached")
    ones = add(graph, "Cast", [reached], "1 for each lead that is reached", to=TensorProto.INT64)
    along = constant(graph, np.array([1]), "along the leads")
    count = add(graph, "ReduceSum", [ones, along], "band of its class", keepdims=0)
    start = add(graph, "Mul", [best, constant(graph, np.array(width), "bands of a class")], "first band of the class")
    table = constant(graph, np.array(rates, dtype=np.float64).reshape(-1, len(card.bias)), "probabilities of each band")
    add_output(graph, "Gather", [table, add(graph, "Add", [start, count], "band")], PROBABILITIES, axis=0)


def _points_by_rules(graph: Graph, program: Program, card: Scorecard, interface: Interface, feed: Feed) -> str:
    """`[rows, classes]` from truth values, and the reason if it is an output."""
    import numpy as np

    sources = _sources(graph, program, feed)
    if program.clauses:
        bits = clause_bits(graph, sources, program)
        if interface.reason:
            add_output(graph, "Transpose", [bits], REASON, perm=[1, 0])
        return add(graph, "Transpose", [score_lines(graph, bits, card)], "points by row", perm=[1, 0])
    if interface.reason:
        raise BadInput("the rule set has no rules, so there is no reason to give: use reason=no")
    nothing = everywhere(graph, sources, np.array([0]), "no rule holds")
    bias = constant(graph, np.array([card.bias], dtype=np.float64), "points to start with")
    return add(graph, "Gather", [bias, nothing], "points by row", axis=0)


def _points_by_trees(graph: Graph, program: Program, card: Scorecard, feed: Feed) -> str:
    import numpy as np

    compared = as_numbers(program)
    nodes = score_nodes(compared, card, graph.dtype)
    matrix = _matrix(graph, program, feed)
    summed = ensemble(graph, matrix, nodes, len(program.classes), "points of the rules that hold")
    bias = np.array([unasked_points(compared, card)], dtype=numbers(graph))
    return add(graph, "Add", [summed, constant(graph, bias, "points to start with")], "points by row")


def _input_infos(graph: Graph, inputs: tuple[Input, ...]) -> tuple[Any, ...]:
    from onnx import TensorProto, helper

    types = {"numbers": tensor_type(numbers(graph)), "texts": TensorProto.STRING, "missing": TensorProto.BOOL}
    return tuple(
        helper.make_tensor_value_info(each.name, types[each.holds], [ROWS, len(each.features)]) for each in inputs
    )


def _output_infos(program: Program, names: list[str]) -> tuple[Any, ...]:
    import numpy as np
    from onnx import TensorProto, helper

    classes = len(program.classes)
    by_leaf = isinstance(program.decision, Tree)
    label = TensorProto.STRING if isinstance(program.classes[0], str) else None
    known: dict[str, tuple[int, list[str | int | None]]] = {
        LABEL: (label or tensor_type(label_tensor(list(program.classes)).dtype), [ROWS]),
        PROBABILITIES: (tensor_type(np.float64), [ROWS, classes]),
        SCORE: (tensor_type(np.int64), [ROWS, classes]),
        REASON: (tensor_type(np.int64), [ROWS]) if by_leaf else (TensorProto.BOOL, [ROWS, len(program.clauses)]),
        REASON_TEXT: (TensorProto.STRING, [ROWS] if by_leaf else [ROWS, len(program.clauses)]),
    }
    return tuple(helper.make_tensor_value_info(name, *known[name]) for name in names)
