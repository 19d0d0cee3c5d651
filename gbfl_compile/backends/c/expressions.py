"""Atoms and clauses as C expressions, in two spellings: `&&` for one row, `&` where a loop is to be vectorised.

For kinds of features, the table in which `NAME_code` looks up a text, and names for classes and codes. A hash leads to
a place in a table that is at most half full; from there on, place after place up to an empty one, a text is compared
byte by byte. No two texts are taken for each other, whatever their hashes.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import narrow_interval
from gbfl_compile.ir.kinds import codebook
from gbfl_compile.ir.nodes import Atom, Interval, OneOf, Program

Real: TypeAlias = Literal["double", "float"]
Comparison: TypeAlias = Literal[">=", ">", "<=", "<"]


@dataclass(frozen=True, slots=True)
class Codes:
    """A value is one of these codes, or with `negated` any other number; a missing one answers `if_missing`."""

    feature: int
    codes: tuple[float, ...]
    negated: bool
    if_missing: bool


CodedAtom: TypeAlias = Interval | Codes
"""An atom as C tests it: texts by their codes."""

Rule: TypeAlias = tuple[CodedAtom, ...]


def rules_of(program: Program) -> tuple[Rule, ...]:
    """The atoms of every clause as C tests them.

    >>> from gbfl_compile.ir.nodes import Clause, Leaf, Tree
    >>> rules_of(Program(("a",), (0,), (Clause((OneOf(0, ("x", "y")),)),), Tree((Leaf((1.0,)),)), kinds=("category",)))
    ((Codes(feature=0, codes=(1.0, 2.0), negated=False, if_missing=False),),)
    """
    book = codebook(program)
    numbers = tuple({text: float(place) for place, text in enumerate(texts, 1)} for texts in book.texts)
    return tuple(tuple(_with_codes(atom, numbers) for atom in clause.atoms) for clause in program.clauses)


def _with_codes(atom: Atom, numbers: Sequence[Mapping[str, float]]) -> CodedAtom:
    match atom:
        case Interval():
            return atom
        case OneOf(feature, values, negated, if_missing):
            return Codes(feature, tuple(numbers[feature][text] for text in values), negated, if_missing)
        case _:
            assert_never(atom)


def always_holds(atom: CodedAtom) -> bool:
    """Whether the atom holds for every value, missing ones included."""
    if not atom.if_missing:
        return False
    return atom.lo is None and atom.hi is None if isinstance(atom, Interval) else atom.negated and not atom.codes


def never_holds(atom: CodedAtom) -> bool:
    """Whether no value satisfies the atom: it lists no text, and a missing value fails too."""
    return isinstance(atom, Codes) and not (atom.codes or atom.negated or atom.if_missing)


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


def atom(question: CodedAtom, real: Real, spelling: Spelling) -> str:
    """One atom as an expression; `1` where it always holds, `0` where it never does."""
    match question:
        case Interval():
            return between(question, real, spelling)
        case Codes():
            return one_of(question, real, spelling)
        case _:
            assert_never(question)


def between(interval: Interval, real: Real, spelling: Spelling) -> str:
    """One interval. NaN fails every comparison, so only a missing value that *holds* needs a test."""
    name = spelling.value.format(interval.feature)
    tests = [f"({name} {bound.comparison} {literal(bound.value, real)})" for bound in bounds(interval, real)]
    if not tests:
        return "1" if interval.if_missing else f"({name} == {name})"
    text = spelling.both.join(tests)
    if not interval.if_missing:
        return text
    return f"(({name} != {name}){spelling.either}{text if len(tests) == 1 else f'({text})'})"


def one_of(question: Codes, real: Real, spelling: Spelling) -> str:
    """One set of codes. NaN equals no code and differs from every one.

    >>> one_of(Codes(2, (1.0, 3.0), False, False), "double", ONE_ROW)
    '((x[2] == 0x1p+0) || (x[2] == 0x1.8p+1))'
    """
    name = spelling.value.format(question.feature)
    tests = [f"({name} {'!=' if question.negated else '=='} {literal(code, real)})" for code in question.codes]
    if question.negated != question.if_missing:
        tests.insert(0, f"({name} {'==' if question.negated else '!='} {name})")
    if not tests:
        return "1" if question.negated else "0"
    if question.negated or len(tests) == 1:
        return spelling.both.join(tests)
    return f"({spelling.either.join(tests)})"


def condition(rule: Rule, real: Real, spelling: Spelling) -> str:
    """A clause as one expression; the empty one is true."""
    if any(never_holds(question) for question in rule):
        return "0"
    return spelling.both.join(atom(question, real, spelling) for question in rule if not always_holds(question)) or "1"


def used_features(program: Program) -> tuple[int, ...]:
    """The features some clause compares, ascending: the only columns a batch has to read."""
    atoms = (each for rule in rules_of(program) for each in rule)
    return tuple(sorted({each.feature for each in atoms if not always_holds(each) and not never_holds(each)}))


FIRST_HASH, HASH_FACTOR = 2166136261, 16777619
"""FNV-1a of 32 bits."""

UNITS = {
    "number": "a number",
    "category": "a category: its code",
    "boolean": "a boolean: 1 or 0",
    "date": "a date: days since 1970-01-01",
    "timestamp": "a timestamp: microseconds since 1970-01-01 UTC",
}


def require_exact(program: Program, real: Real) -> None:
    """Refuse float32 for a program that compares timestamps: a float holds no microseconds."""
    if real == "double" or not program.kinds:
        return
    for feature in used_features(program):
        if program.kinds[feature] == "timestamp":
            name = program.features[feature]
            raise BadInput(f"target c: {name!r} is a timestamp, and no float32 holds microseconds: use dtype=float64")


def kind_values(program: Program, name: str, labels: Sequence[str]) -> dict[str, Any]:
    """What the templates say about kinds; nothing where all features are numbers."""
    if not program.kinds:
        return {"kinds": [], "codes": None}
    classes = _unique_names(f"{name}_class_is_", [(label,) for label in labels])
    return {
        "kinds": rows_of([f"'{kind[0]}'" for kind in program.kinds]),
        "units": [UNITS[kind] for kind in program.kinds],
        "class_names": [own or f"{name}_class_{number}" for number, own in enumerate(classes)],
        "class_texts": [comment(label[:LONGEST_ENUMERATOR]) for label in labels],
        "codes": _code_values(program, name) if "category" in program.kinds else None,
    }


def _code_values(program: Program, name: str) -> dict[str, Any]:
    book = codebook(program).texts
    texts: list[tuple[int, int, str]] = []
    slots: list[int] = []
    places = []
    for feature, kind in enumerate(program.kinds):
        if kind != "category":
            places.append("0u, 0u, 0u")
            continue
        table = slots_of(book[feature])
        places.append(f"{len(texts)}u, {len(slots)}u, {len(table) - 1}u")
        texts += [(feature, code, text) for code, text in enumerate(book[feature], 1)]
        slots += table
    names = _unique_names(f"{name}_code_of_", [(program.features[feature], text) for feature, _, text in texts])
    return {
        "texts": [f"{string(text)}, {len(text.encode('utf-8'))}u" for _, _, text in texts] or ['"", 0u'],
        "slots": slots,
        "slot_rows": rows_of([str(slot) for slot in slots]),
        "slot_type": next(f"uint{bits}_t" for bits in (8, 16, 32) if max(slots) < 1 << bits),
        "places": places,
        "names": [
            (own or f"{name}_feature_{feature}_code_{code}", code, comment(text[:LONGEST_ENUMERATOR]))
            for own, (feature, code, text) in zip(names, texts, strict=True)
        ],
    }


def slots_of(texts: Sequence[str]) -> list[int]:
    """A table of codes in which each text is found from its hash on, before an empty place (0)."""
    size = 1
    while texts and size < 2 * len(texts):
        size *= 2
    slots = [0] * size
    for code, text in enumerate(texts, 1):
        slot = text_hash(text.encode("utf-8")) % size
        while slots[slot]:
            slot = (slot + 1) % size
        slots[slot] = code
    return slots


def text_hash(text: bytes) -> int:
    """FNV-1a.

    >>> hex(text_hash(b"foobar"))
    '0xbf9cf968'
    """
    value = FIRST_HASH
    for byte in text:
        value = (value ^ byte) * HASH_FACTOR % 2**32
    return value


def _unique_names(prefix: str, words: Iterable[tuple[str, ...]]) -> list[str | None]:
    """A C name for each group of words, None where it would be empty or another group's too."""
    cleaned = [tuple(_clean(word) for word in group) for group in words]
    names = [prefix + "_".join(group) if all(group) else None for group in cleaned]
    times = Counter(names)
    return [name if times[name] == 1 else None for name in names]


def _clean(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", word).strip("_")[:LONGEST_ENUMERATOR]
