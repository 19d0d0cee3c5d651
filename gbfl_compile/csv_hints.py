"""What is likely the matter with a CSV file that is not read as its author means it, and the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "upright strokes"}

FOR_SPREADSHEETS = {f"sep={mark}" for mark in (",", *SEPARATORS)}

UTF_16 = (b"\xff\xfe", b"\xfe\xff")

NUMBER_IN_OTHER_WORDS = re.compile(r"[+-]?\d[\d.,' \u00a0\u2009\u202f\u2019]*")
NUMBER_WITH_A_UNIT = re.compile(r"[^\d\w]{0,3}[+-]?\d[\d.,' ]*[^\d\w]{0,3}")
NO_VALUE = frozenset({"?", "-", "--", ".", "n.a.", "N.A.", "na", "none", "missing", "unknown"})


def other_separator(header: Sequence[str], rows: Iterator[Sequence[str]]) -> str | None:
    """What to do where it is not commas that separate: the header is one name, in which it stands as often as below."""
    if ",".join(header) in FOR_SPREADSHEETS:
        return f"its first line, {','.join(header)!r}, is for a spreadsheet and has no names: remove it"
    marks = [mark for mark in SEPARATORS if len(header) == 1 and mark in header[0]]
    first_row = ",".join(next(rows, ())) if marks else ""
    for mark in marks:
        if header[0].count(mark) == first_row.count(mark):
            shown = {"\t": "\\t"}.get(mark, mark)
            return (
                f"its fields are separated by {SEPARATORS[mark]}: save it with commas between fields and points in "
                f"numbers, in pandas: read_csv(FILE, sep='{shown}', decimal=',').to_csv(NEW, index=False)"
            )
    return None


def other_encoding(error: UnicodeDecodeError) -> str:
    """What to do about bytes that are not UTF-8."""
    if error.start == 0 and error.object[:2] in UTF_16:
        return "it is UTF-16: save it as UTF-8, for instance with: iconv -f UTF-16 -t UTF-8"
    wrong = error.object[error.start]
    return f"the byte {wrong:#04x} is not UTF-8: save it as UTF-8, for instance with: iconv -f WINDOWS-1252 -t UTF-8"


def number_hint(value: object) -> str:
    """What to write in place of what is not a number; nothing where it is a word like any other."""
    if not isinstance(value, str):
        return ""
    word = value.strip()
    if word in NO_VALUE:
        return ": leave a missing value empty"
    if NUMBER_IN_OTHER_WORDS.fullmatch(word):
        return ": write numbers with a point, and nothing between thousands"
    if NUMBER_WITH_A_UNIT.fullmatch(word):
        return ": write the number alone"
    return ""
