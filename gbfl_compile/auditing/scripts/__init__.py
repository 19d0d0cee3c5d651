"""A .sql file as people keep it: finds the statement that decides, and the query that gives its labels.

    DROP VIEW …; CREATE VIEW d (id, label) AS SELECT …; GRANT …   ->   WITH gbfl_rows (id, label) AS (SELECT …) SELECT …
    UPDATE t SET label = 'no'; UPDATE t SET label = 'yes' WHERE …  ->   SELECT CASE WHEN … THEN 'yes' ELSE 'no' END …

Views, macros and functions that come before are read where the query names them. Statements are allow-listed: one that
could change what the query answers makes the file `unread`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from gbfl_compile.auditing.scripts.effects import (
    EXPRESSION_PROPERTIES,
    properties_of,
    refuse_kept_objects,
    refuse_open_transaction,
    refuse_other_case,
    refuse_other_clearing,
    refuse_other_label_type,
    refuse_other_place,
    refuse_other_schemas,
    refuse_tables_of_other_case,
)
from gbfl_compile.auditing.scripts.statements import (
    Statement,
    first_word,
    in_brackets,
    is_computed,
    parse_text,
    query_text,
    refuse_other_parts,
    statements_of,
    update_series,
)
from gbfl_compile.auditing.scripts.template import (
    CONFIG,
    INCREMENTAL,
    TAG,
    VARIABLE,
    refuse_hidden_tags,
    refuse_hooks,
    separate_models,
    without_template,
)
from gbfl_compile.checking.general.sql import KnownFunction
from gbfl_compile.checking.general.sql.bodies import Body
from gbfl_compile.checking.general.sql.engines import ENGINES
from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.errors import BadInput

HARMLESS = {"Comment", "Grant", "Revoke", "Use", "Transaction", "Commit", "Semicolon", "Analyze"}
"""Statements beside the one that decides; before it, also DROP of what is made again."""
HARMLESS_TEXT = re.compile(
    r"(ALTER\s+(VIEW|TABLE)\s+\S+\s+OWNER\s+TO\s+\S+|ALTER\s+DEFAULT\s+PRIVILEGES.*|REFRESH\s+MATERIALIZED\s+VIEW\s+\S+"
    r"|SET\s+(NOCOUNT|XACT_ABORT)\s+(ON|OFF)|SET\s+(ANSI_NULLS|QUOTED_IDENTIFIER)\s+ON"
    r"|SET\s+search_path\s+(TO|=)\s+(?!.*pg_catalog)[\w, \"$]+|CREATE\s+(UNIQUE\s+)?INDEX\s.*"
    r"|CREATE\s+SCHEMA\s+(IF\s+NOT\s+EXISTS\s+)?\S+)",
    re.IGNORECASE | re.DOTALL,
)
"""Others: settings that change no answer, owners, indexes."""
LOOK_UP = re.compile(r"\s*SET\s+search_path\b", re.IGNORECASE)
CLEARING = {"TruncateTable", "Delete"}
"""Statements that remove rows: stated beside the verdict, which is about the rows that come out."""


@dataclass(frozen=True, slots=True)
class DeployedQuery:
    """The query of a file."""

    text: str
    tree: Any
    notes: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    """Statements before it that it builds on: views, macros, functions."""
    views: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Views that the file makes before: query, and the names of its columns where they are stated."""
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tables that the file makes, by lower-case name: the definitions of their columns."""
    types: dict[str, str] = field(default_factory=dict)
    """Types of columns that the functions it calls require, by lower-case name."""
    functions: dict[str, KnownFunction | None] = field(default_factory=dict)
    """Functions that the file makes before, by lower-case name; None for those that only their database reads."""


def deployed_query(content: str, dialect: str, label: str) -> DeployedQuery:
    """The one query of a file, in its own words."""
    if dialect not in ENGINES:
        raise BadInput(f"no reader for the SQL of {dialect!r}: there are readers for {', '.join(ENGINES)}")
    refuse_hidden_tags(content, ENGINES[dialect].parsed_as)
    content = TAG.sub(lambda found: "" if found[0].lstrip().startswith("{#") else found[0], content)
    content = re.sub(r"\s*\{([{%])-", r"{\1", re.sub(r"-([}%])\}\s*", r"\1}", content))  # what the signs take away
    for settings in CONFIG.findall(content):
        refuse_hooks(settings)
    content = CONFIG.sub("", content)
    always, later = (_query_in(INCREMENTAL.sub(each, content), dialect, label) for each in ("", r"\1"))
    if not _differ_by_filters(always.tree, later.tree) or always.earlier != later.earlier:
        raise Unread("what is_incremental() adds is more than a filter of the rows that come out")
    notes = [f"rows that an incremental run passes: {' '.join(each.split())}" for each in INCREMENTAL.findall(content)]
    notes += [f"var('{name}') has its default in the file, {value}" for name, value in VARIABLE.findall(content)]
    return replace(always, notes=(*notes, *always.notes))


def _differ_by_filters(one: Any, other: Any) -> bool:
    """Whether two queries are the same but for their last WHERE: one within could filter what is compared with."""
    one, other = one.copy(), other.copy()
    for query in (one, other):
        if type(query).__name__ == "Select":
            query.set("where", None)
    return bool(one == other)


def _query_in(content: str, dialect: str, label: str) -> DeployedQuery:
    """The one query of a text without conditions of dbt."""
    import sqlglot

    content = re.sub(r"(?im)^[ \t]*GO[ \t]*$", ";", content) if dialect == "tsql" else content
    content = re.sub(r"(?i)\bWITH\s+NO\s+SCHEMA\s+BINDING\b", "", content) if dialect == "redshift" else content
    parsed_as = ENGINES[dialect].parsed_as
    try:
        content = without_template(separate_models(content, parsed_as))
        every = statements_of(content, ENGINES[dialect])
        refuse_kept_objects(every)
        refuse_open_transaction(every)
        statements = _without_harmless(every)
        cleared = [each for each in statements if each.kind in CLEARING]
        for each in cleared:
            refuse_other_clearing(each)
        deciding = [each for each in statements if each.kind not in CLEARING]
        query, earlier = _query_of(deciding, label, parsed_as)
        tree = sqlglot.parse_one(query, read=parsed_as)
        refuse_other_case(deciding, ENGINES[dialect], label)
        refuse_other_schemas(deciding, parsed_as, any(each.kind == "Use" or LOOK_UP.match(each.text) for each in every))
        refuse_tables_of_other_case(deciding, ENGINES[dialect])
        _refuse_other_columns(deciding, tree, label)
        place = refuse_other_place(deciding[-1], earlier, label)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise Unread(f"it is not understood: {(str(error).splitlines() or ['nested too deeply'])[0]}") from None
    notes = [" ".join(each.text.split()) for each in cleared]
    return _with_earlier(query, tree, (*notes, *filter(None, [place])), earlier, parsed_as)


def _refuse_other_columns(deciding: list[Statement], tree: Any, label: str) -> None:
    """Each object is made once, and the column of the label keeps the texts of the query."""
    from sqlglot import exp

    made = [each.routine()[0].casefold() if each.target in ROUTINES else each.target_name() for each in deciding]
    if twice := [name for place, name in enumerate(made) if name and name in made[:place]]:
        raise Unread(f"{twice[0]} is created twice, so it is not certain which one is used")
    texts = [literal.name for literal in tree.find_all(exp.Literal) if literal.is_string]
    for each in deciding:
        if each.target == "TABLE" or each.kind == "Alter":
            refuse_other_label_type(each, label, texts)


def _without_harmless(statements: list[Statement]) -> list[Statement]:
    """The statements that may matter. A DROP is left out where nothing was made yet, or what it drops is made again."""
    found: list[Statement] = []
    for place, each in enumerate(statements):
        if found and (each.kind == "Use" or LOOK_UP.match(each.text)):
            raise Unread("names are looked up elsewhere after something was created, so their meaning is not certain")
        if each.kind in HARMLESS or HARMLESS_TEXT.fullmatch(each.text.strip()):
            continue
        if each.kind == "Drop":
            again = [later.target_name() for later in statements[place + 1 :] if later.target]
            if not found or (each.tree.this is not None and each.tree.this.name.casefold() in again):
                continue
        found.append(each)
    return found


LAYERS = ("VIEW", "TABLE")
ROUTINES = ("FUNCTION", "MACRO")


def _query_of(deciding: list[Statement], label: str, parsed_as: str) -> tuple[str, list[Statement]]:
    """The query that gives the labels, and the statements before it that it may build on."""
    if len(deciding) > 1 and all(each.kind == "Update" for each in deciding):
        return update_series(deciding, label), []
    if not deciding:
        raise Unread("no statement in it computes a label: a query, a view, INSERT … SELECT or UPDATE would")
    *earlier, last = deciding
    if not all(each.target in (*LAYERS, *ROUTINES) for each in earlier):
        raise Unread(f"{len(deciding)} statements may compute the label: only one can be read, after what it uses")
    if last.target in ROUTINES:
        return _call_text(last, label), deciding
    if last.target == "TABLE" and last.tree.args.get("expression") is None:
        earlier = deciding  # a computed column, beside those it is computed from
    return query_text(last, label, parsed_as), earlier


PREFIX = re.compile(r"^@?(p_|in_|v_|i_|_)?", re.IGNORECASE)
"""Prefixes that people put before a parameter's name."""


def _call_text(statement: Statement, label: str) -> str:
    """A function alone: the query that calls it with the columns that its parameters are named after."""
    name, parameters = statement.routine()
    columns = ", ".join(PREFIX.sub("", each) for each, _ in parameters)
    return f"SELECT {name}({columns}) AS {label} FROM applications"  # noqa: S608 - in a private database


def _with_earlier(
    query: str, tree: Any, notes: tuple[str, ...], earlier: list[Statement], parsed_as: str
) -> DeployedQuery:
    from sqlglot import exp

    views: dict[str, tuple[str, tuple[str, ...]]] = {}
    functions: dict[str, KnownFunction | None] = {}
    tables: dict[str, tuple[str, ...]] = {}
    types: dict[str, str] = {}
    kept: list[str] = []
    for each in earlier:
        refuse_other_parts(each)
        if each.target in ROUTINES:
            name, parameters = each.routine()
            refuse_other_bodies(each, parsed_as)
            functions[name.casefold()] = _expression_function(name, each)
            kept.append(each.text)
            types |= _types_of_columns(tree, name, [type_ for _, type_ in parameters])
            continue
        target = each.tree.this
        name = str((target.this if isinstance(target, exp.Schema) else target).name)
        if each.tree.expression is not None:
            listed = target.expressions if isinstance(target, exp.Schema) else []
            names = tuple(part.name for part in listed)
            inner = each.text[first_word(each.tokens, ("AS",)).end + 1 :]
            views[name.casefold()] = (inner, names)
            columns = f" ({', '.join(names)})" if names else ""
            kept.append(f"CREATE VIEW {target.sql(dialect=parsed_as) if not listed else name}{columns} AS {inner}")
        elif isinstance(target, exp.Schema):
            tables[name.casefold()] = _definitions(each, target)
        else:
            raise Unread(f"the definition of {name} is not understood")
    named = {each.name.casefold() for each in tree.find_all(exp.Table)}
    used = {call.name.casefold() for call in tree.find_all(exp.Anonymous)}
    for text, _ in views.values():
        inner = parse_text(text, parsed_as)
        named |= {each.name.casefold() for each in inner.find_all(exp.Table)}
        used |= {call.name.casefold() for call in inner.find_all(exp.Anonymous)}
    if loose := [*(views.keys() - named), *(functions.keys() - used)]:
        raise Unread(f"{sorted(loose)[0]} and the last statement may both compute the label: only one can be read")
    return DeployedQuery(query, tree, notes, tuple(kept), views, tables, types, functions)


def _expression_function(name: str, statement: Statement) -> KnownFunction | None:
    """A function of one expression that takes its arguments as they are: BigQuery's, Snowflake's, a macro."""
    from sqlglot import exp

    body, made = statement.tree.expression, statement.tree.this
    if not isinstance(made, exp.UserDefinedFunction) or isinstance(body, exp.Query | exp.Return):
        return None
    if not EXPRESSION_PROPERTIES.issuperset(properties_of(statement.tree)):
        return None
    takes_doubles = all(
        each.args.get("kind") is None or each.args["kind"].is_type("double") or str(each.args["kind"]) == "FLOAT"
        for each in made.expressions
    )
    if not takes_doubles:
        return None
    text = str(body.this) if isinstance(body, exp.Heredoc) else None
    if isinstance(body, exp.Paren):
        text = in_brackets(statement.text, statement.tokens, "AS")
    if text is None:
        return None
    return KnownFunction(name, "expression", tuple((each.name, "") for each in made.expressions), "", text)


def _types_of_columns(tree: Any, function: str, types: list[str]) -> dict[str, str]:
    """The types that columns are taken to have: those of the parameters that they are passed to."""
    from sqlglot import exp

    return {
        argument.name.casefold(): type_
        for call in tree.find_all(exp.Anonymous)
        if call.name.casefold() == function.casefold()
        for argument, type_ in zip(call.expressions, types, strict=False)
        if isinstance(argument, exp.Column) and type_
    }


def refuse_other_bodies(statement: Statement, parsed_as: str) -> None:
    """A function that is made in a private database does nothing but compute: its body is of the closed grammar."""
    from sqlglot import exp

    tree, engine = statement.tree, next(each for each in ENGINES.values() if each.parsed_as == parsed_as)
    if statement.kind != "Create":
        if parsed_as != "mysql":
            raise Unread("a function whose text is not understood")
        start = first_word(statement.tokens, ("BEGIN", "RETURN")).start
        Body(engine, statement.text[start:]).block()
        return
    body, properties = tree.expression, tree.args.get("properties")
    languages = [each.name.lower() for each in properties.find_all(exp.LanguageProperty)] if properties else []
    if isinstance(body, exp.Heredoc | exp.RawString | exp.Literal):
        if languages == ["plpgsql"]:
            Body(engine, str(body.this)).block()
            return
        if languages not in (["sql"], []):
            raise Unread(f"a function in the language {', '.join(languages)}")
        body = parse_text(str(body.this), parsed_as)
    if body is None or isinstance(body, exp.Command) or body.find(exp.Table, exp.Command) is not None:
        raise Unread("a function whose body is not one expression")


def _definitions(statement: Statement, schema: Any) -> tuple[str, ...]:
    """The columns of CREATE TABLE in its own words, without those that are computed: REAL is not FLOAT everywhere."""
    from sqlglot import exp

    texts = statement.listed_texts()
    if len(texts) != len(schema.expressions):
        raise Unread("a list of columns that is not understood")
    found = []
    for part, text in zip(schema.expressions, texts, strict=True):
        if isinstance(part, exp.ColumnDef):
            if not any(is_computed(each) for each in part.find_all(exp.ColumnConstraint)):
                found.append(text)
        elif any(isinstance(each, exp.CheckColumnConstraint | exp.Check) for each in part.walk()):
            found.append(text)
    return tuple(found)
