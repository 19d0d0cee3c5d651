"""The same rules as different people spell them: flags, codes, bands, points, priorities, logistic scores.

Each is a query; with a slip, one of its signs is another one. None is derived from what we emit or from what is read.
"""

from pathlib import Path

from tests.auditing.forms.structures import FROM, Structure, V

SCORE = (
    "(CASE WHEN income >= 30000 THEN 6 ELSE 0 END) + (CASE WHEN debt < 0.4 THEN 5 ELSE 0 END) "
    "+ (CASE WHEN age >= 25 THEN 3 ELSE 0 END)"
)

TEXT = Path(__file__).with_name("spellings.sql").read_text(encoding="utf-8")
QUERIES = tuple((*head[3:].split(" | "), query) for head, query in zip(*[iter(TEXT.splitlines())] * 2, strict=True))
"""Name, engines, program and query: {S} is the score, {F} the table."""

SIGNS = {
    "tree": ("debt <= 0.6", "debt < 0.6", 1),
    "card": ("age >= 25", "age > 25", 2),
    "one": ("income >= 30000", "income > 30000", 0),
}
"""The sign that a slip changes, and the clause that it is in."""
OTHER_SIGNS = {"tree": ("income >= 30000", "income > 30000", 0), "card": ("debt < 0.4", "debt <= 0.4", 1)}


def _spellings():
    for number, (name, engines, program, query) in enumerate(QUERIES):
        text = V + query.replace("{S}", SCORE).replace("{F}", FROM)
        signs = OTHER_SIGNS if number % 2 and program in OTHER_SIGNS else SIGNS
        for old, new, clause in (signs[program], SIGNS[program], OTHER_SIGNS.get(program, SIGNS[program])):
            if old in text:
                yield Structure(name, (text,), engines, program, slip=text.replace(old, new)), clause
                break
        else:
            yield Structure(name, (text,), engines, program), None


SPELLINGS = tuple(structure for structure, _ in _spellings())
PLACES = {structure.name: (clause,) for structure, clause in _spellings() if clause is not None}
"""The clause that the slip of each is in."""
