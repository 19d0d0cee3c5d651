"""The paper's experiment as a command: every model on every set, with the same results whatever else runs."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import sklearn.datasets

from gbfl_compile import paper
from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.nodes import Clause, Interval, Program, Scorecard
from gbfl_compile.learning import classifier
from gbfl_compile.learning.consistency import Triplets
from gbfl_compile.paper import METRICS, PUBLISHED, Plan, best_of, command_of, mean, models, paired_p, run_experiment
from gbfl_compile.paper.datasets import SOURCES, load_dataset, split_of
from gbfl_compile.paper.document import BASELINES, TITLES, TRANSPARENT, document, figures_of
from gbfl_compile.paper.models import MODELS, clause_line
from gbfl_compile.paper.study import round_points

SMALL = {"ours-32": 3, "ours-100": 5}


@pytest.fixture(scope="module", autouse=True)
def small_and_offline():
    """Few clauses and features, no network: the shape of the experiment is tested here, not its figures."""

    def narrow(name, folder=None):
        whole = load_dataset(name, folder)
        return replace(whole, x=whole.x[:, :6], features=whole.features[:6])

    def refuse(**options):
        raise OSError("no network here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "load_dataset", narrow)
        patch.setattr(models, "BUDGETS", SMALL)
        patch.setattr(classifier, "FEW_ROWS", 100)
        patch.setattr(sklearn.datasets, "fetch_openml", refuse)
        yield


@pytest.fixture(scope="module")
def result(small_and_offline):
    return run_experiment(Plan(("wdbc", "magic"), seeds=2, rows=120, workers=1))


def test_the_json_has_every_model_one_value_per_seed(result):
    assert list(result["sets"]) == ["wdbc"]
    assert tuple(result["sets"]["wdbc"]) == MODELS
    for model, figures in result["sets"]["wdbc"].items():
        assert tuple(figures) == METRICS
        for metric, values in figures.items():
            assert len(values) == 2
            if metric == "clauses" and model == "black-box":
                assert values == [None, None]
            elif metric == "clauses":
                assert all(isinstance(value, int) and value >= 1 for value in values)
            else:
                assert all(0 <= value <= 100 for value in values)
    json.dumps(result, allow_nan=False)


def test_the_black_box_is_consistent_with_itself(result):
    figures = result["sets"]["wdbc"]["black-box"]
    assert figures["c_tb"] == figures["c_pp"] == figures["c_pn"] == [100.0, 100.0]


def test_ours_keeps_its_budget_and_its_rounded_points_are_within_ten(result):
    figures = result["sets"]["wdbc"]
    assert max(figures["ours-32"]["clauses"]) <= 3
    assert max(figures["ours-100"]["clauses"]) <= 5
    assert max(figures["ours-32-points"]["clauses"]) <= 3
    program = Program(
        ("a",),
        ("no", "yes"),
        (Clause((Interval(0, 1.0, None),)), Clause((Interval(0, None, 3.0),))),
        Scorecard((0, -512), ((0, 4099), (0, -1021)), 10),
    )
    x = np.linspace(0, 4, 20)[:, None]
    labels = evaluate_many(program, x).labels
    everywhere = np.ones(20, dtype=bool)
    rounded = round_points(program, Triplets(x, x, x, everywhere, ~everywhere, labels, ("a",)))
    points = np.array(rounded.program.decision.points)
    assert 0 < np.abs(points).max() <= 10
    assert (rounded.predict(x) == labels).all()


def test_every_model_is_measured_under_foreign_explainers_and_the_ranking_is_studied(result):
    for by_model in result["foreign"]["wdbc"]:
        assert {"augmentation", "tree", "ours-32", "ours-32-greedy"} <= set(by_model)
        for figures in by_model.values():
            assert list(figures) == ["greedy", "nearest", "spheres"]
            assert all(0 <= value <= 100 for value in figures.values())
    text = document(result)
    assert "## Under explanations of other methods" in text
    assert "### Where the ranking comes from" in text
    assert len(result["ranking"]["wdbc"][0]) == 4


def test_an_unavailable_set_is_reported(result):
    assert list(result["not_available"]) == ["magic"]
    assert "no network here" in result["not_available"]["magic"]
    assert "**Magic is not in this document**" in document(result)


def test_results_are_the_same_again_and_from_kept_results(result, tmp_path, monkeypatch):
    plan = Plan(("wdbc",), seeds=2, rows=120, workers=1, work=tmp_path)
    again = run_experiment(plan)
    assert again["sets"] == result["sets"]
    assert len(list(tmp_path.iterdir())) == 2

    def never(*arguments):
        raise AssertionError("a kept result was computed again")

    monkeypatch.setattr(paper, "measure_models", never)
    steps = []
    resumed = run_experiment(plan, steps.append)
    assert resumed["sets"] == result["sets"]
    assert len(steps) == 2
    with pytest.raises(AssertionError, match="computed again"):
        run_experiment(Plan(("wdbc",), seeds=1, rows=121, workers=1, work=tmp_path))


def test_two_workers_give_the_same_bits(result):
    import joblib

    with joblib.parallel_config(backend="threading"):  # processes would not see the small budgets
        both = run_experiment(Plan(("wdbc",), seeds=2, rows=120, workers=2))
    assert both["sets"] == result["sets"]


def test_the_document_says_what_the_json_says(result):
    text = document(result)
    lines = [line for line in text.split("### Test accuracy")[1].split("###")[0].splitlines() if line.startswith("|")]
    for model in MODELS:
        (line,) = [line for line in lines if line.startswith(f"| {TITLES[model]} |")]
        assert f"{np.mean(result['sets']['wdbc'][model]['accuracy']):.1f} ± " in line
    assert "| *paper: GBFL* | 93.0 |" in text
    assert command_of(Plan(("wdbc", "magic"), seeds=2, rows=120)) in text
    assert "569" in text
    won = all(
        mean(figures_of(result, "wdbc", "ours-32", "c_tb")) > mean(figures_of(result, "wdbc", other, "c_tb"))
        for other in BASELINES
    )
    assert f"above all three baselines on {int(won)} of 1 set," in text
    for line in result["listings"]["wdbc"]["ours-32"]:
        assert line in text
        assert re.search(r"(>=? \w+|\w+ >=?) ?", line)


def test_faithful_clauses_hold_where_they_were_mined(result):
    for unit in result["mining"]["wdbc"]:
        counts = unit["gbfl-faithful"]
        assert counts["true_at_x"] == counts["true_at_pp"] == counts["rows_with_a_clause"] > 0
        assert counts["false_at_pn"] == counts["false_at_pn_of"] > 0
        assert unit["gbfl-literal"]["atoms"] / unit["gbfl-literal"]["clauses"] > counts["atoms"] / counts["clauses"]


def test_the_effect_of_made_up_rows_is_shown(result):
    assert set(result["beside"]["wdbc"]) == {"augmentation-more", "ours-32-plain"}
    assert "## The effect of made-up rows" in document(result)
    assert "effect of made-up rows" not in document({**result, "beside": {}})


def test_only_the_best_are_bold(result):
    text = document(result).split("### C_TB, test points with a PN")[1].split("###")[0]
    best = best_of({model: figures_of(result, "wdbc", model, "c_tb") for model in TRANSPARENT})
    for model in TRANSPARENT:
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {TITLES[model]} |")]
        assert ("**" in line) == (model in best)


def test_an_interrupted_experiment_continues_from_what_is_finished(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = ["paper", "--sets", "wdbc", "--seeds", "2", "--rows", "80", "--jobs", "1", "--json"]
    finished, run = [], paper._run_and_keep

    def stop_after_one(one):
        if finished:
            raise KeyboardInterrupt
        finished.append(run(one))
        return finished[-1]

    with monkeypatch.context() as patched:
        patched.setattr(paper, "_run_and_keep", stop_after_one)
        assert main(arguments) == 130
    output = capsys.readouterr()
    assert output.out == ""
    assert "interrupted: finished runs are kept in gbfl-paper.parts (1)" in output.err
    runs = []
    monkeypatch.setattr(paper, "_run_and_keep", lambda one: runs.append(one) or run(one))
    assert main(arguments) == 0
    assert len(runs) == 1
    figures = json.loads(capsys.readouterr().out)["sets"]["wdbc"]
    assert {len(model["c_tb"]) for model in figures.values()} == {2}
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_json_and_document(tmp_path, capsys):
    arguments = ["paper", "--sets", "wdbc,skyserver", "--seeds", "1", "--rows", "80", "--workers", "1"]
    code = main([*arguments, "--json", str(tmp_path / "r.json"), "--out", str(tmp_path / "paper.md")])
    assert code == 3
    shown = capsys.readouterr().out
    assert "ours, 32 clauses" in shown
    assert "skyserver: not run: no --data folder was given" in shown
    written = json.loads((tmp_path / "r.json").read_text())
    assert list(written["sets"]) == ["wdbc"]
    assert written["p_values"]["wdbc"]["ours-32"]["augmentation"]["c_tb"] is None
    # numbers survive JSON exactly, so the document can be made again from the file
    assert (tmp_path / "paper.md").read_text() == document(written)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sets", "wdbc,iris"], "'iris' is not one of"),
        (["--sets", "wdbc,wdbc"], "name at least one set, and each once"),
        (["--seeds", "0"], "at least 1"),
        (["--data", "/nowhere/at/all"], "is not a folder"),
        (["--sets", "wdbc", "--rows", "10", "--workers", "1"], "too few"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(arguments, message, capsys):
    assert main(["paper", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_credit_rows_are_balanced_and_splits_are_repeatable():
    x = np.random.default_rng(0).normal(size=(400, 3))
    y = np.repeat([0, 1], [320, 80])
    base = load_dataset("wdbc")
    credit = type(base)("credit_card", x, y, ("a", "b", "c"), 30, 3, (25, 10), "made here")
    split = split_of(credit, 120, seed=3)
    assert np.bincount(split.y).tolist() == [45, 45]
    assert np.bincount(split.y_test).tolist() == [15, 15]
    assert (split_of(credit, 120, seed=3).x == split.x).all()
    with pytest.raises(BadInput, match="too few"):
        split_of(credit, 10, seed=0)


def test_p_is_that_of_a_paired_t_test():
    from scipy.stats import ttest_rel

    one, other = [90.0, 88.5, 91.0, 87.0], [85.0, 86.0, 90.5, 80.0]
    # two routes to one number: equal to rounding, not to the bit
    assert paired_p(one, other) == pytest.approx(ttest_rel(one, other).pvalue, rel=1e-12)
    assert paired_p([1.0, 2.0], [2.0, 3.0]) == 0.0
    assert paired_p([1.0], [2.0]) is None
    assert paired_p([1.0, None, 3.0], [1.0, 5.0, 3.0]) == 1.0


def test_best_are_the_highest_and_those_indistinguishable_from_it():
    figures = {"high": [90.0, 91.0, 92.0], "near": [89.0, 92.0, 91.0], "low": [10.0, 11.0, 12.5], "none": [None] * 3}
    assert best_of(figures) == {"high", "near"}
    assert best_of({"none": [None]}) == frozenset()


def test_a_listing_says_which_ends_are_closed():
    clause = Clause((Interval(0, 1.0, 2.5), Interval(1, None, 3.0, closed="right"), Interval(2, 4.0)))
    assert clause_line(clause, ("a", "b", "c")) == "2.5 > a >= 1 & 3 >= b & c >= 4"
    assert clause_line(Clause(()), ()) == "always"


def test_the_published_figures_cover_all_six_sets():
    for rows in PUBLISHED.values():
        for figures in rows.values():
            assert set(figures) == set(SOURCES)
    # k of 192 test points, as the Pima set of 768 rows has
    for model in PUBLISHED["c_tb"].values():
        assert abs(model["diabetes"] * 192 / 100 - round(model["diabetes"] * 192 / 100)) < 0.02
