"""From a black box to a checked Python module, in memory: run it with `python examples/quickstart.py`."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from gbfl_compile import GBFLClassifier, emit, lower, optimise, readable

iris = load_iris(as_frame=True)
species = iris.target_names[iris.target]
black_box = RandomForestClassifier(50, random_state=0).fit(iris.data, species)

model = GBFLClassifier(black_box, head="tree", max_depth=2, random_state=0).fit(iris.data, species)
program = optimise(lower(model))
print(readable(program))

module = emit(program, "python", "iris").files["iris.py"].decode()
scorer = {}
exec(module, scorer)
print(scorer["explain"]([5.1, 3.5, 1.4, 0.2]))
