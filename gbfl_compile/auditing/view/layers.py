"""The layers of a view: what each name of their texts means to the reader, and the whole as one query.

To run the whole, the text of a layer goes, in brackets, where the layer above names it, and a copy goes where a table
is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from gbfl_compile.checking.general.sql import Functions, KnownFunction, KnownTable
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases import catalog_of
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Column, StoredFunction, TableName
from gbfl_compile.databases.views import Base, Layers, Query
from gbfl_compile.errors import CannotRun

NOTHING: Mapping[str, str] = {}

MOST_ROWS = 200
"""Of a table without features that is read as the constants it holds."""


def known_tables(
    layers: Layers, features: Mapping[tuple[str, str], int], with_texts: bool = True
) -> Callable[[str, str], KnownTable]:
    """What each name means to the reader; `features` is (table, column) -> feature.

    Tables with texts are not constants where words are compared (`with_texts`): their columns have collations.
    """
    known: dict[TableName, KnownTable] = {}

    def table(schema: str, name: str) -> KnownTable:
        named = TableName(schema, name)
        if named not in known:
            known[named] = _table_facts(layers, named, features, with_texts)
        return known[named]

    return table


def _table_facts(
    layers: Layers, name: TableName, features: Mapping[tuple[str, str], int], with_texts: bool
) -> KnownTable:
    if name in layers.views:
        query = layers.views[name]
        return KnownTable(name.name, query=query.definition[query.begins : query.ends], names=query.names)
    base = layers.bases.get(name)
    if base is None or not base.columns:
        raise Unread(f"the table {name.name} is not found")
    columns = tuple(column.name for column in base.columns)
    own = {column: features[base.key, column] for column in columns if (base.key, column) in features}
    rows = None if own else _rows(layers.database, base, with_texts)
    return KnownTable(base.key, columns, own, rows, is_key=lambda column: _is_key(layers.database, base, column))


def _is_key(database: Database, base: Base, column: str) -> bool:
    """Whether a column is different in every row that a table holds now; counted once in an audit."""
    if column not in base.keys:
        counts = f"COUNT(*), COUNT(DISTINCT {database.quote(column)})"
        try:
            ((rows, values),) = database.fetch(f"SELECT {counts} FROM {base.name.in_quotes(database)}")  # noqa: S608
        except CannotRun:
            rows, values = 0, 0
        base.keys[column] = 0 < int(rows) == int(values)
    return base.keys[column]


def _rows(database: Database, base: Base, with_texts: bool) -> tuple[tuple[Any, ...], ...] | None:
    """What a small table holds, with Unread in columns that are not read; None where it is not a small table."""
    if catalog_of(database).shows_each_its_own(database, base.name):
        return None
    listed = ", ".join(database.quote(column.name) for column in base.columns)
    try:
        rows = database.fetch(f"SELECT {listed} FROM {base.name.in_quotes(database)} LIMIT {MOST_ROWS + 1}")  # noqa: S608
    except CannotRun:
        return None
    if not 0 < len(rows) <= MOST_ROWS:
        return None
    columns = [
        _constants(database, column, values, with_texts)
        for column, values in zip(base.columns, zip(*rows, strict=True), strict=True)
    ]
    return tuple(zip(*columns, strict=True))


WHOLE_FROM = (-(2.0**31), -(2.0**63))
"""The least of whole numbers that are added and subtracted as they are in literals: of others a sum may be an error."""


WIDENING = ("clickhouse", "mariadb")
"""Engines in which a sum has more bits than its parts."""


def _constants(database: Database, column: Column, values: tuple[Any, ...], with_texts: bool) -> tuple[Any, ...]:
    """The values of a column that compare and add up as literals do; of any other type, why they are not read."""
    kind, dialect = column.type.kind, database.dialect
    is_plain = kind in ("double", "decimal", "boolean") or (
        kind == "integer" and (column.type.least in WHOLE_FROM or dialect in WIDENING) and column.type.least < 0
    )
    types: tuple[type, ...] = (bool, int, float, Decimal, type(None))
    if kind == "text" and with_texts:
        is_plain, types = column.compares_exactly or dialect == "mariadb", (str, type(None))
    if is_plain and all(isinstance(value, types) for value in values):
        return values
    return (Unread(f"{column.name} is {column.declared}, a type whose constants are not read"),) * len(values)


def known_functions(database: Database, bodies: Mapping[str, str] = NOTHING) -> Functions:
    """What each function is to the reader; Unread where several may be meant, or its text says too little.

    `bodies` are read in the place of those that the database has; their names are in small letters.
    """
    catalog, known = catalog_of(database), dict[str, list[StoredFunction]]()

    def function(schema: str, name: str) -> KnownFunction | None:
        if name not in known:
            known[name] = catalog.functions(database, name)
        if not known[name]:
            return None
        if len(known[name]) > 1:
            raise Unread(f"the database has {len(known[name])} functions {name}: which one is called is not known")
        (stored,) = known[name]
        if stored.problem is not None or (schema and schema != stored.schema):
            raise Unread(f"the function {name}: {stored.problem or f'it is in the schema {stored.schema}'}")
        body = bodies.get(name.casefold(), stored.body)
        return KnownFunction(name, stored.language, stored.parameters, stored.returns, body, stored.strict)

    return function


def whole_text(query: Query, layers: Layers, copies: Mapping[TableName, str], quote: Callable[[str], str]) -> str:
    """The query with the text of every layer in place, and copies for tables."""
    text = query.definition[: query.ends]
    places = []
    for table in query.tables:
        name = TableName(table.db, table.name)
        if name in layers.views:
            places.append(_place(query, table, f"({whole_text(layers.views[name], layers, copies, quote)}\n)"))
        elif name in copies:
            places.append(_place(query, table, copies[name]))
    for begins, ends, replacement in sorted(places, reverse=True):
        text = f"{text[:begins]}{replacement}{text[ends:]}"
    text = text[query.begins :]
    if not query.names:
        return text
    names = ", ".join(map(quote, query.names))
    return f"WITH gbfl_layer ({names}) AS ({text}\n) SELECT * FROM gbfl_layer"  # noqa: S608 - the view's own text


def _place(query: Query, table: Any, replacement: str) -> tuple[int, int, str]:
    """Where the text names a table, and what goes there instead; the query still calls it by its own name."""
    import sqlglot
    from sqlglot import exp

    definition = query.definition
    parts = [part for part in (table.args.get("catalog"), table.args.get("db"), table.this) if part is not None]
    places = [(part.meta.get("start"), part.meta.get("end")) for part in parts]
    if any(begins is None or ends is None for begins, ends in places):
        raise Unread("it is not known where its text names its table")
    begins, ends = places[0][0], places[-1][1] + 1
    try:
        again = sqlglot.parse_one(definition[begins:ends], read=query.dialect, into=exp.Table)
    except sqlglot.errors.SqlglotError:
        again = None
    if again is None or [part.name for part in again.parts] != [part.name for part in parts]:
        raise Unread("it is not known where its text names its table")
    own = "" if table.args.get("alias") else f" AS {definition[places[-1][0] : ends]}"
    return begins, ends, f"{replacement}{own}"


def renamed_columns(
    queries: Sequence[Query], bases: Sequence[Base], feature: str, fold: bool
) -> list[tuple[Base, Column]]:
    """Columns of tables that some layer calls by the name of a feature: SELECT annual_inc AS income."""
    from sqlglot import exp

    found: dict[tuple[str, str], tuple[Base, Column]] = {}
    for query in queries:
        for alias in query.tree.find_all(exp.Alias):
            if alias.alias != feature and not (fold and alias.alias.casefold() == feature.casefold()):
                continue
            value = alias.this
            while isinstance(value, exp.Paren | exp.Cast):
                value = value.this
            if not isinstance(value, exp.Column):
                continue
            for base in bases:
                if (column := base.column(value.name, fold)) is not None:
                    found[base.key, column.name] = (base, column)
    return list(found.values())


def expression_called(queries: Sequence[Query], feature: str) -> str | None:
    """The expression that some layer calls by the name of a feature: SELECT debt_pct / 100.0 AS debt."""
    from sqlglot import exp

    for query in queries:
        for alias in query.tree.find_all(exp.Alias):
            if alias.alias.casefold() == feature.casefold() and not isinstance(alias.this, exp.Column):
                return str(alias.this.sql(dialect=query.dialect))
    return None


def values_in_filters(queries: Sequence[Query]) -> Iterator[tuple[str, str]]:
    """(column, literal) of what filters require: WHERE status = 'active', IN ('A', 'B'), decided_at >= '2024-01-01'."""
    from sqlglot import exp

    for query in queries:
        for node in query.tree.find_all(exp.EQ, exp.GTE, exp.LTE, exp.In, exp.Between):
            column = node.this.unnest() if hasattr(node.this, "unnest") else node.this
            while isinstance(column, exp.Cast):
                column = column.this
            side = node.args.get("low") or (
                node.expressions[0] if isinstance(node, exp.In) and node.expressions else None
            )
            side = node.args.get("expression") if side is None else side
            while isinstance(side, exp.Cast | exp.Paren | exp.Introducer):
                side = side.args["expression"] if isinstance(side, exp.Introducer) else side.this
            if isinstance(side, exp.Any | exp.Array | exp.Tuple):
                array = side.find(exp.Literal)
                side = array if array is not None else side
            if isinstance(column, exp.Column) and isinstance(side, exp.Literal | exp.Boolean):
                yield column.name.casefold(), str(side.sql(dialect=query.dialect))


def filter_columns(queries: Sequence[Query]) -> set[str]:
    """Columns that filters test, in lower case."""
    from sqlglot import exp

    names: set[str] = set()
    for query in queries:
        for clause in query.tree.find_all(exp.Where, exp.Having, exp.Qualify):
            names.update(each.name.casefold() for each in clause.find_all(exp.Column))
        for join in query.tree.find_all(exp.Join):
            tests = [] if join.args.get("on") is None else join.args["on"].find_all(exp.EQ, exp.NEQ, exp.In)
            tests = [test for test in tests if test.find(exp.Literal) is not None]
            names.update(each.name.casefold() for test in tests for each in test.find_all(exp.Column))
    return names


def key_columns(queries: Sequence[Query]) -> set[str]:
    """Columns that rows are joined, partitioned or grouped by, in lower case."""
    from sqlglot import exp

    names: set[str] = set()
    for query in queries:
        for join in query.tree.find_all(exp.Join):
            names.update(each.name.casefold() for each in join.args.get("using") or [])
            if join.args.get("on") is not None:
                names.update(each.name.casefold() for each in join.args["on"].find_all(exp.Column))
        for window in query.tree.find_all(exp.Window):
            names.update(
                c.name.casefold() for each in window.args.get("partition_by") or [] for c in each.find_all(exp.Column)
            )
        for group in query.tree.find_all(exp.Group, exp.Distinct):
            names.update(each.name.casefold() for each in group.find_all(exp.Column))
    return names
