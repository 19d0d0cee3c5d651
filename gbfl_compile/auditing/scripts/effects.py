"""What the statements around a query do to its labels: where they are written, as which type, whether they are kept.

Each check refuses what it does not know to be without effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.parsing import folded_name
from gbfl_compile.checking.reading.nodes import Unread

if TYPE_CHECKING:
    from gbfl_compile.auditing.scripts.statements import Statement

PROPERTIES = {
    *("ReturnsProperty", "LanguageProperty", "StabilityProperty", "StrictProperty", "TemporaryProperty", "Property"),
    *("ViewAttributeProperty", "SecureProperty", "CopyGrantsProperty", "MaterializedProperty", "EngineProperty"),
    *("SchemaCommentProperty", "Order", "PrimaryKey", "PartitionedByProperty", "Cluster", "DistKeyProperty"),
    *("DistStyleProperty", "SortKeyProperty", "SqlSecurityProperty", "AlgorithmProperty", "DefinerProperty"),
    *("CharacterSetProperty", "CollateProperty", "AutoIncrementProperty", "FileFormatProperty", "SqlReadWriteProperty"),
}
"""What a CREATE may say beside its query. Policies, TTL and tables that rows are sent on to are not among them."""

EXPRESSION_PROPERTIES = {
    *("ReturnsProperty", "LanguageProperty", "StabilityProperty", "TemporaryProperty", "SecureProperty"),
}
"""Those after which a function is its expression: with STRICT it is NULL for NULL."""


def properties_of(tree: Any) -> list[str]:
    """The node classes of what a CREATE has beside its query."""
    found = tree.args.get("properties")
    return [type(each).__name__ for each in found.expressions] if found else []


def refuse_other_properties(tree: Any) -> None:
    if others := [each for each in properties_of(tree) if each not in PROPERTIES]:
        raise Unread(f"CREATE with {others[0]}, which may change what comes out of it")


def refuse_typed_columns(target: Any) -> None:
    """Columns of a view or of CREATE TABLE … AS are names: types convert labels, policies mask them.

    With types MariaDB puts values where the names are the same, and others by their places.
    """
    from sqlglot import exp

    for each in target.expressions if isinstance(target, exp.Schema) else ():
        if not isinstance(each, exp.ColumnDef):
            continue
        kinds = [part.args.get("kind") for part in each.args.get("constraints") or ()]
        if each.args.get("kind") is not None or not all(isinstance(k, exp.CommentColumnConstraint) for k in kinds):
            raise Unread(f"{each.name} is stored with its own type or policy")


def refuse_kept_objects(statements: Sequence[Statement]) -> None:
    """IF NOT EXISTS keeps what is there, unless the file drops it first."""
    from sqlglot import exp

    dropped: set[str] = set()
    for each in statements:
        if each.kind == "Drop" and each.tree.this is not None:
            dropped.add(str(each.tree.this.name).casefold())
        if each.kind == "Alter" and any(column.args.get("exists") for column in each.tree.find_all(exp.ColumnDef)):
            raise Unread("ADD COLUMN IF NOT EXISTS, which keeps an existing column")
        is_made = each.kind == "Create" and (each.tree.expression is not None or each.target not in ("VIEW", "TABLE"))
        if is_made and each.tree.args.get("exists") and each.target_name() not in dropped:
            raise Unread("IF NOT EXISTS, which keeps what already exists: drop it first")


def refuse_open_transaction(statements: Sequence[Statement]) -> None:
    """A transaction that is not committed has no effect."""
    ends = [each.kind for each in statements if each.kind in ("Transaction", "Commit")]
    if ends[-1:] == ["Transaction"]:
        raise Unread("a transaction that the file does not commit")


def refuse_other_case(statements: Sequence[Statement], engine: Engine, label: str) -> None:
    """A name in quotes that differs from the label's by its case is another column, where the engine says so."""
    from sqlglot import exp

    for each in statements:
        if each.kind not in ("Update", "Insert", "Merge", "Alter"):
            continue
        for name in each.tree.find_all(exp.Identifier):
            is_near = name.quoted and name.name.casefold() == label.casefold()
            if is_near and folded_name(engine, name.name, True) != folded_name(engine, label, False):
                raise Unread(f"{name.name} in quotes, which may be another column than {label}")


CASE_OF_TABLES = {"mysql", "mariadb", "tsql", "clickhouse", "bigquery"}
"""Engines in which `S` and `s` may be two tables even without quotes."""


def refuse_tables_of_other_case(statements: Sequence[Statement], engine: Engine) -> None:
    """A table or view that the file makes, read by another spelling: PostgreSQL's `"S"` is not `s`."""
    from sqlglot import exp

    def own(name: Any) -> str:
        is_exact = engine.name in CASE_OF_TABLES
        return str(name.name) if is_exact else folded_name(engine, name.name, bool(name.args.get("quoted")))

    made = {own(name).casefold(): own(name) for each in statements if (name := _made_table(each)) is not None}
    for each in statements:
        stages = {stage.alias.casefold() for stage in each.tree.find_all(exp.CTE)}
        for name in (part.this for part in each.tree.find_all(exp.Table)):
            key = name.name.casefold()
            if isinstance(name, exp.Identifier) and key not in stages and made.get(key, own(name)) != own(name):
                raise Unread(f"{name.name} may be another table than {made[key]}, which the file makes")


def _made_table(statement: Statement) -> Any:
    """The name of the table or view that a statement makes."""
    from sqlglot import exp

    table = statement.tree.this.find(exp.Table) if statement.kind == "Create" else None
    return table.this if table is not None and isinstance(table.this, exp.Identifier) else None


DEFAULT_SCHEMAS = {
    **dict.fromkeys(("postgres", "redshift", "snowflake"), "public"),
    **dict.fromkeys(("duckdb", "sqlite"), "main"),
    "tsql": "dbo",
}
"""The schema of a name without one."""


def refuse_other_schemas(statements: Sequence[Statement], parsed_as: str, looks_elsewhere: bool) -> None:
    """A view, table or function that the file makes is the one that it reads: not another schema's of that name.

    `looks_elsewhere` is whether the file says where names without a schema are looked up.
    """
    from sqlglot import exp

    default = DEFAULT_SCHEMAS.get(parsed_as, "")
    made: dict[str, str] = {}
    for each in statements:
        target = each.tree.this.find(exp.Table) if each.kind == "Create" else None
        if target is not None:
            made[target.name.casefold()] = target.db.casefold()
    for each in statements:
        tables = [(part.name, part.db) for part in each.tree.find_all(exp.Table)]
        calls = [(part.expression.name, part.this.name) for part in each.tree.find_all(exp.Dot)]
        for name, schema in ((name.casefold(), schema.casefold()) for name, schema in (*tables, *calls)):
            if name in made and not schema and made[name] not in ("", default) and not looks_elsewhere:
                raise Unread(f"{name} is created in {made[name]}, and read without a schema")
            if name in made and schema and schema != (made[name] or default):
                place = f"in {made[name]}" if made[name] else "without a schema"
                raise Unread(f"{name} is created {place}, and {schema}.{name} is read")


def refuse_other_clearing(statement: Statement) -> None:
    """DELETE and TRUNCATE do nothing but remove rows: PostgreSQL's WITH may write."""
    known = {"Delete": {"this", "where"}, "TruncateTable": {"expressions", "option", "identity", "exists"}}
    if others := [part for part, value in statement.tree.args.items() if value and part not in known[statement.kind]]:
        raise Unread(f"{statement.kind.upper()} with {others[0]!r}")


def refuse_other_place(statement: Statement, earlier: Sequence[Statement], label: str) -> str | None:
    """INSERT without names goes by places: checked with the table where the file makes it, else stated."""
    from sqlglot import exp

    tree = statement.tree
    if statement.kind != "Insert":
        return None
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    known = ("this", "db", "catalog", "alias")
    if others := [part for part, value in table.args.items() if value and part not in known]:
        raise Unread(f"INSERT INTO a table with {others[0]!r}")
    if not isinstance(tree.this, exp.Table) or not isinstance(tree.expression, exp.Query):
        return None
    names = [each.alias_or_name.casefold() for each in tree.expression.selects]
    if "*" in names or names.count(label.casefold()) != 1:
        raise Unread(f"INSERT without names of columns, and a query in which the place of {label} is not certain")
    place = names.index(label.casefold())
    for each in earlier:
        if each.target == "TABLE" and each.target_name() == tree.this.name.casefold():
            columns = each.tree.this.expressions if isinstance(each.tree.this, exp.Schema) else []
            if [column.name.casefold() for column in columns][place : place + 1] != [label.casefold()]:
                raise Unread(f"INSERT without names of columns puts {label} into another column")
            return None
    return f"INSERT without names of columns: the labels go to column {place + 1} of {tree.this.name}"


def refuse_other_label_type(statement: Statement, label: str, texts: Sequence[str]) -> None:
    """A column that the file makes for the label keeps every text as it is: no shorter, not padded, no other type."""
    from sqlglot import exp

    for column in statement.tree.find_all(exp.ColumnDef):
        declared = column.args.get("kind")
        if column.name.casefold() != label.casefold() or declared is None:
            continue
        name = declared.this.name if isinstance(declared.this, exp.DType) else str(declared.this)
        length = declared.expressions[0].name if declared.expressions else None
        is_long = length is None or (length.isdigit() and int(length) >= max(map(len, texts), default=0))
        is_max = length is not None and length.upper() == "MAX"
        if name in ("TEXT", "VARCHAR", "NVARCHAR", "LONGTEXT", "MEDIUMTEXT") and (is_long or is_max):
            continue
        if name in ("INT", "BIGINT", "SMALLINT") and not texts and not declared.expressions:
            continue
        raise Unread(f"{label} is kept as {declared.sql()}, which may not keep every label as it is")


def refuse_other_merge(tree: Any, source: str) -> None:
    """MERGE writes to the row that the label belongs to: by columns of one name, without further conditions."""
    from sqlglot import exp

    if tree.args["using"].args["alias"].args.get("columns"):
        raise Unread("MERGE with other names for the columns of its source")
    plain = {
        each.alias_or_name.casefold()
        for each in tree.args["using"].this.selects
        if isinstance(each.unalias(), exp.Column) and each.unalias().name.casefold() == each.alias_or_name.casefold()
    }
    condition = tree.args.get("on")
    for each in condition.unnest().flatten() if isinstance(condition.unnest(), exp.And) else [condition.unnest()]:
        sides = [each.this, each.expression] if isinstance(each, exp.EQ) else []
        if (
            not all(isinstance(side, exp.Column) for side in sides)
            or len({side.name.casefold() for side in sides}) != 1
            or [side.table.casefold() for side in sides].count(source) != 1
            or not {side.name.casefold() for side in sides} <= plain
        ):
            raise Unread("MERGE ON other than target.key = source.key, with a key that is a column of the source")
    for when in tree.args["whens"].expressions:
        known = {"this", "expression", "expressions"}
        if when.args.get("source"):
            raise Unread("MERGE with NOT MATCHED BY SOURCE, which has no label")
        if others := [part for part, value in when.args["then"].args.items() if value and part not in known]:
            raise Unread(f"MERGE with {others[0]!r}")
