"""The files around NAME.c and NAME.h: gbfl.h, build files, examples. Each is the known one, or the artifact is refused.

They matter: a build file decides the flags, and -ffast-math there would make another program of the same source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c.lexer import plain_text, runtime_tokens, tokens
from gbfl_compile.checking.strict.c.template import known_text

PROGRAMS = {"examples/selftest/main.c": "main.c", "examples/selftest/selftest.ino": "selftest.ino"}
"""Compared token by token."""

SETTINGS = {"CMakeLists.txt": "CMakeLists.txt", "library.properties": "library.properties"}
"""Compared line by line. A line that begins with # says nothing in either (but #[[ begins more in CMake)."""

BUILD = {"srcDir": ".", "includeDir": ".", "srcFilter": ["+<@NAME@.c>"], "flags": ["-ffp-contract=off"]}


def check_file(file: str, content: bytes, name: str) -> None:
    """Refuse a file that is not the known one of its name."""
    values = {"NAME": name}
    if file == "gbfl.h":
        same = runtime_tokens(content) == _known_runtime()
    elif file in PROGRAMS:
        same = tokens(content).words == tokens(known_text(PROGRAMS[file], values).encode("ascii")).words
    elif file in SETTINGS:
        known = _lines(known_text(SETTINGS[file], values))
        lines = _lines(plain_text(content))
        same = len(lines) == len(known) and all(map(_says, lines, known))
    elif file == "library.json":
        same = _is_platformio(plain_text(content), name)
    else:
        raise Unread("is not a file that belongs to a model")
    if not same:
        raise Unread("is not the file known by this name")


@cache
def _known_runtime() -> list[str]:
    return runtime_tokens(known_text("gbfl.h", {}).encode("ascii"))


def _lines(text: str) -> list[str]:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line and (not line.startswith("#") or line.startswith("#["))]


def _says(line: str, known: str) -> bool:
    return re.fullmatch(re.escape(known).replace("@TEXT@", ".*"), line) is not None


def _is_platformio(text: str, name: str) -> bool:
    """Whether the file has what it should and nothing else; version and description may say what they like."""
    try:
        form = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return False
    if not isinstance(form, Mapping):
        return False
    free = {key: form[key] for key in ("version", "description") if isinstance(form.get(key), str)}
    build = {**BUILD, "srcFilter": [f"+<{name}.c>"]}
    return len(free) == 2 and form == {"name": name, "headers": f"{name}.h", "build": build, **free}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key is said twice: which one counts depends on who reads it."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)
