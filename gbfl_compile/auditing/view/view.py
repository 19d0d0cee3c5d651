"""A view as its catalog has it, parsed once: what its text uses, passes on and stores, and its query over copies.

The text stays as the database gave it. A parser that writes it again could write something else: `"double"` may be a
type of the user's own, and `DOUBLE` never is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view.layers import whole_text
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Column, TableName, column_named
from gbfl_compile.databases.views import CatalogView, Query
from gbfl_compile.ir.nodes import Interval, Program
from gbfl_compile.ir.text import printable

AS_DOUBLES = {"postgres": "CAST({} AS DOUBLE PRECISION)", "mariadb": "CAST({} AS DOUBLE)"}
"""Where a client gives the short decimal of a float32, which reads like the double it was rounded from."""


@dataclass(frozen=True, slots=True)
class View(CatalogView):
    """A view of a database, as the user names it to an audit."""

    def column(self, name: str) -> Column | None:
        """The column of its table with this name, as the engine compares names."""
        return column_named(self.table_columns, name, self.catalog.names_fold)

    def has_column(self, name: str) -> bool:
        """Whether it answers with a column of this name."""
        fold = self.catalog.names_fold
        return any(own == name or (fold and own.casefold() == name.casefold()) for own in self.columns or ())

    def declared_types(self, columns: Iterable[tuple[int, str]]) -> dict[int, str]:
        """The declared type of each feature's column, in small letters."""
        found = ((feature, self.column(name)) for feature, name in columns)
        return {feature: " ".join(own.declared.casefold().split()) for feature, own in found if own is not None}

    def require_query(self) -> Query:
        """Its query; Unread where the text is not understood."""
        if self.query is None:
            raise Unread(self.problem or "the view's definition is not understood")
        return self.query


def view_of(found: CatalogView) -> View:
    """The view that a catalog has."""
    return View(**{each.name: getattr(found, each.name) for each in fields(found)})


def other_inputs(view: View, features: Sequence[str]) -> list[str]:
    """Columns of its table, no features, that the view computes with or filters by, instead of only passing them on."""
    from sqlglot import exp

    taken = {name.casefold() for name in features}
    used = [node.name for node in view.require_query().tree.find_all(exp.Column) if not _is_passed_on(view, node)]
    return [name for name in dict.fromkeys(used) if name.casefold() not in taken and view.column(name) is not None]


def _is_passed_on(view: View, node: Any) -> bool:
    """Whether a column is only passed on: under its own name, or as a column of the view itself."""
    from sqlglot import exp

    root = view.require_query().tree
    if isinstance(node.parent, exp.Select):
        renamed = any(alias.args.get("columns") for alias in root.find_all(exp.TableAlias))
        return node.arg_key == "expressions" and not renamed
    if not isinstance(node.parent, exp.Alias):
        return False
    return node.parent.parent is root or node.parent.alias.casefold() == node.name.casefold()


def stored_answer(view: View, outputs: Sequence[tuple[str, str]]) -> str | None:
    """An answer that the view does not compute but takes from a column of its table."""
    from sqlglot import exp

    query = view.require_query()
    names = {name.casefold() for _, name in outputs}
    for place, chosen in enumerate(query.tree.selects):
        name = query.names[place] if place < len(query.names) else chosen.alias_or_name
        value = chosen.unalias()
        if name.casefold() in names and isinstance(value, exp.Column) and view.column(value.name) is not None:
            return str(name)
    return None


def uncast_columns(view: View) -> set[str]:
    """Columns that the view's text uses in some place without CAST(… AS DOUBLE) around them, in lower case."""
    from sqlglot import exp

    def is_cast(node: Any) -> bool:
        return isinstance(node.parent, exp.Cast) and node.parent.to.is_type(exp.DataType.Type.DOUBLE)

    columns = view.require_query().tree.find_all(exp.Column)
    return {node.name.casefold() for node in columns if not is_cast(node) and not _is_passed_on(view, node)}


def query_over(view: View, copies: Mapping[TableName, str], outputs: Sequence[tuple[str, str]]) -> str:
    """The view's own query with its tables replaced by others, giving these (kind, column) alone."""
    database = view.database
    assert view.layers is not None  # noqa: S101 - there is a query
    text = whole_text(view.require_query(), view.layers, copies, database.quote)
    chosen = ", ".join(_output_expression(database, kind, name) for kind, name in outputs)
    return f"SELECT {chosen} FROM ({text}\n) gbfl_view"  # noqa: S608 - the view's own text


def _output_expression(database: Database, kind: str, name: str) -> str:
    column = f"gbfl_view.{database.quote(name)}"
    return AS_DOUBLES.get(database.dialect, "{}").format(column) if kind == "probabilities" else column


UNNAMED = ("cast", "operator")
"""What a text may use without naming it."""


def own_names(view: View, functions: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """(kind, name) of what users added and the view may use: functions, types, and what needs no name in a text.

    `functions` were read, and their bodies are examined too: a body may mean what this session does not find, and
    any of its words may be a type.
    """
    below = () if view.layers is None else view.layers.views.values()
    if view.database.dialect == "sqlite":
        return _columns_called_true(view, [view.require_query(), *below])
    if view.catalog.own_names is None:
        return []
    named = {each for query in (view.require_query(), *below) for each in _names_in(query.tokens)}
    bodies = [_tokens(view, body) for body in (functions or {}).values()]
    inside = {each for tokens in bodies for each in _names_in(tokens)}
    inside |= {("type", token.text.casefold()) for tokens in bodies for token in tokens}
    read = {("function", name) for name in functions or {}}
    rows: list[tuple[Any, ...]] = view.database.fetch(view.catalog.own_names)
    own = sorted({(str(kind), str(name), bool(is_found)) for kind, name, is_found in rows})
    return list(
        dict.fromkeys(
            (kind, name)
            for kind, name, is_found in own
            if kind in UNNAMED or (kind, name.casefold()) in (named | inside if is_found else inside) - read
        )
    )


def _columns_called_true(view: View, queries: Sequence[Query]) -> list[tuple[str, str]]:
    """Columns of tables that SQLite reads for TRUE or FALSE, where a text has such a word."""
    from sqlglot import TokenType

    kinds = (TokenType.TRUE, TokenType.FALSE)
    words = {token.text.casefold() for query in queries for token in query.tokens if token.token_type in kinds}
    bases = () if view.layers is None else view.layers.distinct_bases()
    columns = [*view.table_columns, *(column for base in bases for column in base.columns)]
    return [("column", name) for name in dict.fromkeys(c.name for c in columns) if name.casefold() in words]


def _names_in(tokens: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """What a text calls, and the types it names."""
    from sqlglot import TokenType

    for place, token in enumerate(tokens):
        text = token.text.casefold()
        is_called = place + 1 < len(tokens) and tokens[place + 1].token_type == TokenType.L_PAREN
        if is_called or not text.isidentifier():
            yield "function", text
        if place and tokens[place - 1].token_type in (TokenType.DCOLON, TokenType.ALIAS):
            yield "type", text


def _tokens(view: View, body: str) -> tuple[Any, ...]:
    import sqlglot

    return tuple(sqlglot.tokenize(body, read=view.require_query().dialect))


COMPARISONS = ("<", "<=", ">", ">=", "=", "<>", "!=")
ARITHMETIC = ("+", "-", "*", "/", "%", "^", "::", "||")
SHORT_NUMBER = re.compile(r"\d{1,14}(\.\d{1,14})?")


def without_exact_casts(query: Query, column_of: Callable[[str], Column | None]) -> str:
    """The text for the reader, which knows no column types: `age::numeric < 65.5` as `age::double precision < 65.5`.

    PostgreSQL writes the first for an integer column. The cast is exact, and so is the comparison with a number of at
    most 15 digits, whether as decimals or as doubles. Nothing but such a comparison is touched.
    """
    text, words = query.definition, query.tokens
    if query.dialect != "postgres":
        return text
    for place in range(len(words) - 5, 0, -1):
        name, colons, kind, sign, number = (token.text for token in words[place : place + 5])
        column = column_of(name)
        if (colons, kind.casefold(), sign in COMPARISONS) != ("::", "numeric", True) or column is None:
            continue
        start = place - 2 if words[place - 1].text == "." else place
        before = words[start - 1].text if start else ""
        after = words[place + 5].text if place + 5 < len(words) else ""
        is_short = SHORT_NUMBER.fullmatch(number) and len(number.replace(".", "")) <= 15
        if column.type.kind == "integer" and is_short and before not in ARITHMETIC and after not in ARITHMETIC:
            token = words[place + 2]
            text = f"{text[: token.start]}double precision{text[token.end + 1 :]}"
    return text


def feature_columns(inputs: AuditInput, view: View) -> list[Column | None]:
    """The column of each feature; one that the program uses and the table does not have is refused, by name."""
    program = inputs.program
    used = {atom.feature for clause in program.clauses for atom in clause.atoms}
    columns = []
    for place, name in enumerate(program.features):
        column = view.column(inputs.columns.get(name, name))
        if column is None and place in used and view.table_columns:
            table = "its table" if view.table is None else printable(view.table.name)
            known = ", ".join(printable(each.name) for each in view.table_columns[:10])
            raise MissingFeature(
                f"{table} has no column {inputs.columns.get(name, name)!r}, only {known}: name the feature's column "
                "with --column FEATURE=COLUMN, or compare the rows it gives with --scored"
            )
        if column is not None and column.generated and place in used:
            raise Unread(f"the column {column.name!r} is computed by the database and cannot be filled in")
        columns.append(column)
    return columns


class MissingFeature(Unread):
    """The table has no column for a feature that the program uses."""


def compares_as_double(program: Program, view: View, column: Column) -> bool:
    """Whether the engine compares the column as a double. Exact comparison of integers is the same below 2**53."""
    if column.type.kind != "integer":
        return column.type.kind in view.catalog.double_kinds
    atoms = [atom for clause in program.clauses for atom in clause.atoms if isinstance(atom, Interval)]
    return all(abs(cut) < 2.0**53 for atom in atoms for cut in (atom.lo, atom.hi) if cut is not None)
