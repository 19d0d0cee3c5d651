"""explain_row: why one row gets its class, which values suffice for it, and what would change it.

It prints::

    row 1 of 1: yes, with probability 0.90

    Why: the questions on the path to it and their answers, in order
      not (late_payments < 1)
      (late_payments >= 3 OR late_payments is missing)

    Sufficient (no smaller set of features suffices): yes for any values of the other features, as long as
      late_payments >= 3, here 4

    Would change it: the nearest change of one feature
      late_payments 4 -> just below 3 gives no
"""

from pathlib import Path

from gbfl_compile import explain_row

PROGRAM = Path(__file__).parent.parent / "loans.gbfl.json"

print(explain_row(PROGRAM, {"income": 30_000, "debt_share": 0.2, "late_payments": 4}))
