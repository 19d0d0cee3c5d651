"""What a CSV file looks like before it is read: its separators, its words for numbers, rows of too few fields.

A row with fewer fields than the header is refused, and its line is named.
pandas silently fills a row that ends too early with missing values, and skips blank lines. Here the separators of a
file are examined, block by block; what they do not decide is decided by reading it row by row.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from gbfl_compile.errors import BadInput

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "upright strokes"}

FOR_SPREADSHEETS = {f"sep={mark}" for mark in (",", *SEPARATORS)}

UTF_16 = (b"\xff\xfe", b"\xfe\xff")

NUMBER_IN_OTHER_WORDS = re.compile(r"[+-]?\d[\d.,' \u00a0\u2009\u202f\u2019]*")
NUMBER_WITH_A_UNIT = re.compile(r"[^\d\w]{0,3}[+-]?\d[\d.,' ]*[^\d\w]{0,3}")
TIME_IN_OTHER_WORDS = r"(,? \d{1,2}[:.]\d{2}.*|T\d.*)?"
DATE_IN_OTHER_WORDS = re.compile(
    r"(\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})|\d{4}[./-]\d{1,2}[./-]\d{1,2}"
    r"|\d{1,2}[. -]{1,2}[^\W\d_]{3,9}\.?[ -]\d{2,4}|[^\W\d_]{3,9}\.? \d{1,2},? \d{4})" + TIME_IN_OTHER_WORDS
)
PADDED = re.compile(r"\s*0\d+\s*")
"""A number that begins with a zero, as postal codes and account numbers do."""
NO_VALUE = frozenset({"?", "-", "--", ".", "n.a.", "N.A.", "na", "none", "missing", "unknown"})


def other_separator(header: Sequence[str], rows: Iterator[Sequence[str]]) -> str | None:
    """A hint if the separator is not a comma: the header is one name that has the separator as often as the rows."""
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
        return "it is UTF-16: save it as UTF-8, for instance with: iconv -f UTF-16 -t UTF-8 FILE > NEW"
    wrong = error.object[error.start]
    convert = "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW"
    return f"the byte {wrong:#04x} is not UTF-8: save it as UTF-8, for instance with: {convert}"


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


def category_hint(texts: Collection[str]) -> str:
    """What to write where nearly all texts of a category are numbers or dates in another form; nothing elsewhere."""
    if any(PADDED.fullmatch(text) for text in texts):
        return "numbers that begin with a zero are treated as codes"
    for pattern, advice in (
        (
            DATE_IN_OTHER_WORDS,
            "write dates as 2024-03-01 to have them compared as dates, with times as 2024-03-01 10:00:00",
        ),
        (NUMBER_IN_OTHER_WORDS, "write numbers with a point, and nothing between thousands, to have them compared"),
        (NUMBER_WITH_A_UNIT, "write the numbers alone to have them compared"),
    ):
        if sum(pattern.fullmatch(text.strip()) is not None for text in texts) > MOSTLY * len(texts) > 0:
            return advice
    return ""


def spelled_alike(labels: Sequence[Any]) -> list[str]:
    """The texts among these that another differs from in blanks or capitals alone.

    >>> spelled_alike(["bad", "good", "Good "])
    ['good', 'Good ']
    """
    spellings: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            spellings.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return [text for texts in spellings.values() if len(texts) > 1 for text in texts]


MOSTLY = 0.9


def shown_text(texts: Sequence[str]) -> str:
    """The text that shows what such a hint is about: of dates in several forms, one that is not written as we want."""
    return next((text for text in texts if not DATE.fullmatch(text.strip())), texts[0])


DATE = re.compile(r"\d{4}-\d\d-\d\d")

ROWS_LOOKED_AT = 20_000


def padded_columns(path: Path, names: Sequence[str], *, packed: bool) -> list[str]:
    """The columns in which a number begins with a zero, by the first rows: codes, that read as numbers lose it."""
    padded: dict[int, None] = {}
    with open_csv(path, packed=packed) as file:
        for row in islice(csv.reader(file), 1, ROWS_LOOKED_AT):
            padded |= {place: None for place, text in enumerate(row) if text[:1] in "0 " and PADDED.fullmatch(text)}
    return [names[place] for place in sorted(padded) if place < len(names)]


BLOCK = 1 << 18
MOST_BLOCKS = 16
"""Blocks that a row may be cut into: each is read again with the next."""

LONGEST_ROW = 64 * 2**20
"""Characters of a line."""

COMMA, NEWLINE, QUOTE = b',\n"'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_csv(path: Path, *, packed: bool, errors: str = "strict") -> IO[str]:
    """The text of a CSV file, lines ending as they do."""
    open_ = gzip.open if packed else open
    return open_(path, "rt", newline="", encoding="utf-8-sig", errors=errors)


def refuse_short_rows(path: Path, table: Any, text: Sequence[str], *, packed: bool) -> bool:
    """Refuse a file that has a row with too few fields; whether it was read again to find out. `table` is some rows.

    Where every row has a last value, every row has all: a file is read again only where one has none. A file with one
    column is always read again: a blank line leaves no trace in the table.
    """
    names = len(table.columns)
    last = table.iloc[:, -1]
    if names > 1 and not last.isna().any() and not (table.columns[-1] in text and (last == "").any()):
        return False
    refuse_ragged(path, names, packed=packed)
    return True


def refuse_ragged(path: Path, names: int, *, packed: bool) -> None:
    """Name the first row that has more or fewer fields than there are names."""
    with gzip.open(path) if packed else path.open("rb") as file:
        if not _is_regular_file(file, names):
            _read_for_ragged(path, names, packed=packed)


def _is_regular_file(file: IO[bytes] | gzip.GzipFile, names: int) -> bool:
    """Whether all rows have this number of fields beyond doubt."""
    seen = file.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK) + file.read(BLOCK)
    while seen:
        if not (block := file.read(BLOCK)) and seen[-1] not in b"\r\n":
            seen += b"\n"
        whole = _regular_length(seen, names)
        if whole is None or len(seen) - whole > (MOST_BLOCKS * BLOCK if block else 0):
            return False
        seen = seen[whole:] + block
    return True


def _regular_length(seen: bytes, names: int) -> int | None:
    """The length of the complete rows, if all have this number of fields beyond doubt; None: they must be read."""
    import numpy as np

    if b"\r" in seen and seen.count(b"\r") != seen.count(b"\r\n") + seen.endswith(b"\r"):
        return None  # a line may end so, too
    letters = np.frombuffer(seen, dtype=np.uint8)
    places = np.flatnonzero((letters == COMMA) | (letters == NEWLINE) | (letters == QUOTE))
    kinds = letters[places]
    if b'"' in seen:
        quotes = kinds == QUOTE
        inside = np.bitwise_xor.accumulate(quotes)
        before = letters[places[quotes & inside & (places > 0)] - 1]
        if not np.isin(before, (COMMA, NEWLINE, QUOTE)).all():
            return None  # a quote within a field that began without one is a letter like others
        places = places[~(inside | quotes)]
        kinds = letters[places]
    ends = np.flatnonzero(kinds == NEWLINE)
    if not len(ends):
        return 0
    places, kinds = places[: ends[-1] + 1], kinds[: ends[-1] + 1]
    if names == 1:
        regular = len(kinds) == len(ends) and not _begin_with(b"\r\n\t ", letters, places).any()
    else:
        regular = _is_regular(kinds, names)
        if not regular:
            blank = _begin_with(b"\r\n", letters, places) & (kinds == NEWLINE)
            regular = _is_regular(kinds[~(blank & _after_newline(kinds))], names)
    return int(places[-1]) + 1 if regular else None


def _is_regular(kinds: Any, names: int) -> bool:
    """Whether every newline, and nothing else, follows exactly this number of separators."""
    last = kinds[names - 1 :: names] == NEWLINE
    return len(kinds) == names * len(last) and bool(last.all()) and int((kinds == NEWLINE).sum()) == len(last)


def _begin_with(these: bytes, letters: Any, places: Any) -> Any:
    """Whether one of these letters is the first after the separator before, for each."""
    import numpy as np

    return np.isin(letters[np.concatenate(([0], places[:-1] + 1))], tuple(these))


def _after_newline(kinds: Any) -> Any:
    """Whether the separator before ends a line, for each."""
    import numpy as np

    return np.concatenate(([True], kinds[:-1] == NEWLINE))


def _read_for_ragged(path: Path, names: int, *, packed: bool) -> None:
    """Read the file to its end, and name the first row that has more or fewer fields than there are names."""
    header_seen = False
    with open_csv(path, packed=packed, errors="replace") as file, _field_limit(LONGEST_ROW):
        for line, last, row, is_blank in _records(path, file):
            if is_blank and names == 1 and header_seen:
                raise BadInput(
                    f'{path}: line {line} is blank, which may be a missing value: write "" for one, or remove the line'
                )
            # An empty field more than there are names says nothing: some programs end every line with a comma.
            if not is_blank and len(row) != names and not (len(row) == names + 1 and not row[-1]):
                place = f"line {line} has" if line == last else f"lines {line} to {last}, one row as quoted, have"
                raise BadInput(f"{path}: {place} {_count_text(len(row), names)}")
            header_seen = header_seen or not is_blank


def _count_text(fields: int, names: int) -> str:
    if fields < names:
        return (
            f"fewer fields than the header, {fields} in place of {names}: complete the row, with nothing between two "
            "commas where a value is missing, or remove it"
        )
    way = (
        "put text that holds a comma between quotes" if names > 1 else "the first line must be the names of all columns"
    )
    return f"more fields than the header, {fields} in place of {names}: {way}"


def _records(path: Path, file: IO[str]) -> Iterator[tuple[int, int, list[str], bool]]:
    """The first and last line of each row, its fields, and whether it is a blank line."""
    last = ""

    def lines() -> Iterator[str]:
        nonlocal last
        while last := file.readline(LONGEST_ROW):
            if len(last) == LONGEST_ROW:
                raise BadInput(f"{path}: has a line of {LONGEST_ROW} characters or more")
            yield last

    reader, line = csv.reader(lines()), 1
    for row in reader:
        is_blank = line == reader.line_num and not last.strip(" \t\r\n")
        if is_blank and last.endswith("\r"):  # pandas would lose a comma at the begin of the next line
            raise BadInput(f"{path}: line {line} is blank and ends with a bare carriage return: remove it")
        yield line, reader.line_num, row, is_blank
        line = reader.line_num + 1


@contextlib.contextmanager
def _field_limit(characters: int) -> Iterator[None]:
    """The csv module takes fields of 131,072 characters, pandas longer ones."""
    before = csv.field_size_limit(characters)
    try:
        yield
    finally:
        csv.field_size_limit(before)
