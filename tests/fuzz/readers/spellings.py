"""Random spellings of names, numbers, texts, comments and blanks: those that engines agree on, and those they do not."""

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

from gbfl_compile.checking.strict.sql.lexis import LEXIS

NANS = [
    struct.unpack("<d", struct.pack("<Q", bits))[0]
    for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1, (0xFFF8 << 48) + 0xABC)
]
EDGES = (0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308)
USUAL = (
    0.0,
    1.0,
    3.0,
    5.0,
    -1.0,
    0.1,
    0.30000000000000004,
    2.5,
    100.0,
    2147483648.0,
    9007199254740992.0,
    5e-324,
    1e300,
)


@dataclass(frozen=True, slots=True)
class Pool:
    """The numbers that the texts of one batch mention, as decimals, and the engine they are written for."""

    dialect: str
    columns: tuple[str, ...]
    decimals: tuple[str, ...]

    @property
    def lexis(self):
        return LEXIS[self.dialect]

    def values(self):
        """Each number with its neighbours, and the values that engines treat in ways of their own."""
        found = dict.fromkeys(EDGES)
        for number in map(float, self.decimals):
            for value in (number, math.nextafter(number, math.inf), math.nextafter(number, -math.inf)):
                found |= {value: None, -value: None}
        return [*found, math.inf, -math.inf, *NANS]


def random_pool(choose, dialect):
    """A handful of numbers, each in a few decimals: its shortest, longer ones, and some that lie next to it."""
    third = "AGE" if LEXIS[dialect].exact_names else "other"
    decimals = []
    for _ in range(4):
        number = (
            choose.choice(USUAL)
            if choose.random() < 0.6
            else choose.gauss(0, 1) * 10.0 ** choose.choice((0, 0, 3, -3, 15, -20))
        )
        number = abs(number)
        decimals += choose.sample(
            (repr(number), f"{number:.16e}", f"{number:.6g}", f"{number:.17g}", _halfway(number)), 2
        )
    return Pool(dialect, ("age", "income", third), tuple(dict.fromkeys(decimals)))


def _halfway(number):
    """A decimal nearly half-way to the next double, where parsers that round twice go wrong."""
    if not 1e-5 < number < 1e9:
        return repr(number)
    middle = (Fraction(number) + Fraction(math.nextafter(number, math.inf))) / 2
    digits = f"{int(middle * 10**25):026d}"
    return f"{digits[:-25]}.{digits[-25:]}"


def quoted(lexis, name):
    """A name in the quotes of its engine."""
    return f"{lexis.quote}{name}{lexis.quote}"


def name(choose, pool, column, plain=0.0):
    """A column: in quotes as a rule, else in one of the many ways to write it."""
    if choose.random() >= plain:
        return quoted(pool.lexis, column)
    return choose.choice(
        (
            column,
            column.upper(),
            column.title(),
            f'"{column}"',
            f"`{column}`",
            f"[{column}]",
            f"data.{column}",
            f'"{column.upper()}"',
            f'data."{column}"',
            f"{quoted(pool.lexis, 'data')}.{quoted(pool.lexis, column)}",
        )
    )


def strict_number(choose, pool):
    """A double as the strict form writes it for this engine."""
    text = choose.choice(pool.decimals)
    if "e" not in text:
        text = choose.choice((f"{text}e0", f"{float(text):.16e}", f"{text}E+0"))
    text = choose.choice(("", "", "", "-", "- ")) + text
    if pool.lexis.exponent == "numeric" and choose.random() < 0.95:
        return f"CAST({text} AS {pool.lexis.double})"
    return text


def number(choose, pool):
    """A number in any spelling, some of which are none in some engines."""
    if choose.random() < 0.4:
        return strict_number(choose, pool)
    text = choose.choice(pool.decimals)
    double = pool.lexis.double
    value = float(text)
    return choose.choice(
        (text, f"-{text}", f"- {text}", f"+{text}", f"-(-{text})", f"({text})", f"{text}e0", f"0{text}", f"{text}0")
        + (
            f"'{text}'",
            f"' {text} '",
            f"CAST('{text}' AS {double})",
            f"CAST({text} AS {double})",
            f"{text} / 2",
            f"{text} * 1",
        )
        + (
            f"CAST({text} AS REAL)",
            f"CAST({text} AS FLOAT)",
            f"CAST({text} AS DECIMAL(20,3))",
            f"CAST({text} AS INTEGER)",
        )
        + (f"{text}::float", f"'{text}'::float8", f"{text}::numeric", f"{text}D", f"{text}F", f"{text}L", f"{text}BD")
        + (
            f"CAST(CAST({text} AS REAL) AS {double})",
            "CAST('NaN' AS DOUBLE)",
            "'NaN'",
            f"CAST('-nan' AS {double})",
            "NULL",
        )
        + (
            "'inf'",
            f"CAST('Infinity' AS {double})",
            f"CAST('-Infinity' AS {double})",
            "1e400",
            "0x10",
            "1_000",
            ".5",
            "5.",
        )
        + ("-0.0", "-0.0e0", "0e0", "-0", "TRUE", f"CAST(NULL AS {double})", f"{text} + 0e0", "1e-400", "nan", "inf")
        + ((str(int(value)), f"{int(value)}.", hex(int(value))) if value < 1e18 else ())
    )


COMMENTS = (
    *(
        "/* it's */",
        "/* a */",
        "/**/",
        "/* -- */",
        "/*+ x */",
        "/*! AND 1 = 0 */",
        "/*M! AND 1 = 0 */",
        "/*!99999 AND 1=0 */",
    ),
    *(
        "/* /* */ AND 1 = 0 -- */\n",
        "/* /* */ */",
        "-- it's\n",
        "--\n",
        "--AND\n",
        "-- \\\n AND 1 = 0\n",
        "-- a\rAND 1 = 0\n",
    ),
    *(
        "# AND 1 = 0\n",
        "-- ${env:HOME}\n",
        "//\n",
        "-- a\u2028AND 1 = 0\n",
        "-- a\x0bAND 1 = 0\n",
        "/* ; */",
        "-- /*\n",
        "--1\n",
    ),
    *('/* " */', "/* ` */", "-- a\x85AND 1 = 0\n", "/* $$ */", "/*/ AND 1 = 0 /*/", "/***/", "--\\\n", "-- a\\\r\n"),
)
BLANKS = (
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\x0c",
    "\x0b",
    "\u00a0",
    "\u3000",
    "\ufeff",
    "\u2028",
    "\x00",
    "\x85",
    "\u200b",
)

PIECES = (
    "a",
    "B",
    " ",
    "''",
    "\\",
    "\\\\",
    "\\'",
    "\\n",
    '"',
    "`",
    "\u00e9",
    "\u00a0",
    "--",
    "/*",
    "*/",
    ";",
    "${x}",
    "$$",
    "\\0",
)
PIECES += (
    "%",
    "\\x41",
    "\\u0041",
    "{{",
    "\n",
    "\t",
    "\\",
    "\U0001f600",
    "' '",
    "'\n'",
    "\\%",
    "e\u0301",
    "\\b",
    "\r",
    "&",
    "\\u00e9",
)
PREFIXES = ("",) * 12 + ("E", "e", "N", "X", "U&", "B", "R", "r", "_utf8", "$$", "b")


def text(choose):
    """A string literal, well or badly written, in one of the ways strings begin."""
    prefix = choose.choice(PREFIXES)
    inner = "".join(choose.choice(PIECES) for _ in range(choose.randint(1, 4)))
    if prefix == "$$":
        return f"$${inner}$$"
    return f"{prefix}'{inner}'" + (" 'c'" if choose.random() < 0.05 else "")


ESCAPES = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "0": "\0",
    "b": "\b",
    "x41": "A",
    "u0041": "A",
    "u00e9": "\u00e9",
    "\\": "\\",
    "'": "'",
}


def meanings(literal):
    """Every text that this literal may stand for in some engine: what a reader may take it to be."""
    inner = literal[literal.index("'") + 1 : literal.rindex("'")] if literal.count("'") > 1 else literal.strip("$")
    found = {
        inner,
        inner.replace("''", "'"),
        inner.replace("''", ""),
        inner.replace("' '", ""),
        inner.replace("'\n'", ""),
    }
    found |= {each.replace("' 'c", "c") for each in found} | {
        each.replace("' '", "").replace("''", "'") for each in found
    }
    found |= {_unescaped(each, keep) for each in tuple(found) for keep in ("", "\\")}
    found |= {each.replace("\r\n", "\n") for each in found}
    return tuple(sorted(each for each in found if each))


def _unescaped(inner, keep):
    """Backslashes resolved; before a letter that is not an escape, the backslash goes or stays."""
    found, at = [], 0
    while at < len(inner):
        for letters, meaning in ESCAPES.items():
            if inner[at] == "\\" and inner.startswith(letters, at + 1):
                found.append(meaning)
                at += 1 + len(letters)
                break
        else:
            found.append(keep if inner[at] == "\\" else inner[at])
            at += 1
    return "".join(found)
