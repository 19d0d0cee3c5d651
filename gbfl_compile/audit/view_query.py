"""A view's query asked of witnesses: its own text, with the name of its one table replaced and nothing else.

The text stays as the database gave it. A parser that writes it again could write something else: `"double"` may be a
type of the user's own, and `DOUBLE` never is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gbfl_compile.check.reading import Unread
from gbfl_compile.databases.base import Database
from gbfl_compile.errors import CannotRun

WITNESSES = "gbfl_witnesses"

AS_DOUBLES = {"postgres": "CAST({} AS DOUBLE PRECISION)", "mariadb": "CAST({} AS DOUBLE)"}
"""Where a client gives the short decimal of a float32, which reads like the double it was rounded from."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A view's query."""

    query: Any
    names: tuple[str, ...]
    """What its columns are called, where the view says so apart from its query."""
    tables: tuple[Any, ...]
    """The places where its one table stands."""
    dialect: str
    """As sqlglot calls it."""
    tokens: tuple[Any, ...]
    """Of the whole definition."""
    begins: int
    """Where in the definition the query begins, and just after its end."""
    ends: int


def parsed_text(database: Database, definition: str) -> Any:
    """A view's definition as sqlglot's nodes."""
    with _understanding() as sqlglot:
        return sqlglot.parse_one(definition, read=_dialect(database))


def tokens_of(database: Database, definition: str) -> tuple[Any, ...]:
    """The words of a view's definition."""
    with _understanding() as sqlglot:
        return tuple(sqlglot.tokenize(definition, read=_dialect(database)))


@contextmanager
def _understanding() -> Iterator[Any]:
    """sqlglot; a text that it does not understand is not read."""
    try:
        import sqlglot
    except ModuleNotFoundError:
        raise CannotRun("sqlglot is not installed: pip install 'gbfl-compile[sql]'") from None
    try:
        yield sqlglot
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise Unread(f"the view's definition is not understood: {str(error).splitlines()[0]}") from None


def _dialect(database: Database) -> str:
    """As sqlglot calls it."""
    return {"mariadb": "mysql"}.get(database.dialect, database.dialect)


def parsed_view(database: Database, definition: str) -> Parsed:
    """The query of a view that stands on one table."""
    tree, dialect = parsed_text(database, definition), _dialect(database)
    from sqlglot import exp

    tokens = tokens_of(database, definition)
    names: tuple[str, ...] = ()
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
        names = tuple(column.name for column in tree.this.expressions)
    query = tree.expression if isinstance(tree, exp.Create) else tree
    named = {cte.alias for cte in query.find_all(exp.CTE)}
    tables = tuple(table for table in query.find_all(exp.Table) if table.name not in named)
    if len({table.sql() for table in tables}) != 1:
        raise Unread(f"the view stands on {len(tables)} tables")
    begins, ends = _bounds(tokens, isinstance(tree, exp.Create))
    return Parsed(query, names, tables, dialect, tokens, begins, ends)


def _bounds(tokens: Sequence[Any], is_made: bool) -> tuple[int, int]:
    """The query within a definition: after the AS of a CREATE VIEW, before a semicolon."""
    from sqlglot import TokenType

    depth, begins = 0, 0
    for token in tokens if is_made else ():
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type == TokenType.ALIAS and depth == 0:
            begins = token.end + 1
            break
    return begins, max(token.end for token in tokens if token.token_type != TokenType.SEMICOLON) + 1


def carried_columns(database: Database, definition: str, features: list[str]) -> list[str]:
    """Columns of its table that a view asks for beside the features, such as a key: the witnesses need them too.

    A name that the query itself gives to something is none: as a column it could stand in that one's place.
    """
    from sqlglot import exp

    query = parsed_view(database, definition).query
    taken = {name.casefold() for name in (*features, *(each.alias for each in query.find_all(exp.Alias)))}
    asked = dict.fromkeys(column.name for column in query.find_all(exp.Column) if column.name)
    return [name for name in asked if name.casefold() not in taken]


def refuse_stored(
    database: Database, definition: str, outputs: Sequence[tuple[str, str]], carried: Sequence[str]
) -> None:
    """Refuse a view that hands on answers which its table holds already: witnesses have none to hand on."""
    from sqlglot import exp

    parsed = parsed_view(database, definition)
    asked = {name.casefold() for _, name in outputs}
    for place, chosen in enumerate(parsed.query.selects):
        name = parsed.names[place] if place < len(parsed.names) else chosen.alias_or_name
        stored = chosen.unalias()
        if name.casefold() in asked and isinstance(stored, exp.Column) and stored.name in carried:
            raise Unread(f"{name!r} is a column of {parsed.tables[0].name!r} and not computed by the view")


def over_witnesses(database: Database, definition: str, outputs: Sequence[tuple[str, str]]) -> str:
    """The view's query with its one table replaced by the witnesses, giving these (kind, column) alone."""
    parsed = parsed_view(database, definition)
    query = definition[: parsed.ends]
    for begins, ends, replaced in sorted((_place(parsed, definition, table) for table in parsed.tables), reverse=True):
        query = f"{query[:begins]}{replaced}{query[ends:]}"
    query = query[parsed.begins :]
    chosen = ", ".join(_asked(database, kind, name) for kind, name in outputs)
    if not parsed.names:
        return f"SELECT {chosen} FROM ({query}\n) gbfl_view"  # noqa: S608 - the view's own text
    names = ", ".join(database.quote(name) for name in parsed.names)
    return f"WITH gbfl_view ({names}) AS ({query}\n) SELECT {chosen} FROM gbfl_view"  # noqa: S608 - its own text


def _asked(database: Database, kind: str, name: str) -> str:
    column = f"gbfl_view.{database.quote(name)}"
    return AS_DOUBLES.get(database.dialect, "{}").format(column) if kind == "probabilities" else column


def _place(parsed: Parsed, definition: str, table: Any) -> tuple[int, int, str]:
    """Where a table is named in the text, and what stands there instead; by its own name it is still called."""
    import sqlglot
    from sqlglot import exp

    parts = [part for part in (table.args.get("catalog"), table.args.get("db"), table.this) if part is not None]
    places = [(part.meta.get("start"), part.meta.get("end")) for part in parts]
    if any(begins is None or ends is None for begins, ends in places):
        raise Unread("where its table is named in its text is not known")
    begins, ends = places[0][0], places[-1][1] + 1
    try:
        said = sqlglot.parse_one(definition[begins:ends], read=parsed.dialect, into=exp.Table)
    except sqlglot.errors.SqlglotError:
        said = None
    if said is None or [part.name for part in said.parts] != [part.name for part in parts]:
        raise Unread("where its table is named in its text is not known")
    own = "" if table.args.get("alias") else f" AS {definition[places[-1][0] : ends]}"
    return begins, ends, f"{WITNESSES}{own}"
