"""Tables with words, dates or missing values as a classifier takes them; tables of numbers pass by unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Columns, EncodedTable
from gbfl_compile.learning.black_box.ask import Matrix, OriginalTable, as_black_box
from gbfl_compile.learning.black_box.on_codes import network_on_codes
from gbfl_compile.learning.explain.explanations import table_domain
from gbfl_compile.tables.kinds import KINDS, encode_rows, encode_table
from gbfl_compile.tables.palettes import as_pandas, palettes_of


def as_frame(X: Any) -> Any:
    """Arrow and Polars tables as pandas ones with the same names; everything else unchanged."""
    return as_pandas(X)


def training_table(model: Any, X: Any) -> EncodedTable | None:
    """X as an encoded table where it has words, dates or missing values; None where it is numbers alone."""
    if isinstance(X, EncodedTable):
        return X
    frame = as_frame(X)
    if not isinstance(frame, pd.DataFrame) or not len(frame) or getattr(frame.columns, "nlevels", 1) > 1:
        return None
    wanted = _wanted_kinds(model.kinds)
    plain = all(pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes) and not frame.isna().any().any()
    if plain and not any(kind != "number" for kind in wanted.values()):
        return None
    if repeated := sorted({str(name) for name in frame.columns[frame.columns.duplicated()]}):
        raise BadInput(f"the table has two columns {repeated[0]!r}: rename one")
    named = frame.rename(columns=str)
    x, columns, facts = encode_table(named, tuple(named.columns), "the table", kinds=wanted)
    model.palettes_ = palettes_of(named, facts)
    return EncodedTable(columns, x)


def _wanted_kinds(kinds: Any) -> dict[str, Any]:
    """Those entries of `kinds` that say what a column is; the others are for numbers."""
    if not hasattr(kinds, "items"):
        return {}
    return {str(name): kind for name, kind in kinds.items() if isinstance(kind, str) and kind in KINDS}


def take_table(model: Any, table: EncodedTable, X: Any, y: Any) -> tuple[Matrix, NDArray[Any] | None]:
    """Set the classifier's domain and black box from a table; its rows and classes."""
    for name in ("base", "bounds"):
        if getattr(model, name) is not None:
            raise BadInput(f"{name}=: is for tables of numbers without gaps: here the table itself says what is usual")
    if model.search:
        raise BadInput("search=True is for tables of numbers without gaps: leave it out where there are words")
    columns, x = table.columns, table.x
    if np.isinf(x).any():
        raise BadInput(f"feature {columns.features[int(np.isinf(x).any(axis=0).argmax())]}: infinity cannot be learned")
    if isinstance(X, EncodedTable):
        model.n_features_in_ = x.shape[1]
        model.feature_names_in_ = np.array(columns.features, dtype=object)
    else:
        validate_data(model, as_frame(X), skip_check_array=True)
    target = None if y is None else np.asarray(y)
    if target is not None:
        check_classification_targets(target)
        if target.shape != (len(x),):
            raise BadInput(f"y has shape {target.shape} for {len(x)} rows")
    elif model.black_box is None or model.labels != "black_box":
        raise BadInput(
            "GBFLClassifier requires y to be passed, but the target y is None: "
            "only with a black box and labels='black_box' can it be left out"
        )
    wishes = model.kinds if hasattr(model.kinds, "items") else {}
    codes = [name for name, kind in wishes.items() if isinstance(kind, tuple)]
    model.domain_ = table_domain(x, columns, immutable=model.immutable, directions=model.directions, codes=codes)
    if model.black_box is None:
        network = network_on_codes(x, target, columns, model.random_state)
        model.black_box_ = as_black_box(network, x, time_limit=model.black_box_timeout)
    else:
        original = None if isinstance(X, EncodedTable) else OriginalTable(columns, model.palettes_)
        features = columns.features
        model.black_box_ = as_black_box(
            model.black_box, x, features=features, time_limit=model.black_box_timeout, table=original
        )
    return x, target


def table_rows(columns: Columns, X: Any) -> Matrix:
    """Rows of such a table as doubles; a text that no training row has gets code 0."""
    if isinstance(X, EncodedTable):
        return X.x
    frame = as_frame(X)
    if not isinstance(frame, pd.DataFrame):
        raise BadInput("the model was fitted on a table with words: give a table with the same columns")
    frame = frame.rename(columns=str)
    if absent := [name for name in columns.features if name not in frame.columns]:
        raise BadInput(f"the table has no column {absent[0]!r}, which the model was fitted on")
    return encode_rows(frame, columns, "the table")


def validate_training(model: Any, X: Any, y: Any) -> tuple[Matrix, NDArray[Any] | None]:
    """The rows and classes of a table of numbers."""
    X = as_frame(X)
    if y is None and model.black_box is not None and model.labels == "black_box":
        return validate_data(model, X, dtype=np.float64, ensure_min_samples=2), None
    if y is None:
        raise BadInput(
            "GBFLClassifier requires y to be passed, but the target y is None: "
            "only with a black box and labels='black_box' can it be left out"
        )
    x, target = validate_data(model, X, y, dtype=np.float64, ensure_min_samples=2)
    check_classification_targets(target)
    return x, target
