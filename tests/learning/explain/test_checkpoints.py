"""Rows explained before an error or a kill are kept, and the same call ends with the same bits."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box.ask import as_black_box
from gbfl_compile.learning.explain.explanations import domain_of
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.learning.explain.macem import Macem, explain_by_macem
from gbfl_compile.learning.explain.parallel import explain_in_units
from tests.learning.explain.explaining import assert_same, random_network

ROWS = np.random.default_rng(2).normal(size=(90, 4))
DOMAIN = domain_of(ROWS)
ANSWER = random_network(np.random.default_rng(3), 4, 3)
QUICK = Macem(iterations=5, directions=3, searches=1)
EXPLAINERS = {
    "greedy": explain_greedily,
    "greedy, settings": partial(explain_greedily, settings=Greedy(kappa=0.2)),
    "greedy, budget": partial(explain_greedily, settings=Greedy(max_queries=3000)),
    "macem": partial(explain_by_macem, settings=QUICK),
}


@pytest.mark.parametrize("who", EXPLAINERS)
def test_units_of_any_size_give_what_one_call_gives(tmp_path, who):
    explainer = EXPLAINERS[who]
    whole = explainer(as_black_box(ANSWER, ROWS), ROWS, DOMAIN)
    assert (whole.not_reached > 0) == ("budget" in who)
    for size in (1, 13, 90, 1000):
        box = as_black_box(ANSWER, ROWS)
        before = box.queries
        explanations = explain_in_units(explainer, box, ROWS, DOMAIN, unit_rows=size, folder=tmp_path / str(size))
        assert_same(whole, explanations)
        assert box.queries - before - 8 == whole.queries  # 8 rows are asked to see that it is the same black box


@pytest.mark.parametrize("who", EXPLAINERS)
def test_after_an_error_the_same_call_continues(tmp_path, who):
    sizes = []

    def failing(rows):
        sizes.append(len(rows))
        if sum(sizes) > 2500 and not healed:
            raise ConnectionError("line went dead")
        return ANSWER(rows)

    healed = []
    call = partial(explain_in_units, EXPLAINERS[who], x=ROWS, domain=DOMAIN, unit_rows=10, folder=tmp_path)
    with pytest.raises(BadInput, match=r"ConnectionError: line went dead \(\d+ of 90 rows are kept in .*same call"):
        call(as_black_box(failing, ROWS))
    files = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("rows-*.npz")}
    assert len(files) > 0
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]
    healed.append(True)
    again = call(as_black_box(failing, ROWS))
    assert_same(again, EXPLAINERS[who](as_black_box(ANSWER, ROWS), ROWS, DOMAIN))
    assert files.items() <= {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("rows-*.npz")}.items()


KILLED = """
import os, sys
import numpy as np
from gbfl_compile.learning.black_box.ask import as_black_box
from gbfl_compile.learning.explain.parallel import explain_in_units
from gbfl_compile.learning.explain.explanations import domain_of
from gbfl_compile.learning.explain.greedy import explain_greedily
from tests.learning.explain.explaining import random_network

rows = np.random.default_rng(2).normal(size=(90, 4))
answer, sizes = random_network(np.random.default_rng(3), 4, 3), []

def dying(x):
    sizes.append(len(x))
    if sum(sizes) > 2500:
        os.kill(os.getpid(), 9)
    return answer(x)

explain_in_units(explain_greedily, as_black_box(dying, rows), rows, domain_of(rows), unit_rows=10, folder=sys.argv[1])
"""


@pytest.mark.skipif(os.name == "nt", reason="this system has no kill -9")
def test_after_a_kill_the_same_call_continues(tmp_path):
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "c")], cwd=root, check=False)
    assert run.returncode == -9
    assert 0 < len(list((tmp_path / "c").glob("rows-*.npz"))) < 9
    box = as_black_box(ANSWER, ROWS)
    before = box.queries
    again = explain_in_units(explain_greedily, box, ROWS, DOMAIN, unit_rows=10, folder=tmp_path / "c")
    whole = explain_greedily(as_black_box(ANSWER, ROWS), ROWS, DOMAIN)
    assert_same(again, whole)
    assert box.queries - before < whole.queries - 1000


def test_units_of_other_work_are_refused_by_what_differs(tmp_path):
    box = as_black_box(ANSWER, ROWS)
    explain_in_units(explain_greedily, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path)
    call = partial(explain_in_units, unit_rows=50, folder=tmp_path)
    other_box = as_black_box(random_network(np.random.default_rng(4), 4, 3), ROWS)
    for says, arguments in {
        "other rows": (explain_greedily, box, ROWS + 1, DOMAIN),
        "another domain": (explain_greedily, box, ROWS, domain_of(ROWS, immutable=[0])),
        "explanations of explainer .*and this call has .*kappa=0.2": (
            EXPLAINERS["greedy, settings"],
            box,
            ROWS,
            DOMAIN,
        ),
        "a black box that gives other answers": (explain_greedily, other_box, ROWS, DOMAIN),
    }.items():
        with pytest.raises(BadInput, match=says):
            call(*arguments)
    with pytest.raises(BadInput, match="explanations of unit_rows 50, and this call has 30: remove it to begin anew"):
        explain_in_units(explain_greedily, box, ROWS, DOMAIN, unit_rows=30, folder=tmp_path)


def test_a_folder_of_a_version_with_other_modules_is_refused(tmp_path):
    box = as_black_box(ANSWER, ROWS)
    call = partial(explain_in_units, explain_greedily, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path)
    call()
    note = tmp_path / "about.json"
    note.write_text(note.read_text().replace("gbfl_compile.learning.explain.greedy", "gbfl_compile.learn.greedy"))
    with pytest.raises(BadInput, match=r"of explainer gbfl_compile\.learn\.greedy\.explain_greedily.*begin anew"):
        call()


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    box = as_black_box(ANSWER, ROWS)
    with pytest.raises(BadInput, match="is not a folder of explained rows"):
        explain_in_units(explain_greedily, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_explainer_without_a_name_must_be_given_one(tmp_path):
    box = as_black_box(ANSWER, ROWS)

    def mine(black_box, x, domain):
        return explain_greedily(black_box, x, domain)

    call = partial(explain_in_units, mine, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path)
    with pytest.raises(BadInput, match="cannot be recognised in another run: give it a name="):
        call()
    assert_same(call(name="mine, first version"), explain_greedily(box, ROWS, DOMAIN))
    for wrong in (0, -1):
        with pytest.raises(BadInput, match=f"unit_rows {wrong} is not a positive number of rows"):
            explain_in_units(mine, box, ROWS, DOMAIN, unit_rows=wrong)


def test_no_rows_are_explained_too(tmp_path):
    box = as_black_box(ANSWER, ROWS)
    assert len(explain_in_units(explain_greedily, box, ROWS[:0], DOMAIN, unit_rows=5, folder=tmp_path).x) == 0
