"""Deployed forms as people write them, for three small programs: how the rule is wrapped, and how it is spelled.

A form is a structure (views, joins, filters, functions around a rule) with one spelling of the rule in it, for one
engine. None is derived from what we emit. Whether it is the program is found by running it: see `measure`.
"""

from dataclasses import dataclass, replace

from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.ir.validate import validate
from tests.auditing.forms.filters import BRANCHES, FILTERS
from tests.auditing.forms.routines import ROUTINES
from tests.auditing.forms.spellings import PLACES as SPELLING_PLACES
from tests.auditing.forms.spellings import SPELLINGS
from tests.auditing.forms.structures import STRUCTURES

FEATURES = ("income", "debt", "age")
CLAUSES = (
    Clause((Interval(0, 30000.0), Interval(1, None, 0.4))),
    Clause((Interval(1, None, 0.6, "right"), Interval(2, 25.0))),
)
TREE = validate(
    Program(
        FEATURES,
        ("decline", "refer", "approve"),
        CLAUSES,
        split(0, leaf(0.0, 0.0, 1.0), split(1, leaf(0.0, 1.0, 0.0), leaf(1.0, 0.0, 0.0))),
    )
)
CARD = validate(
    Program(
        FEATURES,
        ("decline", "approve"),
        (Clause((Interval(0, 30000.0),)), Clause((Interval(1, None, 0.4),)), Clause((Interval(2, 25.0),))),
        Scorecard((0, -9), ((0, 6), (0, 5), (0, 3)), 1),
    )
)
ONE = validate(
    Program(
        FEATURES,
        ("decline", "approve"),
        (Clause((Interval(0, 30000.0),)),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
    )
)
PROGRAMS = {"tree": TREE, "card": CARD, "one": ONE}

EQUAL = {
    "tree": (
        "CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END",
        "CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' ELSE CASE WHEN debt <= 0.6 AND age >= 25 THEN 'refer' "
        "ELSE 'decline' END END",
        "CASE WHEN debt > 0.6 THEN 'decline' WHEN income >= 30000 AND debt < 0.4 THEN 'approve' "
        "WHEN age >= 25 AND debt IS NOT NULL THEN 'refer' ELSE 'decline' END",
    ),
    "card": (
        "CASE WHEN (CASE WHEN income >= 30000 THEN 6 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 5 ELSE 0 END) "
        "+ (CASE WHEN age >= 25 THEN 3 ELSE 0 END) >= 10 THEN 'approve' ELSE 'decline' END",
    ),
    "one": ("CASE WHEN income >= 30000 THEN 'approve' ELSE 'decline' END",),
}
DIFFERENT = {
    "tree": (
        "CASE WHEN income > 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' ELSE 'decline' END",
        "CASE WHEN income >= 30000 AND debt < 0.4 THEN 'approve' WHEN age >= 25 AND debt < 0.6 THEN 'refer' ELSE 'decline' END",
        "CASE WHEN age >= 25 AND debt <= 0.6 THEN 'refer' WHEN income >= 30000 AND debt < 0.4 THEN 'approve' ELSE 'decline' END",
        "CASE WHEN income >= 30000 AND coalesce(debt, 0) < 0.4 THEN 'approve' WHEN age >= 25 AND debt <= 0.6 THEN 'refer' "
        "ELSE 'decline' END",
    ),
    "card": (
        "CASE WHEN (CASE WHEN income >= 30000 THEN 6 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 5 ELSE 0 END) "
        "+ (CASE WHEN age >= 25 THEN 4 ELSE 0 END) >= 9 THEN 'approve' ELSE 'decline' END",
    ),
    "one": ("CASE WHEN income > 30000 THEN 'approve' ELSE 'decline' END",),
}
"""Spellings of the rules with a slip in them."""

PLACES = {"tree": ((0,), (1,), (0, 1), (0,)), "card": ((2, "start"),), "one": ((0,),)}
"""What the slip in each of these changed: numbers of clauses, or `start` for what the points must reach."""

OWN_PLACES = {
    **SPELLING_PLACES,
    "rule relies on its filter": (1,),
    "params as a CTE": (0,),
    "params as a table": (1,),
    "scalar subquery of a key and value table": (0,),
    "scorecard as bin tables": (1, "start"),
    "scorecard in steps": (1,),
    "alias of the same list": (2,),
    "decimal points": ("start",),
    "union of rules": (0,),
    "feature computed in place": (0,),
    "points taken away": (2,),
    "points that have to be more": ("start",),
}
"""The same where a structure has a slip of its own."""


ENGINES = {"s": "sqlite", "d": "duckdb", "p": "postgres", "m": "mariadb", "c": "clickhouse"}


@dataclass(frozen=True)
class Form:
    """One deployed form."""

    name: str
    engine: str
    program: str
    statements: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    view: str
    places: frozenset = frozenset()
    """What the slip in it changed."""


def forms():
    """Every form, its view under a name of its own."""
    for number, form in enumerate(_forms()):
        name = f"decisions_{number}"
        yield replace(form, view=name, statements=tuple(text.replace("decisions", name) for text in form.statements))


def _filled(statements, values):
    filled = list(statements)
    for old, new in values:
        filled = [text.replace(old, new) for text in filled]
    return tuple(filled)


def _forms():
    """Every structure in every engine: with each spelling in turn, and every other one with a slip."""
    for number, each in enumerate((*STRUCTURES, *ROUTINES, *SPELLINGS, *FILTERS, *BRANCHES)):
        for place, letter in enumerate(each.engines):
            spellings = EQUAL[each.program]
            rule = spellings[(number + place) % len(spellings)]
            engine = ENGINES[letter]
            statements = _filled((text.replace("{R}", rule) for text in each.statements), each.values)
            yield Form(f"{each.name}", engine, each.program, statements, each.columns, "")
            if (number + place) % 2 == 0 or len(each.engines) == 1:
                slips = DIFFERENT[each.program]
                slip = slips[(number // 2 + place) % len(slips)]
                wrong = _filled((text.replace("{R}", slip) for text in each.statements), each.wrong_values)
                wrong = (*wrong[:-1], each.slip) if each.slip else wrong
                places = OWN_PLACES[each.name] if each.slip else PLACES[each.program][slips.index(slip)]
                places = frozenset((each.clause,) if each.wrong_values else places)
                yield Form(f"{each.name}, with a slip", engine, each.program, wrong, each.columns, "", places)
