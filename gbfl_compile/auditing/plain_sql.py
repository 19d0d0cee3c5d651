"""Audits a .sql file without our header: a query, a view, INSERT … SELECT, or UPDATE … SET label = CASE ….

The file does not say what its tables hold. Where the engine can be started here, tables with its columns are made in a
private database, features as doubles, and the query is audited there as a view. Elsewhere it is read and not run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from gbfl_compile.auditing.compare import AuditInput, Prover, compare_readings, weaker_without_run
from gbfl_compile.auditing.mend import feature_columns, keeps_rows, with_mend
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.places import PLAIN_NAME
from gbfl_compile.checking.artifact import ArtifactProof
from gbfl_compile.checking.general.sql import DeployedText, KnownTable, TextLayout, read_deployed
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.readers import ReadArtifact
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.databases import ENGINES as DATABASES
from gbfl_compile.databases import availability, scratch
from gbfl_compile.databases.base import Database
from gbfl_compile.databases.catalog import Column, ColumnType
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.text import printable

TYPES = {
    "postgres": ("DOUBLE PRECISION", "TEXT", "INTEGER", ""),
    "duckdb": ("DOUBLE", "VARCHAR", "INTEGER", ""),
    "sqlite": ("REAL", "TEXT", "INTEGER", ""),
    "mariadb": ("DOUBLE", "VARCHAR(200)", "INT", ""),
    "clickhouse": ("Nullable(Float64)", "Nullable(String)", "Nullable(Int32)", " ENGINE = Memory"),
}
"""A double, a text and a whole number in each engine, and the end of CREATE TABLE."""

ASSUMED = "that the columns are doubles and hold no NaN: the file does not say what its tables hold"
VIEW = "gbfl_deployed"
HARMLESS = {"Comment", "Grant", "Use", "Transaction", "Commit", "Semicolon"}
"""Statements beside the one that decides; before it, also DROP."""
PARTS = {
    "Create": {"this", "expression", "kind", "replace", "exists", "properties", "with_", "with"},
    "Insert": {"this", "expression"},
    "Update": {"this", "expressions", "where"},
}
"""What may be part of a statement: ON CONFLICT, RETURNING, LIMIT and whatever else is not left aside."""

PLAIN_ENGINES = ("MergeTree", "Memory", "Log", "InnoDB", "Aria", "MyISAM")
"""Engines of tables that keep what they are given: a SummingMergeTree does not."""

CONFIG = re.compile(r"\{\{\s*config\((.*?)\)\s*\}\}", re.DOTALL)
SETTING = re.compile(r"""\s*(?:(\w+)\s*=\s*)?(?:'[^'{]*'|"[^"{]*"|[\w.]+|\[[^\]{]*\])\s*(?:,|$)""")
SETTINGS = {
    *("materialized", "unique_key", "schema", "database", "alias", "tags", "enabled", "incremental_strategy"),
    *("on_schema_change", "cluster_by", "partition_by", "indexes", "meta", "docs", "group", "access"),
}
"""What a dbt model may be configured with: hooks and headers run statements of their own."""
REF = re.compile(r"\{\{\s*ref\(\s*'(\w+)'\s*\)\s*\}\}")
SOURCE = re.compile(r"\{\{\s*source\(\s*'\w+'\s*,\s*'(\w+)'\s*\)\s*\}\}")
THIS = re.compile(r"\{\{\s*this\s*\}\}")
INCREMENTAL = re.compile(r"\{%-?\s*if is_incremental\(\)\s*-?%\}((?:(?!\{%).)*)\{%-?\s*endif\s*-?%\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DeployedQuery:
    """The query of a file."""

    text: str
    tree: Any
    notes: tuple[str, ...] = ()


def audit_plain_sql(
    inputs: AuditInput, deployed: DeployedVerdict, content: str, dialect: str, label: str
) -> DeployedVerdict:
    """The verdict on a file without our header."""
    try:
        query = deployed_query(content, dialect, label)
        runs = dialect in TYPES and availability(dialect) is None and DATABASES[dialect].catalog is not None
        found = _in_database(inputs, deployed, query, dialect, label) if runs else None
        verdict = _read_only(inputs, deployed, query, dialect, label) if found is None else found
        if verdict.verdict == "unread":
            raise Unread(verdict.reason or "it is not understood")

        def read(name: str, text: str) -> tuple[Prover, tuple[Reading, ...]]:
            del name
            prove, readings, found = _read_text(inputs, deployed_query(text, dialect, label), dialect, label)
            if not keeps_rows(_read_text(inputs, query, dialect, label)[2], found):
                raise Unread("other rows come out")
            return prove, readings

        verdict = with_mend(verdict, inputs, {"": content}, feature_columns(inputs), read)
    except Unread as error:
        return replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    assumed = None
    if verdict.verdict in ("equal", "not run"):
        assumed = "; ".join(filter(None, (verdict.proof_assumes, ASSUMED)))
    return replace(verdict, row_effects=(*query.notes, *verdict.row_effects), proof_assumes=assumed)


def deployed_query(content: str, dialect: str, label: str) -> DeployedQuery:
    """The one query of a file, in its own words."""
    if dialect not in ENGINES:
        raise BadInput(f"no reader for the SQL of {dialect!r}: there is {', '.join(ENGINES)}")
    for settings in CONFIG.findall(content):
        _refuse_hooks(settings)
    content = CONFIG.sub("", content)
    always, later = (_query_in(INCREMENTAL.sub(each, content), dialect, label) for each in ("", r"\1"))
    if not _differ_by_filters(always[1], later[1]):
        raise Unread("what is_incremental() adds is more than a filter of the rows that come out")
    notes = (f"rows that an incremental run passes: {' '.join(each.split())}" for each in INCREMENTAL.findall(content))
    return DeployedQuery(*always, tuple(notes))


def _refuse_hooks(settings: str) -> None:
    place = 0
    while place < len(settings.rstrip()):
        match = SETTING.match(settings, place)
        if match is None or match[1] not in SETTINGS:
            name = settings[place:].strip() if match is None else match[1] or match[0]
            raise Unread(f"config({name[:60]}), which may do more than say where the rows go: audit the compiled file")
        place = match.end()


def _query_in(content: str, dialect: str, label: str) -> tuple[str, Any]:
    """The one query of a text without conditions of dbt, as it is written and parsed."""
    import sqlglot

    content = THIS.sub("gbfl_this", SOURCE.sub(r"\1", REF.sub(r"\1", content)))
    if "{{" in content or "{%" in content:
        raise Unread("a template: audit the compiled file, which dbt writes to target/compiled")
    if dialect == "tsql":
        content = "\n".join("" if line.strip().upper() == "GO" else line for line in content.split("\n"))
    parsed_as = ENGINES[dialect].parsed_as
    try:
        tokens = sqlglot.tokenize(content, read=parsed_as)
        statements = _statements(content, tokens, parsed_as)
        while statements and type(statements[0][1]).__name__ in ("Drop", *HARMLESS):
            del statements[0]
        deciding = [each for each in statements if type(each[1]).__name__ not in HARMLESS]
        if len(deciding) != 1:
            raise Unread(f"{len(deciding)} statements that may decide, one is read")
        (text, tree, own) = deciding[0]
        query = _query_text(text, tree, own, label)
        return query, sqlglot.parse_one(query, read=parsed_as)
    except sqlglot.errors.SqlglotError as error:
        raise Unread(f"it is not understood: {str(error).splitlines()[0]}") from None


def _differ_by_filters(one: Any, other: Any) -> bool:
    """Whether two queries are the same but for their last WHERE: one within could filter what is compared with."""
    one, other = one.copy(), other.copy()
    for query in (one, other):
        if type(query).__name__ == "Select":
            query.set("where", None)
    return bool(one == other)


def _statements(content: str, tokens: Sequence[Any], parsed_as: str) -> list[tuple[str, Any, list[Any]]]:
    import sqlglot

    parts: list[list[Any]] = [[]]
    for token in tokens:
        if token.token_type.name == "SEMICOLON":
            parts.append([])
        else:
            parts[-1].append(token)
    found = []
    for part in filter(None, parts):
        text = content[part[0].start : part[-1].end + 1]
        found.append((text, sqlglot.parse_one(text, read=parsed_as), sqlglot.tokenize(text, read=parsed_as)))
    return found


def _query_text(text: str, tree: Any, tokens: Sequence[Any], label: str) -> str:
    """The query within a statement."""
    from sqlglot import exp

    if isinstance(tree, exp.Query):
        return text
    parts = PARTS.get(type(tree).__name__, set())
    if others := [part for part, value in tree.args.items() if value and part not in parts]:
        raise Unread(f"{type(tree).__name__.upper()} with {others[0]!r}: {tree.sql()[:200]}")
    if engines := [each.sql() for each in tree.find_all(exp.EngineProperty) if each.name not in PLAIN_ENGINES]:
        raise Unread(f"{engines[0]}, which may keep other rows than it is given")
    if (
        isinstance(tree, exp.Create)
        and isinstance(tree.expression, exp.Query)
        and not isinstance(tree.this, exp.Schema)
    ):
        return text[_first(tokens, ("AS",)).end + 1 :]
    if isinstance(tree, exp.Insert) and isinstance(tree.expression, exp.Query):
        query = text[_first(tokens, ("SELECT", "WITH")).start :]
        names = [each.name for each in tree.this.expressions] if isinstance(tree.this, exp.Schema) else []
        if names and names != [each.alias_or_name for each in tree.expression.selects]:
            raise Unread("INSERT into columns that are not called as those of its SELECT: give those the same names")
        return query
    if isinstance(tree, exp.Update):
        return _update_text(text, tree, tokens, label)
    raise Unread(f"{type(tree).__name__.upper()}, which is not understood: a query, view, INSERT … SELECT or UPDATE is")


def _first(tokens: Sequence[Any], words: tuple[str, ...]) -> Any:
    depth = 0
    for token in tokens:
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
        if depth == 0 and token.text.upper() in words:
            return token
    raise Unread(f"no {words[0]} in it")


def _update_text(text: str, tree: Any, tokens: Sequence[Any], label: str) -> str:
    """UPDATE t SET label = CASE … WHERE … as the query that gives the label."""
    _refuse_other_assignments(tree, label)
    depth, begins, ends, where = 0, None, len(text), ""
    for place, token in enumerate(tokens):
        name = token.token_type.name
        depth += {"L_PAREN": 1, "R_PAREN": -1, "CASE": 1, "END": -1}.get(name, 0)
        if depth == 0 and begins is not None and (name == "COMMA" or token.text.upper() == "WHERE"):
            ends = min(ends, token.start)
        if depth == 0 and token.text.upper() == "WHERE":
            where = text[token.start :]
        is_label = token.text.casefold() == label.casefold() and place + 1 < len(tokens)
        if depth == 0 and begins is None and is_label and tokens[place + 1].text == "=":
            begins = tokens[place + 1].end + 1
    if begins is None:
        raise Unread(f"it sets no column {label!r}: say which has the labels with --label")
    table = text[tokens[1].start : _first(tokens, ("SET",)).start]
    return f"SELECT {text[begins:ends]} AS {label} FROM {table} {where}"  # noqa: S608 - in a private database


def _refuse_other_assignments(tree: Any, label: str) -> None:
    """The label is set once, and nothing that it is computed from: MariaDB assigns from left to right."""
    from sqlglot import exp

    places = [each.this.name.casefold() for each in tree.expressions if isinstance(each, exp.EQ)]
    if len(places) != len(tree.expressions) or places.count(label.casefold()) > 1:
        raise Unread("UPDATE that sets several columns at once, or one twice")
    used = {column.name.casefold() for each in tree.expressions for column in each.expression.find_all(exp.Column)}
    if changed := [name for name in places if name in used]:
        raise Unread(f"UPDATE that sets {changed[0]}, from which something that it sets is computed")


def _in_database(
    inputs: AuditInput, deployed: DeployedVerdict, query: DeployedQuery, dialect: str, label: str
) -> DeployedVerdict | None:
    """The query as a view of a private database; None where its tables cannot be made there."""
    with closing(scratch(dialect)) as database:
        try:
            _make_tables(inputs, database, query)
            database.execute(f"CREATE VIEW {VIEW} AS {query.text}")
        except (CannotRun, BadInput):
            return None
        found = audit_view(replace(inputs, holds_nan=False, mends=False), database, VIEW, deployed.what, label)
    return replace(found, what=deployed.what, kind="file", fingerprint=deployed.fingerprint)


def _make_tables(inputs: AuditInput, database: Database, query: DeployedQuery) -> None:
    """Tables with the columns that the query names."""
    from sqlglot import exp

    double, text, whole, ending = TYPES[database.dialect]
    ctes = {cte.alias.casefold() for cte in query.tree.find_all(exp.CTE)}
    tables = {t.sql(): t for t in query.tree.find_all(exp.Table) if t.name and t.name.casefold() not in ctes}
    names = {each.name: each for each in tables.values()}
    if len(names) != 1 or next(iter(names.values())).db:
        raise BadInput("several tables, whose columns are not known")
    stated = [inputs.columns.get(name, name) for name in inputs.program.features]
    features = {name.casefold(): name for each in stated for name in _columns_of(each, database.dialect)}
    used = dict.fromkeys(each.name.casefold() for each in query.tree.find_all(exp.Column) if each.name != "*")
    aliases = {each.alias.casefold() for each in query.tree.find_all(exp.Alias)}
    texts = {
        node.this.name.casefold()
        for node in query.tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.GTE, exp.LTE, exp.LT, exp.GT)
        for literal in node.find_all(exp.Literal)
        if literal.is_string and isinstance(node.this, exp.Column)
    }
    columns = [f"{database.quote(name)} {double}" for name in features.values()]
    others = [name for name in used if name not in features and name not in aliases]
    columns += [f"{database.quote(name)} {text if name in texts else whole}" for name in others]
    (table,) = names
    database.execute(f"CREATE TABLE {table} ({', '.join(columns)}){ending}")


def _columns_of(stated: str, dialect: str) -> list[str]:
    """The column that --column names, or those of the expression."""
    import sqlglot

    if PLAIN_NAME.fullmatch(stated):
        return [stated]
    try:
        tree = sqlglot.parse_one(stated, read=ENGINES[dialect].parsed_as)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return [stated]
    return [column.name for column in tree.find_all(sqlglot.exp.Column)]


def _read_only(
    inputs: AuditInput, deployed: DeployedVerdict, query: DeployedQuery, dialect: str, label: str
) -> DeployedVerdict:
    """The query by its text alone."""
    prove, readings, text = _read_text(inputs, query, dialect, label)
    artifact = ReadArtifact("read as equal", readings, "it is written by hand")
    verdict = compare_readings(deployed, inputs, artifact, prove)
    if verdict.verdict == "different" and text.unclear:
        raise Unread(f"it differs, but a filter may leave out the rows that show it: {'; '.join(text.notes)}")
    mapping = {name: each for name, each in inputs.columns.items() if name != each}
    verdict = replace(verdict, row_effects=text.notes, other_columns=text.others, feature_columns=mapping)
    return weaker_without_run(verdict)


def _read_text(
    inputs: AuditInput, query: DeployedQuery, dialect: str, label: str
) -> tuple[Prover, tuple[Reading, ...], DeployedText]:
    """What is read of a query, and the prover for it."""
    engine, program = ENGINES[dialect], inputs.program

    def fold_name(name: str) -> str:
        """A name without quotes, as the engine takes it."""
        return {"upper": name.upper(), "lower": name.lower()}.get(engine.names, name) if name.isascii() else name

    stated = [(i, inputs.columns.get(name, name)) for i, name in enumerate(program.features)]
    columns = tuple((i, fold_name(text)) for i, text in stated if PLAIN_NAME.fullmatch(text))
    own = {name: f"feature {i}" for i, name in columns}
    computed = tuple(
        (i, text, {name: own.get(fold_name(name), fold_name(name)) for name in _columns_of(text, dialect)})
        for i, text in stated
        if not PLAIN_NAME.fullmatch(text)
    )
    layout = TextLayout(
        program.features,
        program.classes,
        columns,
        (("label", fold_name(label)),),
        tables=lambda schema, name: KnownTable(name),
        approved=program,
        expressions=computed,
    )
    text = read_deployed(query.text, dialect, layout)
    if dialect == "clickhouse" and text.uses.outer:
        raise Unread("a feature behind an outer join: ClickHouse gives 0 where no row is found, unless it is Nullable")
    domain = [
        Column(printable(name), "double", ColumnType("double", engine_has_nan=False)) for name in program.features
    ]
    return prove_on_columns(list(domain), text.readings), text.readings, text
