"""C text as tokens, by a lexer of our own: every character is accounted for, and nothing has two meanings.

Refused at once: characters beyond ASCII (a compiler that takes UTF-8 for another encoding may lose the end of a
comment), trigraphs, digraphs, continued lines, comments within comments, and anything that is not a token of C.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias

from gbfl_compile.checking.reading.nodes import Unread

MARKS = ("/* gbfl api begins */", "/* gbfl api ends */")
"""Comments that are tokens: the loader cuts the header at them."""

_COMMENT = r"/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/|//(?:[^\n/]++|/(?!\*))*+(?![^\n])"  # all of the line, or no comment
_SPACE = r"[ \t\n]*+"
_DIRECTIVE = r"^\#[^\n]*"
_STRING = r'"(?:[^"\\\n]|\\[^\n])*"'
_LETTER = r"'[a-z]'"
_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_NUMBER = r"\.?[0-9](?:[A-Za-z0-9_.]++|(?<=[eEpP])[+-])*+"
_SIGN = (
    r"<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]="
    r"|/(?![*/])|<(?![:%])|:(?!>)|%(?![:>])|[\[\](){}.;,?!~>=+\-*&|^]"
)
_HOLE = r"\$[a-z_0-9]+(?::[a-z_]+)?\{?|\$\}"
_TOKEN = f",|{_NUMBER}|{_WORD}|{_COMMENT}|{_STRING}|{_DIRECTIVE}|{_LETTER}|{_SIGN}"

TOKEN = re.compile(f"(?:{_TOKEN}){_SPACE}|{_SPACE}", re.MULTILINE)
TOKEN_OR_HOLE = re.compile(f"(?:{_HOLE}|{_TOKEN}){_SPACE}|{_SPACE}", re.MULTILINE)
"""A token and the blanks after it; a text may begin with blanks."""

CONTINUED = re.compile(r"\\[ \t]*\n")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a file that mean something to a compiler, directives with single blanks."""

    words: list[str]
    text: str

    def line(self, at: int) -> int:
        """The line of a token, counted from 1."""
        meaningful = -1
        pieces = TOKEN.findall(self.text)
        for piece, end in zip(pieces, accumulate(len(piece) for piece in pieces), strict=True):
            meaningful += _means_something(piece.rstrip())
            if meaningful == at:
                return _line(self.text, end - len(piece))
        return self.text.count("\n") + 1


def tokens(content: bytes) -> Tokens:
    """The tokens of a file as emitted."""
    text = plain_text(content)
    if (continued := CONTINUED.search(text)) is not None:
        raise Unread(f"line {_line(text, continued.start())}: a continued line")
    return Tokens(_words(text, TOKEN), text)


def runtime_tokens(content: bytes) -> list[str]:
    """The tokens of gbfl.h, the only file with continued lines: they are joined as a compiler joins them."""
    text = plain_text(content).replace("\\\n", "")
    if CONTINUED.search(text) is not None:
        raise Unread("a continued line with blanks after the backslash")
    return _words(text, TOKEN)


def template_tokens(text: str) -> list[str]:
    """The tokens and holes of a known file."""
    return _words(text, TOKEN_OR_HOLE)


def plain_text(content: bytes) -> str:
    """The text of a file in plain ASCII, lines ending as they do on Unix."""
    try:
        text = content.decode("ascii").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unread(f"line {line}: a character that is not ASCII") from None
    if (strange := re.search(r"[^\n\t -~]", text)) is not None:
        raise Unread(f"line {_line(text, strange.start())}: the character {strange.group()!r}")
    if "??" in text:
        raise Unread(f"line {_line(text, text.index('??'))}: a trigraph")
    return text


def _words(text: str, token: re.Pattern[str]) -> list[str]:
    pieces = token.findall(text)
    if sum(map(len, pieces)) != len(text):
        at = _first_gap(text, token)
        raise Unread(f"line {_line(text, at)}: {text[at]!r} does not begin any known token")
    words = list(map(str.rstrip, pieces))
    different = set(words)  # a table has many words and few different ones
    nothing = {word for word in different if not _means_something(word)}
    words = [word for word in words if word not in nothing]
    wide = {word: " ".join(word.split()) for word in different if word[:1] == "#" and word != " ".join(word.split())}
    return [wide.get(word, word) for word in words] if wide else words


def _first_gap(text: str, token: re.Pattern[str]) -> int:
    at = 0
    for match in token.finditer(text):
        if match.start() != at:
            break
        at = match.end()
    return at


def _means_something(word: str) -> bool:
    return word[:1] not in ("", "/") or word in ("/", "/=") or word in MARKS


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


Real: TypeAlias = Literal["double", "float"]

COUNT = re.compile(r"0|[1-9][0-9]{0,9}|0[xX][0-9a-fA-F]{1,8}")
WHOLE = re.compile(r"(- )?(0|[1-9][0-9]{0,18}|0[xX][0-9a-fA-F]{1,8})|INT64_C \( (- )?(0|[1-9][0-9]{0,18}) \)")
UNSIGNED = re.compile(r"(0|[1-9][0-9]{0,19}|0[xX][0-9a-fA-F]{1,16})([uU]?)")
HEXADECIMAL = re.compile(r"0[xX]([0-9a-fA-F]+)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]{1,4})([fF]?)")
DECIMAL = re.compile(r"([0-9]{1,400})(?:\.([0-9]{0,1100}))?(?:[eE]([+-]?[0-9]{1,3}))?([fF]?)")

ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|[nt\"'\\])")
SIMPLE = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"'": b"'", b"\\": b"\\"}


class Format(NamedTuple):
    """A binary format: digits, the exponent of its smallest number, and the one its numbers stay below."""

    digits: int
    least: int
    beyond: int


FORMATS: dict[Real, Format] = {"double": Format(53, -1074, 1024), "float": Format(24, -149, 128)}


def count(text: str) -> int | None:
    """A number of things or a place: what an int holds, and not negative."""
    if COUNT.fullmatch(text) is None:
        return None
    number = int(text, 0)
    return number if number < 2**31 else None


@lru_cache(maxsize=4096)
def whole(text: str) -> int | None:
    """A signed number of 64 bits, its tokens joined by blanks; in hexadecimal only where it is an int."""
    match = WHOLE.fullmatch(text)
    if match is None:
        return None
    number = int(match[2] or match[4], 0)
    hexadecimal = (match[2] or "")[:2] in ("0x", "0X")
    if number >= (2**31 if hexadecimal else 2**63) or (
        hexadecimal and match[1]
    ):  # -0x8000 is 32768 to an int of 16 bits
        return None
    return -number if match[1] or match[3] else number


@lru_cache(maxsize=65536)
def unsigned_literal(text: str) -> int | None:
    """An unsigned number of at most 64 bits."""
    match = UNSIGNED.fullmatch(text)
    if match is None:
        return None
    number = int(match[1], 0)
    fits = number < (2**64 if match[2] or match[1][1:2] in ("x", "X") else 2**63)
    return number if fits else None


@lru_cache(maxsize=65536)
def real(text: str, kind: Real) -> float | None:
    """A literal of this type (`f` ends those of a float) that is one of its numbers exactly."""
    match = HEXADECIMAL.fullmatch(text)
    if match is not None:
        digits, power = int(match[1] + (match[2] or ""), 16), int(match[3]) - 4 * len(match[2] or "")
    else:
        match = DECIMAL.fullmatch(text)
        if match is None or (match[2] is None and match[3] is None):
            return None
        exact = Fraction(int(match[1] + (match[2] or ""))) * Fraction(10) ** (int(match[3] or 0) - len(match[2] or ""))
        digits, power = exact.numerator, 1 - exact.denominator.bit_length()
        if exact.denominator != 1 << -power:
            return None
    if bool(match[4]) != (kind == "float"):
        return None
    return _exactly(digits, power, FORMATS[kind])


def _exactly(digits: int, power: int, kind: Format) -> float | None:
    """digits * 2**power, where the format has it."""
    if digits == 0:
        return 0.0
    shift = (digits & -digits).bit_length() - 1
    digits, power = digits >> shift, power + shift
    if digits.bit_length() > kind.digits or power < kind.least or digits.bit_length() + power > kind.beyond:
        return None
    return math.ldexp(digits, power)


def string(text: str) -> str | None:
    """What a string literal says, in UTF-8; three octal digits, or one of a few letters, may follow a backslash."""
    inner = text[1:-1].encode("ascii")
    if text[0] != '"' or b"\\" in ESCAPE.sub(b"", inner):
        return None
    meaning = ESCAPE.sub(lambda match: SIMPLE.get(match[1]) or bytes((int(match[1], 8),)), inner)
    try:
        return None if b"\0" in meaning else meaning.decode("utf-8")
    except UnicodeDecodeError:
        return None
