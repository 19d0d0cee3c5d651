"""Tables of a few values have a few distinct rows, and are learned from like any other."""

from itertools import product

import pandas as pd
import pytest

from gbfl_compile.mining import mine

WORDS = pd.DataFrame([*product(["yes", "no"], repeat=3)] * 25, columns=["a", "b", "c"])
FLAGS = pd.DataFrame([*product([0, 1], repeat=3)] * 25, columns=["a", "b", "c"])
TABLES = {
    "a number of seven values": pd.DataFrame({"x": [*range(7)] * 30}).assign(y=lambda t: t["x"] > 3),
    "one of three words": pd.DataFrame({"colour": ["red", "green", "blue"] * 60}).assign(
        y=lambda t: t["colour"] == "red"
    ),
    "two words of three": WORDS.assign(y=(WORDS["a"] == "yes") & (WORDS["b"] == "yes")),
    "two flags of three": FLAGS.assign(y=(FLAGS["a"] == 1) & (FLAGS["b"] == 1)),
}


@pytest.mark.parametrize("head", ["rules", "list", "tree"])
@pytest.mark.parametrize("table", TABLES)
def test_what_the_black_box_has_learned_is_found(table, head):
    mined = mine(TABLES[table], "y", train="gbm", head=head, baselines=False, note=lambda line: None)
    assert mined.black_box_accuracy == 1.0
    assert mined.accuracy == 1.0
    assert mined.consistency.fidelity == 100.0
