"""What a SQL expression can be for any row: a column, a constant, a choice of such, a truth value, a sum of points.

Choices may share their parts and be a thousand long, so nothing that follows them recurses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal, TypeAlias

from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.logic import FALSE, TRUE, Formula, Points, Truth, choose
from gbfl_compile.checking.reading.nodes import Unread, pay
from gbfl_compile.ir.nodes import Kind

MOST_CHOICES = 200_000


@dataclass(slots=True)
class Uses:
    """How a text uses features: which it compares as they are, and which may be NULL because of a join."""

    uncast: set[int] = field(default_factory=set)
    outer: set[int] = field(default_factory=set)
    constants: dict[str, str] = field(default_factory=dict)
    """Tables that were read as the rows they hold now, and that in words."""
    keys: dict[str, str] = field(default_factory=dict)
    """Columns that are taken for keys, and that in words."""
    functions: dict[str, str] = field(default_factory=dict)
    """Functions that were read, with their bodies."""
    words: dict[str, None] = field(default_factory=dict)
    """The words that are compared by the collation of their columns."""
    zoneless: dict[str, None] = field(default_factory=dict)
    """The moments that are compared with texts in the time zone of the session."""
    has_rounded_quotients: bool = False
    """Whether a quotient is compared whose digits a session could set."""


USES: ContextVar[Uses | None] = ContextVar("USES", default=None)
"""Where the uses of features are written down while a text is read."""


def note_use(column: Column | Word) -> None:
    """Record that a feature is used."""
    uses = USES.get()
    if uses is None:
        return
    if isinstance(column, Column) and not column.cast:
        uses.uncast.add(column.feature)
    if column.outer:
        uses.outer.add(column.feature)


@dataclass(frozen=True, slots=True)
class Column:
    """A feature, taken as a double."""

    feature: int
    cast: bool = False
    """Whether the text makes a double of it."""
    outer: bool = False
    """Whether it is NULL where a join finds no row, whatever its table holds."""
    is_single: bool = False
    """Whether it is one of 32 bits that narrows what it is compared with: see `Engine.narrows_literals`."""


@dataclass(frozen=True, slots=True)
class Word:
    """A feature that is a word, a boolean, a date or a timestamp."""

    feature: int
    kind: Kind
    name: str
    declared: str
    """The type of its column."""
    texts: list[str] = field(compare=False, repr=False)
    """The texts that it was compared with so far: their codes are 1, 2, …"""
    exact: bool = False
    """Whether texts are equal only when they are the same: by the column itself, or by what the text makes of it."""
    cast: bool = False
    """Whether the text has made a plain text of it."""
    has_collation: bool = False
    """Whether the text names its collation."""
    outer: bool = False
    """Whether it is NULL where a join finds no row, whatever its table holds."""
    by_day: bool = False
    """Whether the text takes the day of a moment."""

    @property
    def pads(self) -> bool:
        """Whether its column is a CHAR(n), which ignores blanks at the end."""
        return self.declared.casefold().startswith(("char(", "character(", "bpchar", "nchar"))

    def code(self, text: str) -> int:
        """The code of a text, a new one where it was not met before."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


@dataclass(frozen=True, slots=True)
class Moment:
    """A day or a microsecond that is written out."""

    kind: Kind
    number: float
    is_instant: bool = False
    """Whether it names its time zone, and is the same in every session."""


@dataclass(frozen=True, slots=True)
class Constant:
    """NULL, a truth value, a whole number, a double, a decimal or a text."""

    value: bool | int | float | Decimal | str | None
    wide: bool = False
    """A whole number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Total:
    """A sum of points."""

    points: Points
    wide: bool


@dataclass(frozen=True, slots=True)
class Fractions:
    """A sum of points with digits after the point, that the engine adds up exactly, counted in parts of UNIT."""

    points: Points
    kind: str
    """What the engine adds: decimal or double."""


@dataclass(frozen=True, slots=True)
class Near:
    """A number that an engine computed, between these two; a number of unknown type where both are one."""

    low: Fraction
    high: Fraction
    whole: bool = False
    """Whether its type may be one of whole numbers, so that a quotient may be cut."""
    double: bool = False
    """Whether its type is certain to be a double; it may be a decimal otherwise, of which a quotient is cut too."""


UNIT = 10**10 * 2**10
"""Parts of one: ten digits after the point, or twenty bits."""


Sign: TypeAlias = Literal["+", "-", "*", "/"]


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to a number with a constant."""

    sign: Sign
    number: int | float | Decimal


@dataclass(frozen=True, slots=True)
class LinearFeature:
    """A feature that is multiplied, divided or moved by constants, one after another."""

    column: Column
    steps: tuple[Step, ...]
    declared: str
    """The type of its column, where that is known."""


@dataclass(frozen=True, slots=True)
class Other:
    """A column that is none of the features: it may be handed on, and nothing else."""

    name: str
    is_key: Callable[[], bool] = field(default=lambda: False, compare=False, repr=False)
    """Whether it is different in every row of its table."""


@dataclass(frozen=True, slots=True, eq=False)
class Pick:
    """`then` where the condition holds, `otherwise` where it does not."""

    condition: Formula
    then: Value
    otherwise: Value
    kinds: frozenset[str]
    """The kinds of all it can come to."""


Value: TypeAlias = Column | Word | Moment | Constant | Total | Fractions | Near | LinearFeature | Other | Truth | Pick


def pick(condition: Formula, then: Value, otherwise: Value) -> Value:
    """A choice, or the side itself where there is nothing to choose."""
    if condition is TRUE or then is otherwise:
        return then
    if condition is FALSE:
        return otherwise
    if isinstance(then, Constant) and isinstance(otherwise, Constant) and same(then, otherwise):
        return then
    return Pick(condition, then, otherwise, kinds_of(then) | kinds_of(otherwise))


def kinds_of(value: Value) -> frozenset[str]:
    """What kinds of value it can come to: null, truth, whole, decimal, double, computed, text, unknown."""
    match value:
        case Pick():
            return value.kinds
        case Constant(content):
            return _KIND_OF[type(content)]
        case Column():
            return _KIND_OF[float]
        case Word(kind="category"):
            return _KIND_OF[str]
        case Word() | Moment():
            return frozenset([value.kind])
        case Total():
            return _KIND_OF[int]
        case Fractions():
            return frozenset([value.kind])
        case Near() | LinearFeature():
            return OF_SOME_NUMBER
        case Truth():
            return _KIND_OF[bool]
        case Other():
            return OF_UNKNOWN_TYPE


OF_UNKNOWN_TYPE = frozenset(["unknown"])
OF_SOME_NUMBER = frozenset(["computed"])
_KIND_OF: dict[type, frozenset[str]] = {
    type(None): frozenset(["null"]),
    bool: frozenset(["truth"]),
    int: frozenset(["whole"]),
    Decimal: frozenset(["decimal"]),
    float: frozenset(["double"]),
    str: frozenset(["text"]),
}


def same(a: Constant, b: Constant) -> bool:
    """Whether two constants are one: 1, 1.0 and true are three."""
    return a == b and type(a.value) is type(b.value)


def picks(value: Value) -> list[Pick]:
    """The choices of a value, each after those it leads to."""
    order: list[Pick] = []
    seen: set[int] = set()
    waiting: list[tuple[Value, bool]] = [(value, False)]
    while waiting:
        pay(1)
        node, done = waiting.pop()
        if not isinstance(node, Pick):
            continue
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            if len(seen) > MOST_CHOICES:
                raise Unread(f"more than {MOST_CHOICES} choices")
            waiting += ((node, True), (node.otherwise, False), (node.then, False))
    return order


def map_ends(value: Value, change: Callable[[Value], Value]) -> Value:
    """The value with each of its ends changed."""
    made: dict[int, Value] = {}

    def new(end: Value) -> Value:
        return made[id(end)] if isinstance(end, Pick) else change(end)

    for node in picks(value):
        made[id(node)] = pick(node.condition, new(node.then), new(node.otherwise))
    return new(value)


def ends(value: Value) -> list[Value]:
    """What a value can come to."""
    nodes = picks(value)
    if not nodes:
        return [value]
    return [end for node in nodes for end in (node.then, node.otherwise) if not isinstance(end, Pick)]


def fold(value: Value, truth: Callable[[Value], Truth]) -> Truth:
    """A truth value of each end, as one."""
    made: dict[int, Truth] = {}

    def of(end: Value) -> Truth:
        return made[id(end)] if isinstance(end, Pick) else truth(end)

    for node in picks(value):
        made[id(node)] = choose(node.condition, of(node.then), of(node.otherwise))
    return of(value)


def number_of_truth(engine: Engine, value: Value) -> Value:
    """A truth value as 1, 0 or NULL, where the engine has it so; anything else as it is."""
    if not isinstance(value, Truth):
        return value
    if not engine.numbers_are_truths:
        return pick(value.true, Constant(True), pick(value.false, Constant(False), Constant(None)))
    return pick(value.true, Constant(1), pick(value.false, Constant(0), Constant(None)))


def describe(value: Value) -> str:
    """A value in words, for a message."""
    match value:
        case Constant(None):
            return "NULL"
        case Constant(content):
            text = repr(content)
            return text if len(text) <= 40 else f"{text[:37]}..."
        case Column(feature):
            return f"feature {feature}"
        case LinearFeature(column):
            return f"a number computed from feature {column.feature}"
        case Word(kind=kind, name=name):
            return f"the {kind} {name}"
        case Moment(kind):
            return f"a {kind}"
        case Other(name):
            return f"the column {name!r}, which is not a feature,"
        case _:
            words = {"Truth": "a condition", "Pick": "a choice", "Total": "a sum of points"}
            words |= {"Fractions": "a sum of points", "Near": "a computed number"}
            return words.get(type(value).__name__, "an expression")
