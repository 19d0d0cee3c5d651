"""Where a query looks up its names: the rows it works on (`Frame`), and what all stages share (`Reader`).

Allow-lists of their parts decide which expressions that are not understood still give one value per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from gbfl_compile.checking.general.sql.comparisons import condition
from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.expressions import expression
from gbfl_compile.checking.general.sql.functions import Functions
from gbfl_compile.checking.general.sql.logic import TRUE, Formula, both
from gbfl_compile.checking.general.sql.parsing import Scope, folded_name, kind, only, operands, refuse, snippet
from gbfl_compile.checking.general.sql.relations import Columns, KnownTable, Relation, Tables, are_apart
from gbfl_compile.checking.general.sql.types import is_known_type
from gbfl_compile.checking.general.sql.values import Column, Constant, Other, Value, pick
from gbfl_compile.checking.reading.nodes import Unread

Stages: TypeAlias = Mapping[str, Relation | None]
"""The stages that a FROM may name; None for one that is defined further on."""


@dataclass(frozen=True, slots=True)
class Reader:
    """What all stages of a query share."""

    engine: Engine
    table: Callable[[str], Value]
    """What a column of the table is, by its folded name."""
    query: Callable[[Any, Reader, Stages, Frame | None], Relation]
    """What a query within another gives."""
    tables: Tables | None = None
    """What each table is, where several may be read and rows may be left out."""
    read_view: Callable[[KnownTable, Reader], Relation] | None = None
    expressions: Mapping[str, int] = field(default_factory=dict)
    """Expressions that are features, by what they are made of: see `structure`."""
    views: tuple[str, ...] = ()
    """The views that are being read, the outermost first."""
    functions: Functions = lambda schema, name: None
    types: Mapping[int, str] = field(default_factory=dict)
    """The declared type of each feature's column, where that is known."""
    feature: Callable[[int], Value] = Column
    """What a feature is: a number or, of another kind, a `Word`."""
    constants: bool = True
    """Whether small tables without features are read as the rows they hold now."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that a SELECT works on, one branch of each thing it selects from."""

    holds: Formula
    sources: tuple[tuple[str | None, Columns, Callable[[str], Value] | None], ...]
    merged: frozenset[str] = frozenset()
    """Columns that USING made one of two."""
    outer: Frame | None = None
    aggregate: Callable[[Any, Scope], Value | None] | None = None
    """What aggregates and row numbers come to, where the rows that they are over come from one row of the table."""

    def find(self, table: str | None, name: str) -> list[Value | Unread]:
        """What a name can mean here; the nearest query that knows it decides."""
        named = [each for each in self.sources if table is None or each[0] == table]
        found = [columns[name] for _, columns, _ in named if name in columns]
        if not found:
            rests = [rest for _, columns, rest in named if rest is not None]
            found = [rest(name) for rest in rests[:1]] if table is not None or rests else []
        if not found and self.outer is not None:
            return self.outer.find(table, name)
        return found[:1] if table is None and name in self.merged else found

    def lists(self, name: str) -> bool:
        """Whether a column of this name is known to be there."""
        return any(name in columns for _, columns, _ in self.sources) or (
            self.outer is not None and self.outer.lists(name)
        )


def name_key(engine: Engine, identifier: Any) -> str:
    if kind(identifier) != "Identifier":
        refuse(identifier, "is not a name")
    return folded_name(engine, str(identifier.this), bool(identifier.args.get("quoted")))


def clause_of(node: Any, name: str) -> Any:
    """FROM and WITH were called otherwise in older versions of sqlglot."""
    return node.args.get(f"{name}_") or node.args.get(name)


def alias_of(alias: Any, engine: Engine) -> tuple[str | None, list[str]]:
    if alias is None:
        return None, []
    only(alias, "this", "columns")
    name = None if alias.this is None else name_key(engine, alias.this)
    return name, [name_key(engine, column) for column in alias.args.get("columns") or []]


def rename_columns(node: Any, relation: Relation, names: list[str]) -> Relation:
    try:
        return relation.rename(names)
    except Unread as error:
        refuse(node, str(error))


def words_of(node: Any, reader: Reader, opening: str = "") -> str:
    try:
        text = " ".join(str(node.sql(dialect=reader.engine.parsed_as)).split())
    except Exception:  # a node may not be writable again
        text = snippet(node)
    text = f"{opening}{text}"
    return text if len(text) <= 160 else f"{text[:157]}..."


def with_notes(below: Relation, *words: str) -> Relation:
    return replace(below, notes=tuple(dict.fromkeys((*below.notes, *words))))


def scope_of(reader: Reader, known: Stages, frame: Frame, aliases: Mapping[str, Value | Unread] | None = None) -> Scope:
    return Scope(
        reader.engine,
        _look_up(reader.engine, frame, aliases or {}),
        expression,
        _known_values(reader, frame),
        None if reader.tables is None else lambda node: _scalar(node, reader, known, frame),
        reader.functions,
        reader.types,
    )


def _known_values(reader: Reader, frame: Frame) -> Callable[[Any, Scope], Value | None]:
    """What is known of an expression as a whole: that it is a feature, or an aggregate over known rows."""
    lookup = _feature_lookup(reader) if reader.expressions else lambda node, scope: None
    aggregate = frame.aggregate
    if aggregate is None:
        return lookup

    def known_value(node: Any, scope: Scope) -> Value | None:
        value = lookup(node, scope)
        return aggregate(node, scope) if value is None else value

    return known_value


def _feature_lookup(reader: Reader) -> Callable[[Any, Scope], Value | None]:
    """The feature that --column FEATURE=expression declares an expression to be, over exactly the columns it names."""
    roots = {text.partition("(")[0] for text in reader.expressions}

    def feature(node: Any, scope: Scope) -> Value | None:
        if kind(node) not in roots:
            return None
        found = reader.expressions.get(structure(node, lambda column: _identity(column, scope)))
        return None if found is None else Column(found)

    return feature


UNKNOWN_COLUMN = "\0 unknown"
"""No column is called so."""


def _identity(node: Any, scope: Scope) -> str:
    """Which column of which table a name means; a name that means anything else equals no other."""
    try:
        value = scope.look_up(node)
    except Unread:
        return UNKNOWN_COLUMN
    match value:
        case Other(name):
            return name
        case Column(feature, False, False):
            return f"feature {feature}"
        case _:
            return UNKNOWN_COLUMN


def structure(node: Any, identity: Callable[[Any], str]) -> str:
    """The nodes of an expression, without brackets and remarks; `identity` says what each column is."""
    from sqlglot import exp

    root = exp.Paren(this=node.copy())
    for part in list(root.walk()):
        part.comments = None
        if kind(part) == "Column":
            part.replace(exp.Column(this=exp.Identifier(this=identity(part), quoted=True)))
    for part in list(root.find_all(exp.Paren)):
        if part is not root:
            part.replace(part.this)
    while kind(root.this) == "Paren":
        root = root.this
    return repr(root.this)


def canonical(node: Any, engine: Engine, with_tables: bool) -> str:
    """An expression without what says nothing: brackets, case of plain names and, of one table, that before columns."""
    copy = node.copy()
    for part in list(copy.walk()):
        if kind(part) == "Column":
            for extra in ("db", "catalog") if with_tables else ("table", "db", "catalog"):
                part.set(extra, None)
        if kind(part) == "Identifier":
            part.set("this", folded_name(engine, str(part.this), bool(part.args.get("quoted"))))
            part.set("quoted", False)
    while kind(copy) == "Paren":
        copy = copy.this
    for part in list(copy.walk()):
        if kind(part) == "Paren" and kind(part.this) in ("Column", "Literal", "Anonymous", "Coalesce", "Cast"):
            part.replace(part.this)
    return str(copy.sql(dialect=engine.parsed_as))


KEEPING_ONE_ROW = {"LIMIT 1", "DISTINCT, which merges equal rows"}
"""What a query may say of its rows that leaves a single one as it is."""


def _scalar(node: Any, reader: Reader, known: Stages, frame: Frame) -> Value:
    """A query in an expression: one column, and for each row one value, or NULL where there is none."""
    inner = reader.query(node, reader, known, frame)
    if inner.tables or inner.rest is not None or len(inner.names()) != 1:
        refuse(node, "a query within an expression, of other rows")
    if not are_apart(inner.branches):
        refuse(node, "a query within an expression, which may give several rows")
    if set(inner.notes) - KEEPING_ONE_ROW:
        refuse(node, "a query within an expression, which may leave its row out")
    value: Value = Constant(None)
    for place, branch in enumerate(reversed(inner.branches)):
        (own,) = branch.columns.values()
        if isinstance(own, Unread):
            raise own
        value = own if place == 0 and inner.holds() is TRUE else pick(branch.holds, own, value)
    return value


def _look_up(engine: Engine, frame: Frame, aliases: Mapping[str, Value | Unread]) -> Callable[[Any], Value]:
    def look_up(node: Any) -> Value:
        table, identifier = None, node
        if kind(node) == "Column":
            only(node, "this", "table", "db", "_type")
            table, identifier = node.args.get("table"), node.this
        name = name_key(engine, identifier)
        found = frame.find(None if table is None else name_key(engine, table), name)
        if (
            table is None
            and name in aliases
            and not frame.lists(name)
            and all(isinstance(each, Other) for each in found)
        ):
            found = [aliases[name]]
        if not found:
            refuse(node, "no column of this name")
        if any(each != found[0] for each in found[1:]):
            refuse(node, "several columns have this name: put the table before it")
        if isinstance(found[0], Unread):
            raise found[0]
        return found[0]

    return look_up


def conditions(test: Any, frame: Frame, reader: Reader, known: Stages) -> tuple[Formula, list[Any]]:
    """When the parts of a condition that are understood hold, and the other parts."""
    while kind(test) == "Paren":
        test = test.this
    parts = operands(test) if kind(test) == "And" else [test]
    formulas, others = [], []
    for part in parts:
        try:
            formulas.append(condition(part, scope_of(reader, known, frame)).true)
        except Unread:
            others.append(part)
    return both(formulas), others


def asks_features(node: Any, frame: Frame, reader: Reader, aliases: Mapping[str, Any] | None = None) -> bool:
    """Whether a condition that is not understood may depend on a feature.

    `aliases` are the expressions of the same SELECT by their names. A name that means neither one of them nor a column
    may mean anything.
    """
    for part in node.walk():
        if kind(part) == "Column" and kind(part.this) == "Identifier":
            table, name = part.args.get("table"), name_key(reader.engine, part.this)
            found = frame.find(None if table is None else name_key(reader.engine, table), name)
            if any(not isinstance(value, Other | Constant) and not is_opaque(value) for value in found):
                return True
            others = {key: each for key, each in (aliases or {}).items() if key != name}
            if not found and (
                aliases is None or name not in aliases or asks_features(aliases[name], frame, reader, others)
            ):
                return True
    return False


def aliases_of(node: Any, engine: Engine) -> dict[str, Any]:
    """The expressions of a SELECT list by the names it gives them."""
    return {name_key(engine, item.args["alias"]): item.this for item in node.expressions if kind(item) == "Alias"}


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
