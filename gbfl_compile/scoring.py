"""Scores a table with an artifact: key columns if asked, then `label`, then one `p_<class>` a class."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gbfl_compile.backends.base import Predictor
from gbfl_compile.errors import BadInput
from gbfl_compile.tables import feature_matrix


def score_table(predictor: Predictor, table: Any, keys: tuple[str, ...], where: str) -> Any:
    """A DataFrame with a row for each row of `table`, in its order."""
    import pandas as pd

    if absent := [key for key in keys if key not in table.columns]:
        raise BadInput(f"{where}: has no key column {absent[0]!r}")
    names = [*keys, "label", *(f"p_{label}" for label in predictor.classes)]
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise BadInput(f"{where}: the output would have {count} columns called {name!r}, rename the key column")
    answers = predictor.answer(feature_matrix(table, predictor.features, where))
    columns = [*(table[key] for key in keys), pd.Series(answers.labels.tolist(), index=table.index, dtype=None)]
    columns += [pd.Series(share, index=table.index) for share in answers.probabilities.T]
    return pd.DataFrame(dict(zip(names, columns, strict=False)))  # an artifact may give the label alone
