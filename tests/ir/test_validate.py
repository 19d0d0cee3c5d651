"""Each illegal program is refused by name."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Band, Clause, Interval, Leaf, Program, Scorecard, Split, Tree, leaf, preorder, split
from gbfl_compile.ir.validate import validate
from tests.programs import programs

TWO = leaf(0.5, 0.5)
ONE = Clause((Interval(0, 1.0),))


def program(*, features=("a", "b"), classes=("no", "yes"), clauses=(ONE,), decision=None, metadata=None):
    return Program(features, classes, clauses, TWO if decision is None else decision, metadata or {})


def tree(*nodes):
    return program(decision=Tree(nodes))


LEAF = Leaf((0.5, 0.5))
EVEN = (0.5, 0.5)


def banded(*bands):
    return program(decision=Scorecard((0, 0), ((0, 1),), 0, bands))


ILLEGAL = {
    "no feature": (program(features=()), "at least one feature"),
    "feature not text": (program(features=("a", 1)), "feature 1: the name 1 is not a string"),
    "empty name": (program(features=("a", "")), "feature 1: the name is empty"),
    "long name": (program(features=("a", "b" * 1001)), "1001 characters"),
    "NUL in a name": (program(features=("a", "b\0")), "NUL"),
    "lone surrogate": (program(features=("a", "\ud800")), "surrogate"),
    "duplicate feature": (program(features=("a", "a")), "duplicate feature 'a'"),
    "no class": (program(classes=(), decision=leaf()), "at least one class"),
    "duplicate class": (program(classes=("a", "a")), "duplicate class 'a'"),
    "mixed classes": (program(classes=("a", 1)), "classes mix int and str"),
    "numpy class": (program(classes=(np.int64(0), np.int64(1))), "numpy.int64"),
    "NaN class": (program(classes=(0.0, math.nan)), "class 1: nan"),
    "huge class": (program(classes=(0, 2**63)), "64 bits"),
    "unknown feature": (program(clauses=(Clause((Interval(2, 1.0),)),)), "clause 0: unknown feature 2"),
    "feature is a bool": (program(clauses=(Clause((Interval(True, 1.0),)),)), "unknown feature True"),
    "crossed bounds": (
        program(clauses=(ONE, Clause((Interval(0, 2.0, 1.0),)))),
        "clause 1: lo 2.0 is not below hi 1.0",
    ),
    "empty interval": (program(clauses=(Clause((Interval(0, 1.0, 1.0),)),)), "lo 1.0 is not below hi 1.0"),
    "nothing between": (
        program(clauses=(Clause((Interval(0, 1.0, math.nextafter(1.0, 2.0), "neither"),)),)),
        "no double lies between",
    ),
    "NaN threshold": (program(clauses=(Clause((Interval(0, math.nan),)),)), "clause 0: lo is NaN"),
    "infinite threshold": (
        program(clauses=(Clause((Interval(0, None, math.inf),)),)),
        "hi is inf: leave an open bound out",
    ),
    "negative zero": (program(clauses=(Clause((Interval(0, -0.0),)),)), "lo is -0.0"),
    "whole-number threshold": (program(clauses=(Clause((Interval(0, 1),)),)), "lo is a builtins.int"),
    "numpy threshold": (
        program(clauses=(Clause((Interval(0, np.float64(1)),)),)),
        "numpy.float64, give a Python float",
    ),
    "unknown closed": (program(clauses=(Clause((Interval(0, 1.0, closed="up"),)),)), "closed is 'up'"),
    "if_missing not a truth value": (
        program(clauses=(Clause((Interval(0, 1.0, if_missing=None),)),)),
        "if_missing is None",
    ),
    "a feature twice": (
        program(clauses=(Clause((Interval(0, 1.0), Interval(0, None, 2.0))),)),
        "feature 0 appears in 2 atoms",
    ),
    "no nodes": (tree(), "no nodes"),
    "wrong probability width": (tree(Leaf((1.0,))), "node 0: 1 probabilities for 2 classes"),
    "probability not a probability": (tree(Leaf((1.5, -0.5))), "probability 1.5"),
    "NaN probability": (tree(Leaf((math.nan, 0.5))), "probability nan"),
    "probabilities do not add up": (tree(Leaf((0.5, 0.4))), "add up to 0.9"),
    "negative zero probability": (tree(Leaf((-0.0, 1.0))), "probability -0.0"),
    "negative rows": (tree(Leaf((0.5, 0.5), -1)), "rows is -1"),
    "unknown clause": (tree(Split(1, 1, 2), LEAF, LEAF), "node 0: unknown clause 1"),
    "unknown node": (tree(Split(0, 1, 7), LEAF, LEAF), "node 0: unknown node 7"),
    "cycle": (tree(Split(0, 1, 2), Split(0, 0, 3), LEAF, LEAF), "node 1: points back to node 0"),
    "shared leaf": (tree(Split(0, 1, 1), LEAF), "node 1: 2 nodes lead to it"),
    "unreached node": (tree(Split(0, 1, 2), LEAF, LEAF, LEAF), "node 3: no node leads to it"),
    "not in preorder": (tree(Split(0, 2, 1), LEAF, LEAF), "number the nodes"),
    "points for other clauses": (program(decision=Scorecard((0, 0), ())), "points for 0 clauses, there are 1"),
    "bias width": (program(decision=Scorecard((0,), ((0, 0),))), "bias: 1 numbers for 2 classes"),
    "points width": (program(decision=Scorecard((0, 0), ((0,),))), "clause 0: points: 1 numbers"),
    "fractional points": (program(decision=Scorecard((0, 0), ((0, 0.5),))), "0.5 is not a whole number"),
    "weights past 2^53": (
        program(decision=Scorecard((0, 2**52), ((0, -(2**52)),))),
        "class 'yes': the points may add up past 2.53",
    ),
    "an answer that is not a class": (tree(Leaf((0.5, 0.5), answer=2)), "node 0: unknown class 2, there are 2"),
    "an answer that is a bool": (tree(Leaf((0.5, 0.5), answer=True)), "unknown class True"),
    "an answer that says nothing": (tree(Leaf((0.5, 0.5), answer=0)), "node 0: answer 0 is the most probable class"),
    "bands of one class": (banded((Band(0, EVEN),)), "bands for 1 classes, there are 2"),
    "bands in a list": (banded([Band(0, EVEN)], (Band(0, EVEN),)), "bands: item 0 is a list"),
    "a band that is none": (banded((None,), (Band(0, EVEN),)), "bands of class 0: item 0 is a NoneType"),
    "no band": (banded((), (Band(0, EVEN),)), "bands of class 'no': the first one begins at 0"),
    "a first band above 0": (banded((Band(1, EVEN),), (Band(0, EVEN),)), "the first one begins at 0"),
    "bands out of order": (
        banded((Band(0, EVEN), Band(2, EVEN), Band(2, EVEN)), (Band(0, EVEN),)),
        "list them by their least lead",
    ),
    "half a point of lead": (banded((Band(0, EVEN), Band(1.5, EVEN)), (Band(0, EVEN),)), "1.5 is not a lead"),
    "a band's width": (banded((Band(0, (1.0,)),), (Band(0, EVEN),)), "1 probabilities for 2 classes"),
    "a band that does not add up": (banded((Band(0, (0.5, 0.4)),), (Band(0, EVEN),)), "add up to 0.9"),
    "scale": (program(decision=Scorecard((0, 0), ((0, 0),), -1)), "scale is -1"),
    "metadata not JSON": (program(metadata={"a": {1, 2}}), "metadata.a: a builtins.set"),
    "features no tuple": (program(features="ab"), "features: a str, use a tuple"),
    "a clause that is none": (program(clauses=(None,)), "clauses: item 0 is a NoneType"),
    "an atom that is none": (program(clauses=(Clause((None,)),)), "clause 0: atoms: item 0 is a NoneType"),
    "atoms in a list": (program(clauses=(Clause([Interval(0, 1.0)]),)), "clause 0: atoms: a list, use a tuple"),
    "probabilities in a list": (tree(Leaf([0.5, 0.5])), "node 0: probabilities: a list"),
    "a node that is none": (tree(None), "nodes: item 0 is a NoneType"),
    "no decision": (Program(("a",), (0,), (), None), "the decision is a NoneType"),
    "metadata a list": (Program(("a",), (0,), (), leaf(1.0), []), "metadata is a list"),
    "metadata of huge numbers": (program(metadata={"a": 10**5000}), "more than 64 bits"),
    "metadata NaN": (program(metadata={"a": [math.nan]}), r"metadata.a\[0\]: nan"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_program_is_refused_by_name(name):
    illegal, message = ILLEGAL[name]
    with pytest.raises(BadInput, match=message):
        validate(illegal)


def test_metadata_that_goes_on_for_ever_is_refused():
    endless = {}
    endless["self"] = endless
    with pytest.raises(BadInput, match="nested more than"):
        validate(program(metadata=endless))


@settings(max_examples=200, deadline=None)
@given(programs(("tree", "scorecard", "banded")))
def test_what_the_generator_makes_is_legal(made):
    assert validate(made) is made


def test_a_rule_list_of_thousands_of_rules_is_legal():
    nodes = []
    for rule in range(5000):
        nodes += [Split(0, 2 * rule + 1, 2 * rule + 2), LEAF]
    assert validate(tree(*nodes, LEAF))


def test_preorder_refuses_what_is_not_a_tree():
    with pytest.raises(ValueError, match="reached twice"):
        preorder([Split(0, 1, 1), LEAF])


def test_split_and_leaf_build_what_preorder_builds():
    built = split(0, split(1, leaf(1.0), leaf(0.5)), leaf(0.25))
    assert preorder(built.nodes) == built
    assert [type(node).__name__ for node in built.nodes] == ["Split", "Split", "Leaf", "Leaf", "Leaf"]
