"""lower: a fitted model, here a tree of scikit-learn, becomes a program that agrees with it on every row.

It prints::

    IF petal width (cm) <= 0.8 THEN 0 (1.00, 50 rows)
    ELSE IF (petal width (cm) <= 1.75 OR petal width (cm) is missing) THEN 1 (0.91, 54 rows)
    ELSE 2 (0.98, 46 rows)
    True
"""

from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile import evaluate_many, lower, readable

x, y = load_iris(return_X_y=True, as_frame=True)
tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y)
program = lower(tree)
print(readable(program))
print((evaluate_many(program, x.to_numpy()).labels == tree.predict(x)).all())
