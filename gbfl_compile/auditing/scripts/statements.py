"""The statements of a SQL script, and the query within each that gives the labels it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.auditing.scripts.effects import refuse_other_merge, refuse_other_properties, refuse_typed_columns
from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.parsing import refuse_unclear_text
from gbfl_compile.checking.reading.nodes import Unread

ROWS = "gbfl_rows"
PARTS = {
    "Create": {"this", "expression", "kind", "replace", "exists", "properties", "with_", "with"},
    "Alter": {"this", "kind", "actions"},
    "Insert": {"this", "expression", "conflict"},
    "Update": {"this", "expressions", "where"},
    "Merge": {"this", "using", "on", "whens"},
    "Copy": {"this", "files", "params", "credentials", "kind"},
    "Block": {"expressions"},
}
"""Parts that a statement may have; RETURNING, LIMIT and anything else are refused."""

PLAIN_ENGINES = ("MergeTree", "Memory", "Log", "InnoDB", "Aria", "MyISAM")
"""Engines of tables that keep what they are given: a SummingMergeTree does not."""


@dataclass(frozen=True, slots=True)
class Statement:
    text: str
    tree: Any
    tokens: Sequence[Any]

    @property
    def kind(self) -> str:
        """The class of its sqlglot node."""
        return type(self.tree).__name__

    @property
    def target(self) -> str:
        """What a CREATE makes: VIEW, TABLE, FUNCTION."""
        if self.kind == "Create":
            return str(self.tree.args.get("kind") or "").upper()
        words = [token.text.upper() for token in self.tokens[:4]]  # sqlglot has no node for a body of statements
        return "FUNCTION" if words[:2] == ["CREATE", "FUNCTION"] or words[1:] == ["OR", "REPLACE", "FUNCTION"] else ""

    def target_name(self) -> str:
        """The name of what a CREATE makes, in lower case."""
        from sqlglot import exp

        table = self.tree.this.find(exp.Table) if self.kind == "Create" else None
        return "" if table is None else str(table.name).casefold()

    def routine(self) -> tuple[str, list[tuple[str, str]]]:
        """The name of a function, and the name and type of each parameter."""
        opening, parameters = self._listed_parts()
        found = [(each[0].text, self._text(each[1:])) for each in parameters if each]
        before = (
            opening - 2 if self.tokens[opening - 1].text.upper() == "AS" else opening - 1
        )  # ClickHouse: f AS (x) -> …
        return str(self.tokens[before].text), found

    def listed_texts(self) -> list[str]:
        """The parts of the first list in brackets, as texts."""
        return [self._text(each) for each in self._listed_parts()[1]]

    def _listed_parts(self) -> tuple[int, list[list[Any]]]:
        """Where the first list in brackets begins, and the tokens of its parts."""
        opening = next((place for place, token in enumerate(self.tokens) if token.token_type.name == "L_PAREN"), 0)
        if not opening:
            raise Unread("a function or table without a list in brackets")
        parameters: list[list[Any]] = [[]]
        depth = 1
        for token in self.tokens[opening + 1 :]:
            depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
            if depth == 0:
                break
            if depth == 1 and token.token_type.name == "COMMA":
                parameters.append([])
            else:
                parameters[-1].append(token)
        return opening, parameters

    def _text(self, tokens: Sequence[Any]) -> str:
        return self.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def statements_of(content: str, engine: Engine) -> list[Statement]:
    import sqlglot

    parts: list[list[Any]] = [[]]
    depth, parsed_as = 0, engine.parsed_as
    every = sqlglot.tokenize(content, read=parsed_as)
    refuse_unclear_text(engine, content, every)
    if "\\'" in content or '\\"' in content:
        raise Unread("a quote after a backslash: where the text ends is up to a setting in some engines")
    for token in every:
        word, first = token.text.upper(), [each.text.upper() for each in parts[-1][:6]]
        is_routine = first[:1] == ["CREATE"] and {"FUNCTION", "PROCEDURE", "TRIGGER"} & set(first)
        if is_routine and token.token_type.name not in ("STRING", "HEREDOC_STRING", "IDENTIFIER"):
            ends_inner = word in ("IF", "LOOP", "CASE") and parts[-1][-1].text.upper() == "END"
            depth += {"CASE": 0}.get(word, 1) if ends_inner else {"BEGIN": 1, "CASE": 1, "END": -1}.get(word, 0)
        if token.token_type.name == "SEMICOLON" and depth <= 0:
            parts.append([])
            depth = 0
        else:
            parts[-1].append(token)
    found = []
    for part in filter(None, parts):
        text = content[part[0].start : part[-1].end + 1]
        found.append(Statement(text, sqlglot.parse_one(text, read=parsed_as), sqlglot.tokenize(text, read=parsed_as)))
    return found


def parse_text(text: str, parsed_as: str) -> Any:
    import sqlglot

    return sqlglot.parse_one(text, read=parsed_as)


def is_computed(constraint: Any) -> bool:
    return type(constraint.args.get("kind")).__name__ in (
        "ComputedColumnConstraint",
        "GeneratedAsRowColumnConstraint",
    ) or (
        type(constraint.args.get("kind")).__name__ == "GeneratedAsIdentityColumnConstraint"
        and constraint.args["kind"].args.get("expression") is not None
    )


def refuse_other_parts(statement: Statement) -> None:
    """Refuse parts of a statement, beside its query, that could change which of its labels are kept."""
    from sqlglot import exp

    tree = statement.tree
    if isinstance(tree, exp.Query):
        return
    parts = PARTS.get(statement.kind, set())
    if others := [part for part, value in tree.args.items() if value and part not in parts]:
        raise Unread(f"{statement.kind.upper()} with {others[0]!r}: {tree.sql()[:200]}")
    if engines := [each.sql() for each in tree.find_all(exp.EngineProperty) if each.name not in PLAIN_ENGINES]:
        raise Unread(f"{engines[0]}, which may keep other rows than it is given")
    if isinstance(tree, exp.Create):
        refuse_other_properties(tree)
        if isinstance(tree.expression, exp.Query):
            refuse_typed_columns(tree.this)


def query_text(statement: Statement, label: str, parsed_as: str) -> str:
    """The query within a statement."""
    from sqlglot import exp

    text, tree, tokens = statement.text, statement.tree, statement.tokens
    refuse_other_parts(statement)
    match tree:
        case exp.Select() if tree.args.get("into") is not None:
            return _without_into(text, tokens)
        case exp.Query():
            return text
        case exp.Create() if isinstance(tree.expression, exp.Query):
            query = text[first_word(tokens, ("AS",)).end + 1 :]
            return _with_names(query, tree.this, parsed_as)
        case exp.Create() | exp.Alter() if (expression := _computed_column(statement, label)) is not None:
            return expression
        case exp.Alter() if tree.args.get("kind") == "VIEW" and isinstance(tree.args["actions"][0], exp.Query):
            refuse_typed_columns(tree.this)
            return _with_names(text[first_word(tokens, ("AS",)).end + 1 :], tree.this, parsed_as)
        case exp.Insert() if isinstance(tree.expression, exp.Query):
            ends = _conflict(tree, tokens, label)
            return _with_names(text[first_word(tokens, ("SELECT", "WITH")).start : ends], tree.this, parsed_as)
        case exp.Update():
            return _update_text(statement, label)
        case exp.Copy() if isinstance(tree.this, exp.Subquery):
            return in_brackets(text, tokens, "COPY")
        case exp.Merge() if isinstance(tree.args["using"], exp.Subquery):
            _check_merge(tree, label)
            return in_brackets(text, tokens, "USING")
        case _:
            words = statement.kind.upper()
            raise Unread(f"{words}, which is not understood: a query, view, INSERT … SELECT or UPDATE is")


def _with_names(query: str, target: Any, parsed_as: str) -> str:
    """The query with the column names of its target."""
    from sqlglot import exp

    if not isinstance(target, exp.Schema):
        return query
    if not all(isinstance(each, exp.Identifier | exp.ColumnDef | exp.Column) for each in target.expressions):
        raise Unread("columns that are not plain names")
    names = [
        each.sql(dialect=parsed_as) if isinstance(each, exp.Identifier) else each.this.sql(dialect=parsed_as)
        for each in target.expressions
    ]
    tree = parse_text(query, parsed_as)
    if [each.name for each in target.expressions] == [each.alias_or_name for each in tree.selects]:
        return query
    listed = ", ".join(names)
    return f"WITH {ROWS} ({listed}) AS ({query}\n) SELECT {listed} FROM {ROWS}"  # noqa: S608 - in a private database


def first_word(tokens: Sequence[Any], words: tuple[str, ...], after: int = -1) -> Any:
    depth = 0
    for token in tokens:
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
        if depth == 0 and token.start > after and token.text.upper() in words:
            return token
    raise Unread(f"no {words[0]} in it")


def in_brackets(text: str, tokens: Sequence[Any], word: str) -> str:
    """What is in the brackets after a word."""
    begins, depth = first_word(tokens, (word,)).end, 0
    start = None
    for token in tokens:
        if token.start <= begins:
            continue
        if token.token_type.name == "L_PAREN":
            depth += 1
            start = token.end + 1 if start is None else start
        elif token.token_type.name == "R_PAREN":
            depth -= 1
            if depth == 0:
                return text[start : token.start]
    raise Unread(f"no brackets after {word}")


def _without_into(text: str, tokens: Sequence[Any]) -> str:
    """SELECT … INTO decisions FROM … without its INTO."""
    into = first_word(tokens, ("INTO",))
    source = first_word(tokens, ("FROM",), into.start)
    return f"{text[: into.start]}{text[source.start :]}"


def _conflict(tree: Any, tokens: Sequence[Any], label: str) -> int | None:
    """Where ON CONFLICT begins; refused where it would keep or write another label than the new one."""
    found = tree.args.get("conflict")
    if tree.args.get("returning") is not None:
        raise Unread("INSERT … RETURNING")
    if found is None:
        return None
    sets = [(each.this.name.casefold(), each.expression) for each in found.expressions]
    new = [value for name, value in sets if name == label.casefold()]
    is_new = len(new) == 1 and str(new[0].sql()).casefold() in (
        f"excluded.{label.casefold()}",
        f"values({label.casefold()})",
    )
    if not is_new or found.args.get("where") is not None:
        raise Unread("ON CONFLICT that does not write the new label")
    at = first_word(tokens, ("CONFLICT", "DUPLICATE", "ON CONFLICT", "ON DUPLICATE"))
    before = [token for token in tokens if token.end < at.start]
    begins = before[-1].start if at.text.upper() in ("CONFLICT", "DUPLICATE") else at.start
    return int(begins)


def _check_merge(tree: Any, label: str) -> None:
    """MERGE writes the label of its source, in every WHEN."""
    from sqlglot import exp

    source = tree.args["using"].alias.casefold()
    refuse_other_merge(tree, source)
    for when in tree.args["whens"].expressions:
        then = when.args.get("then")
        if when.args.get("condition") is not None or not isinstance(then, exp.Update | exp.Insert):
            raise Unread("MERGE with a WHEN that is not understood")
        if isinstance(then, exp.Update):
            pairs = [(each.this.name, each.expression) for each in then.expressions]
        elif isinstance(then.this, exp.Tuple) and isinstance(then.expression, exp.Tuple):
            names = [each.name for each in then.this.expressions]
            pairs = list(zip(names, then.expression.expressions, strict=True))
        else:
            raise Unread("MERGE with a WHEN that is not understood")
        new = [value for name, value in pairs if name.casefold() == label.casefold()]
        if (
            len(new) != 1
            or not isinstance(new[0], exp.Column)
            or str(new[0].sql()).casefold() != f"{source}.{label.casefold()}"
        ):
            raise Unread(f"MERGE that does not write {source}.{label}")


def _computed_column(statement: Statement, label: str) -> str | None:
    """A column that the table computes: CREATE TABLE t (…, label text GENERATED ALWAYS AS (…) STORED)."""
    from sqlglot import exp

    tree, tokens, text = statement.tree, statement.tokens, statement.text
    columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else tree.args.get("actions") or []
    own = [each for each in columns if isinstance(each, exp.ColumnDef) and each.name.casefold() == label.casefold()]
    if len(own) != 1 or not any(is_computed(each) for each in own[0].find_all(exp.ColumnConstraint)):
        return None
    places = [place for place, token in enumerate(tokens) if token.text.casefold() == label.casefold()]
    after = [token for token in tokens[places[0] :] if token.text.upper() == "AS"]
    if len(places) != 1 or not after:
        raise Unread(f"where {label} is computed is not understood")
    expression = in_brackets(text, [token for token in tokens if token.start >= after[0].start], "AS")
    table = (tree.this.this if isinstance(tree.this, exp.Schema) else tree.this).name
    return f"SELECT {expression} AS {label} FROM {table}"  # noqa: S608 - in a private database


@dataclass(frozen=True, slots=True)
class _Update:
    """UPDATE table SET label = value WHERE condition."""

    table: str
    value: str
    condition: str
    sets: tuple[str, ...]
    """Every column that it sets."""


def _refuse_other_assignments(tree: Any, label: str) -> None:
    """The label is set once, and nothing that it is computed from: MariaDB assigns from left to right."""
    from sqlglot import exp

    places = [each.this.name.casefold() for each in tree.expressions if isinstance(each, exp.EQ)]
    if len(places) != len(tree.expressions) or not all(isinstance(each.this, exp.Column) for each in tree.expressions):
        raise Unread("UPDATE that sets several columns at once, or one column with two equals signs")
    if places.count(label.casefold()) != 1:
        raise Unread(f"it does not set one column {label!r}: say which has the labels with --label")
    if tree.this.args.get("joins"):
        raise Unread("UPDATE of a join, in which several rows may give one row its label")
    used = {column.name.casefold() for each in tree.expressions for column in each.expression.find_all(exp.Column)}
    if changed := [name for name in places if name in used]:
        raise Unread(f"UPDATE that sets {changed[0]} and also computes something from it")


def _update(statement: Statement, label: str) -> _Update:
    text, tree, tokens = statement.text, statement.tree, statement.tokens
    refuse_other_parts(statement)
    _refuse_other_assignments(tree, label)
    depth, begins, ends, where = 0, None, len(text), ""
    for place, token in enumerate(tokens):
        name = token.token_type.name
        depth += {"L_PAREN": 1, "R_PAREN": -1, "CASE": 1, "END": -1}.get(name, 0)
        if depth == 0 and begins is not None and (name == "COMMA" or token.text.upper() == "WHERE"):
            ends = min(ends, token.start)
        if depth == 0 and token.text.upper() == "WHERE":
            where = text[token.end + 1 :]
        is_label = token.text.casefold() == label.casefold() and place + 1 < len(tokens)
        if depth == 0 and begins is None and is_label and tokens[place + 1].text == "=":
            begins = tokens[place + 1].end + 1
    if begins is None:
        raise Unread(f"it does not set the column {label!r}: name the one that has the labels with --label")
    table = text[tokens[1].start : first_word(tokens, ("SET",)).start].strip()
    sets = tuple(each.this.name.casefold() for each in tree.expressions)
    return _Update(table, text[begins:ends].strip(), where.strip(), sets)


def _update_text(statement: Statement, label: str) -> str:
    """UPDATE t SET label = CASE … WHERE … as the query that gives the label."""
    one = _update(statement, label)
    where = f"\nWHERE {one.condition}" if one.condition else ""
    return f"SELECT {one.value}\nAS {label} FROM {one.table}{where}"  # noqa: S608 - in a private database


def update_series(statements: Sequence[Statement], label: str) -> str:
    """Several UPDATEs one after the other: the last whose condition holds has the last word."""
    from sqlglot import exp

    updates = [_update(each, label) for each in statements]
    if len({each.table for each in updates}) != 1 or updates[0].condition:  # "T" is not t, nor T in some engines
        raise Unread("several UPDATEs, of which the first does not write every row of one table")
    for each in statements:
        every = {column.name.casefold() for column in each.tree.find_all(exp.Column)}
        targets = [part.this for part in each.tree.expressions]
        columns = {
            column.name.casefold()
            for column in each.tree.find_all(exp.Column)
            if not any(column is target for target in targets)
        }
        if columns & {label.casefold()} or len(targets) != 1 or not every:
            raise Unread("several UPDATEs that depend on what another one sets, or that set other columns too")
    first, *later = updates
    if not all(each.condition for each in later):
        raise Unread("several UPDATEs that write every row")
    arms = "".join(f"WHEN {each.condition}\nTHEN {each.value}\n" for each in reversed(later))
    return f"SELECT CASE {arms}ELSE {first.value}\nEND AS {label} FROM {first.table}"  # noqa: S608 - in a private database
