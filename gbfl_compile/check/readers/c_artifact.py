"""An emitted C artifact taken apart: its files, functions, tables and public names. Nothing may be left over."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gbfl_compile.check.readers.c_forms import known
from gbfl_compile.check.readers.c_layouts import layout_file
from gbfl_compile.check.readers.c_match import Found, Hole, attempt, same
from gbfl_compile.check.readers.c_source import (
    HEADER,
    SOURCE,
    code_of,
    line_of,
    parsed,
    plain,
    refuse,
    words_of,
)
from gbfl_compile.check.readers.c_tables import Table, enumerators, table
from gbfl_compile.check.reading import Unread

RUNTIMES = {
    "abc02b4119ba20c7dc427dccd1c4ed1d621a23c55a7fea308813ae788924710f",
}
"""The SHA-256 of each gbfl.h that is known, comments and spacing aside. Look at what changed before adding to it."""

CONSTANTS = ("FEATURES", "CLASSES", "CLAUSES", "HELD_WORDS", "LEAVES", "REAL_BITS", "HAS_BATCH")
Read = TypeVar("Read")

REALS = {64: "double", 32: "float"}


@dataclass(slots=True)
class Artifact:
    """What is still to be read of the .c file, and what has been found out."""

    name: str
    real: str
    constants: Mapping[str, int]
    functions: dict[str, Any]
    tables: dict[str, Any]
    initialisers: Mapping[str, Sequence[str]]
    prototypes: dict[str, Any]
    found: Found
    used: tuple[bool, ...] = ()
    """Which features a caller has to give a column for."""

    def constant(self, which: str) -> int:
        """One of the numbers that the header tells."""
        return self.constants[f"{self.name}_{which}"]

    def has(self, which: str) -> bool:
        """Whether a function or table of this name is still to be read."""
        return f"{self.name}_{which}" in self.functions or f"{self.name}_{which}" in self.tables


def opened(files: Mapping[str, bytes]) -> Artifact:
    """The artifact in these files."""
    names = [name.removesuffix(".c") for name in files if name.endswith(".c") and "/" not in name]
    if len(names) != 1 or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", names[0]):
        raise Unread(f"{len(names)} .c files: an artifact is NAME.c, NAME.h and gbfl.h")
    name = names[0]
    for needed in (f"{name}.h", "gbfl.h"):
        if needed not in files:
            raise Unread(f"{needed} is not there, and {name}.c includes it")
    for file, content in files.items():
        if file not in (f"{name}.c", f"{name}.h", "gbfl.h"):
            layout_file(file, content, name)
    if runtime_digest(files["gbfl.h"]) not in RUNTIMES:
        raise Unread("gbfl.h: is not one that this reader knows")
    constants, prototypes = _in_file(f"{name}.h", lambda: _header(name, files[f"{name}.h"]))
    real = REALS.get(constants[f"{name}_REAL_BITS"])
    if real is None:
        raise Unread(f"{name}.h: numbers of {constants[f'{name}_REAL_BITS']} bits")
    return _in_file(f"{name}.c", lambda: _source(name, real, constants, prototypes, files[f"{name}.c"]))


def runtime_digest(content: bytes) -> str:
    """What a gbfl.h is known by: its tokens. A continued line is joined; the model's own files have none."""
    words = words_of(plain(content.replace(b"\\\n", b" ")))
    return hashlib.sha256("\n".join(words).encode("utf-8")).hexdigest()


def _in_file(name: str, read: Callable[[], Read]) -> Read:
    try:
        return read()
    except Unread as error:
        raise Unread(f"{name}: {error}") from None


def _header(name: str, content: bytes) -> tuple[dict[str, int], dict[str, Any]]:
    constants: dict[str, int] = {}
    prototypes: dict[str, Any] = {}
    enumerations = 0
    for node in _declarations(code_of(plain(content), HEADER.format(name=re.escape(name))).text):
        kind = type(getattr(node, "type", None)).__name__
        if type(node).__name__ == "Decl" and kind == "Enum" and node.type.name is None and node.type.values:
            new = enumerators(node)
            if set(new) & set(constants) or not all(constant.startswith(f"{name}_") for constant in new):
                refuse(line_of(node), "enumerators that are not the model's own")
            constants |= new
            enumerations += 1
        elif type(node).__name__ == "Decl" and kind == "FuncDecl" and node.name not in prototypes:
            prototypes[node.name] = node
        else:
            refuse(line_of(node), "a declaration that is not understood")
    if enumerations != 2 or list(constants)[-len(CONSTANTS) :] != [f"{name}_{constant}" for constant in CONSTANTS]:
        raise Unread("has not the enumerators of an emitted header")
    return constants, prototypes


def is_model_header(name: str, content: bytes) -> bool:
    """Whether this is the NAME.h of an emitted model, which declares what begins with its name and defines nothing."""
    try:
        _, prototypes = _header(name, content)
    except (Unread, RecursionError):
        return False
    return all(called.startswith(f"{name}_") for called in prototypes)


def _declarations(code: str) -> list[Any]:
    """Those of the file itself: what the parser was told before it stands on line 1."""
    return [node for node in parsed(code).ext if line_of(node) > 0]


def _source(name: str, real: str, constants: Mapping[str, int], prototypes: dict[str, Any], content: bytes) -> Artifact:
    code = code_of(plain(content), SOURCE[real].format(name=re.escape(name)))
    found = Artifact(name, real, constants, {}, {}, code.tables, prototypes, Found(name, real, constants))
    for node in _declarations(code.text):
        match type(node).__name__:
            case "FuncDef":
                into, called = found.functions, node.decl.name
            case "Decl" | "Typedef" if node.name is not None:
                into, called = found.tables, node.name
            case _:
                refuse(line_of(node), "a declaration that is not understood")
        if called in found.functions or called in found.tables or not called.startswith(f"{name}_"):
            refuse(line_of(node), f"{called} is declared twice, or is not the model's own")
        into[called] = node
    return found


def recognise(artifact: Artifact, text: str) -> None:
    """Take out the functions of a known text; what is in their holes is kept in `artifact.found`."""
    for form_name, forms in known(text).items():
        called = f"{artifact.name}_{form_name[2:]}"
        node = artifact.functions.pop(called, None)
        if node is None:
            raise Unread(f"has no {called}")
        for form in forms:
            into = attempt(artifact.found)
            if same(form, node, into):
                artifact.found = into
                break
        else:
            refuse(line_of(node), f"{called} is not the function known by this name")
        if "static" not in forms[0].decl.storage:
            _recognise_prototype(artifact, forms[0], called)


def _recognise_prototype(artifact: Artifact, form: Any, called: str) -> None:
    node = artifact.prototypes.pop(called, None)
    if node is None or not same(form.decl, node, attempt(artifact.found)):
        raise Unread(f"{artifact.name}.h does not declare {called} as it is")
    names = [parameter.name for parameter in (node.type.args.params if node.type.args else []) if parameter.name]
    if len(set(names)) != len(names):
        refuse(line_of(node), f"two parameters of {called} are called alike")


def take_table(artifact: Artifact, which: str, kinds: Sequence[str], shape: Sequence[int | None]) -> Table:
    """Take out a table and give its elements."""
    node = artifact.tables.pop(f"{artifact.name}_{which}", None)
    if node is None or type(node).__name__ != "Decl":
        raise Unread(f"has no table {artifact.name}_{which}")
    return table(node, artifact.initialisers, kinds, shape)


def hole(artifact: Artifact, which: str) -> Hole:
    """What was found in a hole of the functions recognised so far."""
    return artifact.found.holes[f"H_{which}"]


def nothing_left(artifact: Artifact) -> None:
    """Everything has been read, or it is refused."""
    for left in (*artifact.functions.values(), *artifact.tables.values()):
        refuse(line_of(left), f"{getattr(left, 'name', None) or left.decl.name} is not known")
    for called in artifact.prototypes:
        raise Unread(f"{artifact.name}.h declares {called}, which is not known")
