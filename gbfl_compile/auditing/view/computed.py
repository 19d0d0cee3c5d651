"""Features that SQL computes (`--column FEATURE=expression`): which columns they need, and how to reach a value.

What a feature is on a row is always what the database itself computes there. Solving an expression for one of its
columns only chooses the rows to try: `debt_pct / 100.0` is tried at 0.4 by filling in 40 for debt_pct.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Catalog, Column, ColumnType, TableName
from gbfl_compile.databases.views import Base
from gbfl_compile.errors import CannotRun, ConnectionLost, TimeLimitReached
from gbfl_compile.ir.batch import Matrix

DETERMINISTIC = {
    *("Column", "Identifier", "Literal", "Null", "Boolean", "Paren", "Cast", "TryCast", "DataType", "DataTypeParam"),
    *("Add", "Sub", "Mul", "Div", "Mod", "IntDiv", "Neg", "Coalesce", "Nullif", "Case", "If", "Abs", "Round", "Floor"),
    *("Ceil", "Least", "Greatest", "Ln", "Exp", "Sqrt", "Pow", "Sign", "Trunc", "Upper", "Lower", "Trim", "Length"),
    *("And", "Or", "Not", "EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Between", "In", "Is", "Var", "Interval"),
    *("Extract", "DateDiff", "DateTrunc", "TimestampTrunc", "TsOrDsToDate", "Date", "Year", "Month", "Day"),
    *("CurrentDate", "JSONExtract", "JSONExtractScalar", "JSONPath", "JSONPathRoot", "JSONPathKey", "Introducer"),
}
"""Nodes whose value, on a given day, depends on nothing but the row."""

DETERMINISTIC_CALLS = {"julianday", "date_part", "datediff", "date_diff", "timestampdiff", "json_value", "json_extract"}

NUMBERS = ("double", "float32", "integer", "decimal")
REWRITES = ("postgres", "duckdb")
"""Engines that write an expression in their own words when it becomes part of a view, and that have temporary views."""

FEATURE_VIEW = "gbfl_feature"
VALUES = "gbfl_values"
"""A second copy of the table, with the numbers of its rows."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ComputedFeature:
    """A feature that is an expression over columns of one table."""

    feature: int
    text: str
    tree: Any
    base: Base
    columns: tuple[Column, ...]
    """The columns that it is made of, once each."""
    dialect: str

    def names(self, features: Mapping[tuple[str, str], int]) -> dict[str, str]:
        """Each name as it is written -> what the reader calls that column; `features` is (table, column) -> feature."""
        written: dict[str, str] = {}
        for node in _columns_in(self.tree):
            column = _column(self.base, node, self.dialect)
            assert column is not None  # noqa: S101 - it was found when the expression was read
            feature = features.get((self.base.key, column.name))
            own = f"{self.base.key}.{column.name}" if feature is None else f"feature {feature}"
            written |= {node.name: own, column.name: own}
        return written

    def as_column(self) -> Column:
        """A column with what is known of its values."""
        simple = {*ARITHMETIC, "Paren", "Coalesce", "Nullif", "Column", "Identifier", "Literal", "DataType", "Cast"}
        simple |= {"Abs", "Round", "Floor", "Ceil", "Least", "Greatest"}
        is_finite = (
            all(column.type.kind in ("integer", "decimal") for column in self.columns)
            and all(type(node).__name__ in simple - {"Mod", "IntDiv"} for node in self.tree.walk())
            and all(_is_double(node) for node in self.tree.walk() if type(node).__name__ == "Cast")
            and all(_is_nonzero(node.expression) for node in self.tree.walk() if type(node).__name__ == "Div")
        )
        return Column(
            self.text, "computed", ColumnType("double", engine_has_nan=not is_finite), self._nullable(self.tree)
        )

    def _nullable(self, tree: Any) -> bool:
        kind = type(tree).__name__
        if kind == "Column":
            column = _column(self.base, tree, self.dialect)
            return column is None or column.nullable
        if kind == "Literal":
            return False
        if kind == "Coalesce":
            return all(self._nullable(part) for part in (tree.this, *tree.expressions))
        if kind in ("Paren", "Neg"):
            return self._nullable(tree.this)
        if kind in ("Add", "Sub", "Mul") or (kind == "Div" and _is_nonzero(tree.expression)):
            return self._nullable(tree.this) or self._nullable(tree.expression)
        return True

    def spellings(self, database: Database, catalog: Catalog) -> list[str]:
        """The expression as it is stated, and as the database writes it within a view."""
        if database.dialect not in REWRITES:
            return [self.text]
        import sqlglot

        made = f"CREATE TEMPORARY VIEW {FEATURE_VIEW} AS SELECT {self.text} AS value FROM"
        try:
            database.execute(f"{made} {self.base.name.in_quotes(database)}")
            stored = catalog.view(database, TableName("", FEATURE_VIEW))
            tree: Any = None if stored is None else sqlglot.parse_one(stored.definition, read=database.dialect)
            query = tree.expression if isinstance(tree, sqlglot.exp.Create) else tree
            return [self.text] if query is None else [self.text, query.selects[0].unalias().sql(database.dialect)]
        except (CannotRun, sqlglot.errors.SqlglotError):
            return [self.text]
        finally:
            with suppress(CannotRun):
                database.execute(f"DROP VIEW IF EXISTS {FEATURE_VIEW}")


def _is_nonzero(tree: Any) -> bool:
    """A number of ordinary size, or NULLIF(x, 0)."""
    while type(tree).__name__ == "Paren" or (type(tree).__name__ == "Cast" and _is_double(tree)):
        tree = tree.this
    if type(tree).__name__ == "Nullif":
        return not tree.expression.args.get("is_string") and str(tree.expression.this) in ("0", "0.0")
    return type(tree).__name__ == "Literal" and not tree.is_string and 1e-9 < abs(float(tree.this)) < 1e9


def _is_double(tree: Any) -> bool:
    return getattr(tree.to.this, "name", "") == "DOUBLE"


def computed_feature(feature: int, name: str, text: str, bases: Sequence[Base], dialect: str) -> ComputedFeature:
    """The expression that --column gives for a feature; Unread where it cannot be computed."""
    import sqlglot

    try:
        tree = sqlglot.parse_one(text, read={"mariadb": "mysql"}.get(dialect, dialect))
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise Unread(f"--column {name}={text}: it is neither a column nor an expression") from None
    for node in tree.walk():
        is_call = type(node).__name__ == "Anonymous" and str(node.this).casefold() in DETERMINISTIC_CALLS
        if type(node).__name__ not in DETERMINISTIC and not is_call:
            raise Unread(
                f"--column {name}={text}: {node.sql(dialect)} is not known to depend on the row alone: "
                "compute it in a view below, and name that view's table, or compare the rows with --scored"
            )
    nodes = _columns_in(tree)
    holding = [base for base in bases if nodes and all(_column(base, node, dialect) is not None for node in nodes)]
    if len(holding) != 1:
        tables = ", ".join(base.key for base in holding or bases)
        raise Unread(f"--column {name}={text}: its columns are not those of one table of {tables}")
    (base,) = holding
    if not _is_number(tree, base, dialect):
        raise Unread(f"--column {name}={text}: it is not known to be a number: write CAST(… AS DOUBLE) around it")
    found = {column.name: column for node in nodes if (column := _column(base, node, dialect)) is not None}
    for column in found.values():
        if IN_A_ZONE.get(dialect, "\0") in column.declared.casefold():
            what = f"{column.name} is {column.declared}"
            raise Unread(f"--column {name}={text}: {what}, whose values depend on the session's time zone")
    return ComputedFeature(feature, text, tree, base, tuple(found.values()), dialect)


IN_A_ZONE = {"postgres": "with time zone", "duckdb": "with time zone", "mariadb": "timestamp", "clickhouse": "datetime"}
"""Types whose parts (year, day, hour) depend on the session's time zone have this in their names."""

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Mod", "IntDiv", "Neg")
OF_NUMBERS = (
    "Abs",
    "Round",
    "Floor",
    "Ceil",
    "Least",
    "Greatest",
    "Ln",
    "Exp",
    "Sqrt",
    "Pow",
    "Sign",
    "Trunc",
    "Paren",
)
GIVES_NUMBERS = ("Extract", "DateDiff", "Year", "Month", "Day", "Length", "Anonymous")
NUMBER_TYPES = ("DOUBLE", "INT", "BIGINT", "SMALLINT", "DECIMAL")


def _is_number(tree: Any, base: Base, dialect: str) -> bool:
    """Whether an expression is a number of more than 32 bits that uses no texts and no float32 columns."""
    kind = type(tree).__name__
    if kind == "Column":
        column = _column(base, tree, dialect)
        return column is not None and column.type.kind in ("double", "integer", "decimal")
    if kind == "Literal":
        return not tree.is_string
    if kind in GIVES_NUMBERS or kind == "Null":
        return True
    if kind in ("Cast", "TryCast"):
        return getattr(tree.to.this, "name", "") in NUMBER_TYPES
    if kind in ARITHMETIC or kind in OF_NUMBERS or kind in ("Coalesce", "Nullif"):
        parts = [tree.this, tree.args.get("expression"), *tree.expressions]
    elif kind == "Case":
        parts = [tree.args.get("default"), *(each.args.get("true") for each in tree.args["ifs"])]
    else:
        return False
    return all(_is_number(part, base, dialect) for part in parts if part is not None)


def _columns_in(tree: Any) -> list[Any]:
    from sqlglot import exp

    return list(tree.find_all(exp.Column))


def _column(base: Base, node: Any, dialect: str) -> Column | None:
    if node.args.get("db") or (node.table and node.table.casefold() != base.key.casefold()):
        return None
    is_lowered = dialect == "postgres" and not node.this.args.get("quoted")
    return base.column(node.name.lower() if is_lowered else node.name, dialect not in ("postgres", "clickhouse"))


def computed_values(
    database: Database,
    catalog: Catalog,
    computed: Sequence[ComputedFeature],
    staged: str,
    number: str,
    columns: Sequence[str],
    parts: Sequence[tuple[int, int]],
) -> dict[int, tuple[float, ...]]:
    """What the database computes for each staged row, by its number, in a second copy of the table.

    A row on which it fails (division by 0) is found by halving and left out: no view answers it either.
    """
    table, names = computed[0].base.name, ", ".join([*columns, number])
    database.execute(catalog.drop.format(name=VALUES))
    catalog.copy(database, table, VALUES)
    database.execute(f"ALTER TABLE {VALUES} ADD COLUMN {number} BIGINT")
    listed = ", ".join([number, *(catalog.as_double.format(value=f"({each.text})") for each in computed)])
    found: dict[int, tuple[float, ...]] = {}
    try:
        for begin, end in parts:
            where = f"{number} >= {begin} AND {number} < {end}"
            database.execute(f"INSERT INTO {VALUES} ({names}) SELECT {names} FROM {staged} WHERE {where}")  # noqa: S608
        waiting = list(parts)
        while waiting:
            begin, end = waiting.pop()
            where = f"{number} >= {begin} AND {number} < {end}"
            try:
                answers = database.fetch(f"SELECT {listed} FROM {VALUES} AS {database.quote(table.name)} WHERE {where}")  # noqa: S608
            except (TimeLimitReached, ConnectionLost):
                raise
            except CannotRun:
                middle = (begin + end) // 2
                waiting += [(middle, end), (begin, middle)] if end - begin > 1 else []
                continue
            for place, *values in answers:
                found[int(place)] = tuple(math.nan if value is None else float(value) for value in values)
    finally:
        with suppress(CannotRun):
            database.execute(catalog.drop.format(name=VALUES))
    return found


@dataclass(frozen=True, slots=True)
class FillIn:
    """The columns to fill in beside those that are features, and how their values follow from those of the features."""

    columns: tuple[tuple[Base, Column], ...]
    plan: tuple[tuple[ComputedFeature, str], ...]
    """Each feature that is computed, and the column that it is solved for."""
    features: tuple[tuple[str, str] | None, ...]
    """(table, column) of each feature that is a column."""

    def rows(self, rows: Matrix) -> Matrix:
        """Rows of features, and the columns to fill in on their right."""
        values: dict[tuple[str, str], Values] = {
            place: rows[:, feature] for feature, place in enumerate(self.features) if place is not None
        }
        own = {(base.key, column.name): np.ones(len(rows)) for base, column in self.columns}
        values = {**own, **values}
        with np.errstate(all="ignore"):
            for computed, name in self.plan:
                key = computed.base.key
                within = {column.name.casefold(): values[key, column.name] for column in computed.columns}
                solved = _solve(computed.tree, name.casefold(), rows[:, computed.feature], within)
                assert solved is not None  # noqa: S101 - `fill_in` has tried it
                values[key, name] = solved
        extra = [values[base.key, column.name] for base, column in self.columns]
        return np.column_stack([rows, *extra]) if extra else rows


def fill_in(computed: Sequence[ComputedFeature], features: Sequence[tuple[str, str] | None]) -> FillIn | None:
    """Which column each expression is solved for; None where one cannot be."""
    taken = {place for place in features if place is not None}
    columns: dict[tuple[str, str], tuple[Base, Column]] = {}
    for each in computed:
        for column in each.columns:
            if (each.base.key, column.name) not in taken:
                columns[each.base.key, column.name] = (each.base, column)
    if any(column.type.kind not in NUMBERS or column.generated for _, column in columns.values()):
        return None
    plan = []
    for each in computed:
        trial = {column.name.casefold(): np.ones(1) for column in each.columns}
        free = [
            column.name
            for column in each.columns
            if (each.base.key, column.name) not in taken
            and _solve(each.tree, column.name.casefold(), np.ones(1), trial) is not None
        ]
        if not free:
            return None
        taken.add((each.base.key, free[0]))
        plan.append((each, free[0]))
    return FillIn(tuple(columns.values()), tuple(plan), tuple(features))


def _mentions(tree: Any, name: str) -> int:
    return sum(node.name.casefold() == name for node in _columns_in(tree))


def _solve(tree: Any, name: str, value: Values, columns: Mapping[str, Values]) -> Values | None:
    """Roughly what the column must hold for the expression to have this value; None if unknown."""
    if _mentions(tree, name) != 1:
        return None
    kind = type(tree).__name__
    if kind == "Column":
        return value
    if kind in ("Paren", "Cast", "TryCast", "Coalesce", "Nullif", "Round", "Greatest", "Least", "Floor", "Ceil"):
        return _solve(tree.this, name, value, columns)
    if kind == "Neg":
        return _solve(tree.this, name, -value, columns)
    if kind not in ("Add", "Sub", "Mul", "Div"):
        return None
    left, right = tree.this, tree.expression
    on_left = _mentions(left, name) == 1
    other = _evaluate(right if on_left else left, columns)
    if other is None:
        return None
    if kind == "Add":
        value = value - other
    elif kind == "Sub":
        value = value + other if on_left else other - value
    elif kind == "Mul":
        value = value / other
    else:
        value = value * other if on_left else other / value
    return _solve(left if on_left else right, name, value, columns)


def _evaluate(tree: Any, columns: Mapping[str, Values]) -> Values | None:
    """The approximate value of an expression."""
    kind = type(tree).__name__
    if kind == "Column":
        return columns.get(tree.name.casefold())
    if kind == "Literal":
        return None if tree.is_string else np.array(float(tree.this))
    if kind in ("Paren", "Cast", "TryCast", "Coalesce", "Nullif", "Round"):
        return _evaluate(tree.this, columns)
    if kind == "Neg":
        inner = _evaluate(tree.this, columns)
        return None if inner is None else -inner
    if kind not in ("Add", "Sub", "Mul", "Div"):
        return None
    left, right = _evaluate(tree.this, columns), _evaluate(tree.expression, columns)
    if left is None or right is None:
        return None
    acts = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    return np.asarray(acts[kind](left, right), dtype=np.float64)
