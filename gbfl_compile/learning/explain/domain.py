"""Where explanations may go: base values, bounds, and what each feature allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Columns
from gbfl_compile.learning.black_box import Ints, Matrix
from gbfl_compile.learning.explain.table_values import TableValues, base_row, known_values

Direction: TypeAlias = Literal["both", "up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("both", "up", "down")

Kind: TypeAlias = Literal["float", "integer"] | tuple[float, ...]
"""The values a feature has: any, whole numbers, or (a coded category) only these, ascending."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Training rows and the black box's class of each."""

    rows: Matrix
    label: Ints


@dataclass(frozen=True, slots=True)
class Domain:
    """Where explanations may go: base values b, bounds [L, U], a name for each feature, and what it allows.

    A coded category is ordered by its codes: the equations, and the clauses mined from it, depend on which side
    of the base a value lies.
    """

    base: Matrix
    lower: Matrix
    upper: Matrix
    features: tuple[str, ...]
    immutable: tuple[int, ...] = ()
    """Features no PN changes. A PP says what of x suffices, not what to do, so in a PP such a feature may be at
    its base (not needed) or at the value of x (needed), but at no value in between."""
    directions: tuple[Direction, ...] = ()
    """Which way a PN may move each feature, besides the equations' own rule; () is both ways for all."""
    kinds: tuple[Kind, ...] = ()
    """One per feature; () is "float" for all. A value that an explanation puts in place of x or b is of its kind."""
    table: TableValues | None = None
    """Where the table has words, dates or missing values: what it knows of them. The base may then be missing (NaN)."""
    examples: Examples | None = None
    """Training rows, for explainers that begin at one."""


def domain_of(
    x: Matrix,
    *,
    base: Any = None,
    bounds: Any = None,
    features: Sequence[str] | None = None,
    immutable: Sequence[str | int] = (),
    directions: Sequence[Direction] | Mapping[Any, Direction] = (),
    kinds: Sequence[Kind] | Mapping[Any, Kind] = (),
) -> Domain:
    """The domain of training rows: the median as base, the smallest and largest value as bounds, unless given.

    `base` is one value per feature; `bounds` a pair (lower, upper), each one number or one per feature.
    `immutable` lists features by name or index. `directions` and `kinds` have one entry per feature, or map a
    name or index to it. Bounds shrink to values of the feature's kind, and a median is rounded to one; a `base`
    must be one. `kinds=infer_kinds(x)` keeps columns of whole numbers whole.
    """
    width = x.shape[1]
    lower, upper = (x.min(axis=0), x.max(axis=0)) if bounds is None else _pair(bounds, width)
    middle = np.median(x, axis=0) if base is None else _one_per_feature(base, width, "base")
    names = tuple(f"x{j}" for j in range(width)) if features is None else tuple(str(name) for name in features)
    for j in range(width):
        if not lower[j] <= upper[j]:
            raise BadInput(f"feature {names[j]}: lower bound {lower[j]} is above upper bound {upper[j]}")
    if base is None and bounds is not None:
        middle = np.clip(middle, lower, upper)
    every_kind = tuple(
        _validate_kind(kind, name) for kind, name in zip(_by_feature(kinds, names, "kinds"), names, strict=True)
    )
    for j, kind in enumerate(every_kind):
        lower[j], upper[j] = _within(kind, lower[j], upper[j], names[j])
        if base is None:
            middle[j] = nearest(kind, np.clip(middle[j : j + 1], lower[j], upper[j]))[0]
    domain = Domain(
        middle,
        lower,
        upper,
        names,
        tuple(sorted({_place(feature, names) for feature in immutable})),
        tuple(_by_feature(directions, names, "directions")) if directions else (),
        every_kind if any(kind != "float" for kind in every_kind) else (),
    )
    check_domain(domain)
    return domain


def table_domain(
    x: Matrix,
    columns: Columns,
    *,
    immutable: Sequence[str | int] = (),
    directions: Sequence[Direction] | Mapping[Any, Direction] = (),
    codes: Sequence[str | int] = (),
) -> Domain:
    """The domain of encoded training rows: medians and commonest values as base, missing where most values are.

    `codes` are number columns whose values are codes, beside those with few values: an explanation uses no others.
    """
    names = columns.features
    few = {j for j, kind in enumerate(infer_kinds(x)) if columns.kinds[j] == "number" and isinstance(kind, tuple)}
    table = known_values(x, columns, tuple(sorted(few | {_place(feature, names) for feature in codes})))
    ways = tuple(_by_feature(directions, names, "directions")) if directions else ()
    for name, kind, way in zip(names, columns.kinds, ways, strict=False):
        if kind in ("category", "boolean") and way != "both":
            raise BadInput(f"feature {name}: a {kind} goes neither up nor down: make it immutable, or leave it free")
    bounds = [
        (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        for values in (column[~np.isnan(column)] for column in x.T)
    ]
    lower, upper = (np.array([bound[side] for bound in bounds]) for side in (0, 1))
    places = tuple(sorted({_place(feature, names) for feature in immutable}))
    return Domain(base_row(x, table), lower, upper, names, places, ways, (), table)


def check_domain(domain: Domain) -> None:
    """Refuse a domain that contradicts itself, by the feature's name."""
    if domain.table is not None:
        return
    width = len(domain.features)
    for what in ("directions", "kinds"):
        if len(getattr(domain, what)) not in (0, width):
            raise BadInput(f"a domain of {width} features has {len(getattr(domain, what))} {what}")
    for direction in domain.directions:
        if direction not in DIRECTIONS:
            raise BadInput(f"direction {direction!r} is not one of {', '.join(DIRECTIONS)}")
    for j, name in enumerate(domain.features):
        base, lower, upper = float(domain.base[j]), float(domain.lower[j]), float(domain.upper[j])
        if not lower <= base <= upper:
            raise BadInput(f"feature {name}: base {base} lies outside [{lower}, {upper}]")
        for what, value in (("base", base), ("lower bound", lower), ("upper bound", upper)):
            if domain.kinds and nearest(domain.kinds[j], np.array([value]))[0] != value:
                raise BadInput(f"feature {name}: {what} {value} is not a value of its kind, {domain.kinds[j]}")


def nearest(kind: Kind, values: Matrix) -> Matrix:
    """The value of that kind nearest to each; of two as near, the lower code or the even number."""
    if kind == "float":
        return values
    if kind == "integer":
        return np.rint(values) + 0.0
    codes = np.array(kind)
    above = np.clip(np.searchsorted(codes, values), 1, max(1, len(codes) - 1))
    low, high = codes[above - 1], codes[np.minimum(above, len(codes) - 1)]
    return np.where(values - low <= high - values, low, high)


FEW_VALUES = 10
"""A column of numbers with no more different values than this, each of them common, holds codes."""
COMMON = 5
"""Rows per value, on average, for the values to be common."""


def infer_kinds(x: Matrix) -> tuple[Kind, ...]:
    """Of each column: its values where they are few and common, "integer" where all are whole, else "float".

    Missing values say nothing about the kind. A constant column is a whole or a broken number, not a code.
    """
    return tuple(_infer_kind(column[~np.isnan(column)]) for column in x.T)


def _infer_kind(column: Matrix) -> Kind:
    if not len(column) or not np.isfinite(column).all():
        return "float"
    values = np.unique(column)
    if 1 < len(values) <= FEW_VALUES and len(column) >= COMMON * len(values):
        return tuple((values + 0.0).tolist())
    return "integer" if (column == np.rint(column)).all() else "float"


def _by_feature(option: Any, features: tuple[str, ...], what: str) -> list[Any]:
    """One entry per feature, from a sequence of them or from a mapping that names the exceptions."""
    usual = "both" if what == "directions" else "float"
    if isinstance(option, Mapping):
        entries: list[Any] = [usual] * len(features)
        for feature, entry in option.items():
            entries[_place(feature, features)] = entry
        return entries
    if isinstance(option, str) or len(option) not in (0, len(features)):
        raise BadInput(f"{what} needs one entry for each of the {len(features)} features, or a mapping by feature")
    return list(option) or [usual] * len(features)


def _place(feature: Any, features: tuple[str, ...]) -> int:
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= feature < len(features):
        return int(feature)
    if feature not in features:
        raise BadInput(f"there is no feature {feature!r} among {', '.join(features)}")
    return features.index(feature)


def _validate_kind(kind: Any, feature: str) -> Kind:
    if isinstance(kind, str):
        if kind not in ("float", "integer"):
            raise BadInput(f"feature {feature}: kind {kind!r} is neither 'float', 'integer' nor its allowed values")
        return cast(Kind, kind)
    try:
        codes = np.unique(np.asarray(kind, dtype=np.float64)) + 0.0
    except (TypeError, ValueError):
        codes = np.empty(0)
    if not len(codes) or not np.isfinite(codes).all():
        raise BadInput(f"feature {feature}: allowed values must be finite numbers, one at least, and are {kind!r}")
    return tuple(codes.tolist())


def _within(kind: Kind, lower: float, upper: float, feature: str) -> tuple[float, float]:
    """The smallest and the largest value of that kind between the bounds."""
    if kind == "float":
        return lower, upper
    if kind == "integer":
        low, high = float(np.ceil(lower)) + 0.0, float(np.floor(upper)) + 0.0
    else:
        inside = [code for code in kind if lower <= code <= upper] or [np.inf, -np.inf]
        low, high = inside[0], inside[-1]
    if not low <= high:
        raise BadInput(f"feature {feature}: no value of its kind, {kind}, lies in [{lower}, {upper}]")
    return low, high


def _pair(bounds: Any, width: int) -> tuple[Matrix, Matrix]:
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise BadInput("bounds must be a pair (lower, upper), each one number or one per feature") from None
    return _one_per_feature(lower, width, "lower bound"), _one_per_feature(upper, width, "upper bound")


def _one_per_feature(values: Any, width: int, what: str) -> Matrix:
    try:
        array = np.broadcast_to(np.asarray(values, dtype=np.float64), (width,)).copy()
    except (TypeError, ValueError):
        raise BadInput(f"{what} must be one number, or one number for each of the {width} features") from None
    if not np.isfinite(array).all():
        raise BadInput(f"{what} of feature {int(np.flatnonzero(~np.isfinite(array))[0])} is not a finite number")
    return array
