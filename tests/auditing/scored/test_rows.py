"""Rows of a scored table by their key: missing and duplicated keys, rounded probabilities, all differing rows, alarms."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gbfl_compile import audit
from gbfl_compile.auditing.scored import ScoredOptions, audit_scored
from gbfl_compile.auditing.scored.drift import drift_alarms, kolmogorov_smirnov, share_changes
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.json import save
from tests.auditing.scored.test_audit import PROGRAM, fill, many, with_probabilities, written

KEYED = ScoredOptions(keys=("id",))


def keyed(count):
    frame = many(count)
    frame["id"] = [f"c{number}" for number in range(count)]
    return frame


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_keys_that_are_all_there_once_are_no_difference(tmp_path, ending):
    verdict = audit_scored(PROGRAM, written(tmp_path, keyed(300), ending), options=KEYED)
    assert verdict.verdict == "equal"
    assert (verdict.keys["missing"], verdict.keys["duplicated"]) == (0, 0)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_missing_and_duplicated_keys_are_counted_and_make_a_difference(tmp_path, ending):
    frame = keyed(300)
    frame.loc[[5, 6], "id"] = None
    frame.loc[[10, 11, 290], "id"] = "c12"
    verdict = audit_scored(PROGRAM, written(tmp_path, frame, ending), options=KEYED)
    assert verdict.verdict == "different"
    assert verdict.different_rows == 0
    assert verdict.keys == {
        "columns": ["id"],
        "missing": 2,
        "duplicated": 1,
        "rows_of_duplicated": 4,
        "first_duplicated": ["id = c12"],
    }
    assert "2 rows have no key; 1 keys occur more than once, for example id = c12" in verdict.reason


def test_whole_keys_stay_whole_beside_a_missing_one(tmp_path):
    """As doubles 2^53 and 2^53 + 1 were one key, and 7 was reported as 7.0."""
    frame = many(4)
    frame["id"] = pd.Series([2**53, 2**53 + 1, None, 7], dtype=object)
    frame.loc[3, "label"] = "no such class"
    verdict = audit_scored(PROGRAM, written(tmp_path, frame, ".parquet"), options=KEYED)
    assert (verdict.keys["missing"], verdict.keys["duplicated"]) == (1, 0)
    assert [row["key"] for row in verdict.first_different_rows] == [{"id": "7"}]


def test_a_key_of_two_columns_is_duplicated_only_where_both_are(tmp_path):
    frame = many(4)
    frame["branch"], frame["number"] = ["a", "a", "b", "b"], [1, 2, 1, 1]
    verdict = audit_scored(
        PROGRAM, written(tmp_path, frame, ".parquet"), options=ScoredOptions(keys=("branch", "number"))
    )
    assert verdict.keys["first_duplicated"] == ["branch = b, number = 1"]


def test_a_differing_row_is_named_by_its_key_and_all_of_them_are_in_the_file(tmp_path):
    frame = keyed(400)
    wrong = [3, *range(50, 90)]
    frame.loc[wrong, "label"] = frame.loc[wrong, "label"].map({"yes": "no", "no": "yes"})
    out = tmp_path / "differences.csv"
    options = ScoredOptions(keys=("id",), differences=out)
    verdict = audit_scored(PROGRAM, written(tmp_path, frame, ".csv"), options=options)
    assert verdict.region.rule == "id = c3"
    assert len(verdict.first_different_rows) == 10
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"c{number}" for number in wrong]
    assert all({row["approved_label"], row["deployed_label"]} == {"yes", "no"} for row in rows)


def test_a_table_of_a_database_has_keys_too(database):
    rows = many(60)
    fill(database, rows, "plain")
    database.execute("CREATE TABLE scored AS SELECT *, 7 AS id FROM plain")
    verdict = audit_scored(PROGRAM, (database, "scored"), options=KEYED)
    assert (verdict.verdict, verdict.keys["duplicated"], verdict.keys["rows_of_duplicated"]) == ("different", 1, 60)


def test_a_key_that_is_not_a_column_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"'number' for --key"):
        audit_scored(PROGRAM, written(tmp_path, keyed(5), ".csv"), options=ScoredOptions(keys=("number",)))


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, 7.0, math.inf, math.nan])
def test_a_tolerance_within_which_anything_is_equal_is_refused(tmp_path, tolerance):
    with pytest.raises(BadInput, match="--tolerance"):
        audit(PROGRAM, scored=tmp_path / "none.csv", probabilities=True, tolerance=tolerance)


def test_rounded_probabilities_are_equal_within_a_tolerance_and_not_beyond(tmp_path):
    frame = with_probabilities(PROGRAM, many(200))
    frame[["p_no", "p_yes"]] += np.random.default_rng(0).uniform(-4e-5, 4e-5, size=(200, 2))
    path = written(tmp_path, frame, ".parquet")
    assert audit_scored(PROGRAM, path, options=ScoredOptions(probabilities=True)).different_rows == 200
    near = audit_scored(PROGRAM, path, options=ScoredOptions(probabilities=True, tolerance=5e-5))
    assert (near.verdict, near.compared) == (
        "equal",
        "labels, none different; probabilities, none different by more than 5e-05",
    )
    frame.loc[17, "p_yes"] += 1e-3
    frame.loc[18, "p_yes"] = np.nan
    path = written(tmp_path, frame, ".parquet")
    assert audit_scored(PROGRAM, path, options=ScoredOptions(probabilities=True, tolerance=5e-5)).different_rows == 2


def test_the_distance_of_two_samples_is_that_of_scipy_where_every_value_has_a_bin():
    stats = pytest.importorskip("scipy.stats")
    choose = np.random.default_rng(1)
    for _ in range(20):
        one, other = choose.integers(0, 12, 400), choose.integers(0, choose.integers(10, 13), 700)
        expected = stats.ks_2samp(one, other, method="asymp")
        distance, p_value = kolmogorov_smirnov(np.bincount(one, minlength=13), np.bincount(other, minlength=13))
        assert distance == pytest.approx(expected.statistic, abs=1e-12)
        assert p_value == pytest.approx(expected.pvalue, abs=0.02), "another correction for small samples"


def test_an_interval_of_a_share_holds_no_change_where_nothing_changed():
    (one, other) = share_changes([300, 700], [3000, 7000])
    assert one["least"] < 0 < one["most"]
    assert other["least"] < 0 < other["most"]


def summary(then, now, psi=0.0, ks=0.0, p=1.0):
    labels = {"classes": ["no", "yes"], "shares": share_changes(then, now)}
    return {"labels": labels, "features": {"age": {"psi": psi, "ks": ks, "ks_p": p}}}


def test_an_alarm_needs_a_change_that_is_large_and_not_chance():
    assert drift_alarms(summary([710, 290], [6200, 3800])) != []
    assert drift_alarms(summary([71, 29], [62, 38])) == [], "chance"
    assert drift_alarms(summary([710_000, 290_000], [700_000, 300_000])) == [], "small"
    assert drift_alarms(summary([7, 3], [7, 3], psi=0.3)) != []
    assert drift_alarms(summary([7, 3], [7, 3], ks=0.2, p=1e-9)) != []
    assert drift_alarms(summary([7, 3], [7, 3], ks=0.2, p=0.2)) == []


def test_drift_can_fail_a_build(tmp_path, capsys):
    mined = replace(PROGRAM, metadata={"mining": {"label_counts": [700, 300]}})
    save(mined, tmp_path / "approved.json")
    rows = np.full((2000, 3), np.nan)
    rows[:, 0], rows[:, 2] = 10.0, 1.0
    frame = pd.DataFrame(rows, columns=list(PROGRAM.features)).assign(label="yes")
    command = ["audit", str(tmp_path / "approved.json"), "--scored", str(written(tmp_path, frame, ".csv")), "--json"]
    assert main([*command, "--drift"]) == 0
    assert main([*command, "--fail-on-drift"]) == 1
    printed = capsys.readouterr().out
    last = json.loads(printed[printed.rindex('{\n "schema"') :])
    assert last["verdict"] == "equal"
    assert "class 'yes': 30.0 % in training, 100.0 % now" in last["audited"][0]["drift"]["alarms"][1]


def test_options_without_what_they_belong_to_are_refused(tmp_path, capsys):
    save(PROGRAM, tmp_path / "approved.json")
    assert main(["audit", str(tmp_path / "approved.json"), "--call", "a:b", "--key", "id"]) == 2
    assert "--key needs --scored" in capsys.readouterr().err
    path = written(tmp_path, keyed(3), ".csv")
    assert main(["audit", str(tmp_path / "approved.json"), "--scored", str(path), "--tolerance", "0.1"]) == 2
    assert "--tolerance needs --probabilities" in capsys.readouterr().err
