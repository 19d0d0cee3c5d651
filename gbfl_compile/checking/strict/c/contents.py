"""Do the parts that fill the holes of a known file agree (names, shapes, classes, columns), and the files around it?

Of the files around NAME.c and NAME.h (gbfl.h, build files, examples) each is the known one, or the artifact is refused.
They matter: a build file decides the flags, and -ffast-math there would make another program of the same source.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from gbfl_compile.checking.reading.nodes import (
    And,
    Ask,
    Condition,
    Example,
    Not,
    Or,
    PointDecision,
    StepDecision,
    Test,
    Unread,
    class_labels,
    feature_names,
)
from gbfl_compile.checking.strict.c.lexer import Real, plain_text, runtime_tokens, tokens
from gbfl_compile.checking.strict.c.template import Contents, known_text
from gbfl_compile.ir.nodes import Label

LABELS: Mapping[str, tuple[str, Callable[[str], Label]]] = {
    "'s'": (r".*", str),
    "'i'": (r"-?[0-9]{1,19}", int),
    "'f'": (r"-?[0-9]{1,20}(\.[0-9]+)?(e[+-]?[0-9]{1,3})?", float),
    "'b'": (r"True|False", lambda text: text == "True"),
}
"""For each kind of label, how it is written and what it means."""

LONGEST_NAME = 40

MOST_BYTES = 8
"""Of a value in a row."""

MOST_EXAMPLES = 64
"""Rows of a self-test; emitted ones have at most 16."""


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
    for text, label in zip(contents["labels"], classes, strict=True):
        if text != (label if isinstance(label, str) else repr(label)):
            raise Unread(f"the label {label!r} is spelled {text!r}")
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


def read_examples(contents: Contents, real: Real) -> tuple[Example, ...]:
    """The rows of the self-test, written as bits, and what it expects there."""
    check_shape(contents, "golden_rows", "golden", "features", 1)
    check_shape(contents, "golden_class", "golden")
    tree = "golden_leaf" in contents
    check_shape(contents, *(("golden_leaf", "golden") if tree else ("golden_points", "golden", "classes")))
    if contents["golden"] > MOST_EXAMPLES:
        raise Unread(f"a self-test of {contents['golden']} rows, at most {MOST_EXAMPLES} are read")
    rows = [tuple(_number(bits, real) for (bits,) in row) for row in contents["golden_rows"]]
    details = contents["golden_leaf"] if tree else contents["golden_points"]
    examples = zip(rows, contents["golden_class"], details, strict=True)
    return tuple(
        Example(row, winner, *((detail, None) if tree else (None, detail))) for row, winner, detail in examples
    )


def _number(bits: int, real: Real) -> float:
    size, whole, kind = (8, "<Q", "<d") if real == "double" else (4, "<I", "<f")
    if bits >= 256**size:
        raise Unread(f"the self-test has {bits:#x} for a {real}")
    (number,) = struct.unpack(kind, struct.pack(whole, bits))
    return float(number)


def starts(contents: Contents, key: str) -> tuple[int, ...]:
    """The points that each class begins with, class after class."""
    check_each_class(contents, key)
    return tuple(each["start"] for each in contents[key])


def check_each_class(contents: Contents, key: str) -> None:
    """Refuse a part that is not there once for each class, in order."""
    if [each["class"] for each in contents[key]] != list(range(contents["classes"])):
        raise Unread(f"not every class is dealt with once and in order ({key})")


def check_uses(contents: Contents, decision: StepDecision | PointDecision) -> None:
    """Refuse a model that tests a feature which it says it does not use."""
    used = {feature for feature, flag in enumerate(contents["feature_used"]) if flag}
    if unused := asked_features(_conditions(decision)) - used:
        raise Unread(f"feature {min(unused)} is tested, but the model says that it is not used")


def check_rows(contents: Contents) -> None:
    """Rows that are filled from columns have every feature that the model uses, from the column of that feature."""
    for key in ("predict_row", "other_row"):
        _check_read(contents, [each["place"] for each in contents[key]])


def check_columns(contents: Contents) -> None:
    """Each slot of a block is one feature, the same one for rows and for columns."""
    if contents["gathered"] != contents["picked"] or len(contents["gathered"]) != contents["slots"]:
        raise Unread("rows are gathered into other columns than are picked")
    if [each["slot"] for each in contents["gathered"]] != list(range(contents["slots"])) or not contents["slots"]:
        raise Unread("a column of a block is left out, or there twice")
    _check_read(contents, [each["feature"] for each in contents["gathered"]])
    if any(each["bytes"] >= MOST_BYTES * contents["features"] for each in contents["fetched"]):
        raise Unread("memory outside the row is prefetched")


def check_kernel_columns(kind: str, contents: Contents, conditions: Iterable[Condition]) -> None:
    """Each local value of a kernel is the feature that it is named after, and all that its rules test are there."""
    features = [each["feature"] for each in contents["gathered"]]
    for column in contents[f"{kind}_columns"]:
        if column["slot"] >= len(features) or features[column["slot"]] != column["feature"]:
            raise Unread(f"{kind}_block: column {column['slot']} is not feature {column['feature']}")
    columns = [column["feature"] for column in contents[f"{kind}_columns"]]
    values = [value["feature"] for value in contents[f"{kind}_values"]]
    if columns != values or len(set(values)) != len(values) or not asked_features(conditions) <= set(values):
        raise Unread(f"{kind}_block: its values are not those that its rules test")


def _check_read(contents: Contents, features: Sequence[int]) -> None:
    """The features that are read are those the model says it uses: the others may have no column at all."""
    used = [feature for feature, flag in enumerate(contents["feature_used"]) if flag]
    if sorted(features) != used:
        raise Unread(f"features {sorted(features)[:20]} are read, the model says that it uses {used[:20]}")


def _conditions(decision: StepDecision | PointDecision) -> Iterable[Condition]:
    if isinstance(decision, PointDecision):
        return [condition for condition, _ in decision.terms]
    return [step.condition for step in decision.steps if isinstance(step, Ask)]


def asked_features(conditions: Iterable[Condition]) -> set[int]:
    """The features that some condition tests."""
    features: set[int] = set()
    waiting = list(conditions)
    while waiting:
        match waiting.pop():
            case Test(feature):
                features.add(feature)
            case And(parts) | Or(parts):
                waiting += parts
            case Not(part):
                waiting.append(part)
    return features


PROGRAMS = {"examples/selftest/main.c": "main.c", "examples/selftest/selftest.ino": "selftest.ino"}
"""Compared token by token."""

SETTINGS = {"CMakeLists.txt": "CMakeLists.txt", "library.properties": "library.properties"}
"""Compared line by line. A line that begins with # says nothing in either (but #[[ begins more in CMake)."""

BUILD = {"srcDir": ".", "includeDir": ".", "srcFilter": ["+<@NAME@.c>"], "flags": ["-ffp-contract=off"]}


def check_file(file: str, content: bytes, name: str) -> None:
    """Refuse a file that is not the known one of its name."""
    values = {"NAME": name}
    if file == "gbfl.h":
        same = runtime_tokens(content) == _known_runtime()
    elif file in PROGRAMS:
        same = tokens(content).words == tokens(known_text(PROGRAMS[file], values).encode("ascii")).words
    elif file in SETTINGS:
        known = _lines(known_text(SETTINGS[file], values))
        lines = _lines(plain_text(content))
        same = len(lines) == len(known) and all(map(_says, lines, known))
    elif file == "library.json":
        same = _is_platformio(plain_text(content), name)
    else:
        raise Unread("is not a file that belongs to a model")
    if not same:
        raise Unread("is not the file known by this name")


@cache
def _known_runtime() -> list[str]:
    return runtime_tokens(known_text("gbfl.h", {}).encode("ascii"))


def _lines(text: str) -> list[str]:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line and (not line.startswith("#") or line.startswith("#["))]


def _says(line: str, known: str) -> bool:
    return re.fullmatch(re.escape(known).replace("@TEXT@", ".*"), line) is not None


def _is_platformio(text: str, name: str) -> bool:
    """Whether the file has what it should and nothing else; version and description may say what they like."""
    try:
        form = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return False
    if not isinstance(form, Mapping):
        return False
    free = {key: form[key] for key in ("version", "description") if isinstance(form.get(key), str)}
    build = {**BUILD, "srcFilter": [f"+<{name}.c>"]}
    return len(free) == 2 and form == {"name": name, "headers": f"{name}.h", "build": build, **free}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys: readers disagree on which of two counts."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
