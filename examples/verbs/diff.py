"""diff: two versions of a program compared by what they mean.

It prints::

    identical
    different 8 of 40 rows
    clause 0 tightened: income >= 50000 becomes income >= 60000
    clause 1 loosened: debt < 0.35 becomes debt < 0.4
"""

from pathlib import Path

from gbfl_compile import diff

FOLDER = Path(__file__).parent.parent / "audit"

print(diff(FOLDER / "loans.gbfl.json", FOLDER / "loans.gbfl.json").verdict)
difference = diff(FOLDER / "loans.gbfl.json", FOLDER / "loans-candidate.gbfl.json", data=FOLDER / "applications.csv")
print(difference.verdict, f"{difference.moves.rows} of {difference.moves.of} rows")
for change in difference.changes:
    print(f"{change.where} {change.kind}: {change.approved} becomes {change.deployed}")
