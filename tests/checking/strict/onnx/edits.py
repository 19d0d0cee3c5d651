"""Edits of an emitted ONNX model: the same graph written differently, and a graph with one slip in it."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

SIGNS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")
MIRRORED = {"Less": "Greater", "LessOrEqual": "GreaterOrEqual", "Greater": "Less", "GreaterOrEqual": "LessOrEqual"}


def opened(files):
    model = onnx.ModelProto()
    model.ParseFromString(files["model.onnx"])
    return model


def written(model):
    return {"model.onnx": model.SerializeToString()}


def respelled(choose, files):
    """The model with its graph said otherwise; every answer stays."""
    model = opened(files)
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes = []
    for node in graph.node:
        nodes += _node(choose, node, constants, graph)
    del graph.node[:]
    graph.node.extend(nodes)
    if choose.random() < 0.5:
        _rename(choose, graph)
    if choose.random() < 0.3:
        _constants_as_nodes(choose, graph)
    graph.doc_string = "edited"
    return written(model)


def _node(choose, node, constants, graph):
    """A node as one or more that give the same."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    if choose.random() < 0.4:
        return [made]
    if node.op_type in SIGNS:
        if choose.random() < 0.5:
            made.op_type = MIRRORED[node.op_type]
            made.input[:] = node.input[::-1]
            return [made]
        return [_strict(made, constants, graph) if node.input[1] in constants else made]
    if node.op_type in ("And", "Or"):
        made.input[:] = node.input[::-1]
        if choose.random() < 0.5:
            return [made]
        names = [f"{node.output[0]} not {i}" for i in range(3)]
        other = "Or" if node.op_type == "And" else "And"
        return [
            helper.make_node("Not", [node.input[0]], [names[0]]),
            helper.make_node("Not", [node.input[1]], [names[1]]),
            helper.make_node(other, names[:2], [names[2]]),
            helper.make_node("Not", [names[2]], list(node.output)),
        ]
    if node.op_type == "Where":
        made.input[:] = [f"{node.output[0]} otherwise", node.input[2], node.input[1]]
        return [helper.make_node("Not", [node.input[0]], [made.input[0]]), made]
    if node.op_type == "TreeEnsemble":
        return [_tree(choose, made)]
    if node.op_type in ("Gather", "Squeeze", "Cast") and choose.random() < 0.5:
        made.output[:] = [f"{node.output[0]} before"]
        return [made, helper.make_node("Identity", [made.output[0]], list(node.output))]
    return [made]


def _strict(node, constants, graph):
    """`x >= t` as `x > the number before t`, and so on."""
    array = numpy_helper.to_array(constants[node.input[1]])
    up = node.op_type in ("Greater", "LessOrEqual")
    with np.errstate(all="ignore"):
        moved = np.nextafter(array, array.dtype.type(np.inf if up else -np.inf))
    if not np.isfinite(moved):
        return node
    name = f"{node.output[0]} bound"
    graph.initializer.append(numpy_helper.from_array(moved, name))
    swap = {"Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "Less": "LessOrEqual", "LessOrEqual": "Less"}
    node.op_type = swap[node.op_type]
    node.input[1] = name
    return node


def _attributes(node):
    return {attribute.name: attribute for attribute in node.attribute}


def _tree(choose, node):
    """`x <= t` as `x > t` with the sides and the missing values exchanged, at some of the nodes."""
    attributes = _attributes(node)
    modes = numpy_helper.to_array(attributes["nodes_modes"].t).copy()
    for i in range(len(modes)):
        if choose.random() < 0.5:
            modes[i] = 3
            attributes["nodes_missing_value_tracks_true"].ints[i] ^= 1
            for true, false in (("nodes_truenodeids", "nodes_falsenodeids"), ("nodes_trueleafs", "nodes_falseleafs")):
                one, other = attributes[true].ints[i], attributes[false].ints[i]
                attributes[true].ints[i], attributes[false].ints[i] = other, one
    attributes["nodes_modes"].t.CopyFrom(numpy_helper.from_array(modes, "comparisons"))
    return node


def _rename(choose, graph):
    kept = {each.name for each in (*graph.input, *graph.output)}
    names = {}
    for node in graph.node:
        node.name = f"n{choose.randrange(10**6)}"
        for list_of in (node.input, node.output):
            list_of[:] = [n if n in kept else names.setdefault(n, f"t{len(names)}") for n in list_of]
    for tensor in graph.initializer:
        tensor.name = names.setdefault(tensor.name, f"t{len(names)}")


def _constants_as_nodes(choose, graph):
    moved = [tensor for tensor in graph.initializer if choose.random() < 0.3]
    kept = [tensor for tensor in graph.initializer if tensor not in moved]
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in moved]
    nodes += list(graph.node)
    kept = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in kept]
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)


def mutated(choose, files):
    """The model with one slip in it, anywhere; what was slipped."""
    model = opened(files)
    graph = model.graph
    way = choose.choice(
        ("constant", "constant", "constant", "operator", "inputs", "attribute", "tree", "order", "metadata")
    )
    match way:
        case "constant" if graph.initializer:
            tensor = choose.choice(graph.initializer)
            tensor.CopyFrom(_slipped(choose, tensor))
        case "operator":
            node = choose.choice(graph.node)
            node.op_type = choose.choice((*SIGNS, "And", "Or", "Not", "Identity", "Where", "Equal", "Add", "Mul"))
        case "inputs":
            node = choose.choice(graph.node)
            known = [name for other in graph.node for name in other.output] + [
                tensor.name for tensor in graph.initializer
            ]
            if node.input and known:
                node.input[choose.randrange(len(node.input))] = choose.choice(known)
        case "order":
            i, j = choose.randrange(len(graph.node)), choose.randrange(len(graph.node))
            one, other = graph.node[i].SerializeToString(), graph.node[j].SerializeToString()
            graph.node[i].ParseFromString(other)
            graph.node[j].ParseFromString(one)
        case "metadata":
            prop = choose.choice(model.metadata_props)
            prop.value = choose.choice((prop.value[:-1], prop.value.replace("0", "1"), '"x"', "[]"))
        case _:
            nodes = [
                node for node in graph.node if node.attribute and (way != "tree" or node.op_type == "TreeEnsemble")
            ]
            if nodes:
                _slip_attribute(choose, choose.choice(choose.choice(nodes).attribute))
    return written(model), way


def _slipped(choose, tensor):
    array = numpy_helper.to_array(tensor).copy()
    if array.size == 0:
        return tensor
    flat = array.reshape(-1)
    i = choose.randrange(flat.size)
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            towards = array.dtype.type(choose.choice((np.inf, -np.inf)))
            flat[i] = choose.choice((np.nextafter(flat[i], towards), flat[i] + 1, -flat[i]))
    elif array.dtype.kind in "iu":
        flat[i] += array.dtype.type(1)
    elif array.dtype.kind == "b":
        flat[i] = not flat[i]
    else:
        flat[i] = flat[choose.randrange(flat.size)]
    return numpy_helper.from_array(array, tensor.name)


def _slip_attribute(choose, attribute):
    if attribute.ints:
        i = choose.randrange(len(attribute.ints))
        attribute.ints[i] += choose.choice((-1, 1))
    elif attribute.HasField("t"):
        attribute.t.CopyFrom(_slipped(choose, attribute.t))
    else:
        attribute.i += choose.choice((-1, 1))
