"""JavaScript text as tokens, by a lexer of our own: every character is accounted for, and nothing has two meanings.

Refused at once: characters beyond ASCII (U+2028 ends a comment), control characters, a `<` that could begin a tag in a
page, comments that tools obey, a line that ends after `return` or `throw` or between two words (a semicolon may be
inserted there), numbers of more digits than every engine must read exactly, and anything that is not a token of the
modules we emit.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from gbfl_compile.checking.reading.nodes import Unread

_NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?(?![0-9A-Za-z_.$])"
_SIGN = r"===|!==|=>|\*\*|\?\?|&&|\|\||\+=|-=|>=|<=|[-+*/%<>=!?:;,.(){}\[\]|]"
_STRING = r'"(?:[^"\\\n]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"'
TOKEN = re.compile(rf"//[^\n]*|{_STRING}|[A-Za-z][A-Za-z0-9_]*|{_NUMBER}|{_SIGN}|[ \n]+")

OBEYED = re.compile(r"// *[#@]|///")
"""The beginning of a comment that a bundler, a debugger or a compiler of types acts on."""

MOST_DIGITS = 17
LARGEST_WHOLE = 2**53

RESERVED = frozenset(
    (
        *("arguments", "await", "break", "case", "catch", "class", "const", "continue", "debugger", "default"),
        *("delete", "do", "else", "enum", "eval", "export", "extends", "false", "finally", "for", "function", "if"),
        *("implements", "import", "in", "instanceof", "interface", "let", "new", "null", "package", "private"),
        *("protected", "public", "return", "static", "super", "switch", "this", "throw", "true", "try", "typeof"),
        *("var", "void", "while", "with", "yield"),
    )
)
"""Words that are not names in a module."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that mean something, and the line of each."""

    words: list[str]
    lines: list[int]


def tokens(content: bytes) -> Tokens:
    """The tokens of a file."""
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise Unread(f"line {content.count(10, 0, error.start) + 1}: a character that is not ASCII") from None
    if (strange := re.search(r"[^\n -~]", text)) is not None:
        raise Unread(f"line {text.count(chr(10), 0, strange.start()) + 1}: the character {strange.group()!r}")
    words: list[str] = []
    lines: list[int] = []
    at, line = 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Unread(f"line {line}: {text[at]!r} does not begin any known token")
        word = match.group()
        if OBEYED.match(word):
            raise Unread(f"line {line}: a comment that tools obey")
        if (word[0] == "\n" or word.startswith("//") or "\n" in word) and words and words[-1] in ("return", "throw"):
            raise Unread(f"line {line}: a line that ends after {words[-1]}")
        if words and line > lines[-1] and _is_word(word) and _is_word(words[-1]):
            raise Unread(f"line {line}: a line that begins with {word[:60]}, after one that ends with {words[-1][:60]}")
        if word[0] not in " \n" and not word.startswith("//"):
            words.append(word)
            lines.append(line)
        line += word.count("\n")
        at = match.end()
    if (tag := re.search(r"<[/!?]|<script", text, re.IGNORECASE)) is not None:
        raise Unread(f"line {text.count(chr(10), 0, tag.start()) + 1}: {tag.group()} could end the script of a page")
    return Tokens(words, lines)


def _is_word(token: str) -> bool:
    """A name, a number or a text: a semicolon may be inserted between two of them, where a line ends."""
    return token[0].isalnum() or token[0] == '"'


class Cursor:
    """Reads tokens one after another: each must be what is expected, or the file is refused with its line."""

    def __init__(self, file: Tokens) -> None:
        self.words, self.lines, self.at = file.words, file.lines, 0

    @classmethod
    def of(cls, words: list[str]) -> Cursor:
        """These tokens, all on one line."""
        return cls(Tokens(words, [1] * len(words)))

    def refuse(self, what: str) -> NoReturn:
        """Refuse the file with the line and what is not understood there."""
        place = min(max(self.at - 1, 0), len(self.lines) - 1)
        raise Unread(f"line {self.lines[place] if self.lines else 1}: {what}")

    def peek(self, ahead: int = 0) -> str:
        """A token that is still to come; nothing after the last."""
        return self.words[self.at + ahead] if self.at + ahead < len(self.words) else ""

    def next(self) -> str:
        """The next token."""
        word = self.peek()
        self.at += 1
        return word or self.refuse("ends too early")

    def take(self, pattern: str) -> bool:
        """Whether these tokens come next; if so, they are consumed."""
        wanted = pattern.split(" ")
        if self.words[self.at : self.at + len(wanted)] != wanted:
            return False
        self.at += len(wanted)
        return True

    def expect(self, pattern: str, text: str = "") -> None:
        """These tokens and no others; `$` is the token `text`."""
        self.expect_words([text if word == "$" else word for word in pattern.split(" ")])

    def expect_words(self, wanted: Sequence[str]) -> None:
        """These tokens and no others."""
        for word in wanted:
            if self.peek() != word:
                other = self.peek()[:60] or "the end of the file"
                self.at += 1
                self.refuse(f"found {other}, known here is {word[:60]}")
            self.at += 1

    def expect_end(self) -> None:
        """Nothing more."""
        if self.at < len(self.words):
            self.at += 1
            self.refuse(f"goes on with {self.words[self.at - 1][:60]}")

    def name(self) -> str:
        """A name that a parameter can have."""
        word = self.next()
        if not word[0].isalpha() or word in RESERVED:
            self.refuse(f"{word[:60]} is not a name")
        return word

    def text(self) -> str:
        """A string, which has no half of a surrogate pair."""
        word = self.next()
        if word[0] != '"':
            self.refuse(f"{word[:60]} is not a string")
        text = json.loads(word)
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            self.refuse(f"{word[:60]} has half of a surrogate pair")
        return str(text)

    def truth(self) -> bool:
        """true or false."""
        word = self.next()
        if word not in ("true", "false"):
            self.refuse(f"{word[:60]} is neither true nor false")
        return word == "true"

    def count(self) -> int:
        """A whole number from 0 on."""
        word = self.next()
        if not word.isdigit() or len(word) > MOST_DIGITS or int(word) > LARGEST_WHOLE:
            self.refuse(f"{word[:60]} is not a whole number")
        return int(word)

    def whole(self) -> int:
        """A whole number; there is no -0."""
        negative = self.take("-")
        number = self.count()
        if negative and number == 0:
            self.refuse("-0 is not 0")
        return -number if negative else number

    def double(self) -> float:
        """A finite number, short enough that every engine reads the same double; there is no -0."""
        negative = self.take("-")
        word = self.next()
        digits = re.sub(r"e.*|\.", "", word).lstrip("0")
        if not word[0].isdigit() or len(digits) > MOST_DIGITS or len(word) > 2 * MOST_DIGITS:
            self.refuse(f"{word[:60]} is not a number of at most {MOST_DIGITS} digits")
        number = float(word)
        if not math.isfinite(number) or (negative and number == 0):
            self.refuse(f"{word[:60]} is not a finite number")
        return -number if negative else number

    def doubles(self) -> tuple[float, ...]:
        """Numbers up to the closing bracket, which is consumed."""
        numbers = [self.double()]
        while self.take(","):
            numbers.append(self.double())
        self.expect("]")
        return tuple(numbers)

    def label(self) -> object:
        """A class label: a text, a truth value, a whole number, or a number that is written with a point."""
        word = self.peek(1) if self.peek() == "-" else self.peek()
        if word[:1] == '"':
            return self.text()
        if word in ("true", "false"):
            return self.truth()
        return self.whole() if word.isdigit() else self.double()
