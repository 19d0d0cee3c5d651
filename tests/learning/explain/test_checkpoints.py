"""Rows explained before an error or a kill are kept, and the same call ends with the same bits."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain import domain_of
from gbfl_compile.learning.explain.checkpoints import PROBES
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
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain.parallel import explain_in_units
from gbfl_compile.learning.explain import domain_of
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


def test_other_work_in_the_folder_neither_blocks_a_run_nor_is_mixed_up_with_it(tmp_path):
    box = as_black_box(ANSWER, ROWS)
    first = explain_in_units(explain_greedily, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path)
    other_box = as_black_box(random_network(np.random.default_rng(4), 4, 3), ROWS)
    for explainer, answers, rows, domain, unit_rows in (
        (explain_greedily, box, ROWS + 1, domain_of(ROWS + 1), 50),
        (explain_greedily, box, ROWS, domain_of(ROWS, immutable=[0]), 50),
        (EXPLAINERS["greedy, settings"], box, ROWS, DOMAIN, 50),
        (explain_greedily, other_box, ROWS, DOMAIN, 50),
        (explain_greedily, box, ROWS, DOMAIN, 30),
    ):
        call = partial(explain_in_units, explainer, answers, rows, domain, unit_rows=unit_rows)
        alone = call()
        for _ in range(2):  # begun anew, then continued
            assert_same(call(folder=tmp_path), alone)
    assert len(list(tmp_path.rglob("about.json"))) == 6
    before = box.queries
    assert_same(explain_in_units(explain_greedily, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path), first)
    assert box.queries - before <= PROBES


@pytest.mark.parametrize("note", ["", "[]", '{"answers": "?"}', None])
def test_a_note_of_another_version_or_a_broken_one_is_other_work(tmp_path, note):
    box = as_black_box(ANSWER, ROWS)
    call = partial(explain_in_units, explain_greedily, box, ROWS, DOMAIN, unit_rows=50, folder=tmp_path)
    whole = call()
    file = tmp_path / "about.json"
    moved = file.read_text().replace("gbfl_compile.learning.explain.greedy", "gbfl_compile.learn.greedy")
    file.write_text(moved if note is None else note)
    assert_same(call(), whole)
    assert (tmp_path / "other-2" / "about.json").is_file()


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
