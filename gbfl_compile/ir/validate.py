"""Which programs are legal. Each illegal one is refused by name, so that no later step has to wonder."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any, assert_never, get_args

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import DAY, EARLIEST, LATEST
from gbfl_compile.ir.nodes import TRUE, Atom, Band, Clause, Interval, Kind, Leaf, OneOf, Program, Scorecard, Split, Tree

EXACT = 2**53
"""Integers below this are doubles too, so a sum of points is the same number in every target."""

LARGEST_SCALE = 1000
"""2**-scale must stay an ordinary double."""

LONGEST_NAME = 1_000
LONGEST_TEXT = 1_000
"""Characters of a category's value in a rule."""

MOST_TEXTS = 10_000
"""Values of one atom."""

MOST_FEATURES = 100_000
MOST_CLASSES = 10_000
MOST_CLAUSES = 1_000_000
MOST_NODES = 4_000_000
MOST_BANDS = 1_000
"""Bands of one class."""

DEEPEST_METADATA = 32


def validate(program: Program) -> Program:
    """The program itself, or a BadInput that names what is wrong with it."""
    _check_types(program)
    _check_names(program.features)
    _check_kinds(program)
    _check_classes(program)
    _check_count("clauses", len(program.clauses), MOST_CLAUSES)
    for number, clause in enumerate(program.clauses):
        _check_clause(number, clause, program)
    match program.decision:
        case Tree():
            _check_tree(program.decision, program)
        case Scorecard():
            _check_scorecard(program.decision, program)
        case _:
            assert_never(program.decision)
    _check_json(program.metadata, ("metadata",))
    return program


def _check_types(program: Program) -> None:
    """Tuples where tuples belong, nodes where nodes belong: later steps hash and match them."""
    for name in ("features", "classes", "clauses", "kinds"):
        _check_tuple(getattr(program, name), object, name)
    _check_tuple(program.clauses, Clause, "clauses")
    for number, clause in enumerate(program.clauses):
        _check_tuple(clause.atoms, (Interval, OneOf), f"clause {number}: atoms")
    match program.decision:
        case Tree(nodes):
            _check_tuple(nodes, (Split, Leaf), "nodes")
            for index, node in enumerate(nodes):
                if isinstance(node, Leaf):
                    _check_tuple(node.probabilities, object, f"node {index}: probabilities")
        case Scorecard(bias, points, _, bands):
            _check_tuple(bias, object, "bias")
            _check_tuple(points, tuple, "points")
            _check_tuple(bands, tuple, "bands")
            for c, own in enumerate(bands):
                _check_tuple(own, Band, f"bands of class {c}")
                for band in own:
                    _check_tuple(band.probabilities, object, f"bands of class {c}: probabilities")
        case other:
            raise BadInput(f"the decision is a {type(other).__name__}, use a Tree or a Scorecard")
    if not isinstance(program.metadata, dict):
        raise BadInput(f"metadata is a {type(program.metadata).__name__}, use a dict")


def _check_tuple(value: Any, kind: type | tuple[type, ...], where: str) -> None:
    if not isinstance(value, tuple):
        raise BadInput(f"{where}: a {type(value).__name__}, use a tuple")
    for index, item in enumerate(value):
        if not isinstance(item, kind):
            raise BadInput(f"{where}: item {index} is a {type(item).__name__}")


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise BadInput(f"{count} {what}: at most {most} are supported")


def _check_names(features: tuple[str, ...]) -> None:
    if not features:
        raise BadInput("a program needs at least one feature")
    _check_count("features", len(features), MOST_FEATURES)
    for index, name in enumerate(features):
        if type(name) is not str:
            raise BadInput(f"feature {index}: the name {name!r} is not a string")
        _check_text(f"feature {index}", name)
    _check_unique("feature", features)


def _check_kinds(program: Program) -> None:
    known = get_args(Kind)
    if not program.kinds:
        return
    if len(program.kinds) != len(program.features):
        raise BadInput(f"{len(program.kinds)} kinds for {len(program.features)} features")
    for name, kind in zip(program.features, program.kinds, strict=True):
        if kind not in known:
            raise BadInput(f"feature {name!r}: the kind {kind!r} is none of {', '.join(known)}")
    if set(program.kinds) == {"number"}:
        raise BadInput("all kinds are number: leave kinds out")


def _check_text(where: str, text: str) -> None:
    if not text:
        raise BadInput(f"{where}: the name is empty")
    if len(text) > LONGEST_NAME:
        raise BadInput(f"{where}: the name has {len(text)} characters, at most {LONGEST_NAME} are supported")
    _check_letters(where, text)


def _check_letters(where: str, text: str) -> None:
    if "\0" in text:
        raise BadInput(f"{where}: {text!r} has a NUL character, which no target can write")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(f"{where}: {text!r} has a lone surrogate, which is not valid Unicode")


def _check_unique(what: str, names: tuple[Any, ...]) -> None:
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise BadInput(f"duplicate {what} {name!r}: rename one of the {count}")


def _check_classes(program: Program) -> None:
    classes = program.classes
    if not classes:
        raise BadInput("a program needs at least one class")
    _check_count("classes", len(classes), MOST_CLASSES)
    kinds = {type(label) for label in classes}
    if len(kinds) > 1:
        raise BadInput(f"classes mix {' and '.join(sorted(kind.__name__ for kind in kinds))}: use one type")
    if (kind := kinds.pop()) not in (str, int, float, bool):
        raise BadInput(f"class labels are {kind.__module__}.{kind.__qualname__}: use str, int, float or bool")
    for index, label in enumerate(classes):
        if isinstance(label, str):
            _check_text(f"class {index}", label)
        elif not -(2**63) <= label < 2**63:  # false for NaN too
            raise BadInput(f"class {index}: {label!r} is not a number of 64 bits")
        elif isinstance(label, float) and label == 0.0 and math.copysign(1.0, label) < 0.0:
            raise BadInput(f"class {index}: -0.0, write 0.0: they are equal")
    _check_unique("class", classes)


def _check_clause(number: int, clause: Clause, program: Program) -> None:
    where = f"clause {number}"
    for atom in clause.atoms:
        _check_atom(where, atom, program)
    if clause.atoms:
        feature, count = Counter(atom.feature for atom in clause.atoms).most_common(1)[0]
        if count > 1:
            raise BadInput(f"{where}: feature {feature} appears in {count} atoms, write them as one interval")


def _check_atom(where: str, atom: Atom, program: Program) -> None:
    if type(atom.feature) is not int or not 0 <= atom.feature < len(program.features):
        raise BadInput(f"{where}: unknown feature {atom.feature!r}, there are {len(program.features)}")
    if type(atom.if_missing) is not bool:
        raise BadInput(f"{where}: if_missing is {atom.if_missing!r}, use True or False")
    kind = program.kind(atom.feature)
    if isinstance(atom, OneOf) != (kind in ("category", "boolean")):
        wanted = "a OneOf" if kind in ("category", "boolean") else "an Interval"
        raise BadInput(f"{where}: {program.features[atom.feature]!r} is a {kind}: ask it with {wanted}")
    match atom:
        case Interval():
            _check_interval(where, atom, kind)
        case OneOf():
            _check_one_of(where, atom, kind)
        case _:
            assert_never(atom)


def _check_one_of(where: str, atom: OneOf, kind: Kind) -> None:
    if type(atom.negated) is not bool:
        raise BadInput(f"{where}: negated is {atom.negated!r}, use True or False")
    _check_tuple(atom.values, str, f"{where}: values")
    _check_count(f"values in {where}", len(atom.values), MOST_TEXTS)
    for text in atom.values:
        if len(text) > LONGEST_TEXT:
            raise BadInput(f"{where}: a value has {len(text)} characters, at most {LONGEST_TEXT} are supported")
        _check_letters(where, text)
    if any(a >= b for a, b in zip(atom.values, atom.values[1:], strict=False)):
        raise BadInput(f"{where}: list each value once, in the order of code points (sorted)")
    if kind == "boolean" and atom.values not in ((), (TRUE,)):
        raise BadInput(f"{where}: an atom on a boolean lists {TRUE!r} and nothing else; negate it for false")


def _check_interval(where: str, atom: Interval, kind: Kind) -> None:
    if atom.closed not in ("left", "right", "both", "neither"):
        raise BadInput(f"{where}: closed is {atom.closed!r}, use left, right, both or neither")
    for side, bound in (("lo", atom.lo), ("hi", atom.hi)):
        if bound is not None:
            _check_bound(f"{where}: {side}", bound)
            _check_time(f"{where}: {side}", bound, kind)
    if atom.lo is None or atom.hi is None:
        return
    if atom.lo > atom.hi or (atom.lo == atom.hi and atom.closed != "both"):
        raise BadInput(f"{where}: lo {atom.lo!r} is not below hi {atom.hi!r}")
    if atom.closed == "neither" and math.nextafter(atom.lo, math.inf) == atom.hi:
        raise BadInput(f"{where}: no double lies between lo {atom.lo!r} and hi {atom.hi!r}")


def _check_bound(where: str, bound: float) -> None:
    if type(bound) is not float:
        raise BadInput(f"{where} is a {type(bound).__module__}.{type(bound).__qualname__}, give a Python float")
    if math.isnan(bound):
        raise BadInput(f"{where} is NaN: a missing value is decided by if_missing, not by a bound")
    if math.isinf(bound):
        raise BadInput(f"{where} is {bound!r}: leave an open bound out")
    if bound == 0.0 and math.copysign(1.0, bound) < 0:
        raise BadInput(f"{where} is -0.0: write 0.0, they are equal")


def _check_time(where: str, bound: float, kind: Kind) -> None:
    """A date's bound is a whole day of the calendar, a timestamp's a whole microsecond."""
    if kind == "date" and (bound != int(bound) or not EARLIEST <= bound <= LATEST):
        raise BadInput(f"{where} {bound!r} is not a date: give whole days since 1970-01-01")
    if kind == "timestamp" and (bound != int(bound) or abs(bound) > 2**53 or not EARLIEST <= bound // DAY <= LATEST):
        raise BadInput(f"{where} {bound!r} is not a timestamp: give whole microseconds since 1970-01-01")


def _check_tree(tree: Tree, program: Program) -> None:
    if not tree.nodes:
        raise BadInput("the tree has no nodes")
    _check_count("nodes", len(tree.nodes), MOST_NODES)
    for index, node in enumerate(tree.nodes):
        if isinstance(node, Leaf):
            _check_leaf(index, node, len(program.classes))
        else:
            _check_split(index, node, tree, program)
    _check_preorder(tree)


def _check_leaf(index: int, leaf: Leaf, classes: int) -> None:
    where = f"node {index}"
    _check_probabilities(where, leaf.probabilities, classes)
    if leaf.answer is not None:
        if type(leaf.answer) is not int or not 0 <= leaf.answer < classes:
            raise BadInput(f"{where}: unknown class {leaf.answer!r}, there are {classes}")
        if leaf.answer == replace(leaf, answer=None).winner:
            raise BadInput(f"{where}: answer {leaf.answer} is the most probable class anyway: leave it out")
    if leaf.rows is not None and (type(leaf.rows) is not int or not 0 <= leaf.rows < 2**63):
        raise BadInput(f"{where}: rows is {leaf.rows!r}, give a count or leave it out")


def _check_probabilities(where: str, probabilities: tuple[float, ...], classes: int) -> None:
    if len(probabilities) != classes:
        raise BadInput(f"{where}: {len(probabilities)} probabilities for {classes} classes")
    for probability in probabilities:
        if type(probability) is not float or not 0.0 <= probability <= 1.0:
            raise BadInput(f"{where}: probability {probability!r} is not a Python float from 0 to 1")
        if math.copysign(1.0, probability) < 0:
            raise BadInput(f"{where}: probability -0.0, write 0.0")
    if not math.isclose(math.fsum(probabilities), 1.0, abs_tol=1e-6):
        raise BadInput(f"{where}: the probabilities add up to {math.fsum(probabilities)!r}, not 1")


def _check_split(index: int, split: Split, tree: Tree, program: Program) -> None:
    if type(split.clause) is not int or not 0 <= split.clause < len(program.clauses):
        raise BadInput(f"node {index}: unknown clause {split.clause!r}, there are {len(program.clauses)}")
    for child in (split.then, split.otherwise):
        if type(child) is not int or not 0 <= child < len(tree.nodes):
            raise BadInput(f"node {index}: unknown node {child!r}, there are {len(tree.nodes)}")
        if child <= index:
            raise BadInput(f"node {index}: points back to node {child}, a tree has no cycles")


def _check_preorder(tree: Tree) -> None:
    """Each node is where a walk (node, then, otherwise) meets it: nothing shared, nothing unreached."""
    leads = Counter(child for node in tree.nodes if isinstance(node, Split) for child in (node.then, node.otherwise))
    for index in range(1, len(tree.nodes)):
        if leads[index] == 0:
            raise BadInput(f"node {index}: no node leads to it")
        if leads[index] > 1:
            raise BadInput(f"node {index}: {leads[index]} nodes lead to it, a tree shares nothing")
    waiting = [0]
    for index, node in enumerate(tree.nodes):
        if (due := waiting.pop()) != index:
            raise BadInput(f"node {index}: expected node {due} here, number the nodes with ir.nodes.preorder")
        if isinstance(node, Split):
            waiting += (node.otherwise, node.then)


def _check_scorecard(card: Scorecard, program: Program) -> None:
    classes = len(program.classes)
    if type(card.scale) is not int or not 0 <= card.scale <= LARGEST_SCALE:
        raise BadInput(f"scale is {card.scale!r}: use a whole number from 0 to {LARGEST_SCALE}")
    if len(card.points) != len(program.clauses):
        raise BadInput(f"points for {len(card.points)} clauses, there are {len(program.clauses)}")
    columns = (("bias", card.bias), *((f"clause {i}: points", row) for i, row in enumerate(card.points)))
    for where, row in columns:
        if len(row) != classes:
            raise BadInput(f"{where}: {len(row)} numbers for {classes} classes")
        for points in row:
            if type(points) is not int:
                raise BadInput(f"{where}: {points!r} is not a whole number")
    for c, label in enumerate(program.classes):
        if sum(abs(row[c]) for _, row in columns) >= EXACT:
            raise BadInput(f"class {label!r}: the points may add up past 2^53, where sums stop being exact")
    if card.bands:
        _check_bands(card.bands, program)


def _check_bands(bands: tuple[tuple[Band, ...], ...], program: Program) -> None:
    if len(bands) != len(program.classes) or len(bands) < 2:
        raise BadInput(f"bands for {len(bands)} classes, there are {len(program.classes)}; a single class has none")
    for label, own in zip(program.classes, bands, strict=True):
        where = f"bands of class {label!r}"
        _check_count(where, len(own), MOST_BANDS)
        if not own or own[0].least != 0:
            raise BadInput(f"{where}: the first one begins at 0")
        for band in own:
            if type(band.least) is not int or not 0 <= band.least < 2 * EXACT:
                raise BadInput(f"{where}: {band.least!r} is not a lead in whole points")
            _check_probabilities(where, band.probabilities, len(program.classes))
        if any(a.least >= b.least for a, b in pairwise(own)):
            raise BadInput(f"{where}: list them by their least lead, each once")


def _check_json(value: Any, where: tuple[str | int, ...]) -> None:
    """What JSON can say, `where` being the way to it: it is put into words only for a refusal, as keys may be long."""
    if len(where) > DEEPEST_METADATA + 1:
        raise BadInput(f"{_place(where[:4])}…: nested more than {DEEPEST_METADATA} levels deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise BadInput(f"{_place(where)}: the key {key!r} is not a string")
            _check_json(item, (*where, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_json(item, (*where, index))
    elif type(value) is float:
        if not math.isfinite(value):
            raise BadInput(f"{_place(where)}: {value!r} cannot be written as JSON")
    elif type(value) is int:
        if not -(2**63) <= value < 2**63:
            raise BadInput(f"{_place(where)}: a whole number of more than 64 bits")
    elif value is not None and type(value) not in (str, bool):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise BadInput(f"{_place(where)}: a {kind} cannot be written as JSON")


def _place(where: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).removeprefix(".")
