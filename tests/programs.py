"""Random programs and rows for property tests: small enough to shrink, awkward enough to matter."""

import math
from dataclasses import replace
from functools import partial

from hypothesis import strategies as st

from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.kinds import EARLIEST, LATEST, moment
from gbfl_compile.ir.nodes import TRUE, Band, Clause, Interval, Leaf, OneOf, Program, Scorecard, Tree, split

# Few values, many of them neighbours: clauses overlap, imply and contradict each other all the time.
CUTS = (-1e308, -2.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.0000000000000002, 1.0000000000000004, 2.0, 1e308)

cuts = st.sampled_from(CUTS) | st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)

NAMES = (
    "age",
    "income",
    "class",
    "x1",
    "x 0",
    "a'b",
    'say "hi"',
    "line\nbreak",
    "größe",
    "# comment",
    "{{ 7*7 }}",
    "*/",
)

LABELS = (
    ("no", "yes"),
    (0, 1),
    (False, True),
    (0.0, 1.5),
    ("a", "b", "c"),
    (3, 1, 2),
    ("one",),
    ("it's", "\u2028", "%s"),
)


@st.composite
def intervals(draw, feature):
    lo, hi = draw(st.none() | cuts), draw(st.none() | cuts)
    closed = draw(st.sampled_from(("left", "left", "left", "right", "both", "neither")))
    if lo is not None and hi is not None:
        lo, hi = min(lo, hi), max(lo, hi)
        if lo == hi:
            closed = "both"
        elif closed == "neither" and math.nextafter(lo, math.inf) == hi:
            closed = "left"
    return Interval(feature, lo, hi, closed, draw(st.booleans() if draw(st.booleans()) else st.just(False)))


@st.composite
def clauses(draw, features):
    used = draw(st.lists(st.integers(0, features - 1), unique=True, max_size=3))
    return Clause(tuple(draw(intervals(feature)) for feature in used))


@st.composite
def leaves(draw, classes):
    drawn = Leaf(draw(shares(classes)), draw(st.none() | st.integers(0, 50)))
    answer = draw(st.none() | st.integers(0, classes - 1))  # observed rates need not favour the class that is answered
    return Tree((drawn if answer in (None, drawn.winner) else replace(drawn, answer=answer),))


@st.composite
def shares(draw, classes):
    weights = draw(st.lists(st.integers(0, 3), min_size=classes, max_size=classes).filter(any))
    return tuple(weight / sum(weights) for weight in weights)


@st.composite
def bands(draw, classes):
    """The bands of one class: leads about as large as those that small random points make."""
    leads = [0, *sorted(draw(st.sets(st.integers(1, 20), max_size=4)))]
    return tuple(Band(lead, draw(shares(classes))) for lead in leads)


@st.composite
def trees(draw, clause_count, classes, depth=4):
    if depth == 0 or clause_count == 0 or draw(st.integers(0, 4)) == 0:
        return draw(leaves(classes))
    then, otherwise = draw(trees(clause_count, classes, depth - 1)), draw(trees(clause_count, classes, depth - 1))
    return split(draw(st.integers(0, clause_count - 1)), then, otherwise)


@st.composite
def scorecards(draw, clause_count, classes, has_bands=False):
    points = st.lists(st.integers(-6, 6), min_size=classes, max_size=classes).map(tuple)
    card = Scorecard(draw(points), tuple(draw(points) for _ in range(clause_count)), draw(st.integers(0, 12)))
    if not has_bands or classes == 1 or draw(st.booleans()):
        return card
    return replace(card, bands=tuple(draw(bands(classes)) for _ in range(classes)))


@st.composite
def programs(draw, kinds=("tree", "scorecard")):
    features = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4))
    labels = draw(st.sampled_from(LABELS))
    drawn = tuple(draw(clauses(len(features))) for _ in range(draw(st.integers(0, 5))))
    kind = draw(st.sampled_from(kinds))
    build = trees if kind == "tree" else partial(scorecards, has_bands=kind == "banded")
    return Program(tuple(features), labels, drawn, draw(build(len(drawn), len(labels))))


def interesting_values(program):
    """Per feature: each cut and its neighbours, infinities, zeros, missing."""
    pools = [[0.0, -0.0, math.inf, -math.inf, math.nan, 0.5] for _ in program.features]
    for clause in program.clauses:
        for atom in clause.atoms:
            for cut in (atom.lo, atom.hi) if isinstance(atom, Interval) else ():
                if cut is not None:
                    pools[atom.feature] += [cut, above(cut), below(cut)]
    return pools


@st.composite
def programs_with_rows(draw, kinds=("tree", "scorecard"), rows=12):
    program = draw(programs(kinds))
    row = st.tuples(*(st.sampled_from(pool) for pool in interesting_values(program)))
    return program, [list(draw(row)) for _ in range(rows)]


WORDS = (
    "",
    "a",
    "A",
    "a ",
    "\u00e1",
    "a\u0301",
    "Month-to-month",
    "it's",
    'say "hi"',
    "back\\slash",
    "two\nlines",
    "\u202eabc",
)
"""Texts that differ by case, blank, accent, normal form or quoting."""

DAYS = (EARLIEST, -1.0, 0.0, 1.0, 19782.0, 19783.0, LATEST)
MICROS = (-(2.0**53), -1.0, 0.0, 1.0, 1.7e15, 1.7e15 + 1.0, 2.0**53)


def beside(cuts):
    """Whole numbers at and beside each cut, within the same range."""
    return sorted({n for cut in cuts for n in (cut - 1, cut, cut + 1) if min(cuts) <= n <= max(cuts)})


@st.composite
def atoms_of_kind(draw, feature, kind):
    """An atom that may be asked of a feature of this kind."""
    if kind == "number":
        return draw(intervals(feature))
    if_missing, negated = draw(st.booleans()), draw(st.booleans())
    if kind == "boolean":
        return OneOf(feature, draw(st.sampled_from(((), (TRUE,), (TRUE,)))), negated, if_missing)
    if kind == "category":
        texts = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=4))
        return OneOf(feature, tuple(sorted(texts)), negated, if_missing)
    cuts = DAYS if kind == "date" else MICROS
    lo, hi = sorted((draw(st.sampled_from(cuts)), draw(st.sampled_from(cuts))))
    closed = "both" if lo == hi else draw(st.sampled_from(("left", "right", "both")))
    open_lo, open_hi = draw(st.booleans()), draw(st.booleans())
    return Interval(feature, None if open_lo else lo, None if open_hi else hi, closed, if_missing)


@st.composite
def programs_of_kinds(draw, decisions=("tree", "scorecard"), most_features=4):
    """Programs with features of every kind, at least one of them no number."""
    kinds = draw(
        st.lists(
            st.sampled_from(("number", "category", "category", "boolean", "date", "timestamp")),
            min_size=1,
            max_size=most_features,
        )
    )
    if set(kinds) == {"number"}:
        kinds[0] = "category"
    features = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=len(kinds), max_size=len(kinds)))
    labels = draw(st.sampled_from(LABELS))
    clauses_drawn = []
    for _ in range(draw(st.integers(0, 5))):
        used = draw(st.lists(st.integers(0, len(kinds) - 1), unique=True, max_size=3))
        clauses_drawn.append(Clause(tuple(draw(atoms_of_kind(feature, kinds[feature])) for feature in used)))
    build = trees if draw(st.sampled_from(decisions)) == "tree" else scorecards
    decision = draw(build(len(clauses_drawn), len(labels)))
    return Program(tuple(features), labels, tuple(clauses_drawn), decision, kinds=tuple(kinds))


def values_of_kind(program, feature):
    """Python values worth trying: at and beside every bound, texts that look alike, missing."""
    match program.kind(feature):
        case "number":
            return interesting_values(program)[feature]
        case "category":
            return [*WORDS, "unlisted", None]
        case "boolean":
            return [True, False, None]
        case "date":
            return [moment("date", day) for day in beside(DAYS)] + [None]
        case "timestamp":
            return [moment("timestamp", micros) for micros in beside(MICROS)] + [None]


@st.composite
def programs_of_kinds_with_rows(draw, decisions=("tree", "scorecard"), rows=12):
    program = draw(programs_of_kinds(decisions))
    row = st.tuples(*(st.sampled_from(values_of_kind(program, f)) for f in range(len(program.features))))
    return program, [list(draw(row)) for _ in range(rows)]
