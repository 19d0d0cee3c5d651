"""Why a row got its class: what held, which part of it suffices, what would change it. Exact, on the program alone.

`explain_row` gives the account as text and JSON, with the black box's own where the row's triplet is known.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import as_program, digest
from gbfl_compile.ir.kinds import Codebook, Value, codebook, decode_rows, encode_row, is_missing
from gbfl_compile.ir.nodes import Label, Program
from gbfl_compile.ir.text import label_text, printable
from gbfl_compile.learning.consistency import Triplets, triplets_for
from gbfl_compile.tables.frames import named_table
from gbfl_compile.tables.read import feature_row
from gbfl_compile.tables.values import has_values, one_value_row
from gbfl_compile.why.account import Account, account, as_json, lines, value_text

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class BlackBoxAnswer:
    """What the black box says about the row: its class, and the new values in its PP and its PN, where there are."""

    label: Label
    pp: Mapping[str, Value] | None
    pn: Mapping[str, Value] | None


@dataclass(frozen=True, slots=True)
class RowExplanation:
    """Why one row gets its class."""

    account: Account
    row_number: int
    rows: int
    """How many rows the table has; 1 for a row by itself."""
    black_box: BlackBoxAnswer | None = None

    @property
    def label(self) -> Label:
        """The class the program gives."""
        return self.account.answer.label

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        own = self.black_box
        return {
            "digest": digest(self.account.program),
            "row_number": self.row_number,
            **as_json(self.account),
            "black_box": None if own is None else {"label": own.label, "pp": _form(own.pp), "pn": _form(own.pn)},
        }

    def lines(self) -> list[str]:
        """As text for people."""
        first, *others = lines(self.account)
        own = [] if self.black_box is None else ["", *_black_box_lines(self.account, self.black_box)]
        return [f"row {self.row_number} of {self.rows}: {first}", *others, *own]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain_row(
    program: Program | str | os.PathLike[str],
    row: Any,
    *,
    row_number: int = 1,
    triplets: Triplets | str | os.PathLike[str] | None = None,
) -> RowExplanation:
    """Why the program gives a row its class, which values suffice for it, and what would change it.

    row: a mapping or sequence of values, or a table (file or DataFrame) of which `row_number` counts from 1. A
    category is a text; a date or timestamp may be an ISO 8601 text.
    triplets: rows with their PPs and PNs that include this one, to add what the black box says.
    """
    source, row = as_program(program), named_table(row)
    if source.kinds:
        values, rows = one_value_row(row, source, row_number)
        own = None if triplets is None else _black_box_answer(source, triplets, values)
        return RowExplanation(account(source, values), row_number, rows, own)
    if has_values(source, row):
        values, rows = one_value_row(row, source, row_number)
        numbers = encode_row(source, values)
    else:
        numbers, rows = feature_row(row, source.features, row_number)
    own = None
    if triplets is not None:
        own = _black_box_answer(source, triplets, numbers)
    return RowExplanation(account(source, numbers), row_number, rows, own)


def _black_box_answer(
    program: Program, source: Triplets | str | os.PathLike[str], row: Sequence[Value]
) -> BlackBoxAnswer:
    """The black box's class, PP and PN of this very row."""
    triplets = triplets_for(program, source)
    book = Codebook(triplets.texts) if program.kinds else codebook(program)
    numbers = np.array(encode_row(program, row, book))
    places = np.flatnonzero(((triplets.x == numbers) | (np.isnan(triplets.x) & np.isnan(numbers))).all(axis=1))
    if not len(places):
        where = "the triplets" if isinstance(source, Triplets) else f"{source}"
        raise BadInput(f"{where}: does not have this row; gbfl mine --triplets writes those it held out")
    place = int(places[0])

    def change(has: NDArray[np.bool_], points: NDArray[np.float64]) -> dict[str, Value] | None:
        before, after = decode_rows(program, [triplets.x[place].tolist(), points[place].tolist()], book)
        moves = zip(triplets.features, before, after, strict=True)
        changed = {n: new for n, old, new in moves if old != new and not (is_missing(old) and is_missing(new))}
        return changed if has[place] else None

    label = triplets.label[place].item()
    return BlackBoxAnswer(label, change(triplets.has_pp, triplets.pp), change(triplets.has_pn, triplets.pn))


def _form(values: Mapping[str, Value] | None) -> dict[str, Any] | None:
    """Values as JSON: a date as ISO 8601 writes it, a missing one as null."""
    if values is None:
        return None
    plain = {name: None if is_missing(value) else value for name, value in values.items()}
    return {name: str(value) if isinstance(value, datetime.date) else value for name, value in plain.items()}


def _black_box_lines(row: Account, own: BlackBoxAnswer) -> list[str]:
    before = dict(zip(row.program.features, row.row, strict=True))

    def moves(new: Mapping[str, Value]) -> str:
        return ", ".join(f"{printable(n)} {value_text(before[n])} -> {value_text(v)}" for n, v in new.items())

    text = [f"The black box says {label_text(own.label)}"]
    if own.pp is not None:
        text.append(f"  and still does with {moves(own.pp) or 'nothing changed'}")
    if own.pn is not None:
        text.append(f"  and no longer does with {moves(own.pn)}")
    return text
