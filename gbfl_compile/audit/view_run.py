"""Runs a view's own query on witnesses, in its own database: they stand in a temporary table in place of the view's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gbfl_compile.audit.files import Given
from gbfl_compile.check.equivalence import Execution
from gbfl_compile.check.reading import Unread
from gbfl_compile.check.witnesses import witnesses
from gbfl_compile.databases.base import Database, Missing
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.nodes import Label, Program

WITNESSES = "gbfl_witnesses"
LABEL = "label"


def run_on_witnesses(given: Given, database: Database, definition: str, label_column: str = LABEL) -> Execution:
    """The view's query over witnesses. Those that should get one label are asked together: no other may come back."""
    program = given.program
    rows = witnesses(program)
    if not database.holds_infinity:
        rows = np.clip(rows, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    expected = evaluate_many(program, rows).labels
    query = over_witnesses(database, definition, label_column)
    columns = [given.columns.get(name, name) for name in program.features]
    carried = carried_columns(database, definition, columns)

    def wrong(part: Matrix, label: Label, missing: Missing) -> int:
        filled = np.hstack([part, np.zeros((len(part), len(carried)))])
        database.insert(WITNESSES, [*columns, *carried], filled, missing=missing)
        answers = [row[0] for row in database.fetch(query)]
        if len(answers) != len(part):
            raise BadInput(f"the view gives {len(answers)} answers for {len(part)} rows")
        return sum(not _same(answer, label) for answer in answers)

    ways: tuple[Missing, ...] = ("null", "nan") if database.holds_nan else ("null",)
    different, first = 0, None
    for label in program.classes:
        part = rows[[index for index, found in enumerate(expected) if type(found) is type(label) and found == label]]
        counts = {missing: wrong(part, label, missing) for missing in ways if len(part)}
        different += max(counts.values(), default=0)
        shown = next((missing for missing, count in counts.items() if count), None)
        if shown is not None and first is None:
            first = _first(program, part, partial(wrong, label=label, missing=shown), label)
    return Execution(database.version, len(rows), different, first)


def _first(program: Program, rows: Matrix, wrong: Callable[[Matrix], int], label: Label) -> dict[str, Any]:
    """One row that gets another answer, found by halving."""
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        rows = half if wrong(half) else rows[len(rows) // 2 :]
    values = [None if np.isnan(value) else repr(float(value)) for value in rows[0]]
    return {"row": dict(zip(program.features, values, strict=True)), "source": {"label": label}}


def _same(answer: Any, label: Label) -> bool:
    """Databases have no one type for truth values and whole numbers: 1 and True are the same column there."""
    if isinstance(label, str) or isinstance(answer, str):
        return bool(answer == label)
    return answer is not None and float(answer) == float(label)


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


def parsed_view(database: Database, definition: str) -> Parsed:
    """The query of a view that stands on one table."""
    try:
        import sqlglot
        from sqlglot import exp
    except ModuleNotFoundError:
        raise CannotRun("sqlglot is not installed: pip install 'gbfl-compile[sql]'") from None
    dialect = {"mariadb": "mysql"}.get(database.dialect, database.dialect)
    try:
        tree = sqlglot.parse_one(definition, read=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise Unread(f"the view's definition is not understood: {str(error).splitlines()[0]}") from None
    names: tuple[str, ...] = ()
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
        names = tuple(column.name for column in tree.this.expressions)
    query = tree.expression if isinstance(tree, exp.Create) else tree
    named = {cte.alias for cte in query.find_all(exp.CTE)}
    tables = tuple(table for table in query.find_all(exp.Table) if table.name not in named)
    if len({table.sql() for table in tables}) != 1:
        raise Unread(f"the view stands on {len(tables)} tables")
    return Parsed(query, names, tables, dialect)


def carried_columns(database: Database, definition: str, features: list[str]) -> list[str]:
    """Columns of its table that a view asks for beside the features, such as a key: the witnesses need them too.

    A name that the query itself gives to something is none: as a column it could stand in that one's place.
    """
    from sqlglot import exp

    query = parsed_view(database, definition).query
    taken = {name.casefold() for name in (*features, *(each.alias for each in query.find_all(exp.Alias)))}
    asked = dict.fromkeys(column.name for column in query.find_all(exp.Column) if column.name)
    return [name for name in asked if name.casefold() not in taken]


def over_witnesses(database: Database, definition: str, label_column: str = LABEL) -> str:
    """The view's query with its one table replaced by the witnesses, giving the label alone."""
    parsed = parsed_view(database, definition)
    from sqlglot import exp

    for table in parsed.tables:
        replaced = exp.to_table(WITNESSES)
        replaced.set(
            "alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
        )
        table.replace(replaced)
    query, label = parsed.query.sql(dialect=parsed.dialect), database.quote(label_column)
    if not parsed.names:
        return f"SELECT gbfl_view.{label} FROM ({query}) gbfl_view"  # noqa: S608 - the view's own text
    names = ", ".join(database.quote(name) for name in parsed.names)
    return f"WITH gbfl_view ({names}) AS ({query}) SELECT gbfl_view.{label} FROM gbfl_view"  # noqa: S608 - its own text
