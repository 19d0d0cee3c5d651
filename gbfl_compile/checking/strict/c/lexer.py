"""C text as tokens, by a lexer of our own: every character is accounted for, and nothing has two meanings.

Refused at once: characters beyond ASCII (a compiler that takes UTF-8 for another encoding may lose the end of a
comment), trigraphs, digraphs, continued lines, comments within comments, and anything that is no token of C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from gbfl_compile.checking.reading.nodes import Unread

MARKS = ("/* gbfl api begins */", "/* gbfl api ends */")
"""Comments that are tokens: the loader cuts the header at them."""

_COMMENT = r"/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/|//(?:[^\n/]++|/(?!\*))*+(?![^\n])"  # all of the line, or no comment
_SPACE = r"[ \t\n]+"
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
_TOKEN = f"{_SPACE}|{_COMMENT}|{_WORD}|{_NUMBER}|{_STRING}|{_DIRECTIVE}|{_LETTER}|{_SIGN}"

TOKEN = re.compile(_TOKEN, re.MULTILINE)
TOKEN_OR_HOLE = re.compile(f"{_HOLE}|{_TOKEN}", re.MULTILINE)

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
            meaningful += _means_something(piece)
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
        raise Unread(f"line {_line(text, at)}: {text[at]!r} begins nothing that is known here")
    words = [piece for piece in pieces if piece >= "!"]  # blanks of any kind come before it, and are half the pieces
    special = {word for word in words if word[0] in "#/" and word not in ("/", "/=")}
    if special:
        comments = {word for word in special if not _means_something(word)}
        directives = {word: " ".join(word.split()) for word in special - comments}
        words = [directives.get(word, word) for word in words if word not in comments]
    return words


def _first_gap(text: str, token: re.Pattern[str]) -> int:
    at = 0
    for match in token.finditer(text):
        if match.start() != at:
            break
        at = match.end()
    return at


def _means_something(piece: str) -> bool:
    return piece[0] not in " \t\n/" or piece in ("/", "/=") or piece in MARKS


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
