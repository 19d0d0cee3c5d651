"""What cannot be read is explained by one slip that fits every witness: the right place is named, and no nonsense."""

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from gbfl_compile.audit.explained import class_numbers, explanation
from gbfl_compile.audit.library import audit_library
from gbfl_compile.audit.scored import audit_scored
from gbfl_compile.backends import emit
from gbfl_compile.check.witnesses import witnesses
from tests.audit.tampering import CARD, TAMPERED_CARDS, TAMPERED_TREES, TREE
from tests.programs import programs_with_rows

SAME_LABELS = ("probabilities changed", "points off by one", "another start")
"""They change no label on any witness: a label is all that such a scorer gives."""


@pytest.mark.parametrize(("source", "tampered"), [(TREE, TAMPERED_TREES), (CARD, TAMPERED_CARDS)])
def test_the_right_place_is_named_in_nine_of_ten_tamperings(source, tampered):
    rows = witnesses(source)
    named = []
    for name, program, words in tampered:
        deployed = class_numbers(program, rows)
        assert (deployed != class_numbers(source, rows)).any() == (name not in SAME_LABELS), name
        if name not in SAME_LABELS:
            named.append(any(words in change.text() for change in explanation(source, rows, deployed)))
    assert len(named) >= 18
    assert sum(named) >= 0.9 * len(named)


def test_an_explanation_is_called_inferred():
    name, program, _ = TAMPERED_TREES[0]
    (change,) = explanation(TREE, witnesses(TREE), class_numbers(program, witnesses(TREE)))
    assert change.deployed.endswith("(inferred: it fits every witness)"), name


def test_answers_that_no_one_slip_explains_are_not_explained():
    rows = witnesses(TREE)
    assert explanation(TREE, rows, np.random.default_rng(0).integers(0, 3, len(rows))) == ()
    assert explanation(TREE, rows, np.full(len(rows), -1)) == ()


@settings(max_examples=30)
@given(programs_with_rows(), programs_with_rows())
def test_any_two_programs_get_an_answer_and_no_error(one, two):
    rows = witnesses(one[0])
    other = np.resize(class_numbers(two[0], witnesses(two[0])), len(rows))
    found = explanation(one[0], rows, other)
    assert isinstance(found, tuple)
    assert all(change.approved != change.deployed for change in found)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_every_tampered_library_is_found_by_a_witness_that_really_differs(tmp_path):
    seen = [(name, program, words) for name, program, words in TAMPERED_TREES if name not in SAME_LABELS]
    for number, (_, program, _) in enumerate(seen):
        for file, content in emit(program, "c", f"t{number}", {"batch": "no"}).files.items():
            (tmp_path / file).write_bytes(content)
    sources = [f"t{number}.c" for number in range(len(seen))]
    subprocess.run(["cc", "-O0", "-shared", "-fPIC", *sources, "-o", "all.so"], cwd=tmp_path, check=True)
    named = 0
    for number, (name, program, words) in enumerate(seen):
        found = audit_library(TREE, tmp_path / "all.so", f"t{number}")
        assert found.verdict == "different", name
        row = np.array([[np.nan if value is None else value for value in found.region.row.values()]])
        assert TREE.classes[class_numbers(TREE, row)[0]] == found.region.approved
        assert program.classes[class_numbers(program, row)[0]] == found.region.deployed
        named += any(words in change.text() for change in found.changes)
    assert named >= 0.9 * len(seen)


def test_a_scored_table_is_explained_by_the_rows_it_has(tmp_path):
    named = 0
    seen = [each for each in TAMPERED_TREES if each[0] not in SAME_LABELS]
    for name, program, words in seen:
        rows = witnesses(TREE)
        frame = pd.DataFrame(rows, columns=list(TREE.features))
        frame["label"] = np.array(TREE.classes, dtype=object)[class_numbers(program, rows)]
        frame.to_parquet(tmp_path / "scored.parquet", index=False)
        found = audit_scored(TREE, tmp_path / "scored.parquet")
        assert found.different_rows == (class_numbers(program, rows) != class_numbers(TREE, rows)).sum(), name
        named += any(words in change.text() and "rows that were looked at" in change.text() for change in found.changes)
    assert named >= 0.8 * len(seen), "fewer than five differing rows are not explained"
