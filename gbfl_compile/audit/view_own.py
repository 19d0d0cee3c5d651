"""Functions, operators and types of the user's own that a view's text may mean where the proof takes the built-in ones.

`CREATE MACRO exp(x) AS 1.0` changes what every view that calls `exp` answers, and not a letter of its definition.
"""

from __future__ import annotations

from collections.abc import Mapping

from gbfl_compile.audit.view_query import tokens_of
from gbfl_compile.databases.base import Database

NUMBERS = "IN ('double precision', 'real', 'numeric', 'integer', 'bigint', 'smallint', 'boolean')"

OWN: Mapping[str, str] = {
    "duckdb": "SELECT DISTINCT 'function', function_name FROM duckdb_functions() WHERE NOT internal",
    "postgres": "SELECT 'function', proname FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace "  # noqa: S608 - nothing but constants
    "WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND pg_function_is_visible(p.oid) "
    "UNION SELECT 'function', oprname FROM pg_operator o JOIN pg_namespace n ON n.oid = oprnamespace "
    "WHERE nspname <> 'pg_catalog' AND pg_operator_is_visible(o.oid) "
    f"AND (format_type(oprleft, NULL) {NUMBERS} OR format_type(oprright, NULL) {NUMBERS}) "
    "UNION SELECT 'type', typname FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace "
    "WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND pg_type_is_visible(t.oid) AND typrelid = 0",
}
"""How a database is asked for them. The others let nobody take a built-in name, or keep functions to a connection."""


def own_names(database: Database, definition: str) -> list[tuple[str, str]]:
    """(function or type, its name) for each that the view names."""
    if database.dialect not in OWN:
        return []
    from sqlglot import TokenType

    tokens = tokens_of(database, definition)
    named = set()
    for place, token in enumerate(tokens):
        text = token.text.casefold()
        is_called = place + 1 < len(tokens) and tokens[place + 1].token_type == TokenType.L_PAREN
        if is_called or not text.isidentifier():
            named.add(("function", text))
        if place and tokens[place - 1].token_type in (TokenType.DCOLON, TokenType.ALIAS):
            named.add(("type", text))
    own = sorted({(str(kind), str(name)) for kind, name in database.fetch(OWN[database.dialect])})
    return [(kind, name) for kind, name in own if (kind, name.casefold()) in named]
