"""Reads Markdown documents for what can be run: fenced blocks, their output, and remarks for the tests.

<!-- test: in model -->              the blocks that follow run in a fresh copy of this folder (tests/test_documents.py)
<!-- test: file main.c -->           the block is the content of a file
<!-- test: exit 1 -->                the block's last command ends with this code
<!-- test: not run: why -->          the block is not run; tests/test_documents.py lists all of these
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
GENERATED = {"paper.md"}
"""Documents that a command writes completely: their content is its output and takes half an hour to produce."""

DOCUMENTS = (
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED),
    ROOT / "examples" / "README.md",
)

RUN = ("bash", "python")
"""The languages of blocks that are run."""

OUTPUT = "text"
"""A block of this language is the output of the block before it; `…` matches anything."""

REMARK = re.compile(r"<!-- test: (.*?) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its place, its text, the remarks before it, and its output."""

    document: Path
    line: int
    language: str
    text: str
    remarks: tuple[str, ...] = ()
    output: str | None = None

    @property
    def place(self) -> str:
        """Its place, for error messages."""
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    def remark(self, word: str) -> str | None:
        """The text after the word in a remark, or None."""
        return next((remark[len(word) :].strip(" :") for remark in self.remarks if remark.startswith(word)), None)


@dataclass(slots=True)
class _Walk:
    remarks: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    follows: bool = False


def blocks(document: Path) -> tuple[Block, ...]:
    """Every fenced block of a document, each output attached to the block that prints it."""
    walk = _Walk()
    lines = iter(enumerate(document.read_text(encoding="utf-8").split("\n"), 1))
    for number, line in lines:
        if remark := REMARK.fullmatch(line.strip()):
            walk.remarks += [part.strip() for part in remark[1].split(";")]
        elif line.startswith("```"):
            _take(walk, document, number, line[3:].strip(), "".join(_until_fence(lines)))
        elif line.strip():
            walk.follows = False
    assert not walk.remarks, f"{document}: a remark that no block follows: {walk.remarks}"
    return tuple(walk.blocks)


def _until_fence(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line.startswith("```"):
            return
        yield f"{line}\n"
    raise AssertionError("a fence is not closed")


def _take(walk: _Walk, document: Path, number: int, language: str, text: str) -> None:
    if language == OUTPUT and walk.follows and not walk.remarks:
        before = walk.blocks.pop()
        walk.blocks.append(Block(document, before.line, before.language, before.text, before.remarks, text))
        walk.follows = False
        return
    walk.blocks.append(Block(document, number, language, text, tuple(walk.remarks)))
    walk.remarks = []
    walk.follows = language in RUN


def matches(expected: str, printed: str) -> bool:
    """Whether this was printed. A line `…` matches any lines, `…` within a line any text.

    The distance between the columns of a table depends on their contents: more than one space counts as two.
    """
    pattern = ""
    for line in map(_narrow, expected.splitlines()):
        any_lines, this_line = r"(?:[^\n]*\n)*?", re.escape(line).replace("…", r"[^\n]*?") + "\n"
        pattern += any_lines if line.strip() == "…" else this_line
    return re.fullmatch(pattern, "".join(f"{_narrow(line)}\n" for line in printed.splitlines())) is not None


def _narrow(line: str) -> str:
    return re.sub(r"(?<=\S) {2,}", "  ", line.rstrip())


def indented_commands(document: Path) -> list[str]:
    """Commands that are indented rather than in a block, where nothing would run them. Benchmarks are run by hand."""
    fenced = False
    commands = []
    for line in document.read_text(encoding="utf-8").split("\n"):
        fenced ^= line.startswith("```")
        if not fenced and re.match(r" {4,}(gbfl|make|pip|python(?! -m tests.bench)|pytest|psql|duckdb) ", line):
            commands.append(line.strip())
    return commands
