"""Hostile names and labels through the ONNX target, and hostile graphs: loaded and run by ONNX Runtime itself."""

import json
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.backends import backend, emit
from gbfl_compile.checking.artifact import read
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.errors import BadInput
from tests.security.attacks import (
    RAW,
    ROWS,
    Attack,
    Harmless,
    all_of,
    anything_goes,
    armed,
    every_kind,
    labels_of,
    nothing_escaped,
    program_of,
    put,
    texts,
    unprintable,
)

onnx = pytest.importorskip("onnx", reason="pip install 'gbfl-compile[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="pip install 'gbfl-compile[onnx]'")

JSON = "gbfl_compile.backends.onnx.json.dumps"


def naive_json(value, **_):
    """Metadata as somebody writes JSON who has not thought of quotes."""
    listed = [value] if isinstance(value, str) else value
    inside = ", ".join(f'"{text}"' for text in listed)
    return inside if isinstance(value, str) else f"[{inside}]"


NAIVE = put(JSON, naive_json)
LAST_ONE_WINS = put("gbfl_compile.backends.onnx.graph._free_name", lambda graph, name: name)
NO_TEMPLATE = Harmless("a graph is written by no template and formats nothing")

ATTACKS = every_kind(
    {
        "single quote": Harmless("a text in a graph says its length; JSON beside it has double quotes"),
        "double quote": Attack('a", "b', NAIVE, "other names"),
        "backslash": Attack("\\u0061", NAIVE, "other names"),
        "newline": Attack("a\nb", NAIVE, "does not run"),
        "carriage return": Attack("a\rb", NAIVE, "does not run"),
        "comment": Harmless("a graph has no comments"),
        "template": NO_TEMPLATE,
        "template block": NO_TEMPLATE,
        "format": NO_TEMPLATE,
        "percent": NO_TEMPLATE,
        "nul": Attack("a\0b", all_of(anything_goes, NAIVE), "does not run"),
        "surrogate": Attack("a\ud800b", anything_goes, "does not run"),
        **{kind: Attack(text, nothing_escaped, "raw character") for kind, text in RAW.items()},
        "trigraph": Harmless("a graph is not C"),
        "names meet": Attack("rule 0", LAST_ONE_WINS, "does not run", "feature"),
        "markup": Harmless("a graph is not a page"),
    }
)


def outcome(program, folder):
    """What came of emitting the program, loading the graph and running it, rows as one matrix and by column."""
    for inputs in ("tensor", "columns"):
        try:
            content = emit(program, "onnx", options={"inputs": inputs, "lowering": "logic"}).files["model.onnx"]
        except BadInput as refusal:
            if "is also the name of an output" in str(refusal):
                continue
            return "refused"
        except Exception:
            return "does not run"
        (folder / "model.onnx").write_bytes(content)
        try:
            predictor = backend("onnx").load(folder / "model.onnx")
            if (predictor.features, predictor.classes) != (program.features, program.classes):
                return "other names"
            if predictor.answer(ROWS).labels.tolist() != labels_of(program):
                return "another answer"
        except Exception:
            return "does not run"
        model = onnx.load_from_string(content)
        if unprintable(model.doc_string + model.graph.doc_string):
            return "raw character"
    return "held"


@pytest.mark.parametrize(("text", "place", "beside", "expected"), texts(ATTACKS))
def test_a_hostile_name_stays_a_name(text, place, beside, expected, tmp_path):
    assert outcome(program_of(text, place, beside), tmp_path) == expected


@pytest.mark.parametrize("kind", armed(ATTACKS))
def test_the_attack_succeeds_against_a_weakened_target(kind, tmp_path, monkeypatch):
    attack = ATTACKS[kind]
    attack.weakened(monkeypatch)
    assert outcome(program_of(attack.text, attack.place, attack.beside), tmp_path) == attack.seen


SECRET = np.array([1.0, 2.0], dtype=np.float64).tobytes()


def with_data_elsewhere(location):
    """A graph whose constant lies in a file that it names."""
    from onnx import TensorProto, helper

    tensor = TensorProto(name="secret", data_type=TensorProto.DOUBLE, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", str(len(SECRET)))):
        tensor.external_data.add(key=key, value=value)
    rows = helper.make_tensor_value_info("input", TensorProto.DOUBLE, ["rows", 2])
    out = helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["rows", 2])
    graph = helper.make_graph(
        [helper.make_node("Add", ["input", "secret"], ["probabilities"])], "g", [rows], [out], [tensor]
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 15)])
    properties = {
        "digest": "0" * 64,
        "features": ["a", "b"],
        "classes": ["no", "yes"],
        "dtype": "float64",
        "inputs": "tensor",
    }
    helper.set_model_props(model, {f"gbfl.{key}": json.dumps(value) for key, value in properties.items()})
    return model.SerializeToString()


@pytest.fixture
def black_box(tmp_path, monkeypatch):
    """Asks a black box whose constant lies in another file, below, beside or above it."""
    from gbfl_compile.learning.black_box.load import load_black_box

    place = tmp_path / "model"
    place.mkdir()
    for folder in (tmp_path, place):
        (folder / "secret.bin").write_bytes(SECRET)
    monkeypatch.chdir(place)
    path = place / "model.onnx"

    def model_at(location):
        path.write_bytes(with_data_elsewhere(location))
        return load_black_box(str(path), ("a", "b"), ROWS[:1]).model(np.zeros((1, 2)))

    return model_at


@pytest.mark.parametrize("location", ["secret.bin", "../secret.bin", "sub/../../secret.bin"])
def test_a_graph_reads_no_other_file(location, black_box):
    """It is given to the runtime as bytes: there is no folder to find anything in."""
    with pytest.raises(BadInput, match="ONNX Runtime cannot load it"):
        black_box(location)
    with pytest.raises(BadInput, match="cannot load it"):
        backend("onnx").load(Path("model.onnx"))
    with pytest.raises(Unread):
        read("onnx", {"model.onnx": Path("model.onnx").read_bytes()})


def test_a_weakened_loader_reads_the_other_file(black_box, monkeypatch):
    session = ort.InferenceSession
    monkeypatch.setattr(
        ort, "InferenceSession", lambda content, *arguments, **more: session("model.onnx", *arguments, **more)
    )
    assert black_box("secret.bin").tolist() == [[1.0, 2.0]]
