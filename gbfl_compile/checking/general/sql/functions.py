"""Functions that users wrote, read where a query calls them: SQL, PL/pgSQL, MariaDB's own language, macros.

A body (`bodies`) is read with the values of the arguments, so that the call is a value like any other.

    IF income >= 30000 THEN RETURN 'yes'; END IF; RETURN 'no';   ->   Pick(income >= 30000, 'yes', 'no')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from gbfl_compile.checking.general.sql.arithmetic import add_fractions, is_fractional, total_of
from gbfl_compile.checking.general.sql.bodies import Assign, Body, Choice, Return, Statement
from gbfl_compile.checking.general.sql.comparisons import condition, null_test
from gbfl_compile.checking.general.sql.engines import Engine
from gbfl_compile.checking.general.sql.logic import (
    FALSE,
    TRUE,
    Both,
    Either,
    Formula,
    Points,
    Sign,
    both,
    either,
    opposite,
)
from gbfl_compile.checking.general.sql.parsing import (
    POSTGRES_OWN,
    Scope,
    folded_name,
    kind,
    only,
    parse,
    refuse,
    refuse_unclear_words,
    tokens_of,
)
from gbfl_compile.checking.general.sql.relations import can_hold
from gbfl_compile.checking.general.sql.types import cast_to, named_type
from gbfl_compile.checking.general.sql.values import (
    USES,
    Column,
    Constant,
    Fractions,
    Moment,
    Pick,
    Total,
    Value,
    Word,
    describe,
    kinds_of,
    map_ends,
    pick,
)
from gbfl_compile.checking.reading.conditions import ON_NUMBERS
from gbfl_compile.checking.reading.nodes import Unread

MOST_NESTED = 20
"""Functions that call one another."""


@dataclass(frozen=True, slots=True)
class KnownFunction:
    """A function as a database has it."""

    name: str
    language: Literal["expression", "query", "block"]
    """An expression, a SELECT of one, or statements."""
    parameters: tuple[tuple[str, str], ...]
    """Name and type; an empty type where a macro puts the argument itself in its place."""
    returns: str
    body: str
    strict: bool = False
    """Whether it is NULL when an argument is, without being run."""


Functions: TypeAlias = Callable[[str, str], KnownFunction | None]
"""What a database calls by a schema (empty where there is none) and a name; None where there is no such function."""

EXACT_TYPES = {"postgres": {"integer", "bigint", "numeric"}}
"""Types of parameters that take a column as it is, because the engine has no implicit cast that loses anything."""

WIDER = {"bigint": {"smallint", "integer"}, "integer": {"smallint"}, "numeric": {"smallint", "integer", "bigint"}}
"""Types of variables that hold all of another: an assignment rounds to the type of its variable."""


def call_value(node: Any, known: KnownFunction, arguments: list[Any], scope: Scope) -> Value:
    """The value of a call."""
    arguments = _in_order(node, known, arguments, scope.engine)
    if scope.depth > MOST_NESTED:
        refuse(node, "functions nested too deeply")
    engine = scope.engine
    values = [scope.follow(each, scope) for each in arguments]
    own: dict[str, Value] = {}
    for (name, type_), value in zip(known.parameters, values, strict=True):
        key = folded_name(engine, name, quoted=True)
        if key in own:
            refuse(node, f"two parameters {name}")
        own[key] = _kept_as(scope, value, type_, is_parameter=True) if type_ else value
    if (uses := USES.get()) is not None:
        uses.functions[known.name.casefold()] = known.body
    try:
        value = _body_value(known, own, scope)
        value = _kept_as(scope, value, known.returns) if known.returns else value
    except Unread as error:
        raise Unread(f"{error} (in the function {known.name})") from None
    if known.strict:
        missing = either(null_test(engine, each).true for each in values)
        value = pick(missing, Constant(None), value)
    return value


def _in_order(node: Any, known: KnownFunction, arguments: list[Any], engine: Engine) -> list[Any]:
    """The arguments in the order of the parameters. In PostgreSQL those at the end may be named: name => value."""
    names = [name for name, _ in known.parameters]
    named: dict[str, Any] = {}
    places = [each for each in arguments if kind(each) != "Kwarg"]
    for each in arguments[len(places) :] if engine.name == "postgres" else []:
        if kind(each) != "Kwarg" or kind(each.this) not in ("Var", "Identifier"):
            refuse(node, f"the function {known.name} called with an argument that is not understood")
        named[folded_name(engine, str(each.this.this), bool(each.this.args.get("quoted")))] = each.args["expression"]
    if len(arguments) != len(names) or set(names[len(places) :]) != named.keys():
        refuse(node, f"the function {known.name} called with other arguments than it has parameters")
    return [*places, *(named[name] for name in names[len(places) :])]


def _body_value(known: KnownFunction, own: Mapping[str, Value], scope: Scope) -> Value:
    match known.language:
        case "expression":
            return _expression(known.body, own, scope)
        case "query":
            return _query(known.body, own, scope)
        case "block":
            body = Body(scope.engine, known.body)
            end = _follow(body.block(), dict(own), scope)
            if end.value is None or (end.done is not TRUE and can_hold(opposite(end.done))):
                raise Unread("it may reach its end without RETURN")
            return end.value


def _inner(own: Mapping[str, Value], scope: Scope) -> Scope:
    """The scope of the body's expressions: only parameters and variables have names."""

    def look_up(node: Any) -> Value:
        identifier = node
        if kind(node) == "Column":
            only(node, "this", "_type")
            identifier = node.this
        if kind(identifier) != "Identifier":
            refuse(node, "is not a name")
        name = folded_name(scope.engine, str(identifier.this), bool(identifier.args.get("quoted")))
        if name not in own:
            refuse(node, "neither a parameter nor a variable")
        return own[name]

    return Scope(
        scope.engine, look_up, scope.follow, functions=scope.functions, types=scope.types, depth=scope.depth + 1
    )


def _expression(text: str, own: Mapping[str, Value], scope: Scope) -> Value:
    return scope.follow(_node(scope.engine, text), _inner(own, scope))


def _node(engine: Engine, text: str) -> Any:
    from sqlglot import parse_one

    refuse_unclear_words(engine, tokens_of(engine, text))
    select = parse(lambda: parse_one(f"SELECT {text}", read=engine.parsed_as))
    if kind(select) != "Select" or len(select.expressions) != 1:
        raise Unread(f"{text[:60]!r} is not one expression")
    only(select, "expressions")
    return select.expressions[0]


def _query(text: str, own: Mapping[str, Value], scope: Scope) -> Value:
    """A body of one SELECT of one expression, without a table."""
    from sqlglot import parse as parse_all

    refuse_unclear_words(scope.engine, tokens_of(scope.engine, text))
    nodes = [each for each in parse(lambda: parse_all(text, read=scope.engine.parsed_as)) if each is not None]
    if len(nodes) != 1 or kind(nodes[0]) != "Select" or len(nodes[0].expressions) != 1:
        raise Unread("its body is not one SELECT of one value")
    only(nodes[0], "expressions")
    inner = _inner(own, scope)
    if scope.engine.name == "postgres":
        inner = replace(inner, known=lambda node, _: _by_number(node, tuple(own.values())))
    return scope.follow(nodes[0].expressions[0].unalias(), inner)


def _by_number(node: Any, values: tuple[Value, ...]) -> Value | None:
    """The parameter that PostgreSQL calls $1, $2, … even where it has a name."""
    if kind(node) != "Parameter":
        return None
    only(node, "this")
    number = node.this
    if kind(number) != "Literal" or number.is_string or not re.fullmatch("[1-9][0-9]?", str(number.this)):
        refuse(node, "a parameter without a plain number")
    if int(number.this) > len(values):
        refuse(node, "a parameter that the function does not have")
    return values[int(number.this) - 1]


def _kept_as(scope: Scope, value: Value, declared: str, is_parameter: bool = False) -> Value:
    """A value stored in a parameter or variable, or returned, in a type that keeps it exactly."""
    plain = _plain_type(declared)
    if scope.engine.name == "postgres" and plain.partition("(")[0].strip().upper() not in POSTGRES_OWN:
        raise Unread(f"the type {declared}: it may be one that a user made, or is not understood")

    def keep(end: Value) -> Value:
        if isinstance(end, Word | Moment):
            raise Unread(f"{describe(end)} given to a function, which may compare it in another way")
        if isinstance(end, Column) and plain not in ("double", "double precision"):
            own = _plain_type(scope.types.get(end.feature, ""))
            is_exact = plain in EXACT_TYPES.get(scope.engine.name, ()) and (
                is_parameter or own in WIDER[plain] or (plain == "numeric" and own.startswith("numeric"))
            )
            if not is_exact and plain != own:
                raise Unread(f"a column of the type {own or 'unknown'} kept as {declared}")
            return end
        if isinstance(end, Fractions) and (plain, end.kind) in (("numeric", "decimal"), ("double precision", "double")):
            return end
        if isinstance(end, Total) and plain in ("double", "double precision", "numeric"):
            if end.points.largest >= 2**53:
                raise Unread(f"a sum of points kept as {declared}")
            return end
        return cast_to(scope.engine, end, named_type(scope.engine, plain))

    return map_ends(value, keep)


def _plain_type(declared: str) -> str:
    """A type in small letters, without the display width of integers, which MariaDB prints and ignores."""
    return re.sub(r"int\(\d+\)", "int", " ".join(declared.casefold().split()))


@dataclass(frozen=True, slots=True)
class _State:
    """The state after some statements: the variables, when the function has returned, and what."""

    own: Mapping[str, Value]
    done: Formula = FALSE
    value: Value | None = None

    def then(self, later: _State) -> _State:
        """The state after later statements, which are run where nothing has been returned."""
        value = self.value if later.value is None else later.value
        if self.value is not None and later.value is not None:
            value = pick(self.done, self.value, later.value)
        return _State(later.own, either((self.done, both((opposite(self.done), later.done)))), value)


def _follow(statements: tuple[Statement, ...], own: Mapping[str, Value], scope: Scope) -> _State:
    """Follows statements one after the other."""
    state = _State(own)
    types: dict[str, str] = {}
    for statement in statements:
        match statement:
            case Assign(name, text, type_):
                if type_ is None and name not in state.own:
                    raise Unread(f"{name} is assigned to and not declared")
                if type_ is not None and name in state.own:
                    raise Unread(f"{name} is declared twice, or is a parameter too")
                if type_ is not None:
                    types[name] = type_
                value = _expression(text, state.own, scope)
                declared = types.get(name) or _declared_type(scope, name)
                value = value if value == Constant(None) else _kept_as(scope, value, declared)
                state = replace(state, own={**state.own, name: value})
                scope = scope if type_ is None else replace(scope, variables={**scope.variables, name: type_})
            case Return(text):
                return state.then(_State(state.own, TRUE, _expression(text, state.own, scope)))
            case Choice(arms, otherwise):
                inside = _inner(state.own, scope)
                tests = [_flags(condition(_node(scope.engine, test), inside).true) for test, _ in arms]
                merged = _follow(otherwise, state.own, scope)
                for test, (_, inner) in zip(reversed(tests), reversed(arms), strict=True):
                    merged = _either_way(scope.engine, test, _follow(inner, state.own, scope), merged)
                state = state.then(merged)
    return state


def _declared_type(scope: Scope, name: str) -> str:
    if name not in scope.variables:
        raise Unread(f"{name} is a parameter, and is assigned to")
    return scope.variables[name]


def _flags(formula: Formula) -> Formula:
    """A condition in which a variable that is one of two numbers is the condition that it was set by."""
    match formula:
        case Sign(Points(bias, ((own, worth),)), comparison):
            holds, fails = ON_NUMBERS[comparison](bias + worth, 0), ON_NUMBERS[comparison](bias, 0)
            return (TRUE if fails else own) if holds else (opposite(own) if fails else FALSE)
        case Both(parts):
            return both(map(_flags, parts))
        case Either(parts):
            return either(map(_flags, parts))
        case _:
            return formula


def _either_way(engine: Engine, test: Formula, holds: _State, fails: _State) -> _State:
    own = {name: _pick_points(engine, test, holds.own[name], fails.own[name]) for name in fails.own}
    done = either((both((test, holds.done)), both((opposite(test), fails.done))))
    if holds.value is None or fails.value is None:
        return _State(own, done, holds.value if fails.value is None else fails.value)
    return _State(own, done, pick(test, holds.value, fails.value))


def _pick_points(engine: Engine, test: Formula, then: Value, otherwise: Value) -> Value:
    """A choice; of whole numbers, as the sum of points that it is."""
    value = pick(test, then, otherwise)
    if not isinstance(value, Pick):
        return value
    if is_fractional(value):
        return add_fractions(value, Constant(0), 1)
    return total_of(engine, value) if kinds_of(value) == {"whole"} else value
