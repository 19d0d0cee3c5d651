"""Numbers that compare as equal and are not the same: -0.0 for 0.0, and labels that are spelled in another way."""

import numpy as np
import pytest

from gbfl_compile.backends import backend, emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Band, Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.validate import validate
from tests.checking.test_adversary import answer, tree


def labelled(classes):
    return Program(("age",), classes, (Clause((Interval(0, 1.0),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))


BANDED = Program(
    ("age",),
    ("no", "yes"),
    (Clause((Interval(0, 1.0),)),),
    Scorecard((0, 1), ((5, 0),), 3, ((Band(0, (1.0, 0.0)),), (Band(0, (0.25, 0.75)),))),
)

SLIPS = {
    "a share of a Python leaf": (tree(1.0), "python", "(1.0, 0.0)", "(1.0, -0.0)"),
    "a share of a Python band": (BANDED, "python", "(1.0, 0.0)", "(1.0, -0.0)"),
    "a share of a C leaf": (tree(1.0), "c", "0x1p+0, 0x0p+0", "0x1p+0, -0x0p+0"),
    "a share of a C band": (BANDED, "c", "0x1p+0, 0x0p+0", "0x1p+0, -0x0p+0"),
    "a Python label": (labelled((0.0, 1.5)), "python", "CLASSES = (\n    0.0,", "CLASSES = (\n    -0.0,"),
    "a C label with another sign": (labelled((0.0, 1.5)), "c", '"0.0"', '"-0.0"'),
    "a C label with another digit": (labelled((0.0, 1.5)), "c", '"1.5"', '"1.50"'),
    "a C label as a power of ten": (labelled((0.0, 1.5)), "c", '"1.5"', '"15e-1"'),
    "a C label without its point": (labelled((0.0, 2.0)), "c", '"2.0"', '"2"'),
    "a C label with a digit in front": (labelled((0, 1)), "c", '"1"', '"01"'),
    "a C label that is minus nothing": (labelled((0, 1)), "c", '"0"', '"-0"'),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_what_is_not_the_same_to_the_last_bit_is_not_proved(slip):
    program, target, old, new = SLIPS[slip]
    assert prove_artifact(program, target, emit(program, target).files).answer == "proved"
    assert answer(program, target, old, new) == "unread"


@pytest.mark.parametrize(("program", "lowering"), [(tree(1.0), "logic"), (tree(1.0), "tree"), (BANDED, "logic")])
def test_a_share_of_an_onnx_table_is_the_same_to_the_last_bit(program, lowering):
    onnx = pytest.importorskip("onnx")
    model = onnx.ModelProto()
    model.ParseFromString(emit(program, "onnx", options={"lowering": lowering}).files["model.onnx"])
    tables = [each for each in model.graph.initializer if list(each.dims)[1:] == [2] and each.data_type == 11]
    (table,) = [each for each in tables if (onnx.numpy_helper.to_array(each) == 0.75).any()]
    numbers = onnx.numpy_helper.to_array(table).copy()
    numbers[numbers == 0.0] = -0.0
    table.CopyFrom(onnx.numpy_helper.from_array(numbers, table.name))
    assert prove_artifact(program, "onnx", {"model.onnx": model.SerializeToString()}).answer == "unread"


def test_a_label_of_an_onnx_table_is_the_same_to_the_last_bit():
    onnx = pytest.importorskip("onnx")
    program = labelled((0.0, 1.5))
    model = onnx.ModelProto()
    model.ParseFromString(emit(program, "onnx").files["model.onnx"])
    labels = [each for each in model.graph.initializer if 1.5 in onnx.numpy_helper.to_array(each).reshape(-1).tolist()]
    for each in labels:
        numbers = np.where(onnx.numpy_helper.to_array(each) == 0, -0.0, onnx.numpy_helper.to_array(each))
        each.CopyFrom(onnx.numpy_helper.from_array(numbers, each.name))
    assert labels
    assert prove_artifact(program, "onnx", {"model.onnx": model.SerializeToString()}).answer == "unread"


def test_no_program_has_a_label_that_is_minus_nothing():
    with pytest.raises(BadInput, match=r"class 1: -0\.0, write 0\.0"):
        validate(labelled((1.5, -0.0)))


@pytest.mark.parametrize("classes", [(0.0, 1e18), (5e-324, 0.1), (-(2**63), 2**63 - 1), (False, True), (-7, 0)])
@pytest.mark.parametrize("target", ["python", "c", "js", "onnx"])
def test_every_other_label_is_written_and_read_as_it_is(target, classes, tmp_path):
    if target == "onnx":
        pytest.importorskip("onnxruntime")
    program = labelled(classes)
    try:
        files = emit(program, target).files
    except BadInput:  # JavaScript has no whole numbers of 64 bits
        assert target == "js"
        return
    assert prove_artifact(program, target, files).answer == "proved"
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    if backend(target).available().cannot_run is None:
        predictor = backend(target).load(tmp_path / f"model{backend(target).extension}")
        assert [(type(each), each) for each in predictor.classes] == [(type(each), each) for each in classes]
