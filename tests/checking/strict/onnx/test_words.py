"""Models with words are read as the runtime runs them: an edited encoder, table or input is refused or refuted."""

import json
import random

import numpy as np
import pytest
from onnx import helper, numpy_helper

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact, read
from gbfl_compile.checking.run import compare, expectation
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, Scorecard, leaf, split
from tests.backends.onnx.test_words import loaded
from tests.checking.strict.onnx.edits import opened, written
from tests.counts import count

KINDS = ("number", "category", "category", "boolean", "date")
CLAUSES = (
    Clause((Interval(0, 1000.0, None), OneOf(1, ("a", "b")))),
    Clause((OneOf(2, ("A", "a", "á"), negated=True), OneOf(3, ("true",)))),
    Clause((OneOf(1, ("c",), if_missing=True), Interval(4, 19783.0, None))),
    Clause((OneOf(2, (), negated=True), OneOf(1, ("a",), negated=True))),
)
TREE = Program(
    ("income", "contract", "grade", "smoker", "opened"),
    ("no", "yes"),
    CLAUSES,
    split(
        0, split(1, leaf(0.2, 0.8), leaf(0.7, 0.3)), split(2, leaf(1.0, 0.0), split(3, leaf(0.4, 0.6), leaf(0.5, 0.5)))
    ),
    kinds=KINDS,
)
CARD = Program(
    TREE.features, TREE.classes, CLAUSES, Scorecard((0, -2), ((0, 3), (0, -1), (1, 0), (0, 2)), 1), kinds=KINDS
)
LOWERINGS = ("logic", "tree")


def model_of(program, **options):
    return opened(emit(program, "onnx", "model", options).files)


def nodes_of(model, operator):
    return [node for node in model.graph.node if node.op_type == operator]


def attribute_of(node, name):
    return next(attribute for attribute in node.attribute if attribute.name == name)


def encoders(model):
    return nodes_of(model, "LabelEncoder")


def keys_of(model, number=0):
    return attribute_of(encoders(model)[number], "keys_strings").strings


def codes_of(model, number=0):
    return attribute_of(encoders(model)[number], "values_int64s").ints


def rekey(model, old, new):
    keys = keys_of(model)
    keys[list(keys).index(old.encode())] = new if isinstance(new, bytes) else new.encode()


def drop_key(model):
    del keys_of(model)[0]
    del codes_of(model)[0]


def add_key(model):
    keys_of(model).append(b"d")
    codes_of(model).append(1)


def swap_codes(model):
    codes = codes_of(model)
    codes[0], codes[2] = codes[2], codes[0]


def set_default(model, number):
    attribute_of(encoders(model)[0], "default_int64").i = number


def exchange_inputs(model, operator, place):
    one, other = nodes_of(model, operator)[:2]
    one.input[place], other.input[place] = other.input[place], one.input[place]


def set_table(model, change):
    tensor = next(
        each for each in model.graph.initializer if each.name.startswith("contract") and "by code" in each.name
    )
    array = numpy_helper.to_array(tensor).copy()
    tensor.CopyFrom(numpy_helper.from_array(change(array), tensor.name))


def set_last(model, number, dtype=np.int64):
    tensor = next(each for each in model.graph.initializer if "the code of a missing value" in each.name)
    tensor.CopyFrom(numpy_helper.from_array(np.array(number, dtype=dtype), tensor.name))


def set_metadata(model, key, change):
    prop = next(each for each in model.metadata_props if each.key == key)
    prop.value = json.dumps(change(json.loads(prop.value)))


def remove_metadata(model, key):
    kept = [each for each in model.metadata_props if each.key != key]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def rename_encoder(model):
    for opset in model.opset_import:
        if opset.domain == "ai.onnx.ml":
            opset.version = 1


EDITS = {
    "a text dropped": drop_key,
    "a text added": add_key,
    "a text in other letters": lambda m: rekey(m, "a", "A"),
    "a text with a blank": lambda m: rekey(m, "a", "a "),
    "a text that is empty": lambda m: rekey(m, "a", ""),
    "a text twice": lambda m: rekey(m, "a", "b"),
    "a text that is not UTF-8": lambda m: rekey(m, "a", b"\xff"),
    "a text with NUL": lambda m: rekey(m, "a", "a\0"),
    "codes swapped": swap_codes,
    "any other text as a listed one": lambda m: set_default(m, 1),
    "any other text as missing": lambda m: set_default(m, 4),
    "a default past the table": lambda m: set_default(m, 99),
    "a default before the table": lambda m: set_default(m, -1),
    "missing as any other text": lambda m: set_last(m, 0),
    "missing as a listed text": lambda m: set_last(m, 1),
    "missing in another type": lambda m: set_last(m, 4, np.int32),
    "an encoder of the other column": lambda m: exchange_inputs(m, "LabelEncoder", 0),
    "missing values of the other column": lambda m: exchange_inputs(m, "Where", 0),
    "codes of the other column": lambda m: exchange_inputs(m, "Where", 2),
    "a table turned around": lambda m: set_table(m, lambda a: a[::-1].copy()),
    "a table negated": lambda m: set_table(m, lambda a: ~a if a.dtype == bool else (1 - a)),
    "a table cut short": lambda m: set_table(m, lambda a: a[:-1].copy()),
    "a surplus attribute": lambda m: encoders(m)[0].attribute.append(helper.make_attribute("default_string", "x")),
    "no default": lambda m: encoders(m)[0].attribute.remove(attribute_of(encoders(m)[0], "default_int64")),
    "another operator set": rename_encoder,
    "other kinds": lambda m: set_metadata(m, "gbfl.kinds", lambda k: [*k[:3], "number", k[4]]),
    "unknown kinds": lambda m: set_metadata(m, "gbfl.kinds", lambda k: ["colour", *k[1:]]),
    "too few kinds": lambda m: set_metadata(m, "gbfl.kinds", lambda k: k[1:]),
    "no kinds": lambda m: remove_metadata(m, "gbfl.kinds"),
    "columns in another order": lambda m: set_metadata(m, "gbfl.columns", lambda c: {**c, "texts": c["texts"][::-1]}),
    "no columns": lambda m: remove_metadata(m, "gbfl.columns"),
    "flags before texts": lambda m: (
        setattr(m.graph.input[1], "name", "texts_missing"),
        setattr(m.graph.input[2], "name", "texts"),
    ),
    "an input more": lambda m: m.graph.input.append(helper.make_tensor_value_info("more", 8, ["rows", 1])),
    "a category fewer": lambda m: setattr(m.graph.input[1].type.tensor_type.shape.dim[1], "dim_value", 1),
}


@pytest.mark.parametrize("program", [TREE, CARD], ids=["tree", "scorecard"])
@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("what", EDITS)
def test_an_edit_is_refused_or_refuted(what, lowering, program):
    model = model_of(program, lowering=lowering)
    before = model.SerializeToString()
    EDITS[what](model)
    assert model.SerializeToString() != before
    proof = prove_artifact(program, "onnx", written(model))
    assert proof.answer in ("unread", "counterexample", "other names"), proof.reason
    if proof.counterexample is not None:
        example = proof.counterexample
        answers = loaded(written(model)).answer_rows([list(example.values)])
        assert answers.labels[0] == example.target.label
        differs = answers.labels[0] != example.source.label or not np.allclose(
            answers.probabilities[0], example.source.probabilities, atol=1e-9
        )
        assert differs


def harmless(model):
    """The same codes otherwise: texts in another order, and each code moved in its table."""
    keys, codes = keys_of(model), codes_of(model)
    order = list(range(len(keys)))[::-1]
    texts, numbers = [keys[i] for i in order], [codes[i] for i in order]
    keys[:], codes[:] = texts, numbers


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_an_encoder_in_another_order_is_the_same(lowering):
    model = model_of(TREE, lowering=lowering)
    harmless(model)
    assert prove_artifact(TREE, "onnx", written(model)).answer == "proved"


def test_the_book_has_the_texts_of_the_encoders():
    (reading,) = read("onnx", written(model_of(TREE)))
    assert reading.kinds == KINDS
    assert reading.book == ((), ("a", "b", "c"), ("A", "a", "á"), ("true",), ())


def random_edit(choose, model):
    """One slip somewhere in the encoders, the tables, the missing values or the wiring."""
    encoder = choose.choice(encoders(model))
    keys, codes = (attribute_of(encoder, name) for name in ("keys_strings", "values_int64s"))
    place = choose.randrange(len(keys.strings))
    match choose.randrange(8):
        case 0:
            text = keys.strings[place].decode()
            keys.strings[place] = choose.choice(
                [text + " ", text.swapcase(), "", text + "\u0301", "é", text * 2]
            ).encode()
        case 1:
            del keys.strings[place]
            del codes.ints[place]
        case 2:
            keys.strings.append(choose.choice(["a ", "B", "d", ""]).encode())
            codes.ints.append(choose.randrange(6))
        case 3:
            codes.ints[place] = choose.randrange(-1, 6)
        case 4:
            attribute_of(encoder, "default_int64").i = choose.randrange(-1, 6)
        case 5:
            set_last(model, choose.randrange(6))
        case 6:
            tensors = [each for each in model.graph.initializer if "by code" in each.name]
            tensor = choose.choice(tensors)
            array = numpy_helper.to_array(tensor).copy()
            at = tuple(choose.randrange(size) for size in array.shape)
            array[at] = not array[at]
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        case 7:
            exchange_inputs(model, choose.choice(["LabelEncoder", "Where"]), 0)


@pytest.mark.parametrize("lowering", LOWERINGS)
def test_random_edits_are_never_falsely_proved(lowering):
    choose = random.Random(17)
    expected = {id(program): expectation(program) for program in (TREE, CARD)}
    answers = {"proved": 0, "counterexample": 0, "unread": 0}
    for _ in range(count("GBFL_ONNX_WORD_EDITS", 1000)):
        program = choose.choice((TREE, CARD))
        model = model_of(program, lowering=lowering)
        random_edit(choose, model)
        proof = prove_artifact(program, "onnx", written(model))
        answers[proof.answer] += 1
        if proof.answer == "proved":
            assert compare(expected[id(program)], loaded(written(model))).verdict == "equal"
        elif proof.answer == "counterexample":
            found = loaded(written(model)).answer_rows([list(proof.counterexample.values)])
            assert found.labels[0] == proof.counterexample.target.label
    assert answers["counterexample"] > 0
    assert answers["unread"] > 0
