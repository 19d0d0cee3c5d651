"""Tables with words, dates or missing values as a classifier takes them; tables of numbers are left unchanged.

Black boxes trained here on such tables each get the preparation they need.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Columns, EncodedTable
from gbfl_compile.learning.black_box import Matrix, OriginalTable, as_black_box
from gbfl_compile.learning.explain import Domain, domain_of, table_domain
from gbfl_compile.learning.prepare import can_hold_out, kinds_of
from gbfl_compile.tables.frames import as_pandas
from gbfl_compile.tables.kinds import KINDS, encode_rows, encode_table
from gbfl_compile.tables.values import palettes_of

if TYPE_CHECKING:
    from gbfl_compile.learning.black_box.load import Kind

BLOCK_ROWS = 8192
"""Rows prepared at a time: one column per word makes wide rows."""
FEW_ROWS = 500
MOST_TREES, FOLDS, LEAST_SHARE = 200, 5, 1e-6
"""Of boosting: its trees, the parts of a cross-validation, and what a class gets at least where its loss is taken."""
MOST_CODES = 200
"""Words that gradient boosting tells apart, the commonest; scikit-learn allows 255."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Codes as numbers: one column per word that the training rows have, gaps filled with the median and marked."""

    words: tuple[Matrix | None, ...]
    """The codes of each column of words; None for a column of numbers."""
    middle: Matrix
    centre: Matrix
    spread: Matrix
    marked: tuple[bool, ...]
    """Which columns have gaps in the training rows."""

    def rows(self, x: Matrix) -> NDArray[np.float32]:
        """The rows as numbers, of about the same size."""
        parts = []
        for j, words in enumerate(self.words):
            here = x[:, j : j + 1]
            missing = np.isnan(here)
            if words is not None:
                parts.append(here == words[None, :])
            else:
                parts.append((np.where(missing, self.middle[j], here) - self.centre[j]) / self.spread[j])
            if self.marked[j]:
                parts.append(missing)
        return np.hstack(parts).astype(np.float32)


def preparation_of(x: Matrix, columns: Columns) -> Preparation:
    """The preparation that training rows need."""
    words: list[Matrix | None] = []
    figures = []
    for j, kind in enumerate(columns.kinds):
        here = x[~np.isnan(x[:, j]), j]
        words.append(np.unique(here) if kind in ("category", "boolean") else None)
        figures.append((np.median(here), here.mean(), here.std() or 1.0) if len(here) else (0.0, 0.0, 1.0))
    middle, centre, spread = np.array(figures).T
    return Preparation(tuple(words), middle, centre, spread, tuple(bool(np.isnan(column).any()) for column in x.T))


@dataclass(frozen=True, slots=True)
class OnPreparedRows:
    """A model and the preparation of its rows."""

    model: Any
    preparation: Preparation

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, one per column of the answer."""
        return np.asarray(self.model.classes_)

    def predict_proba(self, x: Matrix) -> Matrix:
        """One probability per class for each row of codes."""
        blocks = [
            self.model.predict_proba(self.preparation.rows(x[begin : begin + BLOCK_ROWS]))
            for begin in range(0, len(x), BLOCK_ROWS)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, len(self.classes_)))

    def predict(self, table: EncodedTable) -> NDArray[Any]:
        """The class of each row."""
        return np.asarray(self.classes_[self.predict_proba(table.x).argmax(axis=1)])


@dataclass(frozen=True, slots=True)
class OnCommonCodes:
    """A model that takes codes as they are, rare words as one."""

    model: Any
    is_word: NDArray[np.bool_]

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, one per column of the answer."""
        return np.asarray(self.model.classes_)

    def predict_proba(self, x: Matrix) -> Matrix:
        """One probability per class for each row of codes."""
        return np.asarray(self.model.predict_proba(_common(x, self.is_word)))


def _common(x: Matrix, is_word: NDArray[np.bool_]) -> Matrix:
    return np.where(is_word, np.minimum(x, MOST_CODES), x)


def train_on_codes(kind: Kind, x: Matrix, y: Any, columns: Columns, seed: int) -> Any:
    """A black box fitted to encoded rows, the same one for the same seed."""
    match kind:
        case "gbm":
            is_word = np.array([each in ("category", "boolean") for each in columns.kinds])
            return OnCommonCodes(boosting_on_codes(_common(x, is_word), np.asarray(y), is_word, seed), is_word)
        case "forest":
            from sklearn.ensemble import RandomForestClassifier

            preparation = preparation_of(x, columns)
            # one job: trees that add up their votes in parallel do so in another order each time
            forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=seed, n_jobs=1)
            return OnPreparedRows(forest.fit(preparation.rows(x), y), preparation)
        case "mlp":
            return network_on_codes(x, y, columns, seed)
        case _:
            assert_never(kind)


def boosting_on_codes(x: Matrix, y: NDArray[Any], is_word: NDArray[np.bool_], seed: Any) -> Any:
    """Boosted trees, as many as serve rows they have not seen: splits on words learn rows by heart.

    Of few rows, each in its turn is unseen in a cross-validation; of many, the fit itself holds some out.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold

    few = len(x) < FEW_ROWS
    boosting = HistGradientBoostingClassifier(
        max_leaf_nodes=15,
        learning_rate=0.05,
        max_iter=MOST_TREES,
        early_stopping=not few and can_hold_out(y),
        categorical_features=is_word,
        random_state=seed,
    )
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    folds = min(FOLDS, int(counts.min()))
    if not few or folds < 2 or len(classes) < 2:
        return boosting.fit(x, y)
    loss = np.zeros(MOST_TREES)
    for learned, new in StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y):
        stages = boosting.fit(x[learned], codes[learned]).staged_predict_proba(x[new])
        loss += [-np.log(np.maximum(p[np.arange(len(new)), codes[new]], LEAST_SHARE)).sum() for p in stages]
    return boosting.set_params(max_iter=int(loss.argmin()) + 1).fit(x, y)


def network_on_codes(x: Matrix, y: Any, columns: Columns, seed: Any) -> OnPreparedRows:
    """A small neural network fitted to encoded rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    # one column per word is many columns: without a stop, or on few rows a strong penalty, it learns rows by heart
    few = {"solver": "lbfgs", "alpha": 10.0, "max_iter": 300}
    many = {"alpha": 1e-2, "max_iter": 150, "early_stopping": can_hold_out(y)}
    network = MLPClassifier((40, 20), random_state=seed, **(few if len(x) < FEW_ROWS else many))
    preparation = preparation_of(x, columns)
    # one thread: the steps are small, and threads that wait for each other take many times as long
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OnPreparedRows(network.fit(preparation.rows(x), y), preparation)


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
            raise BadInput(
                f"{name}=: is for tables of numbers without missing values: here the table itself says what is usual"
            )
    if model.search:
        raise BadInput(
            "search=True is for tables of numbers without missing values: leave it out where there are words"
        )
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
    model.domain_ = domain_for(model, x, columns.features, columns)
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


def domain_for(model: Any, x: Matrix, features: Any, columns: Columns | None) -> Domain:
    """Where explanations may look: the rows' own values, within the limits that a classifier's parameters set."""
    limits: dict[str, Any] = {"immutable": model.immutable, "directions": model.directions}
    if columns is not None:
        wishes = model.kinds if hasattr(model.kinds, "items") else {}
        return table_domain(x, columns, codes=[n for n, kind in wishes.items() if isinstance(kind, tuple)], **limits)
    kinds = kinds_of(model, x, features)
    return domain_of(x, features=features, kinds=kinds, base=model.base, bounds=model.bounds, **limits)


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
