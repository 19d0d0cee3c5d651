"""Programs as people read them: `IF worst_area >= 863.33 AND worst_radius < 17.29 THEN malignant (0.94, 112 rows)`.

Reasons in the user's own words, one per clause, such as adverse-action texts, never change an answer. They are kept
in a program's metadata, `{"reasons": {"3": "Income too low for the amount"}}`, by the clause's number as `gbfl
reasons PROGRAM` lists them. A pass that numbers clauses anew takes their reasons along. Every target carries them and
the proof compares them; the digest, which is of answers alone, does not change with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, assert_never

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.kinds import moment
from gbfl_compile.ir.nodes import (
    Atom,
    Band,
    Clause,
    Interval,
    Kind,
    Label,
    Leaf,
    OneOf,
    Program,
    Scorecard,
    Tree,
    leaf_numbers,
    paths,
)

DIGITS = 6
"""Significant digits of a printed threshold. The JSON and every target keep them all."""


def readable(program: Program) -> str:
    """The whole program as text, thresholds rounded for reading. Of two classes, one column of points decides."""
    return "\n".join(_lines(program, _decisive_columns))


def listing(program: Program) -> str:
    """The program as artifacts quote it: the points of every class, and what a point is worth."""
    return "\n".join(_lines(program, _every_column))


def _lines(program: Program, columns: Callable[[Program, Scorecard], Columns]) -> Iterator[str]:
    match program.decision:
        case Tree():
            return _tree_lines(program, program.decision)
        case Scorecard():
            return _card_lines(program, program.decision, columns(program, program.decision))
        case _:
            assert_never(program.decision)


class Columns(NamedTuple):
    """What is shown of the points of a rule set."""

    labels: list[str]
    heading: str
    points: Sequence[tuple[int, ...]]
    """To start with, then of each clause."""
    wins: str


def _every_column(program: Program, card: Scorecard) -> Columns:
    labels = [label_text(label) for label in program.classes]
    wins = "the class with most points wins"
    return Columns(labels, f"points of 2^-{card.scale}", [card.bias, *card.points], wins)


def _decisive_columns(program: Program, card: Scorecard) -> Columns:
    every = _every_column(program, card)
    if len(program.classes) != 2:
        return every._replace(heading="points")
    first, second = every.labels
    lead = [(row[1] - row[0],) for row in every.points]
    return Columns([""], f"points for {second}", lead, f"{second} where they add up to more than 0, otherwise {first}")


def clause_text(clause: Clause, features: tuple[str, ...], kinds: tuple[Kind, ...] = ()) -> str:
    """One clause, its atoms joined by AND."""
    return " AND ".join(atom_text(atom, features, kinds) for atom in clause.atoms) or "always"


def atom_text(atom: Atom, features: tuple[str, ...], kinds: tuple[Kind, ...] = ()) -> str:
    """One atom, as short as possible.

    >>> atom_text(Interval(0, 1.0, 2.5, if_missing=True), ("age",))
    '(1 <= age < 2.5 OR age is missing)'
    >>> atom_text(OneOf(0, ("A", "B"), negated=True), ("grade",), ("category",))
    'grade not in {A, B}'
    """
    name = printable(features[atom.feature])
    kind = kinds[atom.feature] if kinds else "number"
    match atom:
        case Interval():
            text = _between_text(atom, name, kind)
        case OneOf():
            text = _one_of_text(atom, name, kind)
        case _:
            assert_never(atom)
    if text is None:
        return "always" if atom.if_missing else f"{name} is present"
    if text == "never":
        return f"{name} is missing" if atom.if_missing else text
    return f"({text} OR {name} is missing)" if atom.if_missing else text


def _between_text(atom: Interval, name: str, kind: Kind) -> str | None:
    """An interval in words; None where it has no bound."""
    left, right = "<=" if atom.lo_closed else "<", "<=" if atom.hi_closed else "<"
    lo, hi = (None if bound is None else bound_text(bound, kind) for bound in (atom.lo, atom.hi))
    if lo is None and hi is None:
        return None
    if hi is None:
        return f"{name} {'>=' if atom.lo_closed else '>'} {lo}"
    if lo is None:
        return f"{name} {right} {hi}"
    return f"{name} = {lo}" if atom.lo == atom.hi else f"{lo} {left} {name} {right} {hi}"


def _one_of_text(atom: OneOf, name: str, kind: Kind) -> str | None:
    """A set in words; None where any text will do."""
    if not atom.values:
        return None if atom.negated else "never"
    if kind == "boolean":
        return f"not {name}" if atom.negated else name
    texts = [value_text(value) for value in atom.values]
    if len(texts) == 1:
        return f"{name} is {'not ' if atom.negated else ''}{texts[0]}"
    return f"{name} {'not ' if atom.negated else ''}in {{{', '.join(texts)}}}"


def value_text(value: str) -> str:
    """A category's value: as it is where it reads as words, in quotes otherwise.

    >>> value_text("Month-to-month"), value_text(""), value_text("a, b ")
    ('Month-to-month', '""', '"a, b "')
    """
    plain = value.isprintable() and value == value.strip() and not set(value) & set('"{},') and value
    return value if plain else '"' + printable(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def bound_text(bound: float, kind: Kind) -> str:
    """A bound for reading: a number rounded, a date or timestamp in full."""
    return str(moment(kind, bound)) if kind == "date" or kind == "timestamp" else number_text(bound)


def number_text(number: float) -> str:
    """A threshold rounded for reading; whole numbers keep all their digits."""
    return f"{number:.0f}" if number == int(number) and abs(number) < 1e15 else f"{number:.{DIGITS}g}"


def printable(name: str) -> str:
    """A name on one line: line breaks, control and direction marks come out as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def label_text(label: Label) -> str:
    """A class label as it is printed."""
    return printable(str(label))


def leaf_text(leaf: Leaf, classes: tuple[Label, ...]) -> str:
    """`malignant (0.94, 112 rows)`."""
    best = leaf.winner
    rows = "" if leaf.rows is None else f", {leaf.rows} row{'' if leaf.rows == 1 else 's'}"
    return f"{label_text(classes[best])} ({leaf.probabilities[best]:.2f}{rows})"


def unseen_text(program: Program, clause_rows: Sequence[int]) -> str | None:
    """What no training row says anything about: leaves that none ends in, clauses that hold for none."""
    if isinstance(program.decision, Tree):
        leaves = [node for node in program.decision.nodes if isinstance(node, Leaf)]
        if not (unseen := sum(leaf.rows == 0 for leaf in leaves)):
            return None
        have = "leaves has" if unseen == 1 else "leaves have"
        return f"{unseen} of {len(leaves)} {have} 0 rows: no training row ends there, only explanations of rows do"
    numbers = [str(number) for number, rows in enumerate(clause_rows) if rows == 0]
    if not numbers:
        return None
    hold, which = ("holds", "number") if len(numbers) == 1 else ("hold", "numbers")
    named = f"{', '.join(numbers[:MOST_NUMBERS])}{', …' if len(numbers) > MOST_NUMBERS else ''}"
    of = f"{len(numbers)} of {len(program.clauses)} clauses {hold} for no training row"
    return f"{of}, {which} {named} in gbfl reasons"


MOST_NUMBERS = 10


def probability_lines(program: Program) -> list[str]:
    """What the probabilities are, as the metadata has it: observed rates with the black box's own beside them."""
    facts = program.metadata.get("probabilities")
    if not isinstance(facts, Mapping):
        return []
    if facts.get("emitted") != "observed":
        return [
            f"probabilities: the rules' own, not observed ({printable(str(facts.get('why', 'no reason recorded')))})"
        ]
    seen = {True: " that the black box never saw", False: " held out here; the black box may have been trained on them"}
    known = facts.get("unseen")
    rows = printable(str(facts.get("rows")))
    lines = [f"probabilities: observed on {rows} rows{seen[known] if isinstance(known, bool) else ''}"]
    rates = facts.get("by_class")
    if isinstance(rates, list) and len(rates) == len(program.classes):
        lines += [
            f"  {label_text(label)}: {_rate_text(rate)}" for label, rate in zip(program.classes, rates, strict=True)
        ]
    return lines


def _rate_text(rate: Any) -> str:
    """`observed 40 %, black box 12 %, where it is the answer (52 rows)`."""
    form: Mapping[str, Any] = rate if isinstance(rate, Mapping) else {}
    observed, own = form.get("observed"), form.get("black_box")
    if not (
        isinstance(observed, int | float) and isinstance(own, int | float) and 0 <= observed <= 1 and 0 <= own <= 1
    ):
        return "answered for none of them"
    rows = printable(str(form.get("rows")))
    return f"observed {100 * observed:.0f} %, black box {100 * own:.0f} %, where it is the answer ({rows} rows)"


def _tree_lines(program: Program, tree: Tree) -> Iterator[str]:
    """IF/ELSE lines. Only a THEN side that splits again is indented, so a rule list stays flat."""
    waiting = [(0, 0, "")]
    while waiting:
        index, depth, opening = waiting.pop()
        node = tree.nodes[index]
        indent = "    " * depth
        if isinstance(node, Leaf):
            yield f"{indent}{opening or 'ALWAYS '}{leaf_text(node, program.classes)}"
            continue
        question = (
            f"{indent}{opening}IF {clause_text(program.clauses[node.clause], program.features, program.kinds)} THEN"
        )
        waiting.append((node.otherwise, depth, "ELSE "))
        then = tree.nodes[node.then]
        if isinstance(then, Leaf):
            yield f"{question} {leaf_text(then, program.classes)}"
        else:
            yield question
            waiting.append((node.then, depth + 1, ""))


def _card_lines(program: Program, card: Scorecard, columns: Columns) -> Iterator[str]:
    """One line per clause, signed points in one column per class."""
    rows = [columns.labels, *([f"{points:+d}" for points in row] for row in columns.points)]
    texts = [columns.heading, "to start with"]
    texts += [f"IF {clause_text(clause, program.features, program.kinds)}" for clause in program.clauses]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, text in zip(rows, texts, strict=True):
        yield "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) + f"   {text}"
    yield columns.wins
    if card.bands:
        yield "how often that was observed to be right, by its lead in points:"
        for c, (label, own) in enumerate(zip(program.classes, card.bands, strict=True)):
            yield f"  {label_text(label)}: {bands_text(own, c)}"


def bands_text(bands: Sequence[Band], index: int) -> str:
    """The probability of one class, band by band.

    >>> bands_text((Band(0, (0.4, 0.6)), Band(12, (0.1, 0.9))), 1)
    '60 % from 0, 90 % from 12'
    """
    return ", ".join(f"{100 * band.probabilities[index]:.0f} % from {band.least}" for band in bands)


LONGEST = 500
"""Characters of a reason: it must fit into a C string, a SQL literal and a letter."""


def reason_of(program: Program, clause: int) -> str | None:
    """The user's reason for a clause, or None where none was given. A program from anyone is read with care."""
    stored = program.metadata.get("reasons")
    text = stored.get(str(clause)) if isinstance(stored, dict) else None
    return text if isinstance(text, str) and is_reason(text) else None


def reasons_of(program: Program) -> dict[int, str]:
    """Clause number -> the user's reason, for the clauses that have one, ascending."""
    texts = ((clause, reason_of(program, clause)) for clause in range(len(program.clauses)))
    return {clause: text for clause, text in texts if text is not None}


def moved_reasons(program: Program, new_numbers: Mapping[int, int]) -> Mapping[str, Any]:
    """The metadata once clauses have new numbers. Of two that become one, the first one's reason stays."""
    if "reasons" not in program.metadata:
        return program.metadata
    texts: dict[str, str] = {}
    for clause, text in reasons_of(program).items():
        if clause in new_numbers:
            texts.setdefault(str(new_numbers[clause]), text)
    return {**program.metadata, "reasons": texts}


def leaf_reasons(program: Program, tree: Tree) -> list[str]:
    """For each leaf of a tree the way to it in words, as targets that answer in text give it.

    `age >= 30 AND NOT (income < 2)`; with reasons in place of the clauses that held, `Too young; NOT (income < 2)`.
    """
    own = reasons_of(program)
    ways = paths(tree)
    texts = []
    for index in leaf_numbers(tree):
        steps = []
        for split, held in ways[index]:
            node = tree.nodes[split]
            assert not isinstance(node, Leaf)  # noqa: S101 - a path goes through splits
            text = clause_text(program.clauses[node.clause], program.features, program.kinds)
            steps.append(own.get(node.clause, text) if held else f"NOT ({text})")
        texts.append(("; " if own else " AND ").join(steps) or "always")
    return texts


def leaf_rule(program: Program, number: int) -> str | None:
    """The branch that ends in a leaf, as a CASE has it: the clauses that hold there, and the last one if it does not.

    Those that do not hold before it are left out, as they are in a CASE. None where there is no condition.
    """
    tree = program.decision
    if not isinstance(tree, Tree):
        return None
    index = next(place for place, leaf in leaf_numbers(tree).items() if leaf == number)
    way = paths(tree)[index]
    words = []
    for place, (split, held) in enumerate(way, 1):
        node = tree.nodes[split]
        assert not isinstance(node, Leaf)  # noqa: S101 - a path goes through splits
        text = clause_text(program.clauses[node.clause], program.features, program.kinds)
        if held:
            words.append(text)
        elif place == len(way):
            words.append(f"NOT ({text})")
    return " AND ".join(words) or None


def rule_reasons(program: Program) -> list[str]:
    """For each rule of a rule set the text to print where it holds: `3 `, or with reasons `Too young; ` and `3; `."""
    own = reasons_of(program)
    if not own:
        return [f"{clause} " for clause in range(len(program.clauses))]
    return [f"{own.get(clause, clause)}; " for clause in range(len(program.clauses))]


def is_reason(text: str) -> bool:
    """Whether every target can print a text: one line of printable characters, not too long."""
    return 0 < len(text) <= LONGEST and text.isprintable() and text == text.strip()


def with_reasons(program: Program, reasons: Mapping[int, str]) -> Program:
    """The program with these reasons in place of those it had."""
    for clause, text in reasons.items():
        if not 0 <= clause < len(program.clauses):
            raise BadInput(f"there is no clause {clause}: the program has 0 to {len(program.clauses) - 1}")
        if not is_reason(text):
            raise BadInput(f"clause {clause}: a reason is one line of 1 to {LONGEST} printable characters")
    texts = {str(clause): text for clause, text in sorted(reasons.items())}
    return replace(program, metadata={**program.metadata, "reasons": texts})


def reasons_in(table: Any, where: str) -> dict[int, str]:
    """Clause number -> reason, from a table with the columns `clause` and `text`."""
    for name in ("clause", "text"):
        if name not in table.columns:
            raise BadInput(f"{where}: has no column {name!r}, it needs clause and text")
    texts: dict[int, str] = {}
    for place, (number, text) in enumerate(zip(table["clause"].tolist(), table["text"].tolist(), strict=True), 1):
        written = str(number).strip()
        if not written.isascii() or not written.isdigit():
            raise BadInput(f"{where}: row {place}: {written!r} is not the number of a clause")
        if int(written) in texts:
            raise BadInput(f"{where}: row {place}: clause {written} is listed twice")
        if str(text).strip():
            texts[int(written)] = str(text).strip()
    return texts
