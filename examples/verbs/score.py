"""score: a table scored by an artifact or by the program itself; files may be larger than memory.

It prints::

    loan label
       A   yes
       B    no
"""

from pathlib import Path

import pandas as pd

from gbfl_compile import score

PROGRAM = Path(__file__).parent.parent / "loans.gbfl.json"
loans = pd.DataFrame({"loan": ["A", "B"], "income": [30e3, 90e3], "debt_share": [0.2, 0.1], "late_payments": [4, 0]})

scored = score(PROGRAM, loans, keys=["loan"])
print(scored.table[["loan", "label"]].to_string(index=False))
