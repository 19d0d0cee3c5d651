"""The ONNX reader gives ONNX its real meaning: types, NaN, sums, trees; the rest is refused by node."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact, read
from gbfl_compile.checking.reading.nodes import Unread
from tests.backends.c.programs import CARD, TREE
from tests.checking.reader_artifacts import findings, said_by_onnx
from tests.checking.strict.onnx.edits import opened, written


def model_of(program, **options):
    return opened(emit(program, "onnx", "model", options).files)


def node_of(model, operator):
    return next(node for node in model.graph.node if node.op_type == operator)


def attribute_of(node, name):
    return next(attribute for attribute in node.attribute if attribute.name == name)


def constant_of(model, start):
    return next(tensor for tensor in model.graph.initializer if tensor.name.startswith(start))


def changed(tensor, change):
    array = numpy_helper.to_array(tensor).copy()
    change(array)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def modes(node, mode):
    tensor = attribute_of(node, "nodes_modes").t
    changed(tensor, lambda array: array.__setitem__(0, mode))


BAD = {
    "a threshold one ulp off": lambda m: changed(
        constant_of(m, "18.0"), lambda a: a.__setitem__((), np.nextafter(a, a.dtype.type(99)))
    ),
    "another comparison": lambda m: setattr(node_of(m, "GreaterOrEqual"), "op_type", "Greater"),
    "no word of missing values": lambda m: setattr(node_of(m, "Or"), "op_type", "And"),
    "another label": lambda m: changed(constant_of(m, "label of"), lambda a: a.__setitem__(0, a[1])),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_edit_is_shown_a_row_on_which_the_runtime_answers_otherwise(what):
    model = model_of(TREE, lowering="logic", reason="yes")
    BAD[what](model)
    ((reading, example),) = findings(TREE, "onnx", written(model))
    answer = said_by_onnx(written(model), [example.row], TREE.features)[0]
    assert answer == (example.target.label, example.target.probabilities, example.target.leaf)
    assert answer != (example.source.label, example.source.probabilities, example.source.leaf)
    assert reading.place == "label, probabilities, reason"


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("tracks", [0, 1])
def test_a_tree_node_means_what_the_runtime_makes_of_it(mode, tracks):
    """Each comparison, with missing values on either side, against the runtime on the cut and around it."""
    model = model_of(TREE, lowering="tree", reason="yes")
    node = node_of(model, "TreeEnsemble")
    modes(node, mode)
    attribute_of(node, "nodes_missing_value_tracks_true").ints[0] = tracks
    (reading,) = read("onnx", written(model))
    cut = float(numpy_helper.to_array(attribute_of(node, "nodes_splits").t)[0])
    values = [np.nan, -np.inf, np.nextafter(cut, -np.inf), cut, np.nextafter(cut, np.inf), np.inf, 30.0]
    rows = [[a, b] for a in values for b in (np.nan, 0.0, 1e6)]
    from gbfl_compile.checking.reading.evaluate import run_reading

    answers = [run_reading(reading, row) for row in rows]
    assert [(s.label, s.probabilities, s.leaf) for s in answers] == said_by_onnx(written(model), rows, TREE.features)


def mode_not_equal(model):
    modes(node_of(model, "TreeEnsemble"), 5)


def mode_equal(model):
    """ONNX Runtime makes one node of a chain of these, and loses where the second sends a missing value."""
    modes(node_of(model, "TreeEnsemble"), 4)


def leads_back(model):
    node = node_of(model, "TreeEnsemble")
    attribute_of(node, "nodes_trueleafs").ints[0] = 0
    attribute_of(node, "nodes_truenodeids").ints[0] = 0


def leads_nowhere(model):
    attribute_of(node_of(model, "TreeEnsemble"), "nodes_falsenodeids").ints[0] = 99


def weight_not_whole(model):
    changed(attribute_of(node_of(model, "TreeEnsemble"), "leaf_weights").t, lambda a: a.__setitem__(0, 0.5))


def other_sum(model):
    attribute_of(node_of(model, "TreeEnsemble"), "aggregate_function").i = 0


def one_more_attribute(model):
    node_of(model, "TreeEnsemble").attribute.append(helper.make_attribute("post_transform_more", 1))


def narrower_splits(model):
    attribute = attribute_of(node_of(model, "TreeEnsemble"), "nodes_splits")
    attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float32), "thresholds"))


@pytest.mark.parametrize(
    "change",
    [
        mode_not_equal,
        mode_equal,
        leads_back,
        leads_nowhere,
        weight_not_whole,
        other_sum,
        one_more_attribute,
        narrower_splits,
    ],
)
def test_trees_that_are_not_understood_are_refused(change):
    model = model_of(TREE, lowering="tree")
    change(model)
    with pytest.raises(Unread, match="TreeEnsemble"):
        read("onnx", written(model))


def in_another_file(model):
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def unknown_operator(model):
    node_of(model, "And").op_type = "Xor"


def other_domain(model):
    node_of(model, "And").domain = "somebody.else"


def a_function(model):
    model.functions.add(name="And")


def newer_operators(model):
    model.opset_import[0].version = 99


def points_not_whole(model):
    changed(constant_of(model, "points of each rule"), lambda a: a.__setitem__((0, 0), 0.5))


def points_too_large(model):
    changed(constant_of(model, "points of each rule"), lambda a: a.__setitem__((0, 0), 2.0**24))


def worth_no_power_of_two(model):
    changed(constant_of(model, "logits a point"), lambda a: a.__setitem__((), 0.3))


def other_order(model):
    first, last = (onnx_node.SerializeToString() for onnx_node in (model.graph.node[0], model.graph.node[-1]))
    model.graph.node[0].ParseFromString(last)
    model.graph.node[-1].ParseFromString(first)


def other_metadata(model):
    model.metadata_props.add(key="ort_config", value="{}")


def says_float32(model):
    prop = next(prop for prop in model.metadata_props if prop.key == "gbfl.dtype")
    prop.value = '"float32"'


def fixed_rows(model):
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5


def one_more_output(model):
    model.graph.output.append(helper.make_tensor_value_info("points", TensorProto.FLOAT, ["rows", 2]))


def announced_otherwise(model):
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64


def other_type_within(model):
    """ONNX Runtime refuses to load it."""
    name = node_of(model, "Split").output[0]
    model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.INT32, [None]))


def newer_format(model):
    model.ir_version = 99


def place_that_is_no_whole_number(model):
    constant_of(model, "first dimension").data_type = TensorProto.DOUBLE


@pytest.mark.parametrize(
    "change",
    [
        in_another_file,
        unknown_operator,
        other_domain,
        a_function,
        newer_operators,
        points_not_whole,
        points_too_large,
        worth_no_power_of_two,
        other_order,
        other_metadata,
        says_float32,
        fixed_rows,
        one_more_output,
        announced_otherwise,
        other_type_within,
        newer_format,
        place_that_is_no_whole_number,
    ],
)
def test_graphs_that_are_not_understood_are_refused(change):
    model = model_of(CARD, lowering="logic")
    change(model)
    with pytest.raises(Unread, match=r"model\.onnx: "):
        read("onnx", written(model))


def test_ties_that_go_to_the_last_class_are_seen():
    model = model_of(CARD, lowering="logic")
    node_of(model, "ArgMax").attribute.append(helper.make_attribute("select_last_index", 1))
    tied = model_of(CARD, lowering="logic")
    changed(constant_of(tied, "points to start"), lambda a: a.__setitem__((1, 0), 0.0))
    for each in (model, tied):
        (reading,) = read("onnx", written(each))
        assert reading.decision.tie_to == ("higher" if each is model else "lower")


def test_a_row_of_labels_in_another_order_is_refused():
    model = model_of(CARD, lowering="logic")
    changed(constant_of(model, "label of each class"), lambda a: a.__setitem__(slice(None), a[::-1].copy()))
    with pytest.raises(Unread, match="classes in their order"):
        read("onnx", written(model))


def _no_opsets(model):
    del model.opset_import[:]


def _tree_of_an_earlier_set(model):
    next(opset for opset in model.opset_import if opset.domain).version = 3


def _overload(model):
    model.graph.node[0].overload = "other"


def _node_metadata(model):
    model.graph.node[0].metadata_props.add(key="a", value="b")


def _value_info(model):
    model.graph.value_info.add(name="leaf")


def _function(model):
    model.functions.add(name="Less", domain="")


@pytest.mark.parametrize(
    "change", [_no_opsets, _tree_of_an_earlier_set, _overload, _node_metadata, _value_info, _function]
)
def test_what_the_reader_does_not_know_of_is_refused(change):
    model = opened(emit(TREE, "onnx", lowering="tree").files)
    change(model)
    assert findings(TREE, "onnx", written(model)) == ["unread"]


def test_a_field_of_a_later_format_is_refused():
    content = emit(TREE, "onnx").files["model.onnx"]
    assert findings(TREE, "onnx", {"model.onnx": content}) == ["proved"]
    assert findings(TREE, "onnx", {"model.onnx": content + b"\xba\x3e\x03abc"}) == ["unread"]


def test_every_field_that_is_written_is_accounted_for():
    """Another reader of the file may interpret data that means nothing to ours."""

    def edited(edit):
        model = opened(emit(TREE, "onnx", options={"lowering": "logic"}).files)
        edit(model)
        return prove_artifact(TREE, "onnx", written(model))

    def attribute(model):
        return next(each for node in model.graph.node for each in node.attribute)

    def doubles(model):
        return next(tensor for tensor in model.graph.initializer if tensor.data_type == TensorProto.DOUBLE)

    def empty(model, **values):
        model.graph.initializer.append(TensorProto(name="odd", data_type=11, dims=[0], **values))

    assert edited(lambda model: attribute(model).__setattr__("doc_string", "a note")).answer == "proved"
    assert edited(empty).answer == "proved"
    edits = {
        "AttributeProto with floats": lambda model: attribute(model).floats.append(1.0),
        "AttributeProto with s": lambda model: attribute(model).__setattr__("s", b"text"),
        "TensorProto with segment": lambda model: doubles(model).segment.__setattr__("begin", 1),
        "Dimension with denotation": lambda model: (
            model.graph.input[0].type.tensor_type.shape.dim[0].__setattr__("denotation", "DATA_BATCH")
        ),
        "values where those of another type are": lambda model: empty(model, float_data=[1.0]),
        "where those of another": lambda model: empty(model, string_data=[b"1"]),
    }
    for message, edit in edits.items():
        proof = edited(edit)
        assert (proof.answer, message in proof.reason) == ("unread", True), proof.reason


@pytest.mark.parametrize("declared", [1, 2])
def test_a_reason_in_a_column_of_its_own_is_refused(declared):
    """`[rows, 1]` where `[rows]` is approved; a runtime gives it even where it is declared as the latter."""
    model = opened(emit(TREE, "onnx", options={"lowering": "tree", "reason": "yes"}).files)
    nodes = model.graph.node
    for node in nodes:
        node.input[:] = ["flat leaf" if name == "reason" else name for name in node.input]
        node.output[:] = ["flat leaf" if name == "reason" else name for name in node.output]
    column = next(node.input[0] for node in nodes if node.output[0] == "flat leaf")
    nodes.append(helper.make_node("Identity", [column], ["reason"]))
    (output,) = (output for output in model.graph.output if output.name == "reason")
    if declared == 2:
        output.type.tensor_type.shape.dim.add().dim_value = 1
    with pytest.raises(Unread, match="reason"):
        read("onnx", written(model))
