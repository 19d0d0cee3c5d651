"""The one edit of a deployed text that would make it the approved program, found by trying and proved each time.

The text is edited in place. An edited text is read again, and reported only if what was read is proved equal to
the program.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from gbfl_compile.auditing.compare import AuditInput, Prover
from gbfl_compile.auditing.diagnose.clause import atom_text
from gbfl_compile.auditing.mend.edits import edits_of
from gbfl_compile.auditing.mend.operands import operand_before
from gbfl_compile.auditing.mend.spans import Span, clause_in, find_line, line_at, spans_of
from gbfl_compile.auditing.mend.text import (
    JOINS,
    DeployedText,
    Edit,
    comparison,
    operand_end,
    take_apart,
    text_in,
    value_of,
)
from gbfl_compile.auditing.story import Mend, Story
from gbfl_compile.auditing.verdict import Change, DeployedVerdict
from gbfl_compile.checking.general.sql import DeployedText as QueryText
from gbfl_compile.checking.reading.from_program import align
from gbfl_compile.checking.reading.nodes import Reading, Unread
from gbfl_compile.errors import GbflError
from gbfl_compile.ir.nodes import Interval, Label, Leaf, OneOf, Program, Scorecard, Tree, leaf_numbers
from gbfl_compile.ir.text import label_text, leaf_rule

SECONDS, MOST_EDITS = 3.0, 400
"""The budget of the search, in CPU seconds, so that a busy machine finds what an idle one does."""

PROOF_SECONDS = 1.0
Read: TypeAlias = Callable[[str, str], tuple[Prover, tuple[Reading, ...]]]
"""From the name of a text and the edited text to what is read of the whole, and the prover for it."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What is known to have changed: edits that touch it are tried first."""

    features: frozenset[int] = frozenset()
    numbers: frozenset[float] = frozenset()
    clauses: tuple[int, ...] = ()
    points: frozenset[float] = frozenset()
    """The approved points of a clause, where those have changed."""
    total: bool = False
    """Whether it is what points must reach that has changed."""

    def rank(self, edit: Edit, spans: Sequence[Span]) -> tuple[bool, bool, bool, bool, int]:
        """Edits with smaller values are tried sooner; `spans` are where the text is known to differ."""
        is_outside = not any(edit.start <= ends and edit.end >= begins for begins, ends in spans)
        is_outside = is_outside and not (self.total and edit.total)
        is_no_point = bool(self.points) and (edit.feature is not None or edit.points not in self.points)
        about = edit.feature if edit.beside is None else edit.beside
        is_elsewhere = about is not None and about not in self.features
        is_other = edit.number is not None and edit.number not in self.numbers
        return is_outside, is_no_point, is_elsewhere, is_other, edit.cost


def hint_of(program: Program, changes: Sequence[Change]) -> Hint:
    """From what a report says has changed."""
    numbers = {int(each) for change in changes for each in re.findall(r"clauses? (\d+)", change.where)}
    clauses = tuple(sorted(number for number in numbers if number < len(program.clauses)))
    atoms = [atom for number in clauses for atom in program.clauses[number].atoms]
    bounds = {
        bound for atom in atoms if isinstance(atom, Interval) for bound in (atom.lo, atom.hi) if bound is not None
    }
    of_points = [change.approved for change in changes if change.where.startswith("points of")]
    points = frozenset(float(each) for text in of_points for each in re.findall(r"[+-](\d+) for", text))
    total = any(change.where == "to start with" for change in changes)
    return Hint(frozenset(atom.feature for atom in atoms), frozenset(bounds), clauses, points, total)


def with_mend(
    verdict: DeployedVerdict, inputs: AuditInput, texts: Mapping[str, str], columns: Mapping[str, int], read: Read
) -> DeployedVerdict:
    """A verdict `different` with the line that says it, and the edit that mends it.

    `texts` are the deployed ones by name, the one that was audited by the name ''; `columns` is column -> feature.
    """
    if not seeks_mend(verdict, inputs):
        return verdict
    program = inputs.program

    def is_mended(name: str, text: str) -> bool:
        return is_equal(inputs, lambda: read(name, text))

    small = {name.casefold(): feature for name, feature in columns.items()}
    with _quiet_parser():
        mend = find_mend(texts, program, small, verdict.changes, is_mended)
    line = None if mend is None else mend.line
    if mend is not None:
        verdict = replace(verdict, changes=_named_alike(verdict.changes, tuple(named_by(mend, program, small))))
    for name, text in texts.items():
        line = line or find_line(name, text, program, small, verdict.changes)
    return replace(verdict, story=replace(verdict.story or Story(), line=line, mend=mend, was_sought=True))


def seeks_mend(verdict: DeployedVerdict, inputs: AuditInput) -> bool:
    """Whether an edit is looked for: what was read differs, and the auditor wants one."""
    is_shown = verdict.proof is not None and verdict.proof.counterexample is not None
    return verdict.verdict == "different" and is_shown and inputs.mends


def is_equal(inputs: AuditInput, read: Callable[[], tuple[Prover, tuple[Reading, ...]]]) -> bool:
    """Whether what is read with an edit is proved to be the program."""
    program = inputs.program
    try:
        prove, readings = read()
        matched = tuple(align(each, program.features, program.classes, program.kinds) for each in readings)
    except (Unread, GbflError):
        return False
    return bool(matched) and prove(program, matched, PROOF_SECONDS).answer == "proved"


def _named_alike(listed: tuple[Change, ...], by_mend: tuple[Change, ...]) -> tuple[Change, ...]:
    """What a report says has changed, about the clause that the edit is about: another one may explain it as well."""
    is_named = len(listed) == 1 and re.match(r"clause|points|to start", listed[0].where) is not None
    if any(each.where.startswith("leaf") for each in listed):
        return listed
    if not by_mend or (is_named and by_mend[0].where == listed[0].where.removeprefix("points of ")):
        return listed
    return by_mend


@contextmanager
def _quiet_parser() -> Iterator[None]:
    """Without the parser's remarks on edits that make no sense."""
    log = logging.getLogger("sqlglot")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def named_by(mend: Mend, program: Program, columns: Mapping[str, int]) -> Iterator[Change]:
    """The one clause that an edit is about, by the columns and numbers in it; nothing where that is not one clause."""
    if mend.exchanged is not None:
        first, second = (" ".join(text.split()) for text in mend.exchanged)
        asked_first, asked_second = (clause_in(take_apart(program, text, columns)) for text in (second, first))
        is_known = asked_first is not None and asked_second is not None and asked_first != asked_second
        where = f"clauses {asked_first} and {asked_second}" if is_known else "the order of two branches"
        yield Change(where, f"{second} before {first}", "the other way round")
        return
    parts = [take_apart(program, text, columns) for text in (mend.old, mend.new)]
    if _is_of_points(*parts):
        return
    if (labels := _labels_exchanged(program, *parts)) is not None:
        yield from _leaf_named(program, *labels)
        return
    features = {feature for part in parts for token in part.tokens if (feature := part.feature(token)) is not None}
    numbers = {value_of(token) for token in parts[1].tokens if token.kind == "number"}
    words = {text_in(token) for token in parts[1].tokens if token.kind == "text"}
    is_lead = not features and not words and any(token.kind == "sign" for token in parts[0].tokens)
    if is_lead and isinstance(program.decision, Scorecard):
        lead = ", ".join(f"{worth:+d} for {label_text(c)}" for c, worth in _biases(program.decision, program.classes))
        yield Change("to start with", lead, f"points that have to be {mend.old}, and not {mend.new}")
        return
    places = [
        (number, atom)
        for number, clause in enumerate(program.clauses)
        for atom in clause.atoms
        if (atom.feature in features and (not isinstance(atom, Interval) or numbers & {atom.lo, atom.hi}))
        or (not features and isinstance(atom, OneOf) and words & set(atom.values))
    ]
    if len({number for number, _ in places}) == 1:
        number, atom = places[0]
        atoms = [atom_text(program, each) for each in program.clauses[number].atoms]
        if len(atoms) > 1 and re.sub(r"(?i)\bor\b", "AND", mend.old) == mend.new:
            yield Change(f"clause {number}", " AND ".join(atoms), " OR ".join(atoms))
        elif mend.new == f"({mend.old})":
            without = "the same without the parentheses around OR: AND is evaluated first"
            yield Change(f"clause {number}", " AND ".join(atoms), without)
        else:
            yield Change(f"clause {number}", atom_text(program, atom), mend.old)


def _labels_exchanged(program: Program, old: DeployedText, new: DeployedText) -> tuple[str, str] | None:
    """The deployed label and the one that an edit puts in its place, where it does nothing else."""
    pairs = list(zip(old.tokens, new.tokens, strict=False)) if len(old.tokens) == len(new.tokens) else []
    other = [(before, after) for before, after in pairs if before.text != after.text]
    if len(other) != 1 or {token.kind for token in other[0]} != {"text"}:
        return None
    before, after = (text_in(token) for token in other[0])
    return (before, after) if {before, after} <= {str(label) for label in program.classes} else None


def _leaf_named(program: Program, deployed: str, label: str) -> Iterator[Change]:
    """The leaf that answers a label, if there is only one."""
    tree = program.decision
    if not isinstance(tree, Tree):
        return
    numbers = leaf_numbers(tree)
    answers = [(numbers[place], tree.nodes[place]) for place in sorted(numbers)]
    found = [n for n, node in answers if isinstance(node, Leaf) and str(program.classes[node.winner]) == label]
    if len(found) == 1:
        yield Change(f"leaf {found[0]}", label, deployed, rule=leaf_rule(program, found[0]))


def _biases(card: Scorecard, classes: Sequence[Label]) -> list[tuple[Label, int]]:
    """The classes that have points to start with; the last class where none has."""
    listed = [(label, worth) for label, worth in zip(classes, card.bias, strict=True) if worth]
    return listed or [(classes[-1], 0)]


def _is_of_points(old: DeployedText, new: DeployedText) -> bool:
    """Whether an edit changes only numbers that are results, none that is compared."""
    if len(old.tokens) != len(new.tokens):
        return False
    pairs = list(zip(old.tokens, new.tokens, strict=True))
    places = [place for place, (before, after) in enumerate(pairs) if before.text != after.text]
    return bool(places) and all(
        pairs[place][1].kind == "number" and place and pairs[place - 1][1].kind != "sign" for place in places
    )


def keeps_rows(before: QueryText, after: QueryText) -> bool:
    """Whether an edited query answers the same rows: one that drops the rows in question mends nothing."""
    if after.unclear or before.unclear:
        return False
    return after.passes if before.passes else after.notes == before.notes


def feature_columns(inputs: AuditInput) -> dict[str, int]:
    """Each feature by the name of its column."""
    return {inputs.columns.get(name, name): feature for feature, name in enumerate(inputs.program.features)}


def find_mend(
    texts: Mapping[str, str],
    program: Program,
    columns: Mapping[str, int],
    changes: Sequence[Change],
    is_mended: Callable[[str, str], bool],
) -> Mend | None:
    """The first edit of one of the texts, by name, for which `is_mended(name, edited text)`."""
    ends, hint = time.process_time() + SECONDS, hint_of(program, changes)
    parts = {name: take_apart(program, text, columns) for name, text in texts.items()}
    spans = {name: list(spans_of(part, changes, hint.clauses)) for name, part in parts.items()}
    edits = [(name, edit) for name, part in parts.items() for edit in edits_of(part, hint.clauses)]
    edits.sort(key=lambda pair: hint.rank(pair[1], spans[pair[0]]))
    for name, edit in edits[:MOST_EDITS]:
        if time.process_time() > ends:
            return None
        text = texts[name]
        if is_mended(name, edit.apply(text)):
            return _mend(name, text, edit, parts[name], is_unique=True)
        mend = _mend(name, text, edit, parts[name])
        places = text.count(mend.old) if mend.old else 1  # the same comparison may be written for every column
        if places > 1 and is_mended(name, text.replace(mend.old, mend.new)):
            alone = (_alone(edit, mend, at) for at in _places_of(text, mend.old))
            one = next((each for each in alone if is_mended(name, each.apply(text))), None)
            return replace(mend, places=places) if one is None else _mend(name, text, one, parts[name], is_unique=True)
    return None


def _places_of(text: str, piece: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(piece), text)]


def _alone(edit: Edit, mend: Mend, at: int) -> Edit:
    """The part of an edit, which was made in all places, that belongs to one of them."""
    return replace(edit, start=at, end=at + len(mend.old), new=mend.new)


def _mend(name: str, text: str, edit: Edit, parts: DeployedText, is_unique: bool = False) -> Mend:
    """The edit with what is around it, so that it can be found; with `is_unique` only its place has these words."""
    begins, ends = edit.start, edit.end
    if ends - begins < SHORT:  # a sign or a number alone says little: show the comparison
        places = [
            place
            for place, token in enumerate(parts.tokens)
            if token.end > begins and token.start < max(ends, begins + 1)
        ]
        if not places and not edit.new.lstrip().upper().startswith("WHEN"):  # put in between: show what is around it
            last = max((place for place, token in enumerate(parts.tokens) if token.end <= begins), default=0)
            while last and parts.tokens[last].text == ")":
                last -= 1
            places = [last]
            ends = next((token.end for token in parts.tokens if token.start >= begins), ends)
        if len(places) == 1 and parts.tokens[places[0]].word in JOINS and edit.new.upper() in JOINS:
            last = operand_end(parts, places[0] + 1) - 1
            begins, ends = parts.tokens[operand_before(parts, places[0])].start, parts.tokens[last].end
        elif places:
            around = comparison(parts, places[0], places[-1])
            if edit.points is not None:  # and points alone say less: show the condition that they are given for
                signs = [at for at in range(max(1, around[0] - BEFORE), around[0]) if parts.tokens[at].kind == "sign"]
                around = (signs[-1] - 1 if signs else around[0], around[1])
            begins, ends = min(begins, parts.tokens[around[0]].start), max(ends, parts.tokens[around[1]].end)
    if is_unique and begins < ends and edit.exchanged is None and text.count(text[begins:ends]) > 1:
        begins = _unique_begin(text, begins, ends, parts)
    new = f"{text[begins : edit.start]}{edit.new}{text[edit.end : ends]}"
    return Mend(line_at(name, text, begins), text[begins:ends], new, exchanged=edit.exchanged)


def _unique_begin(text: str, begins: int, ends: int, parts: DeployedText) -> int:
    """The start of a piece, with enough text before it to be unique."""
    for token in reversed([token for token in parts.tokens if token.start < begins]):
        if ends - token.start > LONG:
            break
        if text.count(text[token.start : ends]) == 1:
            return token.start
    return begins


SHORT, LONG = 40, 200
BEFORE = 8
"""How many tokens before points the condition is looked for."""
