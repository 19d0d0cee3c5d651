"""From a table to a checked scorer, step by step. Cells begin with `# %%`: open it as a notebook, or run it whole.

Run it: python examples/walkthrough.py
"""

# %% [markdown]
# # The data
# scikit-learn's own copy of the Wisconsin breast cancer data: 569 tumours, 30 measurements each.

# %%
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile import (
    GBFLClassifier,
    check_artifacts,
    emit,
    evaluate,
    expectation,
    lower,
    optimise,
    readable,
    save_program,
)

data = load_breast_cancer(as_frame=True)
names = np.asarray(data.target_names, dtype=str)
x, x_test, y, y_test = train_test_split(data.data, names[data.target], random_state=0, stratify=data.target)
print(f"{len(x)} rows to learn from, {len(x_test)} held out")

# %% [markdown]
# # The black box
# A small neural network. Nobody can read it.

# %%
black_box = make_pipeline(StandardScaler(), MLPClassifier((20, 10), max_iter=500, random_state=0)).fit(x, y)
print(f"the black box is right on {100 * black_box.score(x_test, y_test):.1f} % of the rows held out")

# %% [markdown]
# # Its rules
# Every row is explained by what suffices for its class (a pertinent positive) and by what would change it (a pertinent
# negative). Rules are mined from those, and a tree or a rule set is fitted over the rules.

# %%
tree = GBFLClassifier(black_box, head="tree", max_depth=3, random_state=0).fit(x, y)
rules = GBFLClassifier(black_box, head="rules", max_clauses=8, random_state=0).fit(x, y)
for what, model in (("tree", tree), ("rules", rules)):
    report = model.score_report(x_test, y_test)
    print(f"{what}: right on {100 * model.score(x_test, y_test):.1f} %")
    print(report)

# %% [markdown]
# # As a program
# `lower` makes an exact program of the fitted model, `optimise` makes it smaller and changes no answer.

# %%
program = optimise(lower(tree), x.to_numpy())
print(readable(program))

# %% [markdown]
# # Why did this row get its class?

# %%
answer = evaluate(program, x_test.iloc[0].tolist())
print(f"{answer.label}, leaf {answer.leaf}, clauses {answer.held} held")

# %% [markdown]
# # Written down, and checked
# Each artifact is read back and proved equal to the program on every input, then run on rows made to tell them apart.

# %%
artifacts = [emit(program, target) for target in ("python", "c", "sql:sqlite")]
verdict = check_artifacts(expectation(program, x_test.to_numpy()), artifacts)
for target in verdict.targets:
    print(f"{target.target}: {target.verdict}, proof: {target.proof.answer}")
print(f"verdict: {verdict.verdict}")

# %% [markdown]
# # Kept
# The program file is what you review, approve, and hold everything deployed against.

# %%
with tempfile.TemporaryDirectory() as folder:
    save_program(program, Path(folder) / "model.gbfl.json")
    print(f"{(Path(folder) / 'model.gbfl.json').stat().st_size // 1024} KB")
