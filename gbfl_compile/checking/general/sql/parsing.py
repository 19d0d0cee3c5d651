"""A SQL text cut into statements, and each of them as sqlglot's nodes. What engines could take otherwise is refused.

Users name types too. In quotes a name may be theirs, and PostgreSQL has no type `double`: after CREATE DOMAIN "double"
AS real it is one, of 32 bits. sqlglot takes either for a double, so the words of the text decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Any, NoReturn

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.values import Value
from gbfl_compile.checking.reading.nodes import Unread


@dataclass(frozen=True, slots=True)
class Scope:
    """Where an expression is: the engine, and what a name means there."""

    engine: Engine
    look_up: Callable[[Any], Value]
    follow: Callable[[Any, Scope], Value]
    """What an expression within this one is."""
    known: Callable[[Any, Scope], Value | None] = lambda node, scope: None
    """The value that is known for an expression as a whole, by an option or as an aggregate."""
    query: Callable[[Any], Value] | None = None
    """What a query within an expression comes to."""
    functions: Callable[[str, str], Any] = lambda schema, name: None
    """The function that users made of a schema and a name: see `functions`."""
    types: Mapping[int, str] = field(default_factory=dict)
    """The declared type of each feature's column, where that is known."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Within a function: the types of its variables."""
    depth: int = 0
    """How many functions this is within."""


class ParsedNode(Unread):
    """An Unread whose message has its SQL already."""


def kind(node: Any) -> str:
    """The name of a node's class."""
    return type(node).__name__


def refuse(node: Any, what: str) -> NoReturn:
    """Say what is not understood, with the SQL around it."""
    raise ParsedNode(f"{what}: {snippet(node)}")


def snippet(node: Any) -> str:
    """The SQL of a node, short."""
    try:
        text = " ".join(str(node.sql()).split())
    except Exception:  # a node of broken text may not be writable again
        text = kind(node)
    return text if len(text) <= 100 else f"{text[:97]}..."


def only(node: Any, *expected: str) -> None:
    """Refuse a node that says more than is understood."""
    for key, value in node.args.items():
        if key not in expected and value not in (None, False, [], ()):
            refuse(node, f"{kind(node)} with {key!r}")


def operands(node: Any) -> list[Any]:
    """The operands of a chain of one operator; a chain may be long, so this does not recurse."""
    found: list[Any] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        while kind(part) == "Paren":
            part = part.this
        if kind(part) == kind(node):
            only(part, "this", "expression", "safe")
            waiting += (part.args["expression"], part.this)
        else:
            found.append(part)
    return found


LONGEST_TEXT = 8 * 2**20

UNDERLINED = re.compile(r"\x1b\[[0-9;]*m")
"""How sqlglot marks a place in its errors, for terminals."""


DOUBLED = re.compile(r"""(?<![\s(,=<>])(?:''|"")|(?:''|"")(?![\s),;]|$)""")
"""Two quotes that are not the empty text by itself."""


def _refuse_what_spark_changes(text: str) -> None:
    if "${" in text:
        raise Unread("${, which Spark replaces by the value of a variable")
    if DOUBLED.search(text):
        raise Unread("a doubled quote, which is a quote in some versions of Spark and joins two texts in others")


def tokens_of(engine: Engine, text: str) -> list[Any]:
    """The tokens of a text that has nothing in it which the engine may take in another way than sqlglot."""
    from sqlglot import tokenize

    if len(text) > LONGEST_TEXT:
        raise Unread(f"{len(text)} characters of SQL, at most {LONGEST_TEXT} are read")
    tokens: list[Any] = parse(lambda: tokenize(text, read=engine.parsed_as))
    refuse_unclear_text(engine, text, tokens)
    if engine.float_is_single and any(token.text.upper() == "FLOAT" for token in tokens):
        raise Unread(f"FLOAT, which has 32 bits in {engine.name}: write DOUBLE")
    if not engine.null_after:
        _refuse_tests_after(engine, tokens)
    return tokens


def refuse_unclear_text(engine: Engine, text: str, tokens: Sequence[Any]) -> None:
    """Refuse a text whose comments, lines or quotes the engine may take in another way than sqlglot."""
    if engine.executed_comments and ("/*!" in text or "/*M!" in text):
        raise Unread("a comment that the engine may execute: /*! … */")
    if engine.parsed_as in ("spark", "databricks"):
        _refuse_what_spark_changes(text)
    refuse_unclear_characters(text, tokens)


def refuse_unclear_words(engine: Engine, statement: Sequence[Any]) -> None:
    """Refuse types of others, words of the engine and chains of comparisons in the tokens of one statement."""
    refuse_types_of_others(engine, statement)
    refuse_words_of_the_engine(engine, statement)
    refuse_chains(statement)


def statements(engine: Engine, text: str) -> list[list[Any]]:
    """The tokens of each statement, cut at the semicolons."""
    from sqlglot.tokens import TokenType  # type: ignore[attr-defined]  # it is there, and says so nowhere

    parts: list[list[Any]] = [[]]
    for token in tokens_of(engine, text):
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    for part in parts:
        refuse_unclear_words(engine, part)
    return [part for part in parts if part]


def _refuse_tests_after(engine: Engine, tokens: list[Any]) -> None:
    """Refuse `x ISNULL`, which sqlglot takes for a test everywhere; `isNull(x)` is a function."""
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.text.upper() in ("ISNULL", "NOTNULL") and (following is None or following.text != "("):
            raise Unread(f"{token.text} after a value, which is not a test in {engine.name}: write IS NULL")


def parse(parse: Callable[[], Any]) -> Any:
    """What sqlglot makes of a text; its errors, of many kinds, are Unread."""
    try:
        return parse()
    except RecursionError:
        raise Unread("nested too deeply") from None
    except Exception as error:
        words = " ".join(UNDERLINED.sub("", str(error)).split())
        raise Unread(f"is not SQL that is understood: {words[:160]}") from None


def nodes_of(engine: Engine, tokens: list[Any], text: str) -> Any:
    """One statement as sqlglot's nodes."""
    from sqlglot import Dialect

    parser = Dialect.get_or_raise(engine.parsed_as).parser()
    found = parse(lambda: parser.parse(tokens, text))
    if len(found) != 1 or found[0] is None:
        raise Unread("is not one statement")
    return found[0]


COMPARES = {"=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>", "IS", "IN", "BETWEEN", "LIKE", "ISNULL", "NOTNULL"}

BEGINS = {
    *("AND", "OR", "XOR", "&&", "||", "WHEN", "THEN", "ELSE", "AS", "SELECT", "FROM", "WITH", "RETURN", ","),
    *("WHERE", "ON", "JOIN", "HAVING", "QUALIFY", "GROUP BY", "ORDER BY", "UNION"),
}
"""Words after which another condition begins, or none."""


def refuse_chains(tokens: Sequence[Any]) -> None:
    """Refuse two comparisons in one condition, within the same brackets or the same CASE."""
    compared, between = [0], [False]
    for place, token in enumerate(tokens):
        word = _word(token)
        if word in ("(", "[", "CASE"):
            compared.append(0)
            between.append(False)
        elif word in (")", "]", "END") and len(compared) > 1:
            compared.pop()
            between.pop()
        elif word == "AND" and between[-1]:
            between[-1] = False  # x BETWEEN 1 AND 5 is one condition
        elif word in BEGINS and not (word == "FROM" and place and _word(tokens[place - 1]) == "DISTINCT"):
            compared[-1], between[-1] = 0, False
        elif word in COMPARES and not _is_a_function(tokens, place):
            compared[-1] += 1
            between[-1] = word == "BETWEEN"
            if compared[-1] > 1:
                raise Unread(f"a comparison beside another, without brackets: {_beside(tokens, place)}")


def _word(token: Any) -> str:
    """The word a token is; a text or a quoted name is not a word."""
    kind = token.token_type.name
    return "" if kind == "IDENTIFIER" or kind.endswith("STRING") else str(token.text).upper()


def _is_a_function(tokens: Sequence[Any], place: int) -> bool:
    """`isNull(x)`."""
    return _word(tokens[place]) == "ISNULL" and place + 1 < len(tokens) and _word(tokens[place + 1]) == "("


def _beside(tokens: Sequence[Any], place: int) -> str:
    return " ".join(str(token.text) for token in tokens[max(0, place - 4) : place + 2])


UNCLEAR = re.compile(r"\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line for some and not for others."""

OUTSIDE_QUOTES = re.compile(
    UNCLEAR.pattern
    + r"|(?![ \t\r\n])\s|[\u00ad\u200b-\u200f\u2060\ufeff]"  # space for some, part of a name for others
    + r"|/\*(?:[^*/]|\*(?!/)|/(?!\*))*/\*"  # a comment within a comment: some engines nest them
)
"""What is refused in a query but for its texts and quoted names."""

LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")

LONGEST_NAME = {"postgres": 63, "redshift": 127}
"""Bytes of a name after which the engine cuts it, so that two names become one."""


WITHOUT_QUOTES = {
    "clickhouse": {"INF", "INFINITY", "NAN"},
    "oracle": {"UID", "USER", "ROWNUM", "LEVEL", "ROWID", "SYSDATE", "SYSTIMESTAMP", "ORA_ROWSCN"},
    **{name: {"UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP", "ROWNUM"} for name in ("mariadb", "mysql")},
    **{name: {"USER", "SESSION_USER", "SYSTEM_USER"} for name in ("postgres", "redshift", "datafusion", "tsql")},
}
"""Words that an engine takes for a number or a function when they are alone; sqlglot takes them for names."""


def refuse_words_of_the_engine(engine: Engine, tokens: Sequence[Any]) -> None:
    """Refuse a column whose name means something else without its quotes."""
    words = WITHOUT_QUOTES.get(engine.name, set())
    for before, token in pairwise((None, *tokens)):
        if token is None or token.text.upper() not in words or _is_text(token) or token.token_type.name == "IDENTIFIER":
            continue
        if before is None or before.text != ".":
            raise Unread(f"{token.text} without quotes, which is not a column to {engine.name}")


def folded_name(engine: Engine, name: str, quoted: bool) -> str:
    """What two names must differ in to be two names."""
    match engine.names:
        case "fold":
            return name.translate(LOWER)
        case "exact":
            return name
        case "lower" | "upper" if quoted:
            return name
        case "lower" | "upper" if not name.isascii():
            raise Unread(f"the name {name!r} without quotes: what case {engine.name} gives it is not certain")
        case "lower":
            return name.translate(LOWER)
        case "upper":
            return name.translate(UPPER)


def refuse_unclear_names(engine: Engine, names: Iterable[str]) -> None:
    """Refuse names the engine would cut, and two that are one or two according to who folds them."""
    seen: dict[str, str] = {}
    longest = LONGEST_NAME.get(engine.name)
    for name in names:
        if longest is not None and len(name.encode("utf-8", "surrogatepass")) > longest:
            raise Unread(f"the name {name[:40]!r}...: {engine.name} cuts names at {longest} bytes")
        if engine.names != "fold":
            continue
        key = folded_name(engine, name, quoted=True)
        wide = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
        if seen.setdefault(wide, key) != key:
            raise Unread(f"the names {seen[wide]!r} and {key!r}: {engine.name} may take them for the same name")


def names_among(tokens: Iterable[Any]) -> Iterator[str]:
    """The texts of the tokens that could be names."""
    return (str(token.text) for token in tokens if not _is_text(token) and token.token_type.name != "NUMBER")


def _is_text(token: Any) -> bool:
    return bool(token.token_type.name.endswith("STRING"))


def refuse_unclear_lines(header: str) -> None:
    """Refuse a header that some engine would see end within a line."""
    if (found := UNCLEAR.search(header)) is not None:
        raise Unread(f"the character {found.group()!r}: it ends a line for some engines and not for others")


def refuse_unclear_characters(text: str, tokens: Iterable[Any]) -> None:
    """Refuse what may end a line, a name or a comment, but in quotes: there it is part of a text or a name."""
    quoted = [(token.start, token.end) for token in tokens if _is_text(token) or token.token_type.name == "IDENTIFIER"]
    start = 0
    for first, last in [*quoted, (len(text), len(text))]:
        if (found := OUTSIDE_QUOTES.search(text, start, first)) is not None:
            raise Unread(f"{found.group()[:40]!r} outside of quotes: engines read it differently")
        start = last + 1
    if "\0" in text:
        raise Unread("the character '\\x00': some engines end a text there")


CASTS = {"CAST", "TRY_CAST", "SAFE_CAST"}

BEFORE_TEXTS = {"DOUBLE", "FLOAT", "DECIMAL", "INT", "BIGINT", "SMALLINT", "TEXT", "VARCHAR", "NVARCHAR", "BOOLEAN"}
"""Tokens that make a cast of a text right after them: FLOAT8 '0.4'."""

POSTGRES_OWN = {
    "DOUBLE PRECISION",
    "FLOAT8",
    "FLOAT",
    "INT",
    "INTEGER",
    "INT4",
    "INT8",
    "BIGINT",
    "TEXT",
    "VARCHAR",
    "CHARACTER VARYING",
    "BOOL",
    "BOOLEAN",
    "NUMERIC",
    "DECIMAL",
    "DATE",
    "TIMESTAMP",
}
"""What PostgreSQL and Redshift have themselves, of the types that are read at all."""


SQLITE_OWN = {
    *("REAL", "DOUBLE", "FLOAT", "FLOAT8", "FLOAT64"),
    *("INT", "INTEGER", "BIGINT", "INT8", "INT64"),
    *("TEXT", "VARCHAR", "NVARCHAR", "CHAR", "CHARACTER", "BOOLEAN", "BOOL"),
}
"""What SQLite takes for what it seems to be: it goes by parts of a name, and STRING is a number to it."""


def refuse_types_of_others(engine: Engine, tokens: Sequence[Any]) -> None:
    """In a statement, refuse a quoted name of a type, and one that PostgreSQL would look for among the user's."""
    for token in _type_names(tokens):
        if token.token_type.name == "IDENTIFIER":
            raise Unread(f"the type {token.text!r} in quotes: it may be one that a user made")
        if engine.name in ("postgres", "redshift") and token.text.upper() not in POSTGRES_OWN:
            raise Unread(f"the type {token.text}: {engine.name} has none of this name, or it is not understood")
        if engine.name == "sqlite" and token.text.upper() not in SQLITE_OWN:
            raise Unread(f"the type {token.text}: SQLite takes its name for something else, or it is not understood")


def _type_names(tokens: Sequence[Any]) -> Iterator[Any]:
    """The first word of each type: after ::, after the AS of a CAST, before a text, after RETURNS, in definitions."""
    opened: list[str] = []
    defines = bool(tokens) and tokens[0].token_type.name == "CREATE"
    for place, token in enumerate(tokens[:-1]):
        following, text = tokens[place + 1], token.text.upper()
        match token.token_type.name:
            case "L_PAREN":
                opened.append(tokens[place - 1].text.upper() if place else "")
            case "R_PAREN" if opened:
                opened.pop()
            case "ALIAS" if opened and opened[-1] in CASTS:
                yield following
            case "DCOLON":
                yield following
            case _ if text == "RETURNS":
                yield following
        defines = defines and (bool(opened) or text not in ("AS", "RETURN"))
        if defines and len(opened) == 1 and place and tokens[place - 1].text in ("(", ","):
            if following.token_type.name not in ("COMMA", "R_PAREN") and token.token_type.name in ("IDENTIFIER", "VAR"):
                yield following
        elif following.token_type.name == "STRING" and token.token_type.name in BEFORE_TEXTS:
            yield token
