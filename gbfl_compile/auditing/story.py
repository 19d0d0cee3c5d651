"""A difference, for people who run databases: its line in the text, how to see it, which rows change, how to fix it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gbfl_compile.ir.text import printable


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a deployed text."""

    number: int
    text: str
    """The line as it is; of a long one, the part that matters."""
    of: str | None = None
    """The view that has it, where it is not the one audited."""

    unit: str = "line"
    """What it is: a line of a text, or a row of a table."""

    def place(self, text: str | None = None) -> str:
        """Where it is; `text` is what the text is called that was audited."""
        of = text if self.of is None else self.of
        where = f"{self.unit} {self.number}"
        return where if of is None else f"{where} of {printable(of)}"


@dataclass(frozen=True, slots=True)
class Mend:
    """The one edit that makes a deployed text the approved program. It was made, read again and proved."""

    line: TextLine
    old: str
    new: str
    places: int = 1
    """In how many places the text has it: all of them are to be edited."""
    exchanged: tuple[str, str] | None = None
    """Two pieces of the text that change places, where that is all that the edit does."""


@dataclass(frozen=True, slots=True)
class RowMoves:
    """How many of some rows get another class, and between which classes."""

    rows: int
    of: int
    moves: tuple[tuple[Any, Any, int], ...]
    """(approved, deployed, number of rows), the most frequent first."""
    where: str = "the data"


@dataclass(frozen=True, slots=True)
class Story:
    """What a report adds to a difference."""

    line: TextLine | None = None
    """The place in the deployed text that is different."""
    mend: Mend | None = None
    was_sought: bool = False
    """Whether an edit that mends it was looked for."""
    query: str | None = None
    """A SELECT that shows it; it was run and gave the deployed label."""
    key: Mapping[str, Any] = field(default_factory=dict)
    """The example's own key, where the example is a row of the table."""
    table: str | None = None
    """The table that has the example's row now."""


def story_form(story: Story) -> dict[str, Any]:
    """As JSON."""

    def line_form(line: TextLine) -> dict[str, Any]:
        return {"line": line.number, "text": line.text, "of": line.of}

    mend = story.mend
    return {
        "line": None if story.line is None else line_form(story.line),
        "mend": None
        if mend is None
        else {**line_form(mend.line), "old": mend.old, "new": mend.new, "places": mend.places},
        "select": story.query,
        "table": story.table,
        "key": {
            name: value if isinstance(value, str | int | float) else str(value) for name, value in story.key.items()
        },
    }


def place_lines(story: Story, text: str | None = None) -> Iterator[str]:
    """Where the text says it, and the edit."""
    line = story.mend.line if story.mend is not None else story.line
    if line is not None:
        yield f"    {line.place(text)}: {printable(line.text)}"
    if story.mend is not None:
        old, new = (printable(" ".join(text.split())) for text in (story.mend.old, story.mend.new))
        if story.mend.exchanged is not None:
            yield "    to mend it, put the second of these branches before the first:"
            yield from (f"      {printable(' '.join(branch.split()))}" for branch in story.mend.exchanged)
        elif not old:
            yield f"    to mend it, insert {new}"
        elif not new:
            yield f"    to mend it, remove {old}"
        else:
            everywhere = "" if story.mend.places == 1 else f", in all {story.mend.places} places"
            yield f"    to mend it, write {new} for {old}{everywhere}"
        what = "the text with this one edit" if story.mend.line.unit == "line" else "the view with this one value"
        yield f"      ({what} was read again and is equal to the approved program)"
    elif story.was_sought:
        yield "    no single edit of the text was found that mends it"


def query_lines(story: Story) -> Iterator[str]:
    """The SELECT."""
    if story.query is not None:
        yield "  to see it, run:"
        lines = [line for line in story.query.splitlines() if line.strip()]
        yield from (f"    {line}{';' if number == len(lines) else ''}" for number, line in enumerate(lines, 1))


def moves_form(moves: RowMoves) -> dict[str, Any]:
    """Rows that get another class."""
    listed = [{"approved": a, "deployed": b, "rows": count} for a, b, count in moves.moves]
    return {"rows": moves.rows, "of": moves.of, "moves": listed, "where": moves.where}


def moves_lines(moves: RowMoves, than: str = "") -> Iterator[str]:
    """How many rows, and from which class to which."""
    yield f"  {moves.rows:,} of {moves.of:,} rows of {printable(moves.where)} get another class{than}"
    for a, b, count in moves.moves:
        yield f"    {count:,} from {a!r} to {b!r}"
