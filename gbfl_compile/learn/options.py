"""What a classifier was asked for: its parameters checked, and turned into a recipe and an explainer."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

from sklearn.utils import check_random_state

from gbfl_compile.errors import BadInput
from gbfl_compile.learn.clauses import MODES
from gbfl_compile.learn.explanations import Explainer
from gbfl_compile.learn.greedy import Greedy, explain_greedily
from gbfl_compile.learn.heads.tree import MAX_DEPTH
from gbfl_compile.learn.macem import Macem, explain_by_macem
from gbfl_compile.learn.recipe import HEADS, Recipe


def check_parameters(model: Any) -> None:
    """Refuse parameters that cannot be, by name."""
    choices = {"head": HEADS, "mode": MODES, "fit_on": ("triplets", "x"), "labels": ("black_box", "true")}
    for name, allowed in choices.items():
        if getattr(model, name) not in allowed:
            raise BadInput(f"{name}={getattr(model, name)!r} is none of {', '.join(allowed)}")
    if model.max_depth != "cv" and not (_is_whole(model.max_depth) and 1 <= model.max_depth <= MAX_DEPTH):
        raise BadInput(f"max_depth={model.max_depth!r}: a readable tree is 1 to {MAX_DEPTH} levels deep, or 'cv'")
    for name in ("max_clauses", "max_atoms", "min_samples_leaf"):
        if not _is_whole(getattr(model, name)) or getattr(model, name) < 1:
            raise BadInput(f"{name}={getattr(model, name)!r}: a whole number, at least 1")
    if model.n_jobs is not None and (not _is_whole(model.n_jobs) or model.n_jobs == 0):
        raise BadInput(f"n_jobs={model.n_jobs!r}: a whole number but 0 (-1 is all processors), or None")
    if model.extra_rows is not None and (not _is_whole(model.extra_rows) or model.extra_rows < 0):
        raise BadInput(f"extra_rows={model.extra_rows!r}: a whole number, or None")
    if not isinstance(model.kappa, Real):
        raise BadInput(f"kappa={model.kappa!r}: a margin in probability, 0 <= kappa < 1")
    if not isinstance(model.C, int | float | Real) or not 0 < float(model.C) < float("inf"):
        raise BadInput(f"C={model.C!r}: a positive number")
    _check_role_weights(model.role_weights)
    check_random_state(model.random_state)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_role_weights(given: Any) -> None:
    try:
        weights = [float(weight) for weight in given]
    except (TypeError, ValueError):
        weights = []
    if len(weights) != 3 or not all(0 <= weight < float("inf") for weight in weights) or weights[0] <= 0:
        raise BadInput(f"role_weights={given!r}: three weights for x, PP and PN, the first above 0")


def recipe_of(model: Any) -> Recipe:
    """The recipe the parameters ask for."""
    weights = tuple(float(weight) for weight in model.role_weights)
    return Recipe(
        head=model.head,
        grid=model.grid,
        grid_points=model.grid_points,
        skip=model.skip,
        mode=model.mode,
        single_bounds=model.single_bounds,
        role_weights=(weights[0], 0.0, 0.0) if model.fit_on == "x" else (weights[0], weights[1], weights[2]),
        max_depth=model.max_depth,
        min_samples_leaf=model.min_samples_leaf,
        max_clauses=model.max_clauses,
        max_atoms=model.max_atoms,
        ridge=1.0 / model.C,
    )


def explainer_of(model: Any, kappa: float) -> Explainer:
    """The explainer the parameters ask for, with this margin."""
    given: Any = model.explainer
    if callable(given):
        return given  # type: ignore[no-any-return]  # whatever the user gave, taken at its word
    k, most = model.max_changes, model.max_queries
    match given:
        case "greedy":
            return partial(explain_greedily, settings=Greedy(kappa=kappa, max_moved=k, max_queries=most))
        case "macem":
            settings = Macem(kappa=kappa, max_moved=k, max_queries=most, seed=seed_of(model.random_state))
            return partial(explain_by_macem, settings=settings)
        case _:
            raise BadInput(f"explainer={given!r} is neither 'greedy', 'macem' nor a callable")


def seed_of(random_state: Any) -> int:
    """The seed of what draws here: the random state where it is a number, else 0, so that two fits are equal."""
    return int(random_state) if isinstance(random_state, Integral) else 0
