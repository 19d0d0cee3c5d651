"""Disagreements that are known and not yet mended: counted and shown, but no reason to fail. An entry goes once mended."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """A disagreement of one reader: which texts show it, and in which rows."""

    reader: str
    dialect: str
    """An engine, or all of them where it is empty."""
    what: str
    has_text: Callable[[str], bool] = lambda text: True
    has_row: Callable[[Sequence[float | None]], bool] = lambda row: True


KNOWN = (
    Known(
        "general",
        "mariadb",
        "N'…' is of utf8mb3, which turns characters past U+FFFF into question marks",
        has_text=lambda text: "N'" in text and any(letter > "\uffff" for letter in text),
    ),
)


def known(reader, dialect, text):
    """What is known of this reader in this engine that such a text may show."""
    return [each for each in KNOWN if each.reader == reader and each.dialect in ("", dialect) and each.has_text(text)]
