"""A program in the form of a reading, and a reading brought into a program's order of features and classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from gbfl_compile.checking.reading.nodes import (
    And,
    Ask,
    Condition,
    Not,
    Or,
    Outcome,
    PointDecision,
    Reading,
    StepDecision,
    Test,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.intervals import Texts, clause_values, code_values, tested_values, whole_values
from gbfl_compile.ir.json import digest
from gbfl_compile.ir.kinds import Codebook, codebook
from gbfl_compile.ir.nodes import Atom, Clause, Kind, Label, Leaf, Program, Scorecard, Split, Tree, leaf_numbers


def as_reading(program: Program, book: Codebook | None = None) -> Reading:
    """The program in the form of a reading: each split a step, each leaf an outcome; texts by the codes of `book`."""
    book = codebook(program) if book is None else book
    asked_values = clause_values(program, book)
    conditions = [And(tuple(Test(feature, values) for feature, values in clause)) for clause in asked_values]
    match program.decision:
        case Tree():
            outcomes = {
                index: Outcome(node.winner, node.probabilities, number)
                for index, number in leaf_numbers(program.decision).items()
                if isinstance(node := program.decision.nodes[index], Leaf)
            }
            decision: StepDecision | PointDecision = StepDecision(_steps(program.decision, conditions, outcomes))
        case Scorecard(bias, points, scale, bands):
            terms = tuple(zip(conditions, points, strict=True))
            decision = PointDecision(bias, terms, None if bands else scale, bands=bands)
        case _:
            assert_never(program.decision)
    place = "the program itself"
    return Reading(
        program.features,
        program.classes,
        decision,
        place=place,
        digest=digest(program),
        kinds=program.kinds,
        book=book.texts if program.kinds else (),
    )


def _steps(tree: Tree, conditions: Sequence[And], outcomes: Mapping[int, Outcome]) -> tuple[Ask | Outcome, ...]:
    return tuple(
        Ask(conditions[node.clause], node.then, node.otherwise) if isinstance(node, Split) else outcomes[index]
        for index, node in enumerate(tree.nodes)
    )


def condition_of(program: Program, clause: Clause, book: Codebook) -> And:
    """A clause as a condition: all of its atoms, texts by their codes."""
    return And(tuple(test_of(program, atom, book) for atom in clause.atoms))


def test_of(program: Program, atom: Atom, book: Codebook) -> Test:
    """An atom as a test."""
    return Test(atom.feature, tested_values(atom, program.kind(atom.feature), book))


def in_book(reading: Reading, program: Program, book: Codebook) -> Reading:
    """The reading with texts by the codes of `book`, which lists all of its texts, and dates by whole days."""

    def recode(test: Test) -> Test:
        kind = program.kind(test.feature)
        if kind == "number":
            return test
        if kind in ("date", "timestamp"):
            return Test(test.feature, tuple(whole_values(piece, kind) for piece in test.values))
        own = reading.book[test.feature]
        texts = frozenset(text for code, text in enumerate(own, start=1) if _has(test, code))
        negated, missing = _has(test, 0), any(piece.missing for piece in test.values)
        listed = frozenset(own) - texts if negated else texts
        return Test(test.feature, code_values(Texts(listed, negated, missing), test.feature, book))

    return replace(map_tests(reading, recode), book=book.texts)


def _has(test: Test, code: int) -> bool:
    return any(piece.least <= code <= piece.most for piece in test.values)


def map_tests(reading: Reading, change: Callable[[Test], Test]) -> Reading:
    """The reading with every test replaced."""

    def condition(part: Condition) -> Condition:
        match part:
            case Test():
                return change(part)
            case And(parts):
                return And(tuple(map(condition, parts)))
            case Or(parts):
                return Or(tuple(map(condition, parts)))
            case Not(inner):
                return Not(condition(inner))
            case _:
                assert_never(part)

    match reading.decision:
        case StepDecision(steps):
            moved = (replace(s, condition=condition(s.condition)) if isinstance(s, Ask) else s for s in steps)
            return replace(reading, decision=StepDecision(tuple(moved)))
        case PointDecision(_, terms, held=held):
            decision = replace(
                reading.decision,
                terms=tuple((condition(each), points) for each, points in terms),
                held=None if held is None else tuple(map(condition, held)),
            )
            return replace(reading, decision=decision)
        case _:
            assert_never(reading.decision)


def align(
    reading: Reading, features: tuple[str, ...], classes: tuple[Label, ...], kinds: tuple[Kind, ...] = ()
) -> Reading:
    """The reading with its features and classes found by name, for artifacts that take values by name.

    A feature the artifact never mentions is fine, and is of the kind that `kinds` says; one it has and `features` has
    not is refused.
    """
    column = {name: index for index, name in enumerate(features)}
    if unknown := [name for name in reading.features if name not in column]:
        raise BadInput(f"{reading.place or 'the artifact'}: feature {unknown[0]!r} is not one of the program's")
    feature = [column[name] for name in reading.features]
    position = {(type(label), label): index for index, label in enumerate(classes)}
    if unknown_labels := [label for label in reading.classes if (type(label), label) not in position]:
        raise BadInput(f"{reading.place or 'the artifact'}: label {unknown_labels[0]!r} is not one of the program's")
    place = [position[type(label), label] for label in reading.classes]
    same_classes = place == list(range(len(classes)))
    match reading.decision:
        case StepDecision(steps):
            moved = tuple(_renumber_step(step, feature, place, len(classes), same_classes) for step in steps)
            decision: StepDecision | PointDecision = StepDecision(moved)
        case PointDecision():
            if not same_classes:  # ties go by position: another order is another meaning
                raise BadInput(f"{reading.place or 'the artifact'}: its classes are not the program's, in order")
            terms = ((_renumber(condition, feature), points) for condition, points in reading.decision.terms)
            held = reading.decision.held
            moved_held = None if held is None else tuple(_renumber(condition, feature) for condition in held)
            decision = replace(reading.decision, terms=tuple(terms), held=moved_held)
        case _:
            assert_never(reading.decision)
    nan = reading.nan_features
    moved_nan = None if nan is None else frozenset(feature[place] for place in nan)
    aligned = replace(reading, features=features, classes=classes, decision=decision, nan_features=moved_nan)
    return _with_kinds(aligned, reading, feature, kinds) if reading.kinds or kinds else aligned


def _with_kinds(aligned: Reading, reading: Reading, feature: list[int], kinds: tuple[Kind, ...]) -> Reading:
    """The kinds and texts of the features at their new places."""
    of_all: list[Kind] = list(kinds) if kinds else ["number"] * len(aligned.features)
    book: list[tuple[str, ...]] = [()] * len(aligned.features)
    for index, place in enumerate(feature):
        of_all[place] = reading.kinds[index] if reading.kinds else "number"
        book[place] = reading.book[index] if reading.kinds else ()
    return aligned if set(of_all) == {"number"} else replace(aligned, kinds=tuple(of_all), book=tuple(book))


def _renumber_step(
    step: Ask | Outcome, feature: list[int], place: list[int], classes: int, same: bool
) -> Ask | Outcome:
    if isinstance(step, Ask):
        return replace(step, condition=_renumber(step.condition, feature))
    probabilities = step.probabilities
    if probabilities is not None and not same:
        spread = [0.0] * classes
        for position, probability in zip(place, probabilities, strict=True):
            spread[position] = probability
        probabilities = tuple(spread)
    return replace(step, winner=place[step.winner], probabilities=probabilities)


def _renumber(condition: Condition, feature: list[int]) -> Condition:
    match condition:
        case Test(index, values):
            return Test(feature[index], values)
        case And(parts):
            return And(tuple(_renumber(part, feature) for part in parts))
        case Or(parts):
            return Or(tuple(_renumber(part, feature) for part in parts))
        case Not(part):
            return Not(_renumber(part, feature))
        case _:
            assert_never(condition)
