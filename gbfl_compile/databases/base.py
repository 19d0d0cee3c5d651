"""What a database is to us: run a statement, fetch a query's rows, take rows in without changing a bit of them.

Each engine has a file that makes a `Database` of its own client; whoever holds one need not know which it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from gbfl_compile.errors import CannotRun, GbflError

if TYPE_CHECKING:
    from gbfl_compile.ir.batch import Matrix

ROW = "gbfl_row"
"""The first column of every inserted table: BIGINT, the row's number from 0. A table has no order of its own."""

Missing: TypeAlias = Literal["null", "nan"]
"""What a NaN of the matrix becomes in the table. Where an engine cannot hold NaN, both mean NULL."""


class Insert(Protocol):
    """Put a matrix into a table: ROW, then one double column a name, bit for bit.

    The table takes the place of the one inserted before under the same name. In a scratch database it is an ordinary
    table, so that views can stand on it; in a user's database it is a temporary one and goes with the connection.
    Names are raw: they are quoted here, and refused where the engine cannot hold them.
    """

    def __call__(self, table: str, columns: Sequence[str], rows: Matrix, *, missing: Missing = "null") -> None: ...


@dataclass(frozen=True, slots=True)
class Database:
    """An engine with somewhere to put tables. Failures of the engine are CannotRun and name its version."""

    dialect: str
    """The part after `sql:` of the target it runs."""
    version: str
    """As it stands in every verdict: `DuckDB 2.0.0`."""
    execute: Callable[[str], None]
    """One statement; its result, if it has one, is let go."""
    fetch: Callable[[str], list[tuple[Any, ...]]]
    """One query, all of its rows as Python values; NULL is None."""
    insert: Insert
    close: Callable[[], None]
    """Let go of the connection, and of what was made for it; a second call does nothing."""
    quote: Callable[[str], str]
    """A name as this engine writes it, or BadInput where it cannot hold it."""
    holds_nan: bool = True
    """Whether a double column can hold NaN. SQLite makes it NULL, MariaDB refuses it."""
    holds_infinity: bool = True
    """Whether a double column can hold infinities. MariaDB refuses them."""


def library(name: str, extra: str) -> Any:
    """An optional library, loaded now; its absence names the extra that brings it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise CannotRun(f"{name} is not installed: pip install 'gbfl-compile[{extra}]'") from None


@contextmanager
def told(version: str, lost: Callable[[Exception], bool] = lambda _: False) -> Iterator[None]:
    """Whatever the engine's client raises in the block becomes one line that names the engine."""
    try:
        yield
    except GbflError:
        raise
    except Exception as error:
        if lost(error):
            raise CannotRun(f"{version}: the connection was lost ({first_line(error)}): connect again") from None
        raise CannotRun(f"{version}: {first_line(error)}") from None


def first_line(error: BaseException) -> str:
    """What an error says, on one line and no longer than a screen: engines like to repeat the whole query."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}…"


LONGEST_TOLD = 400
