"""Drift: counts against the histograms in the metadata, by a stated definition, and plain words where they are absent."""

import json
from math import log

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.auditing.scored import ScoredOptions, audit_scored
from gbfl_compile.auditing.scored.drift import FLOOR, drift, population_stability_index
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard, leaf, split
from gbfl_compile.lowering import histogram
from gbfl_compile.mining.summary import distributions

CLAUSES = (Clause((Interval(0, 0.0, 1.0),)), Clause((Interval(1, None, 0.5, if_missing=True),)))
TREE = split(0, split(1, leaf(0.25, 0.75), leaf(0.9, 0.1)), leaf(1.0, 0.0))
RULES = Scorecard((0, 7), ((20, 0), (0, 30)), 4)


def trained(decision, rows):
    """A program with the metadata that `gbfl mine` gives it."""
    plain = Program(("a", "b", "constant"), ("no", "yes"), CLAUSES, decision)
    labels = evaluate_many(plain, rows).labels
    training = {"rows": len(rows), "histograms": [histogram(rows[:, f]) for f in range(3)]}
    mining = {"rows": {"training": len(rows)}, **distributions(plain, rows, labels, labels[:5])}
    metadata = json.loads(json.dumps({"training": training, "mining": mining}))
    return Program(plain.features, plain.classes, plain.clauses, plain.decision, metadata)


def normal(count, seed, shift=0.0):
    rows = np.random.default_rng(seed).normal(shift, size=(count, 3))
    rows[:, 2] = 4.0
    rows[::10, 1] = np.nan
    return rows


def scored(folder, program, rows):
    frame = pd.DataFrame(rows, columns=list(program.features))
    frame["label"] = evaluate_many(program, rows).labels
    frame.to_csv(folder / "scored.csv", index=False)
    return folder / "scored.csv"


@pytest.mark.parametrize("decision", [TREE, RULES])
def test_the_training_rows_themselves_have_not_drifted_at_all(tmp_path, decision):
    rows = normal(2000, 0)
    program = trained(decision, rows)
    found = drift(program, scored(tmp_path, program, rows))
    assert found["not_compared"] == []
    parts = [found["labels"], *found["scores"], *found["clauses"], *found["features"].values()]
    assert len(parts) == 1 + 2 + 2 + 3
    assert {part["psi"] for part in parts} == {0.0}
    assert all(part["rows"] == part["training_rows"] for part in parts)
    assert found["rows"] == 2000


@pytest.mark.parametrize("decision", [TREE, RULES])
def test_rows_of_the_same_kind_are_stable_and_shifted_ones_are_not(tmp_path, decision):
    program = trained(decision, normal(5000, 0))
    same = drift(program, scored(tmp_path, program, normal(5000, 1)))
    assert {same["features"][name]["level"] for name in "ab"} == {"stable"}
    assert same["labels"]["level"] == "stable"
    moved = drift(program, scored(tmp_path, program, normal(5000, 1, shift=1.0)))
    assert {moved["features"][name]["level"] for name in "ab"} == {"large"}
    assert moved["labels"]["psi"] > same["labels"]["psi"]
    assert moved["clauses"][1]["psi"] > 0.1


def test_the_index_is_its_definition_and_empty_bins_count_as_the_floor():
    assert population_stability_index([50, 50], [60, 40]) == pytest.approx(0.1 * log(1.2) - 0.1 * log(0.8), abs=1e-12)
    assert population_stability_index([1, 1], [2, 0]) == pytest.approx(
        0.5 * log(2) + (FLOOR - 0.5) * log(2 * FLOOR), abs=1e-12
    )
    assert population_stability_index([3, 0], [7, 0]) == 0.0


def test_a_constant_feature_that_moves_is_seen(tmp_path):
    program = trained(TREE, normal(1000, 0))
    rows = normal(1000, 0)
    rows[:, 2] = 5.0
    found = drift(program, scored(tmp_path, program, rows))["features"]["constant"]
    assert found["level"] == "large"
    assert found["outside_share"] == 1.0


def test_missing_values_and_values_out_of_range_are_reported(tmp_path):
    program = trained(TREE, normal(1000, 0))
    rows = normal(1000, 0)
    rows[:500, 0], rows[500:600, 0], rows[600:700, 1] = np.nan, 99.0, np.inf
    found = drift(program, scored(tmp_path, program, rows))["features"]
    assert found["a"]["missing_share"] == 0.5
    assert found["a"]["outside_share"] == 0.1
    assert found["a"]["level"] == "large"
    assert found["b"]["missing_share"] > 0.1, "an infinite value is in no bin, as in training"


def test_labels_that_are_not_a_class_are_counted(tmp_path):
    program = trained(TREE, normal(100, 0))
    path = scored(tmp_path, program, normal(100, 0))
    path.write_text(path.read_text().replace("no\n", "nein\n"))
    found = drift(program, path)["labels"]
    assert found["rows"][0] == 0
    assert found["no_class"] + found["rows"][1] == 100


@pytest.mark.parametrize("decision", [TREE, RULES])
def test_what_the_metadata_lacks_is_said_and_the_rest_still_counted(tmp_path, decision):
    rows = normal(50, 0)
    program = trained(decision, rows)
    bare = Program(program.features, program.classes, program.clauses, program.decision)
    found = drift(bare, scored(tmp_path, bare, rows))
    assert [line.split(":")[0] for line in found["not_compared"]] == ["features", "labels", "scores", "clauses"]
    assert sum(found["labels"]["rows"]) == 50
    assert "psi" not in found["labels"]
    assert all("psi" not in clause for clause in found["clauses"])


@pytest.mark.parametrize(
    "junk",
    [
        None,
        3,
        "x",
        [],
        [1],
        [{}],
        {"histograms": 3},
        {"histograms": [{"edges": "ab", "counts": [1]}] * 3},
        {"histograms": [{"edges": [2, 1], "counts": [1]}] * 3},
    ],
)
def test_metadata_from_anywhere_does_no_harm(tmp_path, junk):
    program = trained(TREE, normal(50, 0))
    spoiled = {"training": junk, "mining": junk}
    other = Program(program.features, program.classes, program.clauses, program.decision, spoiled)
    assert len(drift(other, scored(tmp_path, other, normal(50, 0)))["not_compared"]) == 4


def test_an_audit_counts_drift_in_the_same_pass(tmp_path):
    program = trained(TREE, normal(500, 0))
    path = scored(tmp_path, program, normal(500, 1))
    found = audit_scored(program, path, options=ScoredOptions(drift=True))
    assert found.verdict == "equal"
    assert found.drift == drift(program, path)
    json.dumps(found.drift, allow_nan=False)


def test_a_feature_that_is_not_in_the_table_is_left_out(tmp_path):
    program = trained(TREE, normal(100, 0))
    path = scored(tmp_path, program, normal(100, 1))
    pd.read_csv(path).drop(columns="constant").to_csv(path, index=False)
    assert set(drift(program, path)["features"]) == {"a", "b"}


def test_a_table_without_rows_has_no_index(tmp_path):
    program = trained(TREE, normal(100, 0))
    found = drift(program, scored(tmp_path, program, normal(0, 1)))
    assert found["rows"] == 0
    assert "psi" not in found["labels"]
