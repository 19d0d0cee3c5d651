"""What a SQL text says of itself in its header, and what of it is believed: it is as untrusted as the query.

A header may not call another column the label, take a feature from a column named like another feature, or put the
classes of probabilities in an order their names belie.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gbfl_compile.checking.general.sql.functions import Functions
from gbfl_compile.checking.general.sql.relations import Tables
from gbfl_compile.checking.reading.nodes import Unread, class_labels, feature_names
from gbfl_compile.checking.strict.sql.cursor import class_columns
from gbfl_compile.ir.nodes import Kind, Label, Program

OPENING = "-- gbfl ["
PREFIXES = {"probabilities": "p", "score": "score"}


@dataclass(frozen=True, slots=True)
class TextLayout:
    """What the text itself does not say: which columns are features and which are answers."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    columns: tuple[tuple[int, str], ...]
    """Feature and column of the table."""
    outputs: tuple[tuple[str, str], ...]
    """Kind (label, probabilities, score, leaf, reason) and name of each column that comes out, classes in order."""
    form: str | None = None
    """What the header calls the text; an expression, functions and a dbt model are for the strict reader alone."""
    digest: str | None = None
    tables: Tables | None = None
    """What the tables are, where several may be read, and rows left out: that is then said beside the readings."""
    approved: Program | None = None
    """What rows that the text leaves out are taken to be answered with."""
    functions: Functions = lambda schema, name: None
    types: Mapping[int, str] = field(default_factory=dict)
    """The declared type of each feature's column, where that is known."""
    kinds: tuple[Kind, ...] = ()
    """The kind of each feature; `()` where all are numbers."""
    exact: frozenset[int] = frozenset()
    """The words whose columns take texts for equal only when they are the same."""
    known_texts: bool = True
    """Whether the texts in it have the bytes of UTF-8; where not, none of them is compared."""
    expressions: tuple[tuple[int, str, Mapping[str, str]], ...] = ()
    """Features that are expressions: feature, text, and for each name in it what that column is called here."""


def layout_in_header(text: str) -> TextLayout:
    """What the header says."""
    lines = [line for line in text.split("\n") if line.startswith(OPENING)]
    if len(lines) != 1:
        raise Unread("has no header, or more than one: say which features, classes and columns there are")
    try:
        pairs = json.loads(lines[0][len(OPENING) - 1 :])
        found: dict[str, Any] = {str(key): value for key, value in pairs}
        if len(found) != len(pairs):
            raise Unread("its header says something twice")
        layout = TextLayout(
            feature_names(found["features"]),
            class_labels(found["classes"]),
            tuple((_place(feature), _text(name)) for feature, name in found["columns"]),
            tuple((_text(kind), _text(name)) for kind, name in found["outputs"]),
            _text(found["form"]),
            _text(found["digest"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unread(f"its header is not understood: {error}") from None
    refuse_misleading(layout)
    return layout


def _place(found: object) -> int:
    if type(found) is not int:
        raise Unread(f"its header has {found!r} where a feature's number belongs")
    return found


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise Unread(f"its header has {found!r} where a text belongs")
    return found


def refuse_misleading(layout: TextLayout) -> None:
    """Refuse a header whose names say something else than its numbers."""
    _refuse_other_columns(layout)
    _refuse_other_outputs(layout)


def _refuse_other_columns(layout: TextLayout) -> None:
    features = [feature for feature, _ in layout.columns]
    if features != sorted(features):
        raise Unread("its header takes the features in another order than the program's")
    for feature, column in layout.columns:
        own = layout.features[feature] if 0 <= feature < len(layout.features) else column
        others = [name for name in layout.features if name != own and name.casefold() == column.casefold()]
        if column != own and others:
            raise Unread(f"the feature {own!r} is read from the column {column!r}, which is another feature's name")


def _refuse_other_outputs(layout: TextLayout) -> None:
    """Each output has its own name, so that no other column can pass for it."""
    for kind in dict.fromkeys(kind for kind, _ in layout.outputs):
        found = [name for each, name in layout.outputs if each == kind]
        expected = class_columns(PREFIXES[kind], layout.classes) if kind in PREFIXES else [kind]
        if found != expected:
            raise Unread(f"its header has {', '.join(found)} for {kind}, where {', '.join(expected)} belongs")
