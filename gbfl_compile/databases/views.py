"""A view, and the views and tables below it, as the catalog has them: every text parsed once.

Each text stays as the catalog has it: a parser that writes it again could write something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gbfl_compile.databases import catalog_of, look_up_view
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Catalog, Column, TableName, column_named
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.version import install_command

MOST_LAYERS = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A view's text as sqlglot parsed it."""

    definition: str
    tree: Any
    tokens: tuple[Any, ...]
    """Of the whole definition."""
    names: tuple[str, ...]
    """What its columns are called, where the view says so apart from its query."""
    tables: tuple[Any, ...]
    """The places where it names a table that is not a CTE of its own."""
    begins: int
    """Where in the definition the query begins, and just after its end."""
    ends: int
    dialect: str
    """As sqlglot calls it."""


@dataclass(frozen=True, slots=True)
class Base:
    """A table at the bottom."""

    name: TableName
    columns: tuple[Column, ...]
    keys: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    """Of columns that were counted: whether each is different in every row."""

    @property
    def key(self) -> str:
        """The name alone: `read_layers` refuses two tables of one name."""
        return self.name.name

    def column(self, name: str, fold: bool) -> Column | None:
        """The column of this name, as the engine compares names."""
        return column_named(self.columns, name, fold)


@dataclass(frozen=True, slots=True)
class Layers:
    """Everything below a view."""

    database: Database
    views: Mapping[TableName, Query] = field(default_factory=dict)
    bases: Mapping[TableName, Base] = field(default_factory=dict)
    problem: str | None = None
    """Why something below could not be read."""
    literals_in_utf8: bool = True
    """Whether the texts of every view below have the bytes of UTF-8."""

    def distinct_bases(self) -> list[Base]:
        """Each table once."""
        return list({base.name: base for base in self.bases.values()}.values())


@dataclass(frozen=True, slots=True)
class CatalogView:
    """A view of a database. What could not be found out is None, with the reason beside it."""

    database: Database
    catalog: Catalog
    name: str
    definition: str
    statement: str | None
    """The whole CREATE VIEW, where the catalog has it apart from the definition."""
    materialized: bool
    literals_in_utf8: bool
    columns: tuple[str, ...] | None
    """What it answers with, or None where the database could not say: a table or column that it reads is gone."""
    query: Query | None
    problem: str | None
    """Why there is no query: the parser does not understand the text, or is not installed."""
    reads: tuple[TableName, ...]
    """Every name it selects from, its own CTEs included: a table may be called the same."""
    table: TableName | None
    """The one table it reads, or None where it reads several."""
    table_columns: tuple[Column, ...]
    views_below: tuple[str, ...]
    """Those of the names it selects from that are views themselves."""
    layers: Layers | None
    """The views and tables below it."""


def read_catalog(database: Database, name: str) -> CatalogView:
    """The view of this name and all that is below it."""
    stored, catalog = look_up_view(database, name), catalog_of(database)
    query, problem = None, None
    try:
        query = parse_query(database, stored.definition)
    except (BadInput, CannotRun) as error:
        problem = str(error)
    reads, table = _tables(query)
    known = () if table is None else tuple(catalog.columns(database, table))
    views = tuple(each.name for each in reads if catalog.is_view(database, each))
    layers = None if query is None else read_layers(database, query)
    if layers is not None and stored.conversion is not None:
        layers = replace(layers, problem=stored.conversion)
    return CatalogView(
        *(database, catalog, name, stored.definition, stored.statement, stored.materialized, stored.literals_in_utf8),
        *(stored.columns, query, problem, reads, table, known, views),
        layers,
    )


def read_layers(database: Database, top: Query) -> Layers:
    """The views and tables below a query, each named for once."""
    catalog = catalog_of(database)
    views: dict[TableName, Query] = {}
    bases: dict[TableName, Base] = {}
    waiting, in_utf8 = _names(top), True
    try:
        while waiting:
            name = waiting.pop()
            if name in views or name in bases:
                continue
            if len(views) > MOST_LAYERS:
                raise BadInput(f"more than {MOST_LAYERS} views below it")
            if catalog.several(database, name):
                raise BadInput(f"several tables or views called {name.name}: the session decides which one is read")
            if not catalog.is_view(database, name):
                bases[name] = Base(name, tuple(catalog.columns(database, name)))
                continue
            stored = catalog.view(database, name)
            if stored is None:
                raise BadInput(f"the view {name.name} is not found")
            if stored.materialized:
                raise BadInput(
                    f"it reads {name.name}, a materialized view, which answers from stored rows: "
                    f"compare what comes out with --scored"
                )
            if stored.conversion is not None:
                raise BadInput(f"{name.name}: {stored.conversion}")
            views[name] = parse_query(database, stored.definition)
            in_utf8 = in_utf8 and stored.literals_in_utf8
            waiting += _names(views[name])
        _refuse_two_of_one_name((top, *views.values()))
    except (CannotRun, BadInput) as error:
        return Layers(database, views, bases, str(error))
    return Layers(database, views, bases, literals_in_utf8=in_utf8)


def _names(query: Query) -> list[TableName]:
    return [TableName(table.db, table.name) for table in query.tables if table.name]


def _refuse_two_of_one_name(queries: Sequence[Query]) -> None:
    """`main.data` and `old.data` are two tables, `data` may be either: what is known by its name must be one thing."""
    spelled: dict[str, tuple[str, ...]] = {}
    for table in (table for query in queries for table in query.tables if table.name):
        place = tuple(part.casefold() for part in (table.catalog, table.db))
        if spelled.setdefault(table.name.casefold(), place) != place:
            raise BadInput(
                f"it reads {table.name!r} of several schemas, or with and without its schema: which is not known"
            )


def parse_query(database: Database, definition: str) -> Query:
    """A view's text, parsed."""
    try:
        import sqlglot
        from sqlglot import exp
    except ModuleNotFoundError:
        raise CannotRun(f"sqlglot is not installed: {install_command('sql')}") from None
    dialect = {"mariadb": "mysql"}.get(database.dialect, database.dialect)
    try:
        tree = sqlglot.parse_one(definition, read=dialect)
        tokens = tuple(sqlglot.tokenize(definition, read=dialect))
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise BadInput(f"the view's definition is not understood: {str(error).splitlines()[0]}") from None
    names: tuple[str, ...] = ()
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
        names = tuple(column.name for column in tree.this.expressions)
    query = tree.expression if isinstance(tree, exp.Create) else tree
    if not isinstance(query, exp.Query):
        raise BadInput("the view's definition is not understood: it is not a query")
    ctes = {cte.alias for cte in query.find_all(exp.CTE)}
    tables = tuple(table for table in query.find_all(exp.Table) if table.db or table.name not in ctes)
    begins, ends = _bounds(tokens, isinstance(tree, exp.Create))
    return Query(definition, query, tokens, names, tables, begins, ends, dialect)


def _bounds(tokens: Sequence[Any], is_create: bool) -> tuple[int, int]:
    """The query within a definition: after the AS of a CREATE VIEW, before a semicolon."""
    from sqlglot import TokenType

    depth, begins = 0, 0
    for token in tokens if is_create else ():
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type == TokenType.ALIAS and depth == 0:
            begins = token.end + 1
            break
    return begins, max(token.end for token in tokens if token.token_type != TokenType.SEMICOLON) + 1


def _tables(query: Query | None) -> tuple[tuple[TableName, ...], TableName | None]:
    """Every name the query selects from, and the one table it reads."""
    from sqlglot import exp

    if query is None:
        return (), None
    every = dict.fromkeys(TableName(table.db, table.name) for table in query.tree.find_all(exp.Table) if table.name)
    own = {table.sql() for table in query.tables}
    one = TableName(query.tables[0].db, query.tables[0].name) if len(own) == 1 and query.tables[0].name else None
    return tuple(every), one
