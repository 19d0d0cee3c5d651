"""Which expressions that are not understood give one value for one row, by allow-lists of what they are made of."""

from __future__ import annotations

from typing import Any

from gbfl_compile.checking.general.sql.parsing import kind
from gbfl_compile.checking.general.sql.types import is_known_type
from gbfl_compile.checking.reading.nodes import Unread

HARMLESS = {
    *("Column", "Identifier", "Literal", "National", "Null", "Boolean", "Paren"),
    *("Case", "If", "Coalesce", "Nullif", "Cast", "TryCast", "DataType", "DataTypeParam"),
    *("And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Between", "In", "Is"),
    *("Add", "Sub", "Mul", "Div", "Neg", "DPipe", "Concat", "Upper", "Lower", "Abs", "Round"),
}
"""Nodes that give one value for one row, whatever they are made of."""

HARMLESS_PARTS = {
    *("this", "expression", "expressions", "ifs", "default", "true", "low", "high", "to", "table", "quoted"),
    *("is_string", "is_nvl", "safe", "coalesce", "typed", "negate", "decimals", "nested", "nullable", "_type"),
}
"""What such a node may carry."""

ONE_VALUE = {
    *("Least", "Greatest", "Floor", "Ceil", "Sqrt", "Exp", "Ln", "Log", "Pow", "Mod", "Sign", "IntDiv", "Ordered"),
    *(
        "Trim",
        "Length",
        "Substring",
        "Replace",
        "Left",
        "Right",
        "Initcap",
        "Like",
        "ILike",
        "RegexpLike",
        "StrPosition",
    ),
    *("CurrentDate", "CurrentTimestamp", "CurrentTime", "Now", "Extract", "DateTrunc", "TimestampTrunc", "DateDiff"),
    *("DateAdd", "DateSub", "DateToDi", "TsOrDsToDate", "TsOrDsDiff", "TsOrDsAdd", "Interval", "Var", "Date", "Year"),
    *("Month", "Day", "TimestampDiff", "TimeToStr", "StrToTime", "StrToDate", "ToChar", "AtTimeZone", "CurrentUser"),
    *("JSONExtract", "JSONExtractScalar", "JSONBExtract", "JSONBExtractScalar", "JSONPath", "JSONPathRoot"),
    *("JSONPathKey", "JSONPathSubscript", "Dot", "Introducer", "ByteString", "NullSafeEQ", "NullSafeNEQ", "IsNan"),
    *("Window", "WindowSpec", "Order", "RowNumber", "Rank", "DenseRank", "Ntile", "Lag", "Lead", "FirstValue"),
    *("LastValue", "NthValue", "PercentRank", "CumeDist", "IgnoreNulls", "Star", "Sum", "Avg", "Min", "Max", "Count"),
    *("Stddev", "StddevSamp", "StddevPop", "Variance", "Median", "AnyValue", "Filter", "Where", "Distinct", "ArgMax"),
    *("ArgMin", "CastToStrType", "Collate", "Any", "Array", "Tuple", "Bracket", "Tag", "MD5", "SHA", "SHA2", "Hex"),
}
"""More of them, for what a view has beside its answers: functions of one row, windows and aggregates."""


def is_harmless(node: Any) -> bool:
    """Whether an expression gives one value for one row."""
    for part in node.walk():
        if kind(part) not in HARMLESS or (kind(part) == "If" and kind(part.parent) != "Case"):
            return False
        if any(value not in (None, False, [], ()) for name, value in part.args.items() if name not in HARMLESS_PARTS):
            return False
        if kind(part) == "DataType" and not is_known_type(part):
            return False
    return True


def has_rows_of_its_own(node: Any) -> bool:
    """Whether an expression may give several values for one row; a query in brackets gives one, or is an error."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if kind(part) in ("Subquery", "Exists"):
            continue
        if kind(part) not in HARMLESS and kind(part) not in ONE_VALUE and not _is_known_call(part):
            return True
        waiting += part.iter_expressions()
    return False


CALLS = {
    *("age", "date_part", "datediff", "date_diff", "julianday", "strftime", "timestampdiff", "todate", "tofloat64"),
    *("toint32", "toint64", "tostring", "json_value", "json_extract", "nvl2", "isnull", "isnotnull", "multiif"),
    *("months_between", "trunc", "getdate", "sysdate", "curdate", "logistic", "printf", "format", "concat_ws"),
    *("row_number", "todatetime", "ifnull", "_cast", "datetime", "today", "datename"),
}
"""Functions that sqlglot has no node for and that give one value."""


def _is_known_call(part: Any) -> bool:
    return kind(part) == "Anonymous" and str(part.this).casefold() in CALLS


class OfFeatures(Unread):
    """Why a column is not understood that depends on features, row by row."""


def is_opaque(value: object) -> bool:
    """Whether a column is not understood, and is known not to depend on the features of its row alone."""
    return isinstance(value, Unread) and not isinstance(value, OfFeatures)
