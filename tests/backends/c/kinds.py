"""Random programs of all kinds with texts that are hard to write down in C, and rows for them."""

import math

from hypothesis import strategies as st

from gbfl_compile.ir.kinds import EARLIEST, LATEST, moment
from gbfl_compile.ir.nodes import TRUE, Clause, Interval, OneOf, Program
from tests.programs import CUTS, LABELS, NAMES, intervals, scorecards, trees

# Texts that a comparison which is not exact takes for one another, and texts that are hard to write down.
TEXTS = (
    "", " ", "a", "A", "a ", " a", "\u00e1", "a\u0301", "b", "ab", "aa", "Month-to-month", "true", "NULL", "nan", "0", "1",
    '"', "'", "\\", "\\n", "line\nbreak", "??/", "*/", "//", "%s", "%:", "<%", "{{ 7*7 }}", "$number:features", "@NAME@",
    "\u202etfel", "\U0001f600", "\x7f", "x" * 1000, "\u00e9" * 1000,
)  # fmt: skip

DATES = (EARLIEST, EARLIEST + 1.0, -1.0, 0.0, 1.0, 19_783.0, LATEST - 1.0, LATEST)
MOMENTS = (-1e15, -1.0, 0.0, 1.0, 1.7e15, 1.7e15 + 1.0, 9_007_199_254_740_991.0)

KINDS = ("number", "category", "boolean", "date", "timestamp")


@st.composite
def sets_of_texts(draw, feature, texts):
    values = tuple(sorted(draw(st.sets(st.sampled_from(texts), max_size=4))))
    return OneOf(feature, values, draw(st.booleans()), draw(st.booleans()))


@st.composite
def whole_intervals(draw, feature, values):
    lo, hi = draw(st.none() | st.sampled_from(values)), draw(st.none() | st.sampled_from(values))
    if lo is not None and hi is not None:
        lo, hi = min(lo, hi), max(lo, hi)
    closed = "both" if lo == hi else draw(st.sampled_from(("left", "right", "both", "neither")))
    return Interval(feature, lo, hi, closed, draw(st.booleans()))


def atoms_of_kind(kind, feature):
    """Atoms on a feature of a kind."""
    return {
        "number": intervals(feature),
        "category": sets_of_texts(feature, TEXTS),
        "boolean": sets_of_texts(feature, (TRUE,)),
        "date": whole_intervals(feature, DATES),
        "timestamp": whole_intervals(feature, MOMENTS),
    }[kind]


@st.composite
def programs_of_kinds(draw, heads=("tree", "scorecard"), kinds=KINDS):
    """Programs whose features are of several kinds, at least one of them no number."""
    features = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=5))
    own = [draw(st.sampled_from(kinds)) for _ in features]
    if set(own) == {"number"}:
        own[0] = draw(st.sampled_from(kinds[1:]))
    labels = draw(st.sampled_from(LABELS))
    drawn = []
    for _ in range(draw(st.integers(0, 6))):
        used = draw(st.lists(st.integers(0, len(features) - 1), unique=True, max_size=3))
        drawn.append(Clause(tuple(draw(atoms_of_kind(own[feature], feature)) for feature in used)))
    build = trees if draw(st.sampled_from(heads)) == "tree" else scorecards
    decision = draw(build(len(drawn), len(labels)))
    return Program(tuple(features), labels, tuple(drawn), decision, kinds=tuple(own))


def possible_values(program):
    """Per feature the Python values worth trying: lookalike texts, days next to a bound, missing ones."""
    pools = []
    for feature, kind in enumerate(program.kinds):
        match kind:
            case "number":
                pools.append([0.0, -0.0, math.inf, -math.inf, math.nan, None, 0.5, *CUTS])
            case "category":
                atoms = [atom for clause in program.clauses for atom in clause.atoms if atom.feature == feature]
                listed = [text for atom in atoms for text in atom.values]
                pools.append([*TEXTS, *listed, *listed, "other", None, math.nan, *(text + "\0" for text in listed)])
            case "boolean":
                pools.append([True, False, None, 1, 0])
            case "date" | "timestamp":
                values = DATES if kind == "date" else MOMENTS
                near = [value + step for value in values for step in (-1.0, 0.0, 1.0)]
                pools.append([None, *{_moment(kind, value) for value in near}])
    return [sorted(pool, key=repr) for pool in pools]


def _moment(kind, value):
    """The date or datetime of a number, within what is exact in microseconds."""
    return moment(kind, max(min(value, 2.0**53), -(2.0**53)))


@st.composite
def programs_of_kinds_with_rows(draw, heads=("tree", "scorecard"), rows=12, kinds=KINDS):
    program = draw(programs_of_kinds(heads, kinds))
    row = st.tuples(*(st.sampled_from(pool) for pool in possible_values(program)))
    return program, [list(draw(row)) for _ in range(rows)]
