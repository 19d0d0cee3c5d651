"""Random programs whose features are of all kinds, and rows of values for them: texts that are easily mistaken."""

import datetime as dt
import math
from dataclasses import replace

from hypothesis import strategies as st

from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program, leaf, split
from tests.programs import LABELS, intervals, scorecards, trees

NAMES = ("age", "contract", "smoker", "opened", "seen", "it's", "a is missing", "a", "größe", "line\nbreak")

TEXTS = (
    "",
    " ",
    "a",
    "A",
    "a ",
    "á",
    "a\u0301",
    "None",
    "nan",
    "true",
    "two year",
    "it's",
    'say "hi"',
    "back\\slash",
    "line\nbreak",
    "{{ 7*7 }}",
    "\u202eright to left",
    "\ue000",
    "x" * 1000,
)

KINDS = ("number", "category", "category", "boolean", "date", "timestamp")

DAYS = (-700_000, -1, 0, 1, 19782, 19783)
FIRST, LAST = -719162, 2932896
"""Days with which rules are bounded, and the first and the last of Python's calendar."""

MICROSECONDS = (-1, 0, 1, 1_700_000_000_000_000, 1_700_000_000_000_001)


@st.composite
def moments(draw, feature, whole):
    """An interval of whole days or microseconds."""
    lo, hi = draw(st.none() | st.sampled_from(whole)), draw(st.none() | st.sampled_from(whole))
    closed = draw(st.sampled_from(("left", "right", "both", "neither")))
    if lo is not None and hi is not None:
        lo, hi = min(lo, hi), max(lo, hi)
        closed = "both" if lo == hi else closed
    lo, hi = (None if bound is None else float(bound) for bound in (lo, hi))
    return Interval(feature, lo, hi, closed, draw(st.booleans()))


@st.composite
def sets(draw, feature, texts):
    values = draw(st.lists(st.sampled_from(texts), unique=True, max_size=4))
    return OneOf(feature, tuple(sorted(values)), draw(st.booleans()), draw(st.booleans()))


def atoms(feature, kind):
    match kind:
        case "number":
            return intervals(feature)
        case "category":
            return sets(feature, TEXTS)
        case "boolean":
            return sets(feature, ("true",))
        case "date":
            return moments(feature, DAYS)
        case "timestamp":
            return moments(feature, MICROSECONDS)


@st.composite
def word_programs(draw, decisions=("tree", "scorecard"), kinds=KINDS):
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=5))
    own = tuple(draw(st.sampled_from(kinds)) for _ in names)
    if set(own) == {"number"}:
        own = ("category", *own[1:])
    labels = draw(st.sampled_from(LABELS))
    clauses = []
    for _ in range(draw(st.integers(0, 5))):
        used = draw(st.lists(st.integers(0, len(names) - 1), unique=True, max_size=3))
        clauses.append(Clause(tuple(draw(atoms(feature, own[feature])) for feature in used)))
    build = trees if draw(st.sampled_from(decisions)) == "tree" else scorecards
    return Program(tuple(names), labels, tuple(clauses), draw(build(len(clauses), len(labels))), kinds=own)


def values(program, feature):
    """Values of one feature that are worth trying."""
    match program.kind(feature):
        case "number":
            bounds = [
                bound
                for clause in program.clauses
                for atom in clause.atoms
                if atom.feature == feature
                for bound in (atom.lo, atom.hi)
                if bound is not None
            ]
            return [0.0, -0.0, math.inf, -math.inf, math.nan, None, *bounds]
        case "category":
            return [*TEXTS, "other", "a\0", None]
        case "boolean":
            return [True, False, None]
        case "date":
            return [dt.date(1970, 1, 1) + dt.timedelta(days=day) for day in (*DAYS, FIRST, LAST)] + [None]
        case "timestamp":
            return [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=each) for each in MICROSECONDS] + [None]


@st.composite
def word_programs_with_rows(draw, decisions=("tree", "scorecard"), kinds=KINDS, rows=20):
    program = draw(word_programs(decisions, kinds))
    row = st.tuples(*(st.sampled_from(values(program, feature)) for feature in range(len(program.features))))
    return program, [list(draw(row)) for _ in range(rows)]


CHURN = Program(
    ("income", "contract", "smoker", "opened"),
    ("no", "yes"),
    (
        Clause((Interval(0, 1000.0), OneOf(1, ("Month-to-month", "two year")))),
        Clause((OneOf(2, (TRUE,)), Interval(3, None, 19783.0))),
        Clause((OneOf(1, ("a",), negated=True), OneOf(2, (TRUE,), negated=True, if_missing=True))),
    ),
    split(0, split(1, leaf(0.2, 0.8), leaf(0.7, 0.3)), split(2, leaf(1.0, 0.0), leaf(0.4, 0.6))),
    kinds=("number", "category", "boolean", "date"),
)
"""A tree over all kinds whose every condition shows in some label."""

CHURN_ROWS = [
    [income, contract, smoker, opened]
    for income in (0.0, 999.0, 1000.0, 5000.0, math.nan)
    for contract in ("Month-to-month", "month-to-month", "two year", "two year ", "a", "A", "b", "", None)
    for smoker in (True, False, None)
    for opened in (dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2024, 3, 2), None)
]

SLIPS = {
    "Month-to-month left out": (0, OneOf(1, ("two year",))),
    "one year added": (0, OneOf(1, ("Month-to-month", "one year", "two year"))),
    'Month-to-month re-cased as "month-to-month"': (0, OneOf(1, ("month-to-month", "two year"))),
    'two year with other blanks around it: "two year "': (0, OneOf(1, ("Month-to-month", "two year "))),
    "the other texts pass": (0, OneOf(1, ("Month-to-month", "two year"), negated=True)),
    "a missing value passes": (0, OneOf(1, ("Month-to-month", "two year"), if_missing=True)),
    "1 day later": (1, Interval(3, None, 19784.0)),
    "1 day earlier": (1, Interval(3, None, 19782.0)),
    "no other text passes": (2, OneOf(1, ("a",))),
    'a re-cased as "A"': (2, OneOf(1, ("A",), negated=True)),
    "a missing value does not pass": (2, OneOf(2, (TRUE,), negated=True)),
}
"""What goes wrong when somebody writes CHURN by hand, and the condition that is then in its place."""


def with_slip(name, program=CHURN):
    """CHURN as somebody wrote it who made this slip."""
    number, wrong = SLIPS[name]
    atoms_now = tuple(wrong if atom.feature == wrong.feature else atom for atom in program.clauses[number].atoms)
    clauses = list(program.clauses)
    clauses[number] = Clause(atoms_now)
    return replace(program, clauses=tuple(clauses))


def with_swapped_sets():
    """CHURN with the two lists of contracts in each other's place."""
    first, second = CHURN.clauses[0].atoms[1], CHURN.clauses[2].atoms[0]
    clauses = (
        Clause((CHURN.clauses[0].atoms[0], second)),
        CHURN.clauses[1],
        Clause((first, CHURN.clauses[2].atoms[1])),
    )
    return replace(CHURN, clauses=clauses)


@st.composite
def with_one_edit(draw, program):
    """A program with one condition changed: texts dropped, added, re-cased or padded, a bound moved, missing turned."""
    places = [(n, k) for n, clause in enumerate(program.clauses) for k in range(len(clause.atoms))]
    if not places:
        return program
    number, place = draw(st.sampled_from(places))
    atoms_now = list(program.clauses[number].atoms)
    atom = atoms_now[place]
    match atom:
        case OneOf(feature, texts) if program.kind(feature) == "category":
            padded = {text: text + " " if len(text) < 1000 else text for text in texts}
            edited = {text: draw(st.sampled_from((text, text.upper(), padded[text], None))) for text in texts}
            more = draw(st.lists(st.sampled_from(TEXTS), max_size=1))
            left = tuple(sorted({*(text for text in edited.values() if text is not None), *more}))
            atom = OneOf(feature, left, draw(st.booleans()), draw(st.booleans()))
        case OneOf():
            atom = replace(atom, negated=not atom.negated)
        case Interval(_, lo, hi, closed) if closed == "left" or lo is None or hi is None or hi - lo > 2:
            moved = draw(st.sampled_from((-1.0, 0.0, 1.0)))
            lo = None if lo is None else lo + moved
            hi = None if hi is None else hi if lo is not None and hi - 1 <= lo else hi - moved
            atom = replace(atom, lo=lo, hi=hi, if_missing=not atom.if_missing if moved == 0.0 else atom.if_missing)
    atoms_now[place] = atom
    clauses = list(program.clauses)
    clauses[number] = Clause(tuple(atoms_now))
    return replace(program, clauses=tuple(clauses))
