"""What an explainer is given and what it gives back: each row with its PP, its PN and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.black_box import BlackBox, Bools, Ints, Matrix
from gbfl_compile.learn.explain_domain import Domain as Domain
from gbfl_compile.learn.explain_domain import domain_of as domain_of
from gbfl_compile.learn.explain_domain import infer_kinds as infer_kinds
from gbfl_compile.triplets import Triplets


@dataclass(frozen=True, slots=True)
class Explanations:
    """Each row's pertinent positive and pertinent negative. Where none was found the row repeats x."""

    x: Matrix
    pp: Matrix
    pn: Matrix
    has_pp: Bools
    has_pn: Bools
    label: Ints
    """The black box's class of x, as an index."""
    pn_label: Ints
    """The black box's class of the PN; of x where there is no PN."""
    pp_margin: Matrix
    """C(y) - max of the others at the PP."""
    pn_margin: Matrix
    """Max of the others - C(y) at the PN; negative where there is no PN."""
    pp_is_base: Bools
    """The base point alone already has the class with its margin: an empty PP."""
    queries: int
    features: tuple[str, ...]
    not_reached: int = 0
    """Rows, the last ones, that the query budget did not reach: they have neither PP nor PN."""

    def counts(self) -> dict[str, int]:
        """How many were found, how many were not, and what it cost."""
        rows = len(self.x)
        pp, pn = int(self.has_pp.sum()), int(self.has_pn.sum())
        return {
            "rows": rows,
            "pp_found": pp,
            "pp_not_found": rows - pp,
            "pp_is_base": int(self.pp_is_base.sum()),
            "pn_found": pn,
            "pn_not_found": rows - pn,
            "not_reached": self.not_reached,
            "queries": self.queries,
        }

    def save(self, path: str | Path) -> None:
        """Write to `path`, Parquet or NPZ by its ending, whole or not at all."""
        from gbfl_compile.learn.explain_files import save_explanations

        save_explanations(Path(path), self)

    @staticmethod
    def load(path: str | Path) -> Explanations:
        """What `save` wrote, to the bit."""
        from gbfl_compile.learn.explain_files import load_explanations

        return load_explanations(Path(path))


BY_ROW = ("pp", "pn", "has_pp", "has_pn", "label", "pn_label", "pp_margin", "pn_margin", "pp_is_base")
"""What is found for each row."""


class Explainer(Protocol):
    """Anything that explains rows: batched, within the domain, keeping the direction rules of equations 1-2."""

    def __call__(self, black_box: BlackBox, x: Matrix, domain: Domain) -> Explanations: ...


def concatenate(parts: Sequence[Explanations]) -> Explanations:
    """The rows of all parts, in order, as if explained at once."""
    if not parts:
        raise BadInput("no explanations to put together")
    features = parts[0].features
    for place, part in enumerate(parts):
        if part.features != features:
            raise BadInput(f"part {place} has features {part.features}, the first has {features}")
    return Explanations(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in ("x", *BY_ROW)},
        queries=sum(part.queries for part in parts),
        features=features,
        not_reached=sum(part.not_reached for part in parts),
    )


def some_rows(e: Explanations, rows: Ints) -> Explanations:
    """The explanations of some of the rows."""
    return replace(e, **{name: getattr(e, name)[rows] for name in ("x", *BY_ROW)})


def triplets_of(explanations: Explanations, classes: NDArray[Any]) -> Triplets:
    """The triplets of some explanations, their labels as the user has them."""
    e = explanations
    return Triplets(e.x, e.pp, e.pn, e.has_pp, e.has_pn, np.asarray(classes)[e.label], e.features)
