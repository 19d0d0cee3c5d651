"""`evaluate` for many rows at once, in numpy: the same answers, tested equal on every program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import Answers as Answers
from gbfl_compile.ir.kinds import ANY_OTHER, Codebook, codebook
from gbfl_compile.ir.nodes import Atom, Clause, Interval, Kind, Label, Leaf, OneOf, Program, Scorecard, Tree

Matrix: TypeAlias = NDArray[np.float64]


def evaluate_many(program: Program, rows: Matrix, book: Codebook | None = None) -> Answers:
    """What `program` answers for each row of a matrix; NaN is missing, values of other types are taken as doubles.

    Words and dates are in the matrix as `ir.kinds` encodes them; a code the program does not know is any other text.
    A `book` gives the codes of the rows' texts where they are not the program's own.
    """
    codes = codebook(program) if book is None else book
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(program.features):
        raise BadInput(f"rows of shape {rows.shape}: the program has {len(program.features)} features")
    match program.decision:
        case Tree():
            return _walk(program, program.decision, rows, codes)
        case Scorecard():
            return _add_up(program, program.decision, rows, codes)
        case _:
            assert_never(program.decision)


def _walk(program: Program, tree: Tree, rows: Matrix, book: Codebook) -> Answers:
    leaves = np.zeros(len(rows), dtype=np.int64)
    at: dict[int, NDArray[np.intp]] = {0: np.arange(len(rows))}
    ends: list[Leaf] = []
    for index, node in enumerate(tree.nodes):
        here = at.pop(index)
        if isinstance(node, Leaf):
            leaves[here] = len(ends)
            ends.append(node)
            continue
        holds = clause_column(program.clauses[node.clause], rows[here], book)
        at[node.then], at[node.otherwise] = here[holds], here[~holds]
    table = np.array([leaf.probabilities for leaf in ends], dtype=np.float64)
    labels = label_array(program.classes)[[leaf.winner for leaf in ends]]
    return Answers(labels[leaves], table[leaves], leaves=leaves)


def _add_up(program: Program, card: Scorecard, rows: Matrix, book: Codebook) -> Answers:
    rows = np.asfortranarray(rows)  # an atom reads one column: its values lie together then
    by_class = np.repeat(np.array(card.bias, dtype=np.int64)[:, None], len(rows), axis=1)
    for clause, points in zip(program.clauses, card.points, strict=True):
        holds = clause_column(clause, rows, book)
        for score, own in zip(by_class, points, strict=True):
            if own != 0:
                score += holds * np.int64(own)
    scores = np.ascontiguousarray(by_class.T)
    labels = label_array(program.classes)[scores.argmax(axis=1)]
    return Answers(labels, score_probabilities(card, scores), scores=scores)


def score_probabilities(card: Scorecard, scores: NDArray[np.int64]) -> Matrix:
    """The probabilities of points, row by row: constants of bands, or their softmax."""
    if card.bands:
        return _band_rates(card, scores)
    weights = np.exp(np.ldexp((scores - scores.max(axis=1, keepdims=True)).astype(np.float64), -card.scale))
    probabilities: Matrix = weights / weights.sum(axis=1, keepdims=True)
    return probabilities


def _band_rates(card: Scorecard, scores: NDArray[np.int64]) -> Matrix:
    best = scores.argmax(axis=1)
    ordered = np.sort(scores, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    rates = np.empty(scores.shape, dtype=np.float64)
    for c, bands in enumerate(card.bands):
        own = np.flatnonzero(best == c)
        place = np.searchsorted([band.least for band in bands], lead[own], side="right") - 1
        rates[own] = np.array([band.probabilities for band in bands])[place]
    return rates


def recode_rows(kinds: tuple[Kind, ...], rows: Matrix, texts: Sequence[tuple[str, ...]], book: Codebook) -> Matrix:
    """The rows with the codes of a book in place of those of `texts`; a text that it does not list is any other."""
    moved = rows.copy()
    for feature, kind in enumerate(kinds):
        if kind == "category":
            place = {text: float(code) for code, text in enumerate(book.texts[feature], start=1)}
            codes = np.array([ANY_OTHER, *(place.get(text, ANY_OTHER) for text in texts[feature])])
            present = ~np.isnan(rows[:, feature])
            moved[present, feature] = codes[rows[present, feature].astype(np.int64)]
    return moved


def clause_column(clause: Clause, rows: Matrix, book: Codebook | None = None) -> NDArray[np.bool_]:
    """Whether the clause holds, row by row; a clause that lists texts needs the book of their codes."""
    holds = np.ones(len(rows), dtype=bool)
    for atom in clause.atoms:
        holds &= atom_column(atom, rows[:, atom.feature], book)
    return holds


def atom_column(atom: Atom, values: Matrix, book: Codebook | None = None) -> NDArray[np.bool_]:
    """Whether the atom holds, value by value."""
    missing = np.isnan(values)
    match atom:
        case Interval():
            holds = _between_column(atom, values, missing)
        case OneOf(feature, texts, negated):
            if book is None:
                raise BadInput("an atom that lists texts needs the codes of these texts")
            codes = [book.code(feature, text) for text in texts if text in book.texts[feature]]
            listed = np.isin(np.floor(values), codes)  # a text without a code is in no row
            holds = (listed ^ negated) & ~missing
        case _:
            assert_never(atom)
    return holds | missing if atom.if_missing else holds


def _between_column(atom: Interval, values: Matrix, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    holds = ~missing
    if atom.lo is not None:
        holds &= values >= atom.lo if atom.lo_closed else values > atom.lo
    if atom.hi is not None:
        holds &= values <= atom.hi if atom.hi_closed else values < atom.hi
    return holds


def label_array(classes: tuple[Label, ...]) -> NDArray[np.object_]:
    """Labels in an object array, so that numpy converts none of them."""
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array
