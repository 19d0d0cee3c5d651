"""Reads emitted C back, from its text alone: nothing is compiled or run.

The functions around the rules must be known ones (c_forms), gbfl.h a known one, the tables written out. The rules
themselves are followed (c_rules), and so is every batch kernel: each function that gives an answer has a reading,
and those that come to the same are one. Comments and the rows of the self-test are not proved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Literal

from gbfl_compile.check.readers.c_artifact import CONSTANTS, Artifact, hole, nothing_left, opened, recognise, take_table
from gbfl_compile.check.readers.c_batch import (
    Slots,
    every_feature,
    read_batch,
    selected,
    setting_of,
    straight,
    sums_kernel,
)
from gbfl_compile.check.readers.c_expressions import WORD, Locals
from gbfl_compile.check.readers.c_forms import COMMON, REASONS, RULE_SET, TREE
from gbfl_compile.check.readers.c_rules import followed
from gbfl_compile.check.readers.c_tables import element_type, string, strings
from gbfl_compile.check.readers.c_values import Bits, Row, Unclear
from gbfl_compile.check.readers.choices import Value, decided
from gbfl_compile.check.readers.conditions import FALSE
from gbfl_compile.check.readers.tables import Step, class_labels, feature_names, leaf_outcome, scale_of, way_to
from gbfl_compile.check.reading import Condition, Decided, Outcome, Reading, Scored, Unread
from gbfl_compile.ir.nodes import Label

LABELS: Mapping[str, tuple[str, Callable[[str], Label]]] = {
    "'s'": (r".*", str),
    "'i'": (r"-?[0-9]{1,19}", int),
    "'f'": (r"-?[0-9]{1,20}(\.[0-9]+)?(e[+-]?[0-9]{1,3})?", float),
    "'b'": (r"True|False", lambda text: text == "True"),
}
"""For each kind of label, how it is written and what it means."""

LONGEST_ENUMERATOR = 40


def read_c(files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """The readings of NAME.c with its headers."""
    artifact = opened(files)
    try:
        return _readings(artifact)
    except Unread as error:
        raise Unread(f"{artifact.name}.c: {error}") from None


def _readings(artifact: Artifact) -> tuple[Reading, ...]:
    features, classes, digest = _names(artifact)
    own = _own_reasons(artifact)
    found = _tree(artifact) if artifact.has("leaf_of") else _rule_set(artifact)
    _golden(artifact)
    nothing_left(artifact)
    dtype: Literal["float64", "float32"] = "float64" if artifact.real == "double" else "float32"
    places: dict[Decided | Scored, list[str]] = {}
    for place, decision in found:
        places.setdefault(decision, []).append(place)
    return tuple(
        Reading(features, classes, decision, dtype, ", ".join(where), digest, None, own)
        for decision, where in places.items()
    )


def _names(artifact: Artifact) -> tuple[tuple[str, ...], tuple[Label, ...], str]:
    recognise(artifact, COMMON)
    texts, numbers = artifact.found.texts, artifact.found.numbers
    features = feature_names(strings(hole(artifact, "names").nodes))
    if texts["kind"] not in LABELS:
        raise Unread(f"labels of kind {texts['kind']}")
    pattern, meaning = LABELS[texts["kind"]]
    written = strings(hole(artifact, "labels").nodes)
    if not all(re.fullmatch(pattern, text, re.DOTALL) for text in written):
        raise Unread("a label that is not of its kind")
    classes = class_labels(tuple(meaning(text) for text in written))
    for which, count in (("FEATURES", len(features)), ("CLASSES", len(classes))):
        if not count == artifact.constant(which) == numbers[which.lower()]:
            raise Unread(f"{count} {which.lower()}, {artifact.name}_{which} is {artifact.constant(which)}")
    _enumerators(artifact, features)
    used = take_table(artifact, "feature_used", ["unsigned char"], [len(features)])
    artifact.used = tuple(bool(flag) for flag in used)
    return features, classes, string(texts["digest"])


def _own_reasons(artifact: Artifact) -> tuple[tuple[int, str], ...]:
    """The user's reasons, (clause, text)."""
    clauses = artifact.constant("CLAUSES")
    if not artifact.has("reason"):
        return ()
    recognise(artifact, REASONS)
    told = strings(hole(artifact, "reasons").nodes)
    if not len(told) == clauses == artifact.found.numbers["reasons"]:
        raise Unread(f"{len(told)} reasons for {clauses} clauses")
    return tuple((clause, text) for clause, text in enumerate(told) if text)


def _enumerators(artifact: Artifact, features: tuple[str, ...]) -> None:
    """The header's name for each place in a row is that of the feature which stands there."""
    named = list(artifact.constants.items())[: -len(CONSTANTS)]
    if len(named) != len(features):
        raise Unread(f"{artifact.name}.h names {len(named)} places in a row of {len(features)}")
    for place, (feature, (name, value)) in enumerate(zip(features, named, strict=True)):
        cleaned = re.sub(r"[^A-Za-z0-9]+", "_", feature).strip("_")[:LONGEST_ENUMERATOR]
        if value != place or name not in (f"{artifact.name}_x_{cleaned}", f"{artifact.name}_feature_{place}"):
            raise Unread(f"{artifact.name}.h: {name} is not the place of {feature!r}")


def _golden(artifact: Artifact) -> None:
    """The rows of the self-test: right in shape, and not looked at further."""
    features, count = artifact.constant("FEATURES"), artifact.found.numbers["golden"]
    bits = artifact.constant("REAL_BITS")
    node = artifact.tables.pop(f"{artifact.name}_golden_value", None)
    wanted = f"union {{uint{bits}_t bits; {artifact.real} value;}}"
    if node is None or element_type(node.type) != wanted:
        raise Unread(f"has no {artifact.name}_golden_value")
    take_table(artifact, "golden_rows", [f"{artifact.name}_golden_value"], [count, features])
    take_table(artifact, "golden_class", ["int"], [count])
    if artifact.constant("LEAVES"):
        take_table(artifact, "golden_leaf", ["int32_t"], [count])
    else:
        take_table(artifact, "golden_points", ["int64_t"], [count, artifact.constant("CLASSES")])


def _told(artifact: Artifact, which: str, count: int) -> int:
    """A number the header tells, which must be the one that was found."""
    if artifact.constant(which) != count:
        raise Unread(f"{artifact.name}_{which} is {artifact.constant(which)}, found {count}")
    return count


def _check_words(artifact: Artifact) -> None:
    words = _told(artifact, "HELD_WORDS", artifact.found.numbers["words"])
    if not 0 <= artifact.constant("CLAUSES") <= 32 * words:
        raise Unread(f"{artifact.constant('CLAUSES')} rules do not fit in {words} words")


def _tree(artifact: Artifact) -> list[tuple[str, Decided | Scored]]:
    recognise(artifact, TREE)
    _check_words(artifact)
    leaves, classes = artifact.found.numbers["leaves"], artifact.constant("CLASSES")
    outcomes, reasons = _outcomes(artifact, leaves, classes), _reasons(artifact, leaves)

    @cache
    def leaf_of(slots: Slots) -> Value:
        body = hole(artifact, "leaf_of")
        return followed(setting_of(artifact), body, {body.called["x"]: Row(slots)})[0]

    def by_leaf(leaf: int) -> Outcome:
        if not 0 <= leaf < leaves:
            raise Unread(f"leaf {leaf} is not one of {leaves}")
        return outcomes[leaf]

    def by_class(winner: int) -> Outcome:
        if not 0 <= winner < classes:
            raise Unread(f"class {winner} is not one of {classes}")
        return Outcome(winner)

    def explained(leaf: int) -> Outcome:
        return replace(by_leaf(leaf), held=reasons[leaf])

    @cache  # rows and columns mostly are the same features
    def one_row(verb: str, slots: Slots) -> Decided:
        value = leaf_of(slots)
        return decided(value, by_leaf) if verb == "leaf" else decided(value, lambda leaf: Outcome(by_leaf(leaf).winner))

    @cache
    def kernel(verb: str, slots: Slots) -> Decided:
        if verb == "leaf":
            return decided(selected(artifact, "leaf", slots), by_leaf)
        return decided(selected(artifact, "class", slots), by_class)

    whole = decided(leaf_of(every_feature(artifact)), explained)
    places = [(f"{artifact.name}_{verb}", whole) for verb in ("predict", "predict_proba", "explain")]
    return [*places, *_batch(artifact, {"predict": "class", "leaf": "leaf"}, one_row, kernel)]


def _outcomes(artifact: Artifact, leaves: int, classes: int) -> list[Outcome]:
    _told(artifact, "LEAVES", leaves)
    winners = take_table(artifact, "leaf_class", ["int32_t"], [leaves])
    rows = take_table(artifact, "leaf_probabilities", ["double"], [leaves, classes])
    return [leaf_outcome(f"leaf {leaf}", winners[leaf], rows[leaf], classes, leaf) for leaf in range(leaves)]


def _reasons(artifact: Artifact, leaves: int) -> list[tuple[int, ...]]:
    """The rules that held on the way to each leaf, by the tables that lead back from it."""
    nodes = take_table(artifact, "leaf_node", ["int32_t"], [leaves])
    above = take_table(artifact, "node_above", ["int32_t"], [None])
    asked = take_table(artifact, "node_clause", ["int32_t"], [len(above)])
    if min(above) < 0 or max(above) >= 2 * len(above) or above[0] != 0:
        raise Unread(f"{artifact.name}_node_above leads to a node that is not there")
    steps: list[Step] = [(-1, 0, False)]
    for code in above[1:]:
        steps.append((code // 2, asked[code // 2] if code % 2 else 0, code % 2 == 1))
    clauses = max(1, artifact.constant("CLAUSES"))
    return [tuple(sorted(clause for clause, held in way_to(steps, node, clauses) if held)) for node in nodes]


def _rule_set(artifact: Artifact) -> list[tuple[str, Decided | Scored]]:
    recognise(artifact, RULE_SET)
    _check_words(artifact)
    _told(artifact, "LEAVES", 0)
    clauses, classes = artifact.constant("CLAUSES"), artifact.constant("CLASSES")
    kinds = ["int8_t", "int16_t", "int32_t", "int64_t"]
    points = take_table(artifact, "rule_points", kinds, [max(1, clauses), classes])
    bias = _bias(artifact, classes)
    scale = scale_of(artifact.found.reals["worth"])

    @cache
    def scored(slots: Slots) -> Scored:
        held = _held(artifact, slots, clauses)
        return _within_64_bits(Scored(bias, tuple(zip(held, points, strict=False)), scale, held=held))

    @cache  # rows and columns mostly are the same features
    def one_row(verb: str, slots: Slots) -> Scored:
        return replace(scored(slots), held=None)

    add_up = sums_kernel(artifact) if artifact.has("sums_block") else scored

    @cache
    def kernel(verb: str, slots: Slots) -> Scored:
        return replace(_within_64_bits(add_up(slots)), scale=scale, held=None)

    whole = scored(every_feature(artifact))
    places = [(f"{artifact.name}_{verb}", whole) for verb in ("score", "predict", "predict_proba", "explain")]
    return [*places, *_batch(artifact, {"predict": "sums", "score": "sums"}, one_row, kernel)]


def _within_64_bits(scored: Scored) -> Scored:
    for c, start in enumerate(scored.bias):
        if abs(start) + sum(abs(points[c]) for _, points in scored.terms) >= 2**63:
            raise Unread("the points may add up past 64 bits")
    return scored


def _bias(artifact: Artifact, classes: int) -> tuple[int, ...]:
    found = hole(artifact, "bias")
    out = found.called["out"]
    cells: Locals = {(out, c): Unclear() for c in range(classes)}
    setting = replace(setting_of(artifact), types={out: "int64_t"})
    after = straight(setting, found, cells)
    starts = [after[cell] for cell in cells]
    if not all(isinstance(start, int) for start in starts):
        raise Unread(f"{artifact.name}_score does not start with whole points")
    return tuple(start for start in starts if isinstance(start, int))


def _held(artifact: Artifact, slots: Slots, clauses: int) -> tuple[Condition, ...]:
    """When each rule holds, from the bits that are set for it."""
    before, body = hole(artifact, "unused"), hole(artifact, "find_held")
    row: Locals = {before.called["x"]: Row(slots)}
    held = body.called["held"]
    words = artifact.constant("HELD_WORDS")
    cells: Locals = {(held, word): Bits() for word in range(words)}
    known = straight(setting_of(artifact), before, row)
    setting = replace(setting_of(artifact), types={held: WORD})
    after = straight(setting, body, {**known, **cells})
    conditions: dict[int, Condition] = {}
    for word, cell in enumerate(cells):
        bits = after[cell]
        if not isinstance(bits, Bits):
            raise Unread(f"{artifact.name}_find_held sets something else than bits")
        conditions |= {32 * word + bit: condition for bit, condition in bits.set_when.items()}
    if beyond := [number for number in conditions if number >= clauses]:
        raise Unread(f"{artifact.name}_find_held sets bit {beyond[0]}, there are {clauses} rules")
    return tuple(conditions.get(number, FALSE) for number in range(clauses))


def _batch(
    artifact: Artifact,
    verbs: Mapping[str, str],
    one_row: Callable[[str, Slots], Decided | Scored],
    kernel: Callable[[str, Slots], Decided | Scored],
) -> list[tuple[str, Decided | Scored]]:
    if not _told(artifact, "HAS_BATCH", int(artifact.has("predict_rows"))):
        return []
    return read_batch(artifact, verbs, one_row, kernel)
