"""The strict form of SQL: what is read here was accounted for token by token, and only that may be called proved.

`read_strict` takes the text of an artifact, `read_strict_view` a view as its database's catalog prints it. Both are
given what the text should read and answer (`ExpectedText`), and raise Unread on whatever is not in the strict form.

From the columns of the last query follows the one decision behind them: a tree's steps, or a rule set's points.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gbfl_compile.checking.reading.nodes import (
    Ask,
    Condition,
    Outcome,
    PointDecision,
    Reading,
    StepDecision,
    Unread,
    one_file,
)
from gbfl_compile.checking.strict.sql.catalogs import catalog_of, refuse_declared_conversions
from gbfl_compile.checking.strict.sql.cursor import Cursor
from gbfl_compile.checking.strict.sql.cursor import ExpectedText as ExpectedText
from gbfl_compile.checking.strict.sql.cursor import expected_from as expected_from
from gbfl_compile.checking.strict.sql.cursor import expected_of as expected_of
from gbfl_compile.checking.strict.sql.forms import artifact
from gbfl_compile.checking.strict.sql.lexer import dbt_template, refuse_other_schemas, tokens_of
from gbfl_compile.checking.strict.sql.lexis import Lexis, lexis_of
from gbfl_compile.checking.strict.sql.rules import rule_set
from gbfl_compile.checking.strict.sql.values import (
    Book,
    Case,
    Constant,
    DoubtfulValue,
    JoinedText,
    LookUp,
    Number,
    Share,
    Text,
    Truth,
    Value,
    Whole,
)
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import TRUE, Label, Program

LARGEST = 20_000_000
"""Characters of a text: more than any artifact has."""


def read_strict(text: str, dialect: str, expected: ExpectedText) -> tuple[Reading, ...]:
    """What an artifact answers: one reading, which holds for NULL and for every NaN alike."""
    lexis = lexis_of(dialect)
    if len(text) > LARGEST:
        raise Unread(f"more than {LARGEST} characters")
    template = dbt_template if expected.form == "dbt" else None
    try:
        tokens = tokens_of(text, lexis, template, comments=expected.form != "expression")
        at = Cursor(tokens, lexis, expected)
        return (_reading(lexis, expected, artifact(at), at.book),)
    except RecursionError:
        raise Unread("nested too deeply") from None


def read_strict_files(
    dialect: str,
    files: Mapping[str, bytes],
    program: Program,
    options: Mapping[str, str],
    labels: tuple[Label, ...] | None = None,
) -> tuple[Reading, ...]:
    """The reading of the one .sql file; a dbt model's schema.yml may name columns and tests, and nothing else.

    `labels` is how the text should write the classes, where that is not by their names.
    """
    name, content = one_file({name: content for name, content in files.items() if name != "schema.yml"}, ".sql")
    try:
        text = content.decode("utf-8")
        expected = expected_from(text, program, options)
        readings = read_strict(text, dialect, replace(expected, classes=labels or expected.classes))
    except UnicodeDecodeError:
        raise Unread(f"{name}: is not UTF-8") from None
    except (Unread, BadInput) as error:
        raise Unread(f"{name}: {error}") from error.__cause__
    if "schema.yml" in files:
        refuse_other_schemas(files["schema.yml"])
    return readings


def refuse_conversions(definition: str, dialect: str, expected: ExpectedText) -> None:
    """Refuse a view that declares other types than its query gives: ClickHouse converts what comes out."""
    if dialect == "clickhouse":
        refuse_declared_conversions(definition, expected)


def read_strict_view(definition: str, dialect: str, expected: ExpectedText) -> tuple[Reading, ...]:
    """What a view answers, from its definition as the catalog of its database prints it."""
    lexis, catalog, read = catalog_of(dialect)
    try:
        at = Cursor(tokens_of(definition, lexis), lexis, replace(expected, form="view"), catalog)
        return (_reading(lexis, expected, read(at), at.book),)
    except RecursionError:
        raise Unread("nested too deeply") from None


KINDS = ("label", "probabilities", "score", "leaf", "reason")


@dataclass(frozen=True, slots=True)
class Answers:
    """The columns by what they say."""

    label: Value
    probabilities: tuple[Value, ...]
    scores: tuple[Value, ...]
    leaf: Value | None
    reason: Value | None


def _reading(lexis: Lexis, expected: ExpectedText, columns: Mapping[str, Value], book: Book) -> Reading:
    """The one way in which a text in the strict form answers."""
    answers = _answers(expected, columns)
    others = (*answers.probabilities, *answers.scores)
    if (
        answers.scores
        or isinstance(answers.label, DoubtfulValue)
        or any(isinstance(each, Share | DoubtfulValue) for each in others)
    ):
        decision: StepDecision | PointDecision = _point_decision(lexis, expected, answers, book)
    elif isinstance(answers.label, Whole | Number | Text | Truth) and _is_rule_reason(answers.reason):
        decision = _point_decision(lexis, expected, answers, book)
    else:
        decision = StepDecision(tuple(_steps(lexis, expected, answers, book.conditions)))
    return Reading(
        expected.features,
        expected.classes,
        decision,
        place=", ".join(called for _, called in expected.outputs),
        kinds=expected.kinds,
        book=tuple(_texts(expected, book, feature) for feature in range(len(expected.kinds))),
    )


def _texts(expected: ExpectedText, book: Book, feature: int) -> tuple[str, ...]:
    """The texts by whose codes a feature is tested."""
    return (TRUE,) if expected.kind(feature) == "boolean" else tuple(book.texts.get(feature, ()))


def _is_rule_reason(reason: Value | None) -> bool:
    """Whether a reason lists rules, for a label that is always the same. A tree's reason is never empty."""
    match reason:
        case JoinedText() | Case(((_, Text()),), Text("")):
            return True
    return False


def _answers(expected: ExpectedText, columns: Mapping[str, Value]) -> Answers:
    found: dict[str, list[Value]] = {kind: [] for kind in KINDS}
    for kind, called in expected.outputs:
        if kind not in found:
            raise Unread(f"an answer of the kind {kind!r} is expected")
        found[kind].append(columns[called])
    classes = len(expected.classes)
    for kind in ("probabilities", "score"):
        if len(found[kind]) not in (0, classes):
            raise Unread(f"{len(found[kind])} columns of {kind} for {classes} classes")
    if len(found["label"]) != 1 or len(found["leaf"]) > 1 or len(found["reason"]) > 1:
        raise Unread("not one label, or more than one leaf or reason")
    return Answers(
        found["label"][0],
        tuple(found["probabilities"]),
        tuple(found["score"]),
        next(iter(found["leaf"]), None),
        next(iter(found["reason"]), None),
    )


def _class_of(lexis: Lexis, classes: Sequence[Label], end: Value) -> int:
    """The class that a constant means: same type, same value."""
    match end:
        case Whole(number) if isinstance(classes[0], bool) and not lexis.booleans and number in (0, 1):
            found: Label = bool(number)
        case Whole(number):
            found = number
        case Number(value):
            found = value
        case Text(text):
            found = text
        case Truth(truth):
            found = truth
        case _:
            raise Unread("the label is something other than a constant for some rows")
    for index, label in enumerate(classes):
        if type(label) is type(found) and label == found:
            return index
    raise Unread(f"the label {str(found)[:60]!r} is not one of the classes")


def _point_decision(lexis: Lexis, expected: ExpectedText, answers: Answers, book: Book) -> PointDecision:
    if answers.leaf is not None:
        raise Unread("a leaf beside points")
    count = len(expected.classes)

    def winner(end: Value) -> int:
        return _class_of(lexis, expected.classes, end)

    rules = rule_set(count, winner, answers.label, answers.probabilities, answers.scores, answers.reason)
    numbered = dict.fromkeys(condition for points in rules.sums for condition in points.terms)
    terms = tuple(
        (book.conditions[number], tuple(points.terms.get(number, 0) for points in rules.sums)) for number in numbered
    )
    held = None if rules.words is None else tuple(book.conditions[number] for number, _ in rules.words)
    words = None if rules.words is None else tuple(text for _, text in rules.words)
    bias = tuple(points.bias for points in rules.sums)
    says = bool(answers.scores)
    return PointDecision(bias, terms, rules.scale, "lower", held, says, words, rules.constants, rules.bands)


Place = tuple[Case, int] | Constant
"""A WHEN of a Case, by its number, or the constant reached."""


def _steps(
    lexis: Lexis, expected: ExpectedText, answers: Answers, conditions: Sequence[Condition]
) -> list[Ask | Outcome]:
    """All columns together: at each step they ask the same, or have nothing more to ask."""
    texts = [value for value in (answers.leaf, answers.reason) if value is not None]
    columns = tuple(_open(_as_case(value)) for value in (answers.label, *answers.probabilities, *texts))
    steps: list[Ask | Outcome | None] = [None]
    waiting: list[tuple[int, tuple[Place, ...]]] = [(0, columns)]
    while waiting:
        index, places = waiting.pop()
        questions = {place[0].whens[place[1]][0] for place in places if isinstance(place, tuple)}
        if not questions:
            steps[index] = _outcome(lexis, expected, answers, places)
            continue
        if len(questions) > 1:
            raise Unread("the columns do not ask the same conditions in the same order")
        then, otherwise = len(steps), len(steps) + 1
        steps += [None, None]
        steps[index] = Ask(conditions[questions.pop()], then, otherwise)
        waiting.append((otherwise, tuple(_after(place) for place in places)))
        waiting.append((then, tuple(_open(_then(place)) for place in places)))
    return [step for step in steps if step is not None]


def _as_case(value: Value) -> Case | Constant:
    match value:
        case Case() | Number() | Whole() | Text() | Truth():
            return value
        case LookUp(leaf, steps):
            return _map(leaf, steps)
    raise Unread("an answer of a tree that is neither a constant nor a CASE of constants")


def _map(leaf: Case, steps: Sequence[tuple[float, Constant]]) -> Case:
    """A Case with each number replaced by what is looked up for it."""

    def end(found: Case | Constant) -> Case | Constant:
        if isinstance(found, Case):
            return _map(found, steps)
        if not isinstance(found, Whole):
            raise Unread("a leaf that is not a number")
        number: float = found.value
        return steps[bisect.bisect_right(steps, number, key=lambda step: step[0])][1]

    return Case(tuple((condition, end(then)) for condition, then in leaf.whens), end(leaf.otherwise))


def _open(value: Case | Constant) -> Place:
    return (value, 0) if isinstance(value, Case) else value


def _then(place: Place) -> Case | Constant:
    return place[0].whens[place[1]][1] if isinstance(place, tuple) else place


def _after(place: Place) -> Place:
    if not isinstance(place, tuple):
        return place
    case, number = place
    return (case, number + 1) if number + 1 < len(case.whens) else _open(case.otherwise)


def _outcome(lexis: Lexis, expected: ExpectedText, answers: Answers, places: Sequence[Place]) -> Outcome:
    label, *others = places
    shares = tuple(_probability(place) for place in others[: len(answers.probabilities)])
    rest = others[len(answers.probabilities) :]
    leaf = text = None
    if answers.leaf is not None:
        match rest.pop(0):
            case Whole(number):
                leaf = number
            case _:
                raise Unread("a leaf that is not a number")
    if answers.reason is not None:
        match rest.pop(0):
            case Text(found):
                text = found
            case _:
                raise Unread("a reason that is not a text")
    assert not isinstance(label, tuple)  # noqa: S101 - nothing is left to ask
    return Outcome(_class_of(lexis, expected.classes, label), shares or None, leaf, text=text)


def _probability(place: Place) -> float:
    match place:
        case Number(value) if math.isfinite(value):
            return value
    raise Unread("a probability that is not a double")
