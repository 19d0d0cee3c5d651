"""Names, strings, numbers and queries as one engine writes them. What comes from outside is quoted here or refused.

Each stage is a SELECT from the one before, and the last one selects the outputs.

For a check in a private database, rows of Python values become a table with columns of the right types. Numbers go in
bit for bit. Of the other columns each different value gets a number, and one CASE per column makes the values from
these. A text is made from its bytes in hexadecimal: the string literals of an artifact are what is checked.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from gbfl_compile.backends.sql.dialect import Dialect, Spelling
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import EPOCH, EPOCH_TIME, MICROSECOND, is_missing
from gbfl_compile.ir.nodes import Kind, Label
from gbfl_compile.ir.text import printable

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix
    from gbfl_compile.ir.kinds import Value

BLOCK = 50
"""Powers of two are multiplied in by 2^50 at most: a whole number of 16 digits, which every parser reads exactly."""


def literal(dialect: Dialect, number: float) -> str:
    """A double, spelled so that this engine reads the same double.

    >>> from gbfl_compile.backends.sql.engines import DIALECTS
    >>> literal(DIALECTS["duckdb"], 0.1), literal(DIALECTS["postgres"], 0.1)
    ('0.1e0', 'CAST(0.1e0 AS DOUBLE PRECISION)')
    """
    size = abs(number)
    least, most = dialect.refused_literals
    if number != 0.0 and not least <= size <= most:
        raise BadInput(f"{number!r} is beyond what {dialect.engine} holds as {dialect.double}")
    small, large = dialect.widest_literal
    text = decimal(dialect, number) if number == 0.0 or small <= size <= large else powers(number)
    return text if dialect.exponent_is_double else f"CAST({text} AS {dialect.double})"


def decimal(dialect: Dialect, number: float) -> str:
    """The number in decimal with an exponent: without one it would be a DECIMAL in some engines."""
    text = repr(number)
    if dialect.decimal_digits == "seventeen" and (float(f"{number:.6g}") != number or _nearly_half_way(text)):
        return f"{number:.16e}"
    return text if "e" in text else f"{text}e0"


def _nearly_half_way(text: str) -> bool:
    """Whether a decimal is so near the middle of two doubles that a parser which rounds twice may pick the other.

    >>> _nearly_half_way("0.1"), _nearly_half_way("0.0119")
    (False, True)
    """
    number = float(text)
    return abs(Fraction(text) - Fraction(number)) > Fraction(math.ulp(number)) * Fraction(49, 100)


def powers(number: float) -> str:
    """A whole number times or over powers of two: every step of it is exact.

    >>> powers(3.0 * 2.0**-60)
    '(3.0e0 / 1125899906842624.0e0 / 1024.0e0)'
    """
    top, bottom = number.as_integer_ratio()
    shift = bottom.bit_length() - 1
    sign = "/"
    if shift == 0:
        shift = (top & -top).bit_length() - 1
        top >>= shift
        sign = "*"
    blocks = [BLOCK] * (shift // BLOCK) + ([shift % BLOCK] if shift % BLOCK else [])
    return "(" + f" {sign} ".join([f"{top}.0e0", *(f"{2**block}.0e0" for block in blocks)]) + ")"


def nan(dialect: Dialect) -> str:
    """NaN, in an engine that orders it above every number."""
    return f"CAST('NaN' AS {dialect.double})"


def as_double(dialect: Dialect, column: str) -> str:
    """A column converted to double."""
    return dialect.cast.format(column=column, type=dialect.double)


def identifier(dialect: Dialect, name: str) -> str:
    """A name as an identifier of this engine, or BadInput where it cannot be one."""
    where = f"the name {name!r}"
    if not name or "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise BadInput(f"{where} is empty or has a character that no database takes: map it to another column")
    if len(name.encode()) > dialect.longest_name:
        raise BadInput(f"{where}: {dialect.engine} takes {dialect.longest_name} bytes, map it to a shorter column")
    if refused := [letter for letter in name if letter in dialect.refused_in_names]:
        raise BadInput(f"{where}: {dialect.engine} takes no {refused[0]!r} in a name, map it to another column")
    if dialect.name in ("mariadb", "mysql") and (name[-1] == " " or any(letter > "\uffff" for letter in name)):
        raise BadInput(f"{where}: {dialect.engine} takes no space at the end and nothing past U+FFFF")
    if dialect.identifier_escapes:
        name = name.replace("\\", "\\\\")
    opening, closing = dialect.identifier, "]" if dialect.identifier == "[" else dialect.identifier
    return opening + name.replace(closing, f"\\{closing}" if dialect.identifier_escapes else closing * 2) + closing


def qualified_name(dialect: Dialect, schema: str, name: str) -> str:
    """`"schema"."name"`, or the name alone."""
    return f"{identifier(dialect, schema)}.{identifier(dialect, name)}" if schema else identifier(dialect, name)


def string(dialect: Dialect, text: str) -> str:
    """A text as a string literal."""
    if dialect.string_escapes:
        escaped = text.replace("\\", "\\\\").replace("'", dialect.escaped_quote)
        return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"
    quoted = text.replace("'", "''")
    if dialect.escape_prefix and "\\" in text:
        return f"{dialect.escape_prefix}'" + quoted.replace("\\", "\\\\") + "'"
    return f"{dialect.string_prefix}'{quoted}'"


def whole(dialect: Dialect, number: int) -> str:
    """An integer of 64 bits; a large one gets an explicit type, as engines choose different ones."""
    return str(number) if abs(number) < 2**31 else f"CAST('{number}' AS {dialect.bigint})"


def label(dialect: Dialect, value: Label) -> str:
    """A class label: text as a string, numbers as numbers, booleans as 1 and 0 where the engine has none."""
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE") if dialect.booleans else str(int(value))
    if isinstance(value, int):
        return whole(dialect, value)
    return string(dialect, value) if isinstance(value, str) else literal(dialect, float(value))


def label_type(dialect: Dialect, value: Label) -> str:
    """The type of a label, where a function has to name it."""
    if isinstance(value, bool):
        return "BOOLEAN" if dialect.booleans else dialect.bigint_column
    if isinstance(value, int):
        return dialect.bigint_column
    return dialect.text if isinstance(value, str) else dialect.double


def comment(text: str) -> str:
    """Text on one comment line: nothing in it can end the line."""
    return printable(text)


@dataclass(frozen=True, slots=True)
class Item:
    """A column of a SELECT: its name and its expression, line by line."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One SELECT. It passes on the named columns of the stage before and adds its items."""

    name: str
    items: tuple[Item, ...]
    carried: tuple[str, ...] = ()
    fenced: bool = False
    """Whether the engine must be kept from copying the items to where they are used."""


def item(name: str, *lines: str) -> Item:
    """A column."""
    return Item(name, lines)


def item_lines(dialect: Dialect, column: Item) -> list[str]:
    """The lines of a column, with its name at the end."""
    *first, last = column.lines
    return [*first, f"{last} AS {identifier(dialect, column.name)}"]


def select_lines(dialect: Dialect, stage: Stage, keys: Sequence[str], source: str) -> list[str]:
    """`SELECT … FROM source`, with the engine's fence where the stage needs it."""
    passed_on = [[identifier(dialect, name)] for name in (*keys, *stage.carried)]
    items = [item_lines(dialect, column) for column in stage.items]
    if stage.fenced and dialect.lateral:
        names = [[identifier(dialect, column.name)] for column in stage.items]
        inner = ["SELECT", *_indent(with_commas(items)), dialect.fence]
        return [
            "SELECT",
            *_indent(with_commas([*passed_on, *names])),
            f"FROM {source}",
            "CROSS JOIN LATERAL (",
            *_indent(inner),
            ") AS gbfl_once",
        ]
    fence = [dialect.fence] if stage.fenced and dialect.fence else []
    return ["SELECT", *_indent(with_commas([*passed_on, *items])), f"FROM {source}", *fence]


def query_lines(dialect: Dialect, stages: Sequence[Stage], keys: Sequence[str], table: str) -> list[str]:
    """The whole query: all stages but the last as WITH, in the order they are computed."""
    lines: list[str] = []
    source = table
    for number, stage in enumerate(stages[:-1]):
        opening = "WITH " if number == 0 else ""
        closing = "" if number == len(stages) - 2 else ","
        lines += [f"{opening}{stage.name} AS (", *_indent(select_lines(dialect, stage, keys, source)), f"){closing}"]
        source = stage.name
    return lines + select_lines(dialect, stages[-1], keys, source)


def with_commas(columns: Sequence[list[str]]) -> list[str]:
    """The lines of several columns, a comma after each but the last."""
    lines = []
    for number, column in enumerate(columns):
        last = number == len(columns) - 1
        lines += [*column[:-1], column[-1] if last else f"{column[-1]},"]
    return lines


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


MOST_VALUES = 400
"""Different values of one column that are made at once: a CASE of more WHENs is slow to plan."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows as numbers, and what the numbers of words and dates mean."""

    matrix: Matrix
    values: Mapping[int, tuple[Value, ...]]
    """Feature -> its different values; n in the matrix is the n-th of them, 0 a missing value."""


def blocks(dialect: Dialect, kinds: Sequence[Kind], rows: Sequence[Sequence[Value]]) -> Iterator[StagedRows]:
    """All rows, in blocks with few enough different values in each column."""
    others = [feature for feature, kind in enumerate(kinds) if kind != "number"]
    block: list[list[float]] = []
    seen: dict[int, dict[Value, int]] = {feature: {} for feature in others}
    for row in rows:
        if any(len(values) >= MOST_VALUES for values in seen.values()):
            yield _block(block, seen)
            block, seen = [], {feature: {} for feature in others}
        numbered: list[Value] = list(row)
        for feature, values in seen.items():
            value = row[feature]
            if is_missing(value):
                numbered[feature] = 0.0
            else:
                value = _possible(dialect.kinds[kinds[feature]], value)
                numbered[feature] = float(values.setdefault(value, len(values) + 1))
        block.append([float("nan") if value is None else float(value) for value in numbered])  # type: ignore[arg-type]
    yield _block(block, seen)


def _block(rows: list[list[float]], seen: Mapping[int, Mapping[Value, int]]) -> StagedRows:
    import numpy as np

    return StagedRows(np.array(rows, dtype=np.float64), {feature: tuple(values) for feature, values in seen.items()})


def _possible(spelling: Spelling, value: Value) -> Value:
    """A date beyond what the engine holds becomes the nearest that it holds: no bound lies between the two."""
    if spelling.holds_every_date or not isinstance(value, datetime.date):
        return value
    if not isinstance(value, datetime.datetime):
        return min(max(value, spelling.earliest), spelling.latest)
    first, last = (datetime.datetime.combine(day, datetime.time()) for day in (spelling.earliest, spelling.latest))
    return min(max(value, first), last)


def staged_column(dialect: Dialect, kind: Kind, values: Sequence[Value], column: str) -> str:
    """A column of numbers as the values they mean. The first WHEN never holds: it gives an empty column its type."""
    spelling = dialect.kinds[kind]
    name = identifier(dialect, column)
    whens = [
        f"WHEN {name} = {number} THEN {_value(spelling, value)}"
        for number, value in enumerate((EXAMPLES[kind], *values), start=0)
    ]
    whens[0] = whens[0].replace(f"{name} = 0", f"{name} = -1", 1)
    return f"CASE {' '.join(whens)} ELSE NULL END AS {name}"


EXAMPLES: Mapping[Kind, Value] = {
    "category": "a",
    "boolean": True,
    "date": datetime.date(2000, 1, 1),
    "timestamp": datetime.datetime(2000, 1, 1, microsecond=1),
}


def _value(spelling: Spelling, value: Value) -> str:
    if isinstance(value, str):
        return spelling.staged.format(hex=value.encode().hex(), text="", number="")
    if isinstance(value, datetime.datetime):
        number = (value - EPOCH_TIME) // MICROSECOND
        return spelling.staged.format(hex="", text=f"'{value}'", number=number)
    if isinstance(value, datetime.date):
        return spelling.staged.format(hex="", text=f"'{value}'", number=(value - EPOCH).days)
    return spelling.staged.format(hex="", text="", number=int(bool(value)))
