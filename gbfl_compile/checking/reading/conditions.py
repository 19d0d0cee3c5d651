"""Conditions as every reader builds them: comparisons of one feature with one number, joined by and, or and not.

What a comparison answers on NaN is IEEE 754's: false, and true for `!=`. A language that says otherwise (SQL does)
has to handle that before, or with `missing` and `present`.

For languages with `if`, the result of a branch: its answer, and the locals of the side that goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from gbfl_compile.checking.reading.nodes import And, Ask, Condition, Not, Or, Outcome, StepDecision, Test, Unread, pay
from gbfl_compile.ir.intervals import Values, above, below

Comparison: TypeAlias = Literal["<", "<=", ">", ">=", "==", "!="]

TRUE = And(())
FALSE = Or(())

MIRRORED: Mapping[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""`1 < x` is `x > 1`."""

ON_NUMBERS: Mapping[Comparison, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def constant(holds: bool) -> Condition:
    """A condition that always holds, or never."""
    return TRUE if holds else FALSE


def compare(feature: int, comparison: Comparison, bound: float) -> Condition:
    """`x <comparison> bound` for one feature; infinite bounds and NaN follow IEEE 754.

    >>> compare(0, "<", 1.0)
    Test(feature=0, values=(Values(least=-inf, most=0.9999999999999999, missing=False),))
    """
    if math.isnan(bound):
        return constant(comparison == "!=")
    ranges = [piece for piece in _ranges(comparison, bound + 0.0) if piece.has_numbers]
    if comparison == "!=":
        ranges.append(Values(math.inf, -math.inf, missing=True))
    return Test(feature, tuple(ranges)) if ranges else FALSE


def _ranges(comparison: Comparison, bound: float) -> tuple[Values, ...]:
    """The numbers that satisfy a comparison; nothing lies below minus infinity or above infinity."""
    nothing = Values(math.inf, -math.inf, missing=False)
    less = nothing if bound == -math.inf else Values(-math.inf, below(bound), missing=False)
    more = nothing if bound == math.inf else Values(above(bound), math.inf, missing=False)
    match comparison:
        case "<":
            return (less,)
        case "<=":
            return (Values(-math.inf, bound, missing=False),)
        case ">":
            return (more,)
        case ">=":
            return (Values(bound, math.inf, missing=False),)
        case "==":
            return (Values(bound, bound, missing=False),)
        case "!=":
            return (less, more)


def compare_with_itself(feature: int, comparison: Comparison) -> Condition:
    """`x == x` holds if the value is present, `x != x` if it is missing, `x < x` never."""
    match comparison:
        case "==" | "<=" | ">=":
            return present(feature)
        case "!=":
            return missing(feature)
        case "<" | ">":
            return FALSE


def missing(feature: int) -> Condition:
    """The value is missing."""
    return Test(feature, (Values(math.inf, -math.inf, missing=True),))


def present(feature: int) -> Condition:
    """The value is a number."""
    return Test(feature, (Values(missing=False),))


def all_of(parts: Iterable[Condition]) -> Condition:
    """Every part holds; nested conjunctions are flattened, and parts that always hold are left out."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else _small(And(tuple(flat)))


def any_of(parts: Iterable[Condition]) -> Condition:
    """At least one part holds; nested disjunctions are flattened, and parts that never hold are left out."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else _small(Or(tuple(flat)))


MOST_PARTS = 20_000
"""Of one condition, written out. Parts can be shared, so a condition may be far longer than its text."""


def _small(condition: And | Or) -> Condition:
    """The condition itself, refused where it is too long to compare with another."""
    waiting: list[Condition] = [condition]
    parts = 0
    while waiting:
        match waiting.pop():
            case And(inner) | Or(inner):
                waiting += inner
                parts += len(inner)
            case Not(part):
                waiting.append(part)
        if parts > MOST_PARTS:
            raise Unread(f"a condition of more than {MOST_PARTS} parts")
    pay(parts)
    return condition


def negate(part: Condition) -> Condition:
    """The part does not hold."""
    match part:
        case And(()):
            return FALSE
        case Or(()):
            return TRUE
        case Not(inner):
            return inner
        case _:
            return Not(part)


def same_parts(one: Condition, other: Condition) -> bool:
    """Whether two conditions are written alike; a single part is itself."""
    parts, others = (each.parts if isinstance(each, And) else (each,) for each in (one, other))
    return parts == others


def choose(condition: Condition, then: Condition, otherwise: Condition) -> Condition:
    """`then` where the condition holds, `otherwise` where it does not."""
    if then == otherwise:
        return then
    return any_of((all_of((condition, then)), all_of((negate(condition), otherwise))))


MOST_CHOICES = 1_000_000
"""A graph with more nodes is refused: nothing we emit comes near."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """`then` where the condition holds, `otherwise` where it does not. Compared by identity: graphs are shared."""

    condition: Condition
    then: Value
    otherwise: Value
    least: int | None = field(init=False, repr=False)
    most: int | None = field(init=False, repr=False)
    """The least and the largest number it can come to, None where it comes to none."""

    def __post_init__(self) -> None:
        spans = [span(side) for side in (self.then, self.otherwise)]
        object.__setattr__(self, "least", min((least for least, _ in spans if least is not None), default=None))
        object.__setattr__(self, "most", max((most for _, most in spans if most is not None), default=None))


@dataclass(frozen=True, slots=True, eq=False)
class Fall:
    """No answer yet: the statements that follow give it."""


FALL = Fall()

Value: TypeAlias = int | Choice | Fall


def span(value: Value) -> tuple[int | None, int | None]:
    """The least and the largest number that a value can be."""
    match value:
        case Choice():
            return value.least, value.most
        case int():
            return value, value
        case _:
            return None, None


def choice(condition: Condition, then: Value, otherwise: Value) -> Value:
    """A choice, or the side itself where there is nothing to choose."""
    if condition == TRUE or then is otherwise or (isinstance(then, int) and then == otherwise):
        return then
    return otherwise if condition == FALSE else Choice(condition, then, otherwise)


def in_order(value: Value) -> list[Choice]:
    """The choices of a graph, each after all that lead to it."""
    order: list[Choice] = []
    done: set[int] = set()
    waiting: list[tuple[Value, bool]] = [(value, False)]
    while waiting:
        node, sides_done = waiting.pop()
        if not isinstance(node, Choice):
            continue
        if sides_done:
            order.append(node)
        elif id(node) not in done:
            done.add(id(node))
            if len(done) > MOST_CHOICES:
                raise Unread(f"more than {MOST_CHOICES} choices")
            waiting += ((node, True), (node.then, False), (node.otherwise, False))
    pay(len(order))
    return order[::-1]


def fill(value: Value, rest: Value) -> Value:
    """The graph with `rest` in the place of each `FALL`."""
    return map_ends(value, lambda end: rest if isinstance(end, Fall) else end)


def falls(value: Value) -> bool:
    """Whether some row has no answer yet."""
    if isinstance(value, Fall):
        return True
    return any(isinstance(end, Fall) for node in in_order(value) for end in (node.then, node.otherwise))


def map_ends(value: Value, change: Callable[[int | Fall], Value]) -> Value:
    """The graph with each end changed."""
    changed: dict[int, Value] = {}

    def new(end: Value) -> Value:
        return changed[id(end)] if isinstance(end, Choice) else change(end)

    for node in reversed(in_order(value)):
        changed[id(node)] = choice(node.condition, new(node.then), new(node.otherwise))
    return new(value)


def ends(value: Value) -> set[int]:
    """The numbers that a graph can end in."""
    numbers = {value} if isinstance(value, int) else set()
    for node in in_order(value):
        numbers |= {end for end in (node.then, node.otherwise) if isinstance(end, int)}
    return numbers


def decision_of(value: Value, outcome: Callable[[int], Outcome]) -> StepDecision:
    """The graph as steps, with an outcome for each number it ends in."""
    order = in_order(value)
    place: dict[object, int] = {id(node): index for index, node in enumerate(order)}
    numbers = sorted(ends(value))
    ending = {number: len(order) + index for index, number in enumerate(numbers)}

    def step(end: Value) -> int:
        if isinstance(end, Fall):
            raise Unread("some rows reach the end without an answer")
        return ending[end] if isinstance(end, int) else place[id(end)]

    if not order:
        step(value)
    asks = [Ask(node.condition, step(node.then), step(node.otherwise)) for node in order]
    return StepDecision((*asks, *(outcome(number) for number in numbers)))


Name = TypeVar("Name", bound=Hashable)
Known = TypeVar("Known")
After = tuple[Value, Mapping[Name, Known]]
"""What was returned (`FALL` where nothing was yet), and the locals."""


def branch(
    condition: Condition,
    then: After[Name, Known],
    otherwise: After[Name, Known],
    either: Callable[[Condition, Known | None, Known | None], Known],
) -> tuple[Value, dict[Name, Known]]:
    """Two branches as one. `either` joins the two values of a local."""
    part = choice(condition, then[0], otherwise[0])
    if not falls(then[0]):
        return part, dict(otherwise[1])
    if not falls(otherwise[0]):
        return part, dict(then[1])
    joined = {}
    pay(len(then[1]) + len(otherwise[1]))
    for name in {**then[1], **otherwise[1]}:
        a, b = then[1].get(name), otherwise[1].get(name)
        joined[name] = a if a is b and a is not None else either(condition, a, b)
    return part, joined


def one_after_another(parts: Sequence[Value]) -> Value:
    """The answer of consecutive statements: each answers where those before it gave no answer."""
    rest: Value = FALL
    for part in reversed(parts):
        rest = fill(part, rest)
    return rest
