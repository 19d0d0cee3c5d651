"""Categories in an ONNX graph read back: encoders of texts, and tables that their codes are looked up in.

A code means the texts that the encoder gives it to. A comparison or a table is asked for each of these texts, for any
other text and for the missing value, so that what is read are sets of texts, whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gbfl_compile.checking.reading.conditions import ON_NUMBERS, Comparison, missing
from gbfl_compile.checking.reading.nodes import Condition, Test, Unread
from gbfl_compile.checking.strict.onnx.graph import attributes, place
from gbfl_compile.checking.strict.onnx.points import not_understood
from gbfl_compile.checking.strict.onnx.values import (
    EXACT,
    Array,
    CodedColumn,
    Codes,
    Matrix,
    Tensor,
    Truth,
    Wide,
    WordColumn,
    single,
)
from gbfl_compile.ir.intervals import Texts, code_values
from gbfl_compile.ir.kinds import Codebook

MOST_TEXTS = 1_000_000


def label_encoder(node: Any, inputs: Sequence[Tensor]) -> Tensor:
    """LabelEncoder from texts to whole numbers, each text once and the default written out."""
    fields = attributes(node, dict.fromkeys(("keys_strings", "values_int64s", "default_int64")))
    if any(value is None for value in fields.values()):
        raise Unread(f"{place(node)}: does not say texts, whole numbers and one for all other texts")
    texts, numbers = _texts(node, fields["keys_strings"]), tuple(fields["values_int64s"])
    if len(set(texts)) != len(texts) or len(numbers) != len(texts) or not 0 < len(texts) <= MOST_TEXTS:
        raise Unread(f"{place(node)}: has a text twice, or not one number per text")
    match inputs:
        case [WordColumn(feature)]:
            return Codes(feature, texts, numbers, fields["default_int64"], None)
        case _:
            raise not_understood(node)


def _texts(node: Any, keys: Sequence[bytes]) -> tuple[str, ...]:
    try:
        texts = tuple(key.decode("utf-8") for key in keys)
    except UnicodeDecodeError:
        raise Unread(f"{place(node)}: a text is not UTF-8") from None
    if any("\0" in text for text in texts):
        raise Unread(f"{place(node)}: a text has a NUL character, at which a runtime may end it")
    return texts


def with_missing(node: Any, condition: Condition, then: Tensor, codes: Codes) -> Tensor:
    """Where of a category's missing values, a code for them, and its other codes."""
    number = single(then)
    if codes.missing is not None or condition != missing(codes.feature) or not isinstance(number, np.int64):
        raise not_understood(node)
    return replace(codes, missing=int(number))


def look_up(node: Any, table: Array, codes: Codes) -> Tensor:
    """Gather of the rows of a table by codes: truth values, or columns of numbers."""
    if codes.missing is None:
        raise Unread(f"{place(node)}: looks up codes before missing values are told apart")
    every = (*codes.numbers, codes.other, codes.missing)
    if not all(0 <= number < len(table) for number in every):
        raise Unread(f"{place(node)}: looks for a row that the table does not have")
    if table.ndim == 1 and table.dtype == np.bool_:
        return Truth(_test(codes, [bool(table[number]) for number in every]))
    if table.ndim == 2 and str(table.dtype) in EXACT and not np.isnan(table.astype(np.float64)).any():
        columns = [CodedColumn(codes, tuple(float(column[number]) for number in every)) for column in table.T]
        return Wide(tuple(columns), str(table.dtype))
    raise not_understood(node)


def compare_codes(column: CodedColumn, sign: Comparison, bound: float) -> Condition:
    """A comparison of a looked-up column with a number."""
    return _test(column.codes, [ON_NUMBERS[sign](number, bound) for number in column.numbers])


def _test(codes: Codes, holds: Sequence[bool]) -> Test:
    """The test that holds for these texts, for any other text, and for the missing value."""
    *by_text, other, absent = holds
    listed = frozenset(text for text, held in zip(codes.texts, by_text, strict=True) if held != other)
    own = {codes.feature: codes.texts}
    book = Codebook(tuple(own.get(feature, ()) for feature in range(codes.feature + 1)))
    return Test(codes.feature, code_values(Texts(listed, other, absent), codes.feature, book))


def side_by_side(node: Any, parts: Sequence[Tensor]) -> Tensor:
    """Concat of features and of looked-up columns, all of one type."""
    columns: list[int | CodedColumn] = []
    dtypes = set()
    for part in parts:
        match part:
            case Matrix(features, dtype):
                columns += features
            case Wide(more, dtype):
                columns += more
            case _:
                raise not_understood(node)
        dtypes.add(dtype)
    if len(dtypes) != 1:
        raise not_understood(node)
    return Wide(tuple(columns), dtypes.pop())


def texts_of(tensors: Iterable[Tensor]) -> dict[int, tuple[str, ...]]:
    """The texts that each category is encoded by; two encoders of one category must list the same ones."""
    texts: dict[int, tuple[str, ...]] = {}
    for tensor in tensors:
        if isinstance(tensor, Codes) and texts.setdefault(tensor.feature, tensor.texts) != tensor.texts:
            raise Unread("two encoders of one category list different texts")
    return texts
