"""Items that can only be called, not read: twenty tamperings each, and the expected verdicts."""

import numpy as np

from gbfl_compile.auditing.answers import answers_of, differs_at
from gbfl_compile.checking.witnesses import witnesses
from gbfl_compile.ir.evaluate import evaluate
from tests.auditing.tampering import (
    CARD,
    OTHER_LABELS_OF_CARDS,
    OTHER_LABELS_OF_TREES,
    TAMPERED_CARDS,
    TAMPERED_TREES,
    TREE,
)

BY_LABELS = {"tree": (TREE, OTHER_LABELS_OF_TREES), "rule set": (CARD, OTHER_LABELS_OF_CARDS)}
"""For what gives labels alone."""
BY_EVERYTHING = {"tree": (TREE, TAMPERED_TREES), "rule set": (CARD, TAMPERED_CARDS)}
"""For what gives probabilities and scores too."""

NAMED_AT_LEAST = 0.9


def row_of(found):
    """The row that an audit shows, as numbers."""
    return [np.nan if value is None else value for value in found.region.row.values()]


def assert_found_and_named(cases, approved, audit):
    """Each tampering is found, shown by a row that really differs, and nearly always named by its clause."""
    assert len(cases) == 20
    named = []
    for name, tampered, where in cases:
        found = audit(tampered)
        assert found.verdict == "different", name
        row = row_of(found)
        source, target = evaluate(approved, row), evaluate(tampered, row)
        assert source != target, name
        assert (found.region.approved, found.region.deployed) == (source.label, target.label), name
        named.append(any(where in change.text() and "inferred" in change.text() for change in found.changes))
    assert sum(named) >= NAMED_AT_LEAST * len(cases), [case[0] for case, ok in zip(cases, named, strict=True) if not ok]


def rows_with_boundaries(program, seed=0):
    """Ordinary rows, some of whose values stand on a bound or beside it, and some missing: what a table should have."""
    choose = np.random.default_rng(seed)
    rows = choose.uniform([0, 18, 0, 0], [120000, 70, 1, 20], size=(4000, 4))
    rows[choose.random(rows.shape) < 0.03] = np.nan
    for feature in range(4):
        cuts = {
            bound
            for clause in program.clauses
            for atom in clause.atoms
            for bound in (atom.lo, atom.hi)
            if atom.feature == feature and bound is not None
        }
        near = [value for cut in sorted(cuts) for value in (cut, np.nextafter(cut, np.inf), np.nextafter(cut, -np.inf))]
        here = choose.random(len(rows)) < 0.15
        rows[here, feature] = choose.choice(near, here.sum())
    return rows


def rows_that_show(approved, tampered):
    """Whether the witnesses tell the two apart."""
    rows = witnesses(approved)
    return int(differs_at(approved, answers_of(approved, rows), answers_of(tampered, rows)).sum())
