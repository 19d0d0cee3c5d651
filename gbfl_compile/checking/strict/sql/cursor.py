"""The state of reading: the tokens, the columns in scope, what was met so far, and what is expected.

What a text is supposed to read and to answer the caller says: a text's own header is a comment, and not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, TypeAlias, cast, get_args

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.sql.lexer import Kind, Token, tokens_of
from gbfl_compile.checking.strict.sql.lexis import Lexis
from gbfl_compile.checking.strict.sql.logic import Asked
from gbfl_compile.checking.strict.sql.values import Book, Value
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Kind as FeatureKind
from gbfl_compile.ir.nodes import Label, Program, Scorecard
from gbfl_compile.ir.text import label_text

HEADER = "-- gbfl ["
CLAIMS = ("form", "table", "schema", "view", "keys")

Form: TypeAlias = Literal["expression", "select", "view", "table", "dbt", "macro"]


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """The table and columns a text should read, and the columns it should give."""

    features: tuple[str, ...]
    classes: tuple[Label, ...]
    columns: tuple[tuple[int, str], ...]
    """Feature and column of the table, in the order in which a function takes them."""
    outputs: tuple[tuple[str, str], ...]
    """What (label, probabilities, score, leaf, reason) and name of each answer, classes in order."""
    table: str = "data"
    schema: str = ""
    form: Form = "select"
    made: str = "model"
    """What a view, table or dbt model is called; a function's name begins with it."""
    keys: tuple[str, ...] = ()
    """Columns of the table that come out beside the answers, before them."""
    doubles: frozenset[str] = frozenset()
    """The columns that are known to be doubles. Every other number must be made a double before it is compared."""
    types: tuple[tuple[str, str], ...] = ()
    """Columns of the table with their types, as its catalog prints them: some catalogs declare those of a view."""
    kinds: tuple[FeatureKind, ...] = ()
    """The kind of each feature; `()` where all are numbers."""

    def kind(self, feature: int) -> FeatureKind:
        """What the values of a feature are."""
        return self.kinds[feature] if self.kinds else "number"

    @property
    def functions(self) -> tuple[str, ...]:
        """`model` for the label, `model_p_yes` for a probability."""
        return tuple(self.made if kind == "label" else f"{self.made}_{name}" for kind, name in self.outputs)


def expected_of(program: Program, options: Mapping[str, str], name: str = "model") -> ExpectedText:
    """What an artifact of this program should read and answer, by the options it was emitted with.

    The options are those of the SQL targets (`form`, `table`, `schema`, `view`, `key`, `types`, `outputs`,
    `column.FEATURE`); what they mean is worked out here anew, not taken from the emitter.
    """
    form = options.get("form", "select")
    if form not in get_args(Form):
        raise BadInput(f"form={form!r} is not one of {', '.join(get_args(Form))}")
    used = sorted({atom.feature for clause in program.clauses for atom in clause.atoms})
    columns = tuple((f, options.get(f"column.{program.features[f]}", program.features[f])) for f in used)
    scored = isinstance(program.decision, Scorecard)
    usual = "label" if form in ("expression", "macro") else "label,probabilities" + (",score" if scored else "")
    kinds = [kind.strip() for kind in options.get("outputs", usual).split(",")]
    return ExpectedText(
        program.features,
        program.classes,
        columns,
        tuple(output for kind in kinds for output in _outputs_of(kind, program.classes)),
        options.get("table", "data"),
        options.get("schema", ""),
        cast(Form, form),
        options.get("view", name),
        tuple(key.strip() for key in options.get("key", "").split(",") if key.strip()),
        frozenset(column for f, column in columns if options.get("types") == "double" and program.kind(f) == "number"),
        kinds=program.kinds,
    )


def expected_from(text: str, program: Program, options: Mapping[str, str]) -> ExpectedText:
    """What an artifact should read and answer, where the caller states less than everything.

    The form, the table, the key columns and the choice of answers may come from the header: a proof is about whatever
    they are, and the verdict names them. Which column holds a feature, and that columns are doubles, only the caller
    may state: a header that exchanged two columns would otherwise vouch for itself.
    """
    claims = _claims(text)
    stated = {**{name: value for name, value in claims.items() if isinstance(value, str)}, **options}
    expected = expected_of(program, stated)
    keys = claims.get("keys")
    if "key" not in options and isinstance(keys, list) and all(isinstance(key, str) for key in keys):
        expected = replace(expected, keys=tuple(keys))
    return expected


def _claims(text: str) -> dict[str, Any]:
    """What the header says of these, as far as it is understood; the text itself is read in any case."""
    lines = [line for line in text.split("\n") if line.startswith(HEADER)]
    if len(lines) != 1:
        return {}
    try:
        header = {str(name): value for name, value in json.loads(lines[0][len(HEADER) - 1 :])}
        kinds = list(dict.fromkeys(str(kind) for kind, _ in header["outputs"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
    claims: dict[str, Any] = {name: header[name] for name in CLAIMS if name in header}
    return {**claims, "outputs": ",".join(kinds)}


def _outputs_of(kind: str, classes: tuple[Label, ...]) -> list[tuple[str, str]]:
    prefix = {"probabilities": "p", "score": "score"}.get(kind)
    return [(kind, kind)] if prefix is None else [(kind, column) for column in class_columns(prefix, classes)]


def class_columns(prefix: str, classes: Sequence[Label]) -> list[str]:
    """The columns of the classes: called by their labels where these are plain words and differ, else by number."""
    texts = [label_text(label) for label in classes]
    plain = all(re.fullmatch(r"[A-Za-z0-9_]{1,40}", text) for text in texts)
    if not plain or len({text.casefold() for text in texts}) < len(texts):
        texts = [str(number) for number in range(len(texts))]
    return [f"{prefix}_{text}" for text in texts]


KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """select from with as case when then else end and or is not null cast true false create replace view table
        cross join lateral offset limit where group order by having union values distinct all any some in on using
        over default array user current_user session_user current_role current_catalog current_schema current_date
        current_time current_timestamp localtime localtimestamp rowid""",
    )
)
"""Words that are not names without quotes, or that mean something other than a column of that name."""

MOST_NESTED = 150
"""Expressions inside expressions: emitted artifacts go about twenty deep."""


@dataclass(slots=True)
class Cursor:
    """A place in the tokens. Mutable, because reading moves it; nothing outlives one call of a reader."""

    tokens: list[Token]
    lexis: Lexis
    expected: ExpectedText
    catalog: Catalog | None = None
    """What an engine's catalog writes in its own way, for a view that was read back from it."""
    position: int = 0
    scope: Mapping[str, Value] = field(default_factory=dict)
    """The columns an expression may name."""
    qualifiers: frozenset[tuple[str, ...]] = frozenset(((),))
    """What may come before a column's name."""
    used: set[str] = field(default_factory=set)
    """The columns the present item has named."""
    book: Book = field(default_factory=Book)
    nested: int = 0
    phrases: dict[str, list[Token]] = field(default_factory=dict)
    """The tokens of fixed pieces of SQL, taken apart once."""

    def __post_init__(self) -> None:
        """Repeat the end as far as anyone looks ahead."""
        self.tokens = [*self.tokens, self.tokens[-1], self.tokens[-1]]


Production: TypeAlias = Callable[[Cursor], Value | Asked]


@dataclass(frozen=True, slots=True)
class Catalog:
    """The productions a catalog adds to the grammar."""

    words: Mapping[str, Production] = field(default_factory=dict)
    """Functions, by their exact spelling."""
    after: Callable[[Cursor, Value | Asked], Value | Asked] | None = None
    """What may follow an operand: casts written `::type`."""
    keywords: frozenset[str] = frozenset()
    """Words that are not names, even without quotes, in lower case."""
    folds_names: bool = False
    """Whether an unquoted name may have capital letters and still be itself."""
    casts_moments: bool = False
    """Whether DATE '2024-02-29' is printed as CAST('2024-02-29' AS DATE)."""
    moments: Mapping[FeatureKind, tuple[str, str]] = field(default_factory=dict)
    """What is printed before and after the text of a moment instead, by its kind."""
    conversion_ends: Mapping[FeatureKind, str] = field(default_factory=dict)
    """What is printed after a converted column instead, by its kind."""
    prints_as: bool = True
    """Whether AS is printed before the name of a LATERAL subselect."""


def peek(at: Cursor, ahead: int = 0) -> Token:
    """The token this many places ahead, at most two."""
    return at.tokens[at.position + ahead]


def refuse(at: Cursor, wanted: str) -> NoReturn:
    """Say what was expected and what is there."""
    token = peek(at)
    shown = "the end" if token.kind == "end" else repr(token.text[:40])
    raise Unread(f"line {token.line}: expected {wanted}, found {shown}")


def take(at: Cursor, kind: Kind, wanted: str) -> Token:
    """The next token, which must be of this kind."""
    token = peek(at)
    if token.kind != kind:
        refuse(at, wanted)
    at.position += 1
    return token


def is_word(token: Token, word: str) -> bool:
    """Whether a token is this keyword, in capitals, small letters or both."""
    return token.key == word


def take_words(at: Cursor, words: str) -> bool:
    """Pass over these keywords if they come next."""
    for number, word in enumerate(words.split(" ")):
        if at.tokens[at.position + number].key != word:
            return False
    at.position += words.count(" ") + 1
    return True


def need_words(at: Cursor, words: str) -> None:
    """Pass over these keywords, which must come next."""
    if not take_words(at, words):
        refuse(at, words)


def take_sign(at: Cursor, sign: str) -> bool:
    """Pass over a sign if it comes next."""
    if at.tokens[at.position].key != sign:
        return False
    at.position += 1
    return True


def need_sign(at: Cursor, sign: str) -> None:
    """Pass over a sign, which must come next."""
    if not take_sign(at, sign):
        refuse(at, sign)


def take_phrase(at: Cursor, phrase: str) -> bool:
    """Pass over the tokens of a fixed piece of SQL if they come next. Words in capitals may come in small letters."""
    if phrase not in at.phrases:
        at.phrases[phrase] = tokens_of(phrase, at.lexis)[:-1]
    wanted = at.phrases[phrase]
    for number, token in enumerate(wanted):
        found = peek(at, number)
        same = found.text == token.text or (
            token.kind == "word" and token.text.isupper() and found.text.upper() == token.text
        )
        if found.kind != token.kind or not same:
            return False
    at.position += len(wanted)
    return True


def need_phrase(at: Cursor, phrase: str) -> None:
    """Pass over a fixed piece of SQL, which must come next."""
    if not take_phrase(at, phrase):
        refuse(at, phrase)


def is_name(at: Cursor) -> bool:
    """Whether a name comes next: in quotes, or without them where a catalog leaves them out."""
    token = peek(at)
    if token.kind == "name":
        return True
    if token.kind != "word" or at.catalog is None or not at.lexis.bare_names:
        return False
    lowered = token.text.lower()
    if lowered in KEYWORDS or lowered in at.catalog.keywords:
        return False
    return at.catalog.folds_names or lowered == token.text
