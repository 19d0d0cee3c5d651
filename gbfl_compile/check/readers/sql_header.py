"""What a SQL text says of itself in its header, and what of it is believed: it is as untrusted as the query.

A header may not call another column the label, take a feature from a column named like another feature, or put the
classes of probabilities in an order their names belie.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.check.readers.tables import class_labels, feature_names
from gbfl_compile.check.reading import Unread
from gbfl_compile.ir.nodes import Label
from gbfl_compile.ir.readable import label_text

OPENING = "-- gbfl ["
PREFIXES = {"probabilities": "p", "score": "score"}


@dataclass(frozen=True, slots=True)
class Told:
    """What the text itself does not say: which columns are features and which are answers."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    columns: tuple[tuple[int, str], ...]
    """Feature and column of the table, in the order in which a function takes them."""
    outputs: tuple[tuple[str, str], ...]
    """Kind (label, probabilities, score, leaf, reason) and name of each column that comes out, classes in order."""
    form: str | None = None
    """expression and dbt are read in their own way; everything else says itself what it is."""
    digest: str | None = None
    functions: tuple[str, ...] = ()


def told_by_header(text: str) -> Told:
    """What the header says."""
    lines = [line for line in text.split("\n") if line.startswith(OPENING)]
    if len(lines) != 1:
        raise Unread("has no header, or more than one: say which features, classes and columns there are")
    try:
        pairs = json.loads(lines[0][len(OPENING) - 1 :])
        found: dict[str, Any] = {str(key): value for key, value in pairs}
        if len(found) != len(pairs):
            raise Unread("its header says something twice")
        told = Told(
            feature_names(found["features"]),
            class_labels(found["classes"]),
            tuple((_place(feature), _text(name)) for feature, name in found["columns"]),
            tuple((_text(kind), _text(name)) for kind, name in found["outputs"]),
            _text(found["form"]),
            _text(found["digest"]),
            tuple(_text(name) for name in found["functions"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unread(f"its header is not understood: {error}") from None
    refuse_misleading(told)
    return told


def _place(found: object) -> int:
    if type(found) is not int:
        raise Unread(f"its header has {found!r} where a feature's number belongs")
    return found


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise Unread(f"its header has {found!r} where a text belongs")
    return found


def refuse_misleading(told: Told) -> None:
    """Refuse a header whose names say something else than its numbers."""
    _refuse_other_columns(told)
    _refuse_other_outputs(told)
    _refuse_other_functions(told)


def _refuse_other_columns(told: Told) -> None:
    features = [feature for feature, _ in told.columns]
    if features != sorted(features):
        raise Unread("its header takes the features in another order than the program's")
    for feature, column in told.columns:
        own = told.features[feature] if 0 <= feature < len(told.features) else column
        others = [name for name in told.features if name != own and name.casefold() == column.casefold()]
        if column != own and others:
            raise Unread(f"the feature {own!r} is read from the column {column!r}, which is another feature's name")


def _refuse_other_outputs(told: Told) -> None:
    """Each output has its own name, so that no other column can pass for it."""
    for kind in dict.fromkeys(kind for kind, _ in told.outputs):
        found = [name for each, name in told.outputs if each == kind]
        expected = class_columns(PREFIXES[kind], told.classes) if kind in PREFIXES else [kind]
        if found != expected:
            raise Unread(f"its header has {', '.join(found)} for {kind}, where {', '.join(expected)} belongs")


def _refuse_other_functions(told: Told) -> None:
    """`model` for the label, `model_p_yes` beside it: names that are no function of the engine."""
    if told.form != "macro":
        if told.functions:
            raise Unread(f"its header has functions, and the form {told.form!r}")
        return
    if len(told.functions) != len(told.outputs):
        raise Unread("its header has not one function an output")
    pairs = list(zip(told.outputs, told.functions, strict=True))
    own = next((function for (kind, _), function in pairs if kind == "label"), None)
    for (kind, name), function in pairs:
        if function != (own if kind == "label" else f"{own}_{name}") or not re.search(r"\w", function):
            raise Unread(f"its header has the function {function!r} for {name}")


def class_columns(prefix: str, classes: Sequence[Label]) -> list[str]:
    """The columns of the classes: called by their labels where these are plain words and differ, else by number."""
    texts = [label_text(label) for label in classes]
    plain = all(re.fullmatch(r"[A-Za-z0-9_]{1,40}", text) for text in texts)
    if not plain or len({text.casefold() for text in texts}) < len(texts):
        texts = [str(number) for number in range(len(texts))]
    return [f"{prefix}_{text}" for text in texts]
