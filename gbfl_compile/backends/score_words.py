"""Answers for tables with words, dates or texts that mean missing: a column is read as the kind that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.backends.base import Predictor
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import Codebook, Columns, decode_value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gbfl_compile.ir.evaluate import Answers
    from gbfl_compile.ir.nodes import Kind


def as_frame(batch: Any, names: Sequence[str]) -> Any:
    """A batch of a file as a pandas table of these columns. Nothing between two commas of a CSV file is no text."""
    import pandas as pd

    if hasattr(batch, "schema"):
        from gbfl_compile.tables.batches import decode

        return pd.DataFrame({name: decode(batch.column(name)).to_pandas() for name in names})
    return batch[list(names)].where(batch[list(names)] != "")


def answer_frame(
    predictor: Predictor,
    frame: Any,
    where: str,
    marks: Sequence[str] | None = None,
    places: NDArray[np.int64] | None = None,
) -> Answers:
    """What the artifact answers for the rows of a pandas table; a feature that it does not ask for may be absent.

    `marks` are the texts that mean a missing number or date; `places` gives each row's place in its file.
    """
    import numpy as np

    from gbfl_compile.tables.kinds import encode_rows, known_texts, marks_of

    number: Kind = "number"
    kinds: tuple[Kind, ...] = predictor.kinds or (number,) * len(predictor.features)
    asks = predictor.asks or (True,) * len(kinds)
    used = [feature for feature, is_asked in enumerate(asks) if is_asked]
    codes: Any = predictor.book
    if codes is None:
        codes = Codebook(
            tuple(
                known_texts(frame[name]) if kind == "category" and is_asked else ()
                for name, kind, is_asked in zip(predictor.features, kinds, asks, strict=True)
            )
        )
    columns = Columns(
        tuple(predictor.features[feature] for feature in used),
        tuple(kinds[feature] for feature in used),
        Codebook(tuple(codes.texts[feature] for feature in used)),
        ((),) * len(used),
        (False,) * len(used),
    )
    matrix = np.full((len(frame), len(kinds)), np.nan)
    if used:
        matrix[:, used] = encode_rows(frame, columns, where, marks_of(marks or None), places)
    if predictor.book is not None or not predictor.kinds:
        return predictor.answer(matrix)
    if predictor.answer_rows is None:
        raise BadInput(f"{predictor.target}: the artifact asks for words or dates and cannot be asked with them yet")
    rows = [
        [decode_value(kind, value, texts) for kind, value, texts in zip(kinds, row, codes.texts, strict=True)]
        for row in matrix.tolist()
    ]
    return predictor.answer_rows(rows)
