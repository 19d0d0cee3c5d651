"""mine: rules from a table and a black box, measured on rows that were held out.

It prints::

    Program(tree, 1 clause, 2 features, classes ['no', 'yes'])
    accuracy 1.00, black box 1.00
"""

import numpy as np
import pandas as pd

from gbfl_compile import mine

random = np.random.default_rng(0)
loans = pd.DataFrame({"income": random.integers(10, 100, 400), "debt_share": random.integers(0, 100, 400) / 100})
loans["default"] = np.where(loans["debt_share"] > 0.5, "yes", "no")

mined = mine(loans, "default", train="gbm", head="tree", depth=1, baselines=False)
print(mined.program)
print(f"accuracy {mined.accuracy:.2f}, black box {mined.black_box_accuracy:.2f}")
