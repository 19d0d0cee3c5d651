"""Atoms and clauses as C expressions, in two spellings: `&&` for one row, `&` where a loop is to be vectorised."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gbfl_compile.ir.float32 import narrow_interval
from gbfl_compile.ir.kinds import intervals_in
from gbfl_compile.ir.nodes import Clause, Interval, Program

Real: TypeAlias = Literal["double", "float"]
Comparison: TypeAlias = Literal[">=", ">", "<=", "<"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """`x <comparison> value`, false where x is missing."""

    comparison: Comparison
    value: float


def bounds(atom: Interval, real: Real) -> tuple[Threshold, ...]:
    """The comparisons of one interval, lower bound first, for inputs of the given type.

    >>> bounds(Interval(0, 0.1, 2.0), "float")
    (Threshold(comparison='>=', value=0.10000000149011612), Threshold(comparison='<', value=2.0))
    """
    atom = atom if real == "double" else narrow_interval(atom)
    comparisons = []
    if atom.lo is not None:
        comparisons.append(Threshold(">=" if atom.lo_closed else ">", atom.lo))
    if atom.hi is not None:
        comparisons.append(Threshold("<=" if atom.hi_closed else "<", atom.hi))
    return tuple(comparisons)


def literal(value: float, real: Real = "double") -> str:
    """A finite number as a C99 hex literal, which reads back as the same number.

    >>> literal(0.1), literal(-2.0), literal(0.5, "float")
    ('0x1.999999999999ap-4', '-0x1p+1', '0x1p-1f')
    """
    mantissa, exponent = float(value).hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").removesuffix(".")
    return f"{mantissa}p{exponent}{'f' if real == 'float' else ''}"


def bit_pattern(value: float, real: Real) -> str:
    """Any number, missing and infinite ones too, as the bits of its type: C has no literal for those."""
    if real == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x}u"
    return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x}u"


def integer(value: int) -> str:
    """An integer of points; all are below 2^53."""
    return f"{value}" if abs(value) < 2**31 else f"INT64_C({value})"


PLAIN_IN_COMMENT = re.compile(r"[A-Za-z0-9 _.,:;()<>=+%-]")
PLAIN_IN_STRING = re.compile(r"[A-Za-z0-9 _.,:;()<>=+-]")

LONGEST_ENUMERATOR = 40

HEADERS_OF_C = frozenset(
    {
        *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
        *("setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib"),
        *("stdnoreturn", "string", "tgmath", "threads", "time", "uchar", "wchar", "wctype", "gbfl", "python"),
    }
)
"""Names an artifact may not have: its header would shadow one that C programs include."""


def comment(text: str) -> str:
    """Text for the inside of a comment; a character a compiler could interpret is written as its code point.

    >>> comment("a */ ??/ b")
    'a {2a}{2f} {3f}{3f}{2f} b'
    """
    return "".join(c if PLAIN_IN_COMMENT.fullmatch(c) else f"{{{ord(c):x}}}" for c in text)


def string(text: str) -> str:
    r"""A string literal with the UTF-8 bytes of `text`; octal escapes have at most three digits, unlike \x.

    >>> string('say "hi"?')
    '"say \\042hi\\042\\077"'
    """
    letters = ((chr(byte), byte) for byte in text.encode("utf-8"))
    return '"' + "".join(c if PLAIN_IN_STRING.fullmatch(c) else f"\\{byte:03o}" for c, byte in letters) + '"'


def enumerators(prefix: str, features: tuple[str, ...]) -> list[str]:
    """A C name for each feature: its own where that is safe and unique, its number otherwise."""
    cleaned = [re.sub(r"[^A-Za-z0-9]+", "_", feature).strip("_")[:LONGEST_ENUMERATOR] for feature in features]
    times: dict[str, int] = {}
    for name in cleaned:
        times[name] = times.get(name, 0) + 1
    return [
        f"{prefix}_x_{name}" if name and times[name] == 1 else f"{prefix}_feature_{index}"
        for index, name in enumerate(cleaned)
    ]


def rows_of(items: Sequence[str], width: int = 16) -> list[str]:
    """The items of a table, `width` per line."""
    return [", ".join(items[at : at + width]) for at in range(0, len(items), width)]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How conditions are joined and values are named."""

    both: str
    either: str
    value: str


ONE_ROW = Spelling(" && ", " || ", "x[{0}]")
"""Stops at the first atom that fails: best for a small processor without floating point."""

MANY_ROWS = Spelling(" & ", " | ", "x{0}")
"""No branches: `&&` made a batch of 50 rules 15 times slower (390 against 26 ns per row in the first trial)."""


def atom(interval: Interval, real: Real, spelling: Spelling) -> str:
    """One interval. NaN fails every comparison, so only a missing value that *holds* needs a test."""
    name = spelling.value.format(interval.feature)
    tests = [f"({name} {bound.comparison} {literal(bound.value, real)})" for bound in bounds(interval, real)]
    if not tests:
        return "1" if interval.if_missing else f"({name} == {name})"
    text = spelling.both.join(tests)
    if not interval.if_missing:
        return text
    return f"(({name} != {name}){spelling.either}{text if len(tests) == 1 else f'({text})'})"


def condition(clause: Clause, real: Real, spelling: Spelling) -> str:
    """A clause as one expression; the empty one is true."""
    atoms = (atom(interval, real, spelling) for interval in intervals_in(clause))
    return spelling.both.join(text for text in atoms if text != "1") or "1"


def used_features(program: Program) -> tuple[int, ...]:
    """The features some clause compares, ascending: the only columns a batch has to read."""
    atoms = (interval for clause in program.clauses for interval in intervals_in(clause))
    return tuple(sorted({a.feature for a in atoms if a.lo is not None or a.hi is not None or not a.if_missing}))
