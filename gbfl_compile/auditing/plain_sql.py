"""Audits a .sql file without our header: a query, a view, INSERT … SELECT, or UPDATE … SET label = CASE ….

The file does not say what its tables hold. Where the engine can be started here, tables with its columns are made in a
private database, features as doubles, and the query is audited there as a view. Elsewhere it is read and not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from gbfl_compile.auditing.compare import AuditInput, Prover, compare_readings, weaker_without_run
from gbfl_compile.auditing.mend import feature_columns, keeps_rows, with_mend
from gbfl_compile.auditing.mend.names import feature_names
from gbfl_compile.auditing.mend.spans import line_at
from gbfl_compile.auditing.scripts import DeployedQuery, deployed_query
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.auditing.view.domains import prove_on_columns
from gbfl_compile.auditing.view.layered import FUNCTION
from gbfl_compile.auditing.view.places import PLAIN_NAME
from gbfl_compile.checking.artifact import ArtifactProof, ReadArtifact
from gbfl_compile.checking.general.sql import DeployedText, KnownTable, TextLayout, read_deployed
from gbfl_compile.checking.general.sql.engines import ENGINES
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
AS_CALLED = "that the columns have the types that the functions declare, and hold no NaN"
AS_CREATED = "that the tables are as the file creates them, and hold no NaN"
VIEW = "gbfl_deployed"


def audit_plain_sql(
    inputs: AuditInput, deployed: DeployedVerdict, content: str, dialect: str, label: str
) -> DeployedVerdict:
    """The verdict on a file without our header."""
    try:
        query = deployed_query(content, dialect, label)
        runs = dialect in TYPES and availability(dialect) is None and DATABASES[dialect].catalog is not None
        found = _in_database(inputs, deployed, query, dialect, label) if runs else None
        found = None if found is None else _in_words_of(content, found)
        verdict = _read_only(inputs, deployed, query, dialect, label) if found is None else found
        if verdict.verdict == "unread":
            raise Unread(verdict.reason or "it is not understood")

        def read(name: str, text: str) -> tuple[Prover, tuple[Reading, ...]]:
            del name
            prove, readings, found = _read_text(inputs, deployed_query(text, dialect, label), dialect, label)
            if not keeps_rows(_read_text(inputs, query, dialect, label)[2], found):
                raise Unread("other rows come out")
            return prove, readings

        columns = feature_columns(inputs)
        if verdict.story is None or verdict.story.mend is None:
            verdict = with_mend(verdict, inputs, {"": content}, _names_in(query, columns) | columns, read)
    except Unread as error:
        return replace(deployed, verdict="unread", reason=str(error), proof=ArtifactProof("unread", str(error)))
    assumed = None
    if verdict.verdict in ("equal", "not run"):
        words = AS_CREATED if query.tables else AS_CALLED if query.types else ASSUMED
        assumed = "; ".join(filter(None, (verdict.proof_assumes, words)))
    return replace(verdict, row_effects=(*query.notes, *verdict.row_effects), proof_assumes=assumed)


def _in_words_of(content: str, verdict: DeployedVerdict) -> DeployedVerdict:
    """The verdict with the edit of a function by its line in the file; an edit of the query around it is none."""
    story = verdict.story
    if story is None or story.line is None:
        return verdict
    if story.mend is None or not (story.mend.line.of or "").startswith(FUNCTION) or content.count(story.mend.old) != 1:
        return replace(verdict, story=replace(story, line=None, mend=None))
    line = line_at("", content, content.index(story.mend.old))
    return replace(verdict, story=replace(story, line=line, mend=replace(story.mend, line=line)))


def _names_in(query: DeployedQuery, columns: Mapping[str, int]) -> dict[str, int]:
    """What else the features are called in the file."""

    def parameters(name: str) -> Sequence[str]:
        known = query.functions.get(name.casefold())
        return () if known is None else [each for each, _ in known.parameters]

    return feature_names([query.tree], columns, parameters)


def _in_database(
    inputs: AuditInput, deployed: DeployedVerdict, query: DeployedQuery, dialect: str, label: str
) -> DeployedVerdict | None:
    """The query as a view of a private database; None where its tables cannot be made there."""
    with closing(scratch(dialect)) as database:
        try:
            _make_tables(inputs, database, query)
            for statement in query.earlier:
                database.execute(statement)
            database.execute(f"CREATE VIEW {VIEW} AS {query.text}")
        except (CannotRun, BadInput):
            return None
        only_there = None in query.functions.values()  # a function that only its database reads
        there = replace(inputs, holds_nan=False, mends=inputs.mends and only_there)
        found = audit_view(there, database, VIEW, deployed.what, label)
    return replace(found, what=deployed.what, kind="file", fingerprint=deployed.fingerprint)


def _make_tables(inputs: AuditInput, database: Database, query: DeployedQuery) -> None:
    """Tables with the columns that the query names."""
    import sqlglot
    from sqlglot import exp

    double, text, whole, ending = TYPES[database.dialect]
    parsed_as = ENGINES[database.dialect].parsed_as
    trees = [query.tree, *(sqlglot.parse_one(text, read=parsed_as) for text, _ in query.views.values())]
    ctes = {cte.alias.casefold() for tree in trees for cte in tree.find_all(exp.CTE)} | query.views.keys()
    tables = {
        t.sql(): t for tree in trees for t in tree.find_all(exp.Table) if t.name and t.name.casefold() not in ctes
    }
    names = {each.name: each for each in tables.values()}
    if len(names) != 1 or next(iter(names.values())).db:
        raise BadInput("several tables, whose columns are not known")
    stated = [inputs.columns.get(name, name) for name in inputs.program.features]
    features = {name.casefold(): name for each in stated for name in _columns_of(each, database.dialect)}
    used = dict.fromkeys(c.name.casefold() for tree in trees for c in tree.find_all(exp.Column) if c.name != "*")
    aliases = {each.alias.casefold() for tree in trees for each in tree.find_all(exp.Alias)}
    texts = {
        node.this.name.casefold()
        for tree in trees
        for node in tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.GTE, exp.LTE, exp.LT, exp.GT)
        for literal in node.find_all(exp.Literal)
        if literal.is_string and isinstance(node.this, exp.Column)
    }
    (table,) = names
    columns = [f"{database.quote(name)} {query.types.get(key, double)}" for key, name in features.items()]
    others = [name for name in used if name not in features and name not in aliases]
    columns += [f"{database.quote(name)} {text if name in texts else whole}" for name in others]
    columns = list(query.tables.get(table.casefold(), columns))
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


def _known_table(query: DeployedQuery, name: str) -> KnownTable:
    """A table of which nothing is known, or a view that the file makes before."""
    if name.casefold() in query.tables:
        raise Unread(f"the table {name} has the types that the file declares, and its engine is not run here")
    text, names = query.views.get(name.casefold(), (None, ()))
    return KnownTable(name, query=text, names=names)


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
        tables=lambda schema, name: _known_table(query, name),
        approved=program,
        expressions=computed,
        functions=lambda schema, name: query.functions.get(name.casefold()),
    )
    text = read_deployed(query.text, dialect, layout)
    if dialect == "clickhouse" and text.uses.outer:
        raise Unread("a feature behind an outer join: ClickHouse gives 0 where no row is found, unless it is Nullable")
    domain = [
        Column(printable(name), "double", ColumnType("double", engine_has_nan=False)) for name in program.features
    ]
    return prove_on_columns(list(domain), text.readings), text.readings, text
