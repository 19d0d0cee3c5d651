"""C source as emitted, without its comments and preprocessor lines, parsed: the only directives known are ours.

What GBFL_WITH_LIBM and GBFL_NO_BATCH leave in or out is read as left in: without it there is less, and nothing else.
So that this is true, directives may stand between declarations only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from gbfl_compile.check.reading import Unread
from gbfl_compile.errors import CannotRun

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<directive>^[ \t]*\#[^\n]*)
      | (?P<space>[ \t\n]+)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<other>[0-9.][A-Za-z0-9_.]*(?:(?<=[eEpP])[+-][A-Za-z0-9_.]*)*
        |<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s"'\#])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

TYPES = "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t uintptr_t REAL"
TYPEDEFS = "".join(f"typedef int {name};" for name in TYPES.split())
"""For the parser, which has to know what is a type; on a line of its own, before the first."""

DEEPEST = 150
"""Brackets within brackets; emitted code has 20 or so."""

IGNORED = "GBFL_CLONES"
"""An attribute for the compiler, or nothing: it changes what instructions are used, not what is computed."""

OPTIONAL = r"(?:(?:#ifdef GBFL_WITH_LIBM|#ifndef GBFL_NO_BATCH)\n#endif\n)*"
CPLUSPLUS = r"#ifdef __cplusplus\n#endif\n"

SOURCE = {
    "double": r'#include "{name}\.h"\n#include "gbfl\.h"\n#if DBL_MANT_DIG != 53\n#error [^\n]*\n#endif\n' + OPTIONAL,
    "float": r'#include "{name}\.h"\n#include "gbfl\.h"\n' + OPTIONAL,
}
HEADER = (
    r"#ifndef GBFL_MODEL_{name}_H\n#define GBFL_MODEL_{name}_H\n#include <stddef\.h>\n#include <stdint\.h>\n"
    rf"{CPLUSPLUS}{OPTIONAL}{CPLUSPLUS}#endif\n"
)
"""All directives of a file, one after another."""

FOR_CPLUSPLUS = ["extern", '"C"', "{", "}"]

OPENING, CLOSING = ("(", "[", "{"), (")", "]", "}")

TABLE = "GBFL_TABLE_"
"""How the names begin that stand in the place of tables; nothing else here may be called so."""

CONTINUED = re.compile(r"\\[ \t\v\f]*\n")
"""Compilers join lines over spaces after the backslash too, with no more than a warning."""


def plain(content: bytes) -> str:
    """The text of a file; what could be read in two ways (trigraphs, continued lines) is refused."""
    try:
        text = content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unread(f"is not UTF-8: {error.reason} at byte {error.start}") from None
    if (continued := CONTINUED.search(text)) is not None:
        refuse(text.count("\n", 0, continued.start()) + 1, "a continued line")
    for sign, name in (
        ("??", "a trigraph"),
        ("\0", "a NUL"),
        ("\r", "a carriage return"),
    ):
        if sign in text:
            refuse(text.count("\n", 0, text.index(sign)) + 1, name)
    return text


def refuse(line: int, what: str) -> NoReturn:
    """Say where, and what is not understood there."""
    raise Unread(f"line {line}: {what}")


def tokens(text: str) -> list[tuple[str, str, int]]:
    """(kind, text, line) for each token and each directive; comments and spaces are left out."""
    found = []
    at, line = 0, 1
    for match in TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match.group()
        if match.start() != at:
            break
        if kind in ("string", "directive") and any(sign in token for sign in ("/*", "*/", "//")):
            refuse(line, "what may be a comment, in a string or a preprocessor line")
        if kind not in ("comment", "space"):
            found.append((kind, token, line))
        line += token.count("\n")
        at = match.end()
    if at != len(text):
        refuse(line, f"{text[at]!r} is no C")
    return found


def words_of(text: str) -> list[str]:
    """The tokens alone, directives with single spaces: two files with the same ones mean the same."""
    return [" ".join(token.split()) if kind == "directive" else token for kind, token, _ in tokens(text)]


@dataclass(frozen=True, slots=True)
class Code:
    """Code without directives. Tables are cut out: they are long, and a parser of all of C is slow on them."""

    text: str
    tables: Mapping[str, Sequence[str]]
    """The tokens of each initialiser in braces, by the name that stands in its place."""


def code_of(text: str, directives: str) -> Code:
    """The code of a file whose directives are as they should be, each word on its line."""
    found = tokens(text)
    told = "".join(f"{' '.join(word.split())}\n" for kind, word, _ in found if kind == "directive")
    if not re.fullmatch(directives, told):
        raise Unread("its preprocessor lines are not those of an emitted file")
    lines: list[list[str]] = [[] for _ in range(text.count("\n") + 1)]
    tables: dict[str, list[str]] = {}
    table: list[str] | None = None
    depth, before = 0, ("", "")
    for kind, word, line in _code_tokens(found):
        if kind == before[0] == "string" or word.startswith(TABLE):
            refuse(line, f"{word[:40]} is not expected here")
        if table is None and word == "{" and before[1] == "=" and not depth:
            name = f"{TABLE}{len(tables)}"
            table = tables[name] = []
            lines[line - 1].append(name)
        depth += (word in OPENING) - (word in CLOSING)
        if kind == "directive" and depth:
            refuse(line, "a preprocessor line within a declaration")
        if not 0 <= depth <= DEEPEST:
            refuse(line, "brackets that do not match, or too many of them")
        if kind != "directive":
            (lines[line - 1] if table is None else table).append(word)
        if table is not None and not depth:
            table = None
        before = (kind, word)
    return Code("\n".join(" ".join(line) for line in lines), tables)


def _code_tokens(found: Sequence[tuple[str, str, int]]) -> Iterator[tuple[str, str, int]]:
    """The tokens that mean something to C. Where there should be none is none, and C++ sees what it should."""
    part, depth = "nothing", 0
    for_cplusplus: list[str] = []
    for kind, word, line in found:
        if kind == "directive":
            part = " ".join(word.split())
            yield kind, word, line
        elif part == "#ifdef __cplusplus":
            for_cplusplus.append(word)
        elif part.startswith(("nothing", "#if DBL", "#error", "#define")):
            refuse(line, f"code where there should be none: {word}")
        elif word != IGNORED or depth:
            depth += (word in OPENING) - (word in CLOSING)
            yield kind, word, line
    if for_cplusplus not in ([], FOR_CPLUSPLUS):
        raise Unread("says something else to C++ than to C")


def parsed(code: str) -> Any:
    """The declarations in code without directives, as pycparser has them; lines count from 2."""
    try:
        from pycparser import c_parser  # type: ignore[import-untyped] # it ships no type information
    except ImportError:
        raise CannotRun("reading C needs pycparser: pip install 'gbfl-compile[proof]'") from None
    try:
        return c_parser.CParser().parse(f"{TYPEDEFS}\n{code}")
    except RecursionError:
        raise
    except Exception as error:  # a parser given nonsense may fail in any way of its own
        raise Unread(f"is not C: {error}") from None


def line_of(node: Any) -> int:
    """The line a node stands on in its file."""
    return int(node.coord.line) - 1 if getattr(node, "coord", None) else 0
