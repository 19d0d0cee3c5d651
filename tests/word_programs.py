"""Random programs whose features are of all kinds, and rows of values for them: texts that are easily mistaken."""

import datetime as dt
import math

from hypothesis import strategies as st

from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program
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
