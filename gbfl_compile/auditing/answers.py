"""The answers of a deployed item, row by row: labels, matched to classes of the program, and what comes with them.

Text, numbers and truth values are three kinds, and a label of one kind is never a label of another: '1', 1 and True
are three labels. Integers, decimals and doubles are one kind, compared by value, because engines choose the width.
Two places have fewer types than that and are read with it in mind: in a CSV file everything is text, so text that
reads as the label is the label (`1`, `1.0`, `true`); a database without truth values holds them as 1 and 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.checking.run import PROBABILITY_BOUND
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix, clause_column, evaluate_many, score_probabilities
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Label, Leaf, Program, Tree
from gbfl_compile.ir.validate import validate

Kind: TypeAlias = Literal["text", "number", "truth"]
LabelStorage: TypeAlias = Literal["typed", "text", "truth as numbers"]
"""How the place that holds the labels tells their kinds apart."""

UNKNOWN = -1
"""The class number of a label that is not a class of the program, or is missing."""

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class LabelCodes:
    """The labels of some rows: one number per row, and what each number means."""

    codes: Any
    """Indices into `distinct`."""
    distinct: tuple[Any, ...]
    """None is a missing label."""


def class_finder(classes: Sequence[Label], held: LabelStorage = "typed") -> Callable[[Any], int]:
    """A function from a label as it is held to the number of its class, or UNKNOWN."""
    numbers: Mapping[Hashable, int] = {(kind_of(label), label): number for number, label in enumerate(classes)}
    kind_wanted = kind_of(classes[0])

    def class_number(stored: Any) -> int:
        value = _plain(stored)
        if held == "text" and isinstance(value, str):
            value = _read_text(value, kind_wanted)
        elif held == "truth as numbers" and kind_wanted == "truth" and kind_of(value) == "number" and value in (0, 1):
            value = bool(value)
        kind = kind_of(value)
        return UNKNOWN if kind is None else numbers.get((kind, value), UNKNOWN)

    return class_number


def kind_of(label: Any) -> Kind | None:
    """What kind of label this is; None where no program can have it."""
    match label:
        case bool():
            return "truth"
        case str():
            return "text"
        case int() | float() | Decimal():
            return "number"
        case _:
            return None


def with_labels(program: Program, labels: Mapping[Any, Any]) -> Program:
    """The program with each class called as it is deployed. Every class has one label of its own, all of one type."""
    known = {(type(name), name) for name in program.classes}
    stated = {(type(name), name): _plain(label) for name, label in labels.items()}
    for _, name in stated.keys() - known:
        raise BadInput(f"class {name!r}: the program has {', '.join(map(repr, program.classes))}")
    for name in program.classes:
        if (type(name), name) not in stated:
            raise BadInput(f"class {name!r}: name its deployed label too: every class needs one")
    deployed = tuple(stated[type(name), name] for name in program.classes)
    for name, label in zip(program.classes, deployed, strict=True):
        if label is None or deployed.count(label) > 1:
            raise BadInput(f"class {name!r}: the label {label!r} is used for another class too")
    try:
        return validate(replace(program, classes=deployed))
    except BadInput as error:
        raise BadInput(f"labels as they are deployed: {error}") from None


def read_labels(pairs: Sequence[str], classes: Sequence[Label]) -> dict[Label, Label]:
    """`--class NAME=LABEL`, each time it was given: 1 is a number, true a truth value, '1' and APPROVE are texts."""
    labels: dict[Label, Label] = {}
    for pair in pairs:
        named = [name for name in classes if pair.casefold().startswith(f"{name}=".casefold())]
        named = [name for name in named if isinstance(name, bool) or pair.startswith(f"{name}=")]
        if len(named) != 1:
            listed = ", ".join(map(str, classes))
            raise BadInput(f"--class {pair!r}: write it as NAME=LABEL, where NAME is one of {listed}")
        if named[0] in labels:
            raise BadInput(f"--class {pair!r}: the class is named twice")
        labels[named[0]] = _read_label(pair[len(str(named[0])) + 1 :], pair)
    return labels


def _read_label(text: str, pair: str) -> Label:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    unclear = not text or text != text.strip() or text[0] in "'\"" or text[-1] in "'\""
    if unclear or text.casefold() in ("null", "none", "nan"):
        raise BadInput(f"--class {pair!r}: unclear which label is meant: put a text in quotes, as in NAME='…'")
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    label = _read_text(text, "number")
    assert isinstance(label, str | int | float)  # noqa: S101 - a text or a number that was read from it
    return label


def _plain(stored: Any) -> Any:
    """A numpy scalar as the Python value it holds."""
    return stored.item() if type(stored).__module__ == "numpy" and hasattr(stored, "item") else stored


def _read_text(text: str, kind: Kind | None) -> Any:
    """Text as a label of the wanted kind; unchanged if it cannot be read as one."""
    if kind == "truth" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "number" and NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[+-]?\d{1,300}", text, re.ASCII) else float(text)
    return text


def as_json(label: Any) -> Any:
    """A label as JSON; one that JSON or a program cannot hold becomes text."""
    label = _plain(label)
    if label is None or isinstance(label, str | bool | int):
        return label
    if isinstance(label, float) and math.isfinite(label):
        return label
    return str(label) if isinstance(label, float | Decimal) else repr(label)[:200]


Bits = NDArray[np.bool_]

NO_SCORE = int(np.iinfo(np.int64).min)
"""Replaces a score that is missing or is not a 64-bit whole number: no program has a score this low."""


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """Answers to some rows. What a scorer never returns is None; what is missing from a single row is NaN there."""

    classes: NDArray[np.int64]
    """The number of the class, or UNKNOWN."""
    probabilities: Matrix | None = None
    scores: NDArray[np.int64] | None = None

    def at(self, rows: Bits) -> RowAnswers:
        """The answers to some of the rows."""
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        return RowAnswers(self.classes[rows], probabilities, None if self.scores is None else self.scores[rows])


def answers_of(program: Program, rows: Matrix, book: Codebook | None = None) -> RowAnswers:
    """What the program itself answers; `book` has the codes of the rows' texts where they are not the program's own."""
    answers = evaluate_many(program, rows, book)
    if answers.scores is not None:
        return RowAnswers(answers.scores.argmax(axis=1), answers.probabilities, answers.scores)
    assert isinstance(program.decision, Tree) and answers.leaves is not None  # noqa: S101, PT018 - no scores: a tree
    return RowAnswers(leaf_classes(program.decision)[answers.leaves], answers.probabilities)


def leaf_classes(tree: Tree) -> NDArray[np.int64]:
    """The class that each leaf answers."""
    return np.array([node.winner for node in tree.nodes if isinstance(node, Leaf)], dtype=np.int64)


def clauses_held(program: Program, rows: Matrix, book: Codebook | None = None) -> Bits:
    """Whether each clause holds: one row per row, one column per clause."""
    held, codes = np.empty((len(rows), len(program.clauses)), dtype=bool), codebook(program) if book is None else book
    for number, clause in enumerate(program.clauses):
        held[:, number] = clause_column(clause, rows, codes)
    return held


def decided_by(program: Program, held: Bits) -> RowAnswers:
    """What the program decides if these clauses hold, one line per row."""
    card = program.decision
    if not isinstance(card, Tree):
        points = held.astype(np.int64) @ np.array(card.points, dtype=np.int64).reshape(held.shape[1], len(card.bias))
        points += np.array(card.bias, dtype=np.int64)
        return RowAnswers(points.argmax(axis=1), score_probabilities(card, points), points)
    leaves = leaves_reached(card, held)
    table = np.array([node.probabilities for node in card.nodes if isinstance(node, Leaf)], dtype=np.float64)
    return RowAnswers(leaf_classes(card)[leaves], table[leaves])


def leaves_reached(tree: Tree, held: Bits) -> NDArray[np.int64]:
    """The number of the leaf each row ends in."""
    at: dict[int, NDArray[np.intp]] = {0: np.arange(len(held))}
    leaves, number = np.zeros(len(held), dtype=np.int64), 0
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Leaf):
            leaves[here] = number
            number += 1
            continue
        yes = held[here, node.clause]
        at[node.then], at[node.otherwise] = here[yes], here[~yes]
    return leaves


def differing(program: Program, approved: RowAnswers, deployed: RowAnswers) -> dict[str, Bits]:
    """For labels, probabilities and scores, as far as they were returned, the rows where they are not as approved."""
    wrong_rows = {"labels": approved.classes != deployed.classes}
    if deployed.probabilities is not None and approved.probabilities is not None:
        if program.has_exact_probabilities:
            wrong = approved.probabilities != deployed.probabilities
        else:
            with np.errstate(invalid="ignore"):
                wrong = ~(np.abs(approved.probabilities - deployed.probabilities) <= PROBABILITY_BOUND)  # NaN is wrong
        wrong_rows["probabilities"] = wrong.any(axis=1)
    if deployed.scores is not None and approved.scores is not None:
        wrong_rows["scores"] = (approved.scores != deployed.scores).any(axis=1)
    return wrong_rows


def differs_at(program: Program, approved: RowAnswers, deployed: RowAnswers) -> Bits:
    """The rows on which anything that was returned is not as approved."""
    any_wrong = np.zeros(len(approved.classes), dtype=bool)
    for wrong in differing(program, approved, deployed).values():
        any_wrong |= wrong
    return any_wrong


def json_number(value: float) -> float | str | None:
    """JSON has no NaN and no infinities: a missing value is null, an infinity its name."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
