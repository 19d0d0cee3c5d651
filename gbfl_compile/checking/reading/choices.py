"""What a branch leaves behind: its answer, and the locals of the side that goes on. Shared by languages with `if`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from gbfl_compile.checking.reading.conditions import FALSE, TRUE
from gbfl_compile.checking.reading.nodes import Ask, Condition, Outcome, StepDecision, Unread
from gbfl_compile.checking.reading.work_limit import pay

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
    """The least and the largest number that a value can come to."""
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
    """The numbers a graph can come to."""
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
            raise Unread("some rows come to the end without an answer")
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
    """Two sides as one. `either` joins what a local is on the one side and on the other."""
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
