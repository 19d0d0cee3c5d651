"""Tables, names and strings in emitted C: constant arrays whose every element is written out and fits its type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from gbfl_compile.check.readers.c_numbers import as_float32, integer, integer_literal, is_unsigned, real_literal
from gbfl_compile.check.readers.c_source import line_of, refuse
from gbfl_compile.check.reading import Unread

Table: TypeAlias = Any
"""Tuples of tuples, down to numbers."""

HOLDS: Mapping[str, tuple[int, int]] = {
    "unsigned char": (0, 255),
    "int": (-(2**31), 2**31 - 1),
    **{f"int{bits}_t": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": (0, 2**bits - 1) for bits in (32, 64)},
}

ESCAPE = re.compile(rb"\\([0-7]{1,3}|[abfnrtv\\'\"?])")
SIMPLE = {b"a": 7, b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9, b"v": 11, b"\\": 92, b"'": 39, b'"': 34, b"?": 63}


def table(
    declaration: Any, initialisers: Mapping[str, Sequence[str]], kinds: Sequence[str], shape: Sequence[int | None]
) -> Table:
    """The elements of a `static const` array of one of these types; a None in the shape is any number but 0."""
    kind, wanted = declaration.type, []
    while type(kind).__name__ == "ArrayDecl":
        wanted.append(integer(kind.dim, {}))
        kind = kind.type
    found, tokens = element_type(kind), initialisers.get(getattr(declaration.init, "name", ""))
    if declaration.storage != ["static"] or declaration.quals != ["const"] or found not in kinds or tokens is None:
        refuse(line_of(declaration), f"{declaration.name} is not the constant table known by this name")
    if len(wanted) != len(shape) or not all(n and s in (None, n) for n, s in zip(wanted, shape, strict=True)):
        refuse(line_of(declaration), f"{declaration.name} has the shape {wanted}, expected {list(shape)}")
    try:
        return _elements(_nested(tokens), found, [size or 0 for size in wanted])
    except Unread as error:
        refuse(line_of(declaration), f"{declaration.name}: {error}")


def _nested(tokens: Sequence[str]) -> Any:
    """An initialiser as lists of lists, down to the tokens of each element."""
    outer: list[Any] = []
    open_lists = [outer]
    element: list[str] = []
    closed = False
    for word in tokens:
        if word == "{" and not element and not closed:
            open_lists.append([])
            open_lists[-2].append(open_lists[-1])
        elif word in (",", "}") and len(open_lists) > 1 and (element or closed):
            if element:
                open_lists[-1].append(element)
            element, closed = [], word == "}"
            if closed:
                open_lists.pop()
        elif word in "{},;" or closed:
            raise Unread(f"{word} is not expected here")
        else:
            element.append(word)
    if len(outer) != 1 or len(open_lists) != 1:
        raise Unread("is not one list in braces")
    return outer[0]


def element_type(kind: Any) -> str:
    """What an array is made of: a type name, or the names of the fields of a struct or union."""
    if type(kind).__name__ != "TypeDecl" or getattr(kind, "attributes", None):
        return ""
    inner = kind.type
    match type(inner).__name__:
        case "IdentifierType":
            return " ".join(inner.names)
        case "Struct" | "Union" if inner.decls and inner.name is None:
            return f"{type(inner).__name__.lower()} {{{' '.join(_field(field) for field in inner.decls)}}}"
        case _:
            return ""


def _field(declaration: Any) -> str:
    return f"{element_type(declaration.type)} {declaration.name};"


def _elements(found: Any, kind: str, shape: Sequence[int]) -> Table:
    if not shape:
        return _element(found, kind)
    if not all(isinstance(item, list) for item in found) or len(found) != shape[0]:
        raise Unread(f"has not {shape[0]} elements where it should")
    return tuple(_elements(item, kind, shape[1:]) for item in found)


def _element(found: Any, kind: str) -> Table:
    if kind.startswith("struct"):
        return _elements(found, "uint32_t", [kind.count(";")])
    if kind.endswith("_golden_value"):
        return _elements(found, "uint64_t", [1])
    if not all(isinstance(token, str) for token in found):
        raise Unread("has an element in braces")
    negative = found[:1] == ["-"]
    rest = found[1:] if negative else found
    if any(integer_literal(token) is not None and is_unsigned(token) for token in rest) and (negative or len(rest) > 1):
        raise Unread(f"has {' '.join(found)}, an unsigned number where a signed one belongs")
    number = _real_element(rest, kind) if kind in ("float", "double") else _whole_element(rest)
    number = -number if negative else number
    if kind in HOLDS and not HOLDS[kind][0] <= number <= HOLDS[kind][1]:
        raise Unread(f"has {number}, which {kind} does not hold")
    return number


def _whole_element(found: Sequence[str]) -> int:
    match found:
        case [text] | [("INT64_C" | "INT32_C"), "(", text, ")"] if (number := integer_literal(text)) is not None:
            return number
        case _:
            raise Unread(f"has {' '.join(found)}, which is not understood")


def _real_element(found: Sequence[str], kind: str) -> float:
    match found:
        case ["GBFL_INFINITY"]:
            return math.inf
        case [text] if (value := real_literal(text)) is not None:
            return as_float32(value) if kind == "float" else value
        case _:
            return float(_whole_element(found))


def string(text: str) -> str:
    """What a string literal says; bytes are UTF-8, as every name in an artifact is."""
    inner = text[1:-1].encode("utf-8")
    without = ESCAPE.sub(b"", inner)
    if b"\\" in without or text[0] != '"':
        raise Unread(f"a string that is not understood: {text[:40]}")
    said = ESCAPE.sub(lambda found: _escaped(found.group(1)), inner)
    if b"\0" in said:
        raise Unread("a string with a NUL in it")
    try:
        return said.decode("utf-8")
    except UnicodeDecodeError:
        raise Unread(f"a string that is not UTF-8: {text[:40]}") from None


def _escaped(sign: bytes) -> bytes:
    number = SIMPLE.get(sign)
    number = int(sign, 8) if number is None else number
    if number > 255:
        raise Unread("an octal escape that is no byte")
    return bytes((number,))


def strings(nodes: Sequence[Any]) -> tuple[str, ...]:
    """A row of string literals."""
    if not all(type(node).__name__ == "Constant" and node.type == "string" for node in nodes):
        raise Unread("a name that is not a string")
    return tuple(string(node.value) for node in nodes)


def enumerators(declaration: Any) -> dict[str, int]:
    """The names of an enumeration and their numbers: the one before and one more where none is said."""
    found: dict[str, int] = {}
    number = -1
    for item in declaration.type.values.enumerators:
        said = number + 1 if item.value is None else integer(item.value, found)
        if said is None or item.name in found:
            refuse(line_of(item), f"{item.name}: an enumerator that is not understood")
        found[item.name] = number = said
    return found
