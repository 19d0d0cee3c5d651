"""The values of a table's columns with their own types, so that rows of codes can become a table like the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.kinds import Columns
from gbfl_compile.tables.kinds import ColumnFacts, text_of


@dataclass(frozen=True, slots=True)
class Palette:
    """One column's type, and for a category the value that each code means, in that type."""

    dtype: Any
    values: Any = None
    """A pandas array: `values[code - 1]`; None where the column is not a category."""
    mark: bool = False
    """Whether one more value at the end is what the table has in place of a missing one, such as "?"."""


def as_pandas(table: Any) -> Any:
    """Arrow and Polars tables as pandas ones with the same names; everything else unchanged."""
    if hasattr(table, "column_names") and hasattr(table, "to_pandas"):
        return table.to_pandas()
    if hasattr(table, "to_dicts") and hasattr(table, "columns"):
        import pandas as pd

        return pd.DataFrame({name: table[name].to_list() for name in table.columns})
    return table


def palettes_of(table: Any, facts: Sequence[ColumnFacts]) -> tuple[Palette, ...]:
    """The palette of each column that is described."""
    return tuple(_palette(table[fact.name], fact) for fact in facts)


def _palette(column: Any, fact: ColumnFacts) -> Palette:
    import pandas as pd

    if fact.kind in ("date", "timestamp"):
        values = column.dropna()
        return Palette(np.dtype("M8[us]") if len(values) and isinstance(values.iloc[0], str) else column.dtype)
    if fact.kind != "category":
        return Palette(column.dtype)
    first: dict[str, Any] = {}
    for value in column.dropna().unique().tolist():
        first.setdefault(str(text_of(value)), value)
    originals = [first.get(text, text) for text in fact.texts]
    mark = len(fact.marks) == 1 and not column.isna().any()
    originals += fact.marks if mark else ()
    if all(isinstance(value, str) for value in originals) and column.dtype == object:
        return Palette(column.dtype, pd.array(originals, dtype=pd.Series(["text"]).dtype), mark)
    return Palette(column.dtype, pd.Series(originals).astype(column.dtype).array, mark)


def other_forms(palettes: Sequence[Palette]) -> list[tuple[Palette, ...]]:
    """How else the same table may have been given to a model: gaps instead of marks, pandas categories, or both."""
    gaps = tuple(replace(each, values=each.values[:-1], mark=False) if each.mark else each for each in palettes)
    forms = [gaps, *(tuple(_as_category(each) for each in form) for form in (tuple(palettes), gaps))]
    return [form for place, form in enumerate(forms) if not any(form is earlier for earlier in forms[:place])]


def _as_category(palette: Palette) -> Palette:
    import pandas as pd

    if palette.values is None or not len(palette.values) or isinstance(palette.dtype, pd.CategoricalDtype):
        return palette
    values = pd.Series(palette.values).astype("category").array
    return replace(palette, dtype=values.dtype, values=values)


def as_table(columns: Columns, palettes: Sequence[Palette], x: Matrix) -> Any:
    """The rows as a DataFrame with the columns' own names and types, as a model was trained on."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: _column(columns, palettes[place], place, np.ascontiguousarray(x[:, place]))
            for place, name in enumerate(columns.features)
        }
    )


def _column(columns: Columns, palette: Palette, place: int, values: Matrix) -> Any:
    import pandas as pd

    missing = np.isnan(values)
    kind = columns.kinds[place]
    if kind == "category":
        codes = np.where(missing, len(palette.values) if palette.mark else 0, values).astype(np.int64) - 1
        return pd.api.extensions.take(palette.values, codes, allow_fill=True)
    if kind == "number":
        return _numbers(values, palette.dtype, bool(missing.any()))
    if kind == "boolean":
        if palette.dtype == bool and not missing.any():
            return values >= 1.0
        truth = np.where(missing, None, values >= 1.0)  # type: ignore[call-overload]  # numpy knows no None among truths
        return pd.array(truth, dtype=palette.dtype) if str(palette.dtype) == "boolean" else truth
    unit = "D" if kind == "date" else "us"
    times = np.where(missing, np.iinfo(np.int64).min, np.where(missing, 0, values).astype(np.int64)).view(f"M8[{unit}]")
    if getattr(palette.dtype, "kind", "O") == "M":
        moments = pd.Series(times.astype("M8[us]"))
        zone = getattr(palette.dtype, "tz", None)
        return moments.dt.tz_localize("UTC").astype(palette.dtype) if zone else moments.astype(palette.dtype)
    return times.astype(object)


def _numbers(values: Matrix, dtype: Any, has_missing: bool) -> Any:
    """Numbers in the column's own type; doubles where that type holds no missing value, or was text."""
    if getattr(dtype, "kind", "O") in "iub" and not has_missing and isinstance(dtype, np.dtype):
        return values.astype(dtype)
    return values
