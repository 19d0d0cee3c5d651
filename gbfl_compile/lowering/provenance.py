"""Where a program came from: versions, parameters, fingerprints, figures and histograms, as JSON. No rows."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from gbfl_compile.version import GENERATOR

HISTOGRAM_BINS = 10
UNTOLD = {"black_box", "checkpoint", "n_jobs", "black_box_timeout", "verbose"}
"""Parameters that do not change what is learned, or are told elsewhere: the same model is to have the same metadata."""


def provenance(model: Any, figures: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a program lowered from `model`: what is known of it. A tree from elsewhere says little."""
    import pandas
    import scipy
    import sklearn

    facts: dict[str, Any] = {
        "generator": GENERATOR,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "pandas": pandas.__version__,
        },
        "model": _kind(model),
        "parameters": {
            name: _as_json(value) for name, value in sorted(model.get_params(deep=False).items()) if name not in UNTOLD
        },
    }
    if hasattr(model, "black_box_"):
        black_box = model.black_box_.model
        facts["black_box"] = {"kind": _kind(black_box), "fingerprint": _fingerprint(black_box)}
    known = dict(figures)
    if hasattr(model, "explanations_"):
        facts["explanations"] = model.explanations_.counts()
    rows = model.explanations_.x if hasattr(model, "explanations_") else getattr(model, "x_", None)
    if rows is not None:
        facts["training"] = _training(rows, model)
    if hasattr(model, "consistency_"):
        known = {"training": model.consistency_.as_dict(), **known}
    return {**facts, "figures": known}


def _training(rows: Any, model: Any) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    features = tuple(f"x{j}" for j in range(rows.shape[1])) if names is None else tuple(str(name) for name in names)
    return {
        "rows": len(rows),
        "fingerprint": data_fingerprint(rows, features),
        "histograms": [histogram(rows[:, feature]) for feature in range(rows.shape[1])],
    }


def data_fingerprint(rows: Any, features: tuple[str, ...]) -> str:
    """SHA-256 of the names and the float64 values, row by row, little-endian."""
    values = np.ascontiguousarray(rows, dtype="<f8")
    names = "\0".join(features).encode("utf-8", "surrogatepass")
    seen = hashlib.sha256(names + b"\0\0" + str(values.shape).encode())
    seen.update(values.data)
    return seen.hexdigest()


def histogram(values: Any) -> dict[str, Any]:
    """Counts between quantiles of a column: enough to see later data drift away, too little to see a row."""
    numbers = values[np.isfinite(values)]
    if len(numbers) == 0:
        return {"edges": [], "counts": [], "missing": len(values)}
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, HISTOGRAM_BINS + 1)))
    counts = np.bincount(np.searchsorted(edges[1:-1], numbers, side="right"), minlength=max(1, len(edges) - 1))
    return {"edges": edges.tolist(), "counts": counts.tolist(), "missing": len(values) - len(numbers)}


def _kind(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def _fingerprint(model: Any) -> str | None:
    """A hash of a model's own arrays and settings. A plain function has none: its name says nothing of its answers."""
    if not hasattr(model, "predict_proba"):
        return None
    import joblib

    try:
        return f"joblib-sha1:{joblib.hash(model, hash_name='sha1')}"
    except Exception:  # whatever cannot be pickled has no fingerprint
        return None


def _as_json(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else str(value)
    return _kind(value)
