"""Names of tables and columns, quoted so that no name is anything but a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gbfl_compile.databases.base import ROW
from gbfl_compile.errors import BadInput


@dataclass(frozen=True, slots=True)
class Naming:
    """How one engine spells names, and which it cannot hold."""

    engine: str
    style: Literal["double", "back", "backslash"]
    """"a""b", `a``b`, or `a\\`b` (ClickHouse, where a backslash escapes inside quotes too)."""
    longest: int = 1000
    """In UTF-8 bytes. PostgreSQL cuts longer names off without an error: two could become one."""
    case_blind: bool = True
    """Whether `Age` and `age` are one column, however they are quoted."""
    basic_plane: bool = False
    """Whether characters past U+FFFF are refused by the engine."""


def quoted(naming: Naming, name: str) -> str:
    """The name as an identifier of this engine."""
    where = f"the name {name!r}"
    if not name:
        raise BadInput("a table or column needs a name: it is empty")
    if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise BadInput(f"{where} has a character that no database holds: rename it")
    if len(name.encode()) > naming.longest:
        raise BadInput(f"{where} is longer than the {naming.longest} bytes {naming.engine} keeps of a name: rename it")
    if naming.basic_plane and (name.endswith(" ") or any(letter > "\uffff" for letter in name)):
        raise BadInput(f"{where} ends in a space or has a character past U+FFFF, which {naming.engine} refuses")
    return SPELLINGS[naming.style](name)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "double": lambda name: '"' + name.replace('"', '""') + '"',
    "back": lambda name: "`" + name.replace("`", "``") + "`",
    "backslash": lambda name: "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`",
}


def quoted_columns(naming: Naming, columns: Sequence[str]) -> list[str]:
    """ROW and the columns, quoted; two names that are one column in this engine are refused."""
    seen: dict[str, str] = {}
    for name in (ROW, *columns):
        key = name.lower() if naming.case_blind else name
        if key in seen:
            raise BadInput(f"the columns {seen[key]!r} and {name!r} are one column in {naming.engine}: rename one")
        seen[key] = name
    return [quoted(naming, name) for name in seen.values()]
