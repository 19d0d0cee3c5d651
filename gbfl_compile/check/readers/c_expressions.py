"""What an expression in emitted C is on any row. Comparisons are IEEE 754's, on the model's own type.

A literal of another type is what C makes of it: a float is widened, a whole number converted, which may round and then
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from gbfl_compile.check.readers.c_arithmetic import added, anded, multiplied, negative, ored, xored
from gbfl_compile.check.readers.c_numbers import as_float32, integer, is_unsigned, real
from gbfl_compile.check.readers.c_source import line_of
from gbfl_compile.check.readers.c_source import refuse as refuse_line
from gbfl_compile.check.readers.c_values import (
    CONDITIONS,
    Bits,
    Columns,
    Feature,
    Known,
    Masked,
    Place,
    Plus,
    Pointer,
    Real,
    Row,
    Unclear,
    Unsigned,
    Xor,
    as_choice,
    bounds,
    either,
    terms,
    truth,
)
from gbfl_compile.check.readers.choices import Choice, ends
from gbfl_compile.check.readers.conditions import (
    MIRRORED,
    ON_NUMBERS,
    all_of,
    any_of,
    chosen,
    compared,
    compared_with_itself,
    constant,
    negated,
)
from gbfl_compile.check.reading import Condition

INTEGERS: Mapping[str, tuple[int, int]] = {
    "int": (-(2**15) + 1, 2**15 - 1),  # what C promises of it, and what it has on small processors
    **{f"int{bits}_t": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
}
"""Signed types that a rule may use, and what they hold."""

WORD = "uint32_t"
"""The type of a word of bits."""

Name: TypeAlias = str | tuple[str | int | Place, ...]
"""A local, or an element of an array: ("held", 0)."""

Locals: TypeAlias = dict[Name, Known]
Seen: TypeAlias = Mapping[Name, Known]


@dataclass(frozen=True, slots=True)
class Setting:
    """What holds throughout: the artifact's prefix, the type of its numbers, its enumerators, where values stand."""

    prefix: str
    real: str
    constants: Mapping[str, int]
    counters: frozenset[str] = frozenset()
    """What a place in a column must be the sum of."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The type of each local, and of the elements of each array that is written to."""


SURE_OF_INT = 2**15 - 1
"""What every int holds; past it arithmetic on ints may wrap around, or be undefined."""

OPERATIONS: Mapping[str, Callable[[Known, Known], Known]] = {
    "+": added,
    "*": multiplied,
    "^": xored,
    "&": anded,
    "|": ored,
    "-": lambda a, b: added(a, negative(b)),
}


def refuse(node: Any, what: str) -> NoReturn:
    """Say where, and what is not understood there."""
    refuse_line(line_of(node), what)


def type_name(node: Any) -> str:
    """The type of a declaration or a cast: `int64_t`, `double`, `double *`; an empty text for any other."""
    kind, stars = node.type, ""
    while type(kind).__name__ == "PtrDecl":
        kind, stars = kind.type, f"{stars} *"
    if type(kind).__name__ != "TypeDecl" or type(kind.type).__name__ != "IdentifierType":
        return ""
    if set(kind.quals) - {"const"} or getattr(kind, "attributes", None):
        return ""
    return " ".join(kind.type.names) + stars


def target(setting: Setting, node: Any, known: Seen) -> Name:
    """What an assignment goes to: a local, or an element of an array."""
    places: list[int | Place] = []
    while type(node).__name__ == "ArrayRef":
        places.insert(0, _place(setting, node.subscript, known))
        node = node.name
    if type(node).__name__ != "ID":
        refuse(node, "an assignment that is not understood")
    return (node.name, *places) if places else str(node.name)


def _place(setting: Setting, node: Any, known: Seen) -> int | Place:
    match expression(setting, node, known):
        case int() | Place() as place:
            return place
        case Unsigned(value):
            return value
        case _:
            refuse(node, "a place in an array that is not understood")


def fitting(setting: Setting, node: Any, kind: str, value: Known) -> Known:
    """The value in a local of this type: unchanged, or refused."""
    match value:
        case Unclear():
            fits = kind in INTEGERS or kind in ("float", "double")
        case Pointer():
            fits = kind == f"{setting.real} *"
        case Feature():
            fits = kind in (setting.real, "double")
        case Real(number) if kind == "float":
            return Real(as_float32(number))
        case Real():
            fits = kind == "double"  # a whole number would lose what is behind the point
        case Bits():
            fits = kind == WORD and bounds(value)[1] < 2**32
        case Plus():
            fits = kind == "int64_t"  # how far the sum goes is looked at when it is complete
        case _:
            whole = isinstance(value, (int, Choice, Xor, Masked, *CONDITIONS))
            fits = whole and kind in INTEGERS and _within(bounds(value), INTEGERS[kind])
    if not fits:
        refuse(node, f"a value that may not fit in {kind or 'its type'}")
    return value


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def truth_of(setting: Setting, node: Any, known: Seen) -> Condition:
    value = expression(setting, node, known)
    if isinstance(value, Feature):
        return compared(value.index, "!=", 0.0)
    return truth(value)


def expression(setting: Setting, node: Any, known: Seen) -> Known:
    """What an expression is on any row."""
    if (number := integer(node, setting.constants)) is not None:
        unsigned = type(node).__name__ == "Constant" and is_unsigned(node.value)
        return Unsigned(number) if unsigned else number
    if (constant_value := real(node)) is not None:
        return Real(constant_value)
    match type(node).__name__:
        case "ID":
            return _looked_up(node, known.get(node.name, Unclear()))
        case "ArrayRef":
            return _element(setting, node, known)
        case "Cast":
            return _cast(setting, node, expression(setting, node.expr, known))
        case "UnaryOp" if node.op == "!":
            return negated(truth_of(setting, node.expr, known))
        case "UnaryOp" if node.op == "-":
            return _in_range(setting, node, negative(expression(setting, node.expr, known)))
        case "TernaryOp":
            asked = truth_of(setting, node.cond, known)
            sides = [expression(setting, side, known) for side in (node.iftrue, node.iffalse)]
            return _looked_up(node, either(asked, sides[0], sides[1]))
        case "BinaryOp":
            return _binary(setting, node, known)
        case kind:
            refuse(node, f"an expression that is not understood: {kind}")


def _looked_up(node: Any, value: Known) -> Known:
    if isinstance(value, Unclear):
        refuse(node, f"{getattr(node, 'name', 'this')} is not known here, or differs by the way taken")
    return value


def _element(setting: Setting, node: Any, known: Seen) -> Known:
    """An element of an array: a value of the row, a column, a value in a column, or something put there."""
    name = target(setting, node, known)
    array = known.get(name[0]) if isinstance(name[0], str) else None
    match array, name[1:]:
        case Row(slots), (int() as place,) if 0 <= place < len(slots):
            feature = slots[place]
            return Real(0.0) if feature is None else Feature(feature)
        case Columns(slots), (int() as place, *further) if 0 <= place < len(slots) and slots[place] is not None:
            column = Pointer(slots[place] or 0)
            return column if not further else _value_in(setting, node, column, further)
        case Pointer(), further:
            return _value_in(setting, node, array, list(further))
        case None, _:
            return _looked_up(node, known.get(name, Unclear()))
        case _:
            refuse(node, "a place in an array that is not there")


def _value_in(setting: Setting, node: Any, column: Pointer, places: Sequence[object]) -> Feature:
    match places:
        case [Place(counters)] if not counters & column.counters and counters | column.counters == setting.counters:
            return Feature(column.feature)
        case _:
            refuse(node, "a place in a column that is not the row's own")


def _cast(setting: Setting, node: Any, value: Known) -> Known:
    kind = type_name(node.to_type)
    if isinstance(value, CONDITIONS) and kind in INTEGERS:
        return as_choice(value)
    if isinstance(value, Real) and kind in ("float", "double"):
        return Real(as_float32(value.value)) if kind == "float" else value
    if isinstance(value, int | Choice | Xor | Masked | Feature):
        return fitting(setting, node, kind, value)
    refuse(node, f"a conversion that is not understood: {kind}")


def _binary(setting: Setting, node: Any, known: Seen) -> Known:
    if node.op in ("&&", "||"):
        parts = [truth_of(setting, side, known) for side in (node.left, node.right)]
        return all_of(parts) if node.op == "&&" else any_of(parts)
    left, right = expression(setting, node.left, known), expression(setting, node.right, known)
    if node.op in MIRRORED:
        return _comparison(setting, node, left, right)
    if node.op not in OPERATIONS:
        refuse(node, f"an operator that is not understood: {node.op}")
    value = OPERATIONS[node.op](left, right)
    return _in_range(setting, node, value) if node.op in ("+", "-", "*") else value


def _in_range(setting: Setting, node: Any, value: Known) -> Known:
    """The result of arithmetic, refused where it may not fit the type that C does it in."""
    if _largest(value) > (INTEGERS["int64_t"][1] if _is_wide(setting, node) else SURE_OF_INT):
        refuse(node, f"arithmetic that may not fit its type: {node.op}")
    return value


def _largest(value: Known) -> int:
    """The most that a number can be, sign aside; 0 for what is no number."""
    match value:
        case Unsigned(number) | (int() as number):
            return abs(number)
        case Choice():
            return max((abs(end) for end in ends(value)), default=0)
        case Plus():
            start, added_up = terms(value)
            return abs(start) + sum(abs(worth) for _, worth in added_up)
        case _:
            return 0


def _is_wide(setting: Setting, node: Any) -> bool:
    """Whether an operand has 64 bits, so that C does the arithmetic in as many."""
    match type(node).__name__:
        case "FuncCall":
            return getattr(node.name, "name", "") == "INT64_C"
        case "Cast":
            return type_name(node.to_type) == "int64_t"
        case "ID":
            return setting.types.get(node.name) == "int64_t"
        case "ArrayRef":
            while type(node).__name__ == "ArrayRef":
                node = node.name
            return setting.types.get(getattr(node, "name", "")) == "int64_t"
        case "UnaryOp":
            return node.op in ("-", "~", "+") and _is_wide(setting, node.expr)
        case "BinaryOp":
            arithmetic = node.op in ("+", "-", "*", "&", "|", "^")
            return arithmetic and (_is_wide(setting, node.left) or _is_wide(setting, node.right))
        case _:
            return False


def _comparison(setting: Setting, node: Any, left: Known, right: Known) -> Condition:
    asked = node.op
    match left, right:
        case Feature(feature), Real() | int():
            return compared(feature, asked, _bound(setting, node, right))
        case Real() | int(), Feature(feature):
            return compared(feature, MIRRORED[asked], _bound(setting, node, left))
        case Feature(feature), Feature(other) if feature == other:
            return compared_with_itself(feature, asked)
        case int(), int():
            return constant(ON_NUMBERS[asked](left, right))
        case Real(one), Real(other_value):
            return constant(ON_NUMBERS[asked](one, other_value))
        case Choice(condition, int() as then, int() as otherwise), int():
            sides = [constant(ON_NUMBERS[asked](side, right)) for side in (then, otherwise)]
            return chosen(condition, sides[0], sides[1])
        case _ if isinstance(left, CONDITIONS) and isinstance(right, int):
            return chosen(left, constant(ON_NUMBERS[asked](1, right)), constant(ON_NUMBERS[asked](0, right)))
        case _:
            refuse(node, "compares what is not a feature with a number")


def _bound(setting: Setting, node: Any, value: Real | int) -> float:
    """The number a feature is compared with. A whole number is converted to the feature's type, which may round."""
    if isinstance(value, Real):
        return value.value
    try:
        bound = float(value)
    except OverflowError:
        refuse(node, "a whole number beyond every double")
    if bound != value or (setting.real == "float" and as_float32(bound) != bound):
        refuse(node, f"{value} is not a {setting.real}")
    return bound
