"""Compile a scikit-learn decision tree that you have already: no mining, no black box.

Run it: python examples/existing_tree.py
scikit-learn compares in float32; the program's thresholds are the doubles that decide the same on every double.
"""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile import check_artifacts, emit, evaluate_many, expectation, lower, optimise, readable

wine = load_wine(as_frame=True)
kind = np.array(["barolo", "grignolino", "barbera"])[wine.target]
tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(wine.data, kind)

program = optimise(lower(tree))
print(readable(program))

rows = wine.data.to_numpy()
same = evaluate_many(program, rows).labels == tree.predict(wine.data)
print(f"{same.sum()} of {len(rows)} labels the same as scikit-learn's")

verdict = check_artifacts(expectation(program, rows), [emit(program, target) for target in ("python", "sql:sqlite")])
for target in verdict.targets:
    print(f"{target.target}: {target.verdict}, {target.proof.answer}, {target.execution.different} rows different")
