"""The names of features and classes, the reasons, and the rows of the self-test."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.reading.tables import class_labels, feature_names
from gbfl_compile.checking.strict.c.template import Contents
from gbfl_compile.ir.nodes import Label

LABELS: Mapping[str, tuple[str, Callable[[str], Label]]] = {
    "'s'": (r".*", str),
    "'i'": (r"-?[0-9]{1,19}", int),
    "'f'": (r"-?[0-9]{1,20}(\.[0-9]+)?(e[+-]?[0-9]{1,3})?", float),
    "'b'": (r"True|False", lambda text: text == "True"),
}
"""For each kind of label, how it is written and what it means."""

LONGEST_NAME = 40


def read_names(name: str, contents: Contents) -> tuple[tuple[str, ...], tuple[Label, ...], tuple[tuple[int, str], ...]]:
    """Features, classes, and the reasons by clause."""
    check_shape(contents, "feature_names", "features")
    check_shape(contents, "labels", "classes")
    check_shape(contents, "feature_used", "features")
    features = feature_names(contents["feature_names"])
    if contents["label_kind"] not in LABELS:
        raise Unread(f"labels of the kind {contents['label_kind']}")
    pattern, meaning = LABELS[contents["label_kind"]]
    if not all(re.fullmatch(pattern, text, re.DOTALL | re.ASCII) for text in contents["labels"]):
        raise Unread("a label that is not of its kind")
    classes = class_labels(tuple(meaning(text) for text in contents["labels"]))
    _check_places(name, features, contents)
    if contents["words"] != max(1, -(-contents["clauses"] // 32)):
        raise Unread(f"{contents['clauses']} rules do not go with {contents['words']} words of bits")
    if "reasons" not in contents:
        return features, classes, ()
    check_shape(contents, "reasons", "clauses")
    return features, classes, tuple((clause, text) for clause, text in enumerate(contents["reasons"]) if text)


def _check_places(name: str, features: Sequence[str], contents: Contents) -> None:
    """The header's name for each place in a row is that of the feature which is there."""
    last = {"name": contents["last_name"], "place": contents["last_place"]}
    places = [*contents["places"], last]
    if len(places) != len(features):
        raise Unread(f"{name}.h names {len(places)} places in a row of {len(features)}")
    for place, (feature, each) in enumerate(zip(features, places, strict=True)):
        cleaned = re.sub(r"[^A-Za-z0-9]+", "_", feature).strip("_")[:LONGEST_NAME]
        names = (f"{name}_x_{cleaned}", f"{name}_feature_{place}")
        if each["place"] != place or each["name"] not in names:
            raise Unread(f"{name}.h: {each['name']} is not the place of {feature!r}")
    if len({each["name"] for each in places}) != len(places):
        raise Unread(f"{name}.h: two places in a row have the same name")


def check_shape(contents: Contents, table: str, *sizes: str | int) -> None:
    """Refuse a table that is not of its declared size, each element of each row written out."""
    shape = [contents[size] if isinstance(size, str) else size for size in sizes]
    if not _has_shape(contents[table], shape):
        raise Unread(f"the table {table} is not of the size {' by '.join(map(str, shape))}")


def _has_shape(table: tuple[Any, ...], shape: Sequence[int]) -> bool:
    """Whether a table has these sizes; it is equally deep everywhere, for that is how tables are matched."""
    if len(table) != shape[0] or isinstance(table[0], tuple) != (len(shape) > 1):
        return False
    return len(shape) == 1 or all(_has_shape(row, shape[1:]) for row in table)


def check_golden_rows(contents: Contents) -> None:
    """Refuse a self-test whose tables do not fit together. Its values are data that no answer depends on."""
    check_shape(contents, "golden_rows", "golden", "features", 1)
    check_shape(contents, "golden_class", "golden")
    tree = "golden_leaf" in contents
    check_shape(contents, *(("golden_leaf", "golden") if tree else ("golden_points", "golden", "classes")))
