"""Equations 3-4, counted."""

import json
import subprocess
import sys

import numpy as np
import pytest

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.consistency import consistency

LABEL = np.array([0, 0, 1, 1, 1])


def test_a_row_counts_when_x_and_pp_agree_and_the_pn_differs():
    on_x = np.array([0, 0, 1, 1, 0])
    on_pp = np.array([0, 1, 1, 1, 1])
    on_pn = np.array([1, 1, 1, 0, 0])
    every = np.ones(5, dtype=bool)
    c = consistency(LABEL, on_x, on_pp, on_pn, every, every)
    assert (c.fidelity_right, c.c_pp_right, c.c_pn_right, c.c_tb_right, c.c_tb_all_right) == (4, 4, 4, 2, 2)
    assert (c.fidelity, c.c_pp, c.c_pn, c.c_tb, c.c_tb_all) == (80, 80, 80, 40, 40)


def test_resolution_13_points_without_a_pn_are_counted_apart():
    has_pn = np.array([True, False, False, True, True])
    on_pn = np.array([1, 0, 1, 1, 0])
    c = consistency(LABEL, LABEL, LABEL, on_pn, np.ones(5, dtype=bool), has_pn)
    assert (c.c_tb_right, c.with_pn) == (2, 3)
    assert (c.c_tb_all_right, c.rows) == (4, 5)
    assert (c.c_pn_right, c.c_pp_right) == (2, 5)


def test_nothing_to_measure_is_none_and_never_a_number():
    none = np.zeros(5, dtype=bool)
    c = consistency(LABEL, LABEL, LABEL, LABEL, none, none)
    assert c.c_tb is None
    assert c.c_pp is None
    assert c.c_tb_all == 100
    assert json.loads(json.dumps(c.as_dict()))["c_tb_of"] == 0


def test_labels_may_be_text():
    label = np.array(["a", "b"])
    every = np.ones(2, dtype=bool)
    assert consistency(label, label, label, label[::-1], every, every).c_tb == 100


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(BadInput, match="on_pn has shape"):
        consistency(LABEL, LABEL, LABEL, LABEL[:3], LABEL, LABEL)


def test_measuring_needs_numpy_alone():
    code = "import sys, gbfl_compile.learning.consistency; print('sklearn' in sys.modules, 'scipy' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "False"]
