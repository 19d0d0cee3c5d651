"""What the features are called within a deployed text: renamed by a layer, or given to a function's parameters.

The names only say where an edit is tried first, and are never relied on: each edited text is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

MOST_LAYERS = 20

Parameters = Callable[[str], Sequence[str]]
"""The names of the parameters of a function, `()` where there is no such function."""


def feature_names(trees: Sequence[Any], columns: Mapping[str, int], parameters: Parameters) -> dict[str, int]:
    """Other names of the features of `columns`; one that is used for two features is left out."""
    own = {name.casefold(): feature for name, feature in columns.items()}
    found: dict[str, set[int]] = {}
    for _ in range(MOST_LAYERS):
        known = own | {name: next(iter(features)) for name, features in found.items() if len(features) == 1}
        count = sum(map(len, found.values()))
        for name, feature in (pair for tree in trees for pair in _names_within(tree, known, parameters)):
            if name not in own:
                found.setdefault(name, set()).add(feature)
        if sum(map(len, found.values())) == count:
            break
    return {name: next(iter(features)) for name, features in found.items() if len(features) == 1}


def _names_within(tree: Any, known: Mapping[str, int], parameters: Parameters) -> Iterator[tuple[str, int]]:
    """(name, feature) of each alias of a feature, and of each parameter that one is given to."""
    from sqlglot import exp

    for alias in tree.find_all(exp.Alias):
        if (feature := _feature(alias.this, known)) is not None:
            yield alias.alias.casefold(), feature
    for call in tree.find_all(exp.Anonymous):
        for name, argument in zip(parameters(str(call.name)), call.expressions, strict=False):
            if (feature := _feature(argument, known)) is not None:
                yield name.casefold(), feature


def _feature(value: Any, known: Mapping[str, int]) -> int | None:
    """The feature that an expression is, but for its type and what a missing value becomes."""
    from sqlglot import exp

    while isinstance(value, exp.Paren | exp.Cast | exp.Coalesce):
        value = value.this
    return known.get(value.name.casefold()) if isinstance(value, exp.Column) else None
