"""`gbfl mine`: any table and any black box in, the same program every time, and what cannot be used named."""

import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gbfl_compile.cli import main
from gbfl_compile.cli.start import FEATURES, loans
from gbfl_compile.ir.batch import clause_column, evaluate_many
from gbfl_compile.ir.json import digest, load
from gbfl_compile.ir.nodes import Leaf
from gbfl_compile.learning.baselines import StandardTree
from gbfl_compile.learning.consistency import consistency_on, load_triplets
from gbfl_compile.lowering import histogram
from gbfl_compile.mining import mine
from gbfl_compile.tables.read import feature_matrix
from tests.cli.mining import SMALL, mined, refused, table


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "loans.csv").write_text(loans(200, seed=3))
    return tmp_path


def test_a_program_is_mined_and_says_how_good_it_is(folder, capsys):
    form, program = mined(capsys, "loans.csv", *SMALL, "--train", "gbm", "--triplets", "t.npz")
    assert list(form) == [
        "program", "out", "triplets", "features", "classes", "clauses", "data", "rows", "black_box", "head", "seed",
        "probabilities", "test", "classifier", "cost",
    ]  # fmt: skip
    assert form["program"] == digest(program)
    assert form["out"] == "model.gbfl.json"
    assert program.features == FEATURES
    assert program.classes == ("no", "yes")
    assert form["rows"] == {"training": 150, "test": 50}
    assert form["classifier"] == {"rows": 300, "different": 0}
    triplets = load_triplets(folder / "t.npz")
    agreed = evaluate_many(program, triplets.x).labels == triplets.label
    assert form["test"]["consistency"]["fidelity_right"] == int(agreed.sum())
    assert sorted(path.name for path in folder.iterdir()) == ["loans.csv", "model.gbfl.json", "t.npz"]


def test_mining_says_how_many_rows_the_black_box_was_queried_with(folder):
    blocks = []

    def black_box(rows):
        blocks.append(len(rows))
        return np.column_stack([rows[:, 0] < 40, rows[:, 0] >= 40]).astype(float)

    result = mine(folder / "loans.csv", "default", black_box=black_box, clauses=3, baselines=False, explainer="greedy")
    assert result.as_json()["cost"]["queries"] == result.queries
    # one row is asked about to learn what the model takes, and the held-out rows to compare it with the rules
    assert 0 <= sum(blocks) - result.queries <= 1 + 2 * 50
    assert f"cost: the black box was queried with {result.queries:,} rows, " in result.summary


def test_the_metadata_counts_what_it_says_it_counts(folder, capsys):
    form, program = mined(capsys, "loans.csv", *SMALL, "--train", "gbm", "--triplets", "t.npz", "--seed", "4")
    rows = table()
    x = feature_matrix(rows, FEATURES, "loans.csv")
    held_out = {tuple(row) for row in load_triplets(folder / "t.npz").x.tolist()}
    learned = np.array([tuple(row) not in held_out for row in x.tolist()])
    x, y = x[learned], rows["default"].to_numpy()[learned]
    assert len(x) == 150
    metadata = program.metadata
    assert metadata["training"]["histograms"] == [histogram(x[:, f]) for f in range(len(FEATURES))]
    assert all(sum(one["counts"]) == 150 for one in metadata["training"]["histograms"])
    mining = metadata["mining"]
    assert mining["seed"] == 4
    assert mining["class_counts"]["training"] == [int((y == label).sum()) for label in program.classes]
    assert mining["clause_support"] == [int(clause_column(clause, x).sum()) for clause in program.clauses]
    answers = evaluate_many(program, x)
    assert mining["label_counts"] == [int((answers.labels == label).sum()) for label in program.classes]
    for c, one in enumerate(mining["probabilities"]):
        for place, count in enumerate(one["counts"]):
            low, high = one["edges"][place], one["edges"][place + 1]
            p = answers.probabilities[:, c]
            assert count == int(((p >= low) & ((p < high) | (place == 9))).sum())
    assert mining["whole_numbers"] == [name for name in FEATURES if name not in ("rate", "debt_share")]
    assert mining["data"] == {
        "name": "loans.csv", "target": "default", "dropped": [], "rows": 200, "left_out": 0, "used": 200,
    }  # fmt: skip
    assert metadata["figures"]["test"]["c_tb"] == form["test"]["consistency"]["c_tb"]
    assert str(folder) not in (folder / "model.gbfl.json").read_text()


def test_a_rule_set_keeps_its_scores_and_its_path(folder, capsys):
    _, program = mined(
        capsys, "loans.csv", "--target", "default", "--train", "gbm", "--clauses", "3", "--seed", "1"
    )  # the default head
    mining = program.metadata["mining"]
    assert mining["head"] == "rules"
    assert len(program.clauses) <= 3
    assert [point["clauses"] for point in mining["path"]][-1] <= 3
    assert [sum(one["counts"]) for one in mining["scores"]] == [150, 150]


def test_the_same_seed_gives_the_same_file_wherever_it_is_run(folder, capsys):
    mined(capsys, "loans.csv", *SMALL, "--train", "mlp", "-o", "one/a.json")
    mined(capsys, str(folder / "loans.csv"), *SMALL, "--train", "mlp", "-o", "b.json", "--checkpoint", "kept")
    assert (folder / "one/a.json").read_bytes() == (folder / "b.json").read_bytes()
    assert sorted(path.name for path in (folder / "kept").iterdir()) == ["test", "training"]


@pytest.mark.parametrize(
    ("labels", "classes"), [((0, 1), (0, 1)), ((True, False), (False, True)), ((2.0, 7.0), (2, 7))]
)
def test_the_target_may_be_numbers_or_booleans(folder, capsys, labels, classes):
    rows = table()
    rows["default"] = [labels[label == "yes"] for label in rows["default"]]
    rows.to_parquet("loans.parquet")
    form, program = mined(capsys, "loans.parquet", *SMALL, "--train", "mlp")
    assert program.classes == classes
    assert [type(label) for label in program.classes] == [type(label) for label in classes]
    assert form["data"]["name"] == "loans.parquet"


def test_a_head_of_each_kind(folder, capsys):
    _, program = mined(capsys, "loans.csv", "--target", "default", "--train", "mlp", "--head", "list", "--clauses", "3")
    assert program.metadata["mining"]["head"] == "rule_list"
    assert "for trees" in refused(capsys, "loans.csv", "--target", "default", "--train", "gbm", "--depth", "3")
    assert "--depth" in refused(capsys, "loans.csv", *SMALL, "--train", "gbm", "--clauses", "3")


def test_what_cannot_be_learned_from_is_named_with_the_way_out(folder, capsys):
    rows = table()
    rows.astype({"age": object}).assign(age=["Paris", *rows.age[1:]]).to_csv("text.csv", index=False)
    line = refused(capsys, "text.csv", *SMALL, "--train", "gbm")
    assert "'age', row 1: 'Paris'" in line
    assert "--kind age=category" in line
    assert "--drop" in line
    _, program = mined(capsys, "text.csv", *SMALL, "--train", "gbm", "--drop", "age")
    assert "age" not in program.features
    holes = rows.astype({"income": float})
    holes.loc[[4, 9], "income"] = np.nan
    holes.to_csv("holes.csv", index=False)
    line = refused(capsys, "holes.csv", *SMALL, "--train", "gbm", "--missing", "refuse")
    assert "2 of 200 rows have a missing value, the first in column 'income', row 5" in line
    form, _ = mined(capsys, "holes.csv", *SMALL, "--train", "gbm", "--missing", "drop")
    assert form["data"]["left_out"] == 2
    rows.loc[[7], "default"] = None
    rows.to_csv("unknown.csv", index=False)
    line = refused(capsys, "unknown.csv", *SMALL, "--train", "gbm", "--missing", "refuse")
    assert "'default' is missing in 1 of 200 rows, the first is row 8" in line
    form, _ = mined(capsys, "unknown.csv", *SMALL, "--train", "gbm", "--immutable", "age,rate")
    assert form["data"]["left_out"] == 1
    assert "no column 'defolt' for --target" in refused(capsys, "loans.csv", "--target", "defolt", "--train", "gbm")
    assert "must hold classes" in refused(
        capsys, "loans.csv", "--target", "rate", "--drop", "default", "--train", "gbm"
    )
    assert "no such file" in refused(capsys, "lons.csv", *SMALL, "--train", "gbm").lower()
    (folder / "few.csv").write_text(loans(30, seed=3))
    assert "too few" in refused(capsys, "few.csv", *SMALL, "--train", "gbm")
    rows.assign(rate=np.inf, default="no").to_csv("inf.csv", index=False)
    assert "only one class" in refused(capsys, "inf.csv", *SMALL, "--train", "gbm")
    assert "column 'rate', row 1: inf" in refused(
        capsys, "inf.csv", "--target", "months", "--drop", "default", "--train", "gbm"
    )
    assert not (folder / "model.gbfl.json.parts").exists()


def test_a_black_box_is_given_or_trained_and_not_both(folder, capsys):
    assert "--train mlp|gbm|forest" in refused(capsys, "loans.csv", *SMALL)
    assert "not both" in refused(capsys, "loans.csv", *SMALL, "--train", "gbm", "--black-box", "m.onnx")
    assert "module:callable" in refused(capsys, "loans.csv", *SMALL, "--black-box", "model.h5")
    assert "No such file" in refused(capsys, "loans.csv", *SMALL, "--black-box", "m.onnx")
    assert "--database URL" in refused(capsys, *SMALL, "--train", "gbm")
    assert "go together" in refused(capsys, *SMALL, "--train", "gbm", "--database", "sqlite:///x")
    assert "is a folder" in refused(capsys, "loans.csv", *SMALL, "--train", "gbm", "-o", ".")


def test_fewer_rows_and_keys_are_reported(folder, capsys):
    table().assign(number=range(200)).to_csv("keyed.csv", index=False)
    assert main(["mine", "keyed.csv", *SMALL, "--train", "gbm", "--rows", "120"]) == 0
    captured = capsys.readouterr()
    assert "120 of 200 rows are used" in captured.err
    assert "column 'number' has another number in every row" in captured.err
    assert "90 rows to learn from, 30 held out" in captured.out
    assert "C_TB" in captured.out
    assert main(["mine", "keyed.csv", *SMALL, "--train", "gbm", "--quiet", "--drop", "number"]) == 0
    assert capsys.readouterr() == ("", "")


def test_codes_stay_codes_and_what_is_immutable_stays(folder, capsys):
    command = ["loans.csv", *SMALL, "--train", "mlp", "--triplets", "t.npz"]
    mined(capsys, *command, "--codes", "months", "--immutable", "age")
    found = load_triplets(folder / "t.npz")
    age, months = FEATURES.index("age"), FEATURES.index("months")
    assert (found.pn[:, age] == found.x[:, age]).all()
    assert set(np.concatenate((found.pp, found.pn))[:, months]) <= set(range(12, 73, 12))
    assert "--codes moths: there is no feature" in refused(capsys, *command, "--codes", "moths")


def test_three_classes(folder, capsys):
    from sklearn.datasets import load_iris

    iris = load_iris(as_frame=True)
    iris.frame.to_csv("iris.csv", index=False)
    form, program = mined(capsys, "iris.csv", "--target", "target", "--train", "mlp", "--head", "tree")
    assert program.classes == (0, 1, 2)
    assert form["test"]["accuracy"] > 0.9


def test_only_its_own_chunks_are_removed(folder, capsys):
    (folder / "model.gbfl.json.parts").mkdir()
    (folder / "model.gbfl.json.parts/letter").write_text("mine")
    mined(capsys, "loans.csv", *SMALL, "--train", "mlp")
    assert [path.name for path in (folder / "model.gbfl.json.parts").iterdir()] == ["letter"]


def test_explained_rows_of_another_run_neither_block_this_one_nor_are_mistaken_for_its_own(folder, capsys):
    seeds = {}
    for seed in ("1", "0", "1"):
        *_, program = mined(capsys, "loans.csv", *SMALL, "--train", "mlp", "--checkpoint", "kept", "--seed", seed)
        assert seeds.setdefault(seed, program) == program
    _, alone = mined(capsys, "loans.csv", *SMALL, "--train", "mlp", "--seed", "0")
    assert seeds["0"] == alone


def test_a_run_that_fails_does_not_block_the_next(folder, capsys):
    (folder / "boxes.py").write_text(
        "calls = []\n"
        "def fails(rows):\n"
        "    calls.append(1)\n"
        "    if len(calls) > 12:\n"
        "        raise RuntimeError('the licence has run out')\n"
        "    return (rows[:, 1] > 40000).astype(float)\n"
        "def works(rows):\n"
        "    return (rows[:, 1] > 30000).astype(float)\n"
    )
    command = ["loans.csv", *SMALL, "-o", "p.json"]
    assert "the licence has run out" in refused(capsys, *command, "--black-box", "boxes:fails")
    assert main(["mine", *command, "--black-box", "boxes:works"]) == 0
    assert not (folder / "p.json.parts").exists()


HOSTILE = (
    "<script>alert(1)</script>",
    'a"; DROP TABLE x; --',
    "[red]x[/red]",
    "line\nbreak",
    "class",
    "x, y",
    "{{ 7*7 }}",
    "größe",
)


def test_hostile_names_are_only_names(folder, capsys):
    rows = table().rename(columns=dict(zip(FEATURES, HOSTILE, strict=True)))
    rows["default"] = ["it's\u2028" if label == "yes" else "no */" for label in rows["default"]]
    rows.to_csv("hostile.csv", index=False)
    _, program = mined(capsys, "hostile.csv", *SMALL, "--train", "gbm")
    assert program.features == HOSTILE
    assert main(["show", "model.gbfl.json", "--row", "hostile.csv"]) == 0
    assert "\nbreak" not in capsys.readouterr().out
    assert main(["compile", "model.gbfl.json", "--to", "python,c", "-o", "build"]) == 0
    assert main(["check", "model.gbfl.json", "build", "--data", "hostile.csv"]) == 0


def test_a_table_of_a_database_is_data(folder, capsys):
    with sqlite3.connect("loans.db") as connection:
        table().sample(frac=1.0, random_state=5).to_sql("all loans", connection, index=False)  # tables have no order
    connection.close()
    file, _ = mined(capsys, "loans.csv", *SMALL, "--train", "gbm", "-o", "file.json")
    form, _ = mined(capsys, *SMALL, "--train", "gbm", "--database", "sqlite:///loans.db", "--table", "all loans")
    assert form["program"] == file["program"]
    assert form["data"]["name"] == "all loans"
    absent = refused(capsys, *SMALL, "--train", "gbm", "--database", "sqlite:///loans.db", "--table", "lons")
    assert "no table 'lons'" in absent


def test_duckdb_tables_are_found_in_their_schema(folder, capsys):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("loans.duckdb") as connection:
        connection.execute("CREATE SCHEMA bank")
        connection.execute(
            "CREATE TABLE bank.loans AS SELECT * FROM read_csv('loans.csv', types={'default': 'VARCHAR'})"
        )
    file, _ = mined(capsys, "loans.csv", *SMALL, "--train", "gbm", "-o", "file.json")
    form, _ = mined(capsys, *SMALL, "--train", "gbm", "--database", "duckdb:///loans.duckdb", "--table", "bank.loans")
    assert form["program"] == file["program"]


SLOW = """
import time, numpy as np
from pathlib import Path

def risk(rows):
    with Path("asked").open("a") as file:
        file.write(f"{len(rows)}\\n")
    if Path("slow").exists():
        time.sleep(0.02)
    return 1 / (1 + np.exp(rows[:, 2] / rows[:, 1] * 4 - 2 + rows[:, 6]))
"""


def test_an_interrupted_run_goes_on_and_ends_in_the_same_program(folder, capsys):
    (folder / "slow_one.py").write_text(SLOW)
    (folder / "many.csv").write_text(loans(800, seed=3))
    command = ["many.csv", *SMALL, "--black-box", "slow_one:risk"]
    whole, _ = mined(capsys, *command, "-o", "whole.json")
    asked_whole = sum(map(int, (folder / "asked").read_text().split()))
    (folder / "slow").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "gbfl_compile", "mine", *command], stderr=subprocess.PIPE, text=True
    )
    parts = folder / "model.gbfl.json.parts"
    given_up = time.monotonic() + 60
    while not list(parts.glob("training/*/rows-*.npz")) and time.monotonic() < given_up:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, form = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues from there" in form
    assert not (folder / "model.gbfl.json").exists()
    (folder / "slow").unlink()
    (folder / "asked").unlink()
    resumed, _ = mined(capsys, *command)
    assert resumed["program"] == whole["program"]
    assert sum(map(int, (folder / "asked").read_text().split())) < asked_whole
    assert not parts.exists()


@pytest.mark.parametrize("head", ["tree", "rules"])
def test_rules_that_no_training_row_meets_are_reported(folder, capsys, head):
    """Explanations lie where no row does: what they decided is not a mistake, but whoever reads a rule should know."""
    command = ["loans.csv", "--target", "default", "--head", head, "--train", "gbm", "--no-baselines"]
    _, program = mined(capsys, *command, "--triplets", "t.npz")
    held_out = {tuple(row) for row in load_triplets(folder / "t.npz").x.tolist()}
    x = np.array([row for row in feature_matrix(table(), FEATURES, "").tolist() if tuple(row) not in held_out])
    assert main(["mine", *command]) == 0
    message = capsys.readouterr().out
    if head == "tree":
        leaves = sum(isinstance(node, Leaf) for node in program.decision.nodes)
        unseen = leaves - len(np.unique(evaluate_many(program, x).leaves))
        assert unseen == 0, "every leaf holds rows of the table"
        assert "no training row ends there" not in message
    else:
        numbers = [str(n) for n, clause in enumerate(program.clauses) if not clause_column(clause, x).any()]
        count = len(program.clauses)
        form = rf"^{len(numbers)} of {count} clauses holds? for no training row, numbers? {', '.join(numbers)} in gbfl"
        assert (re.search(form, message, re.M) is not None) == bool(numbers)
        assert main(["reasons", "model.gbfl.json"]) == 0
        assert re.search(rf"^{(numbers or ['0'])[0]}: ", capsys.readouterr().out, re.M)


def test_plain_trees_are_beside_the_rules_unless_they_are_not_wanted(folder, capsys):
    """Their figures are those of trees fitted here, on the rows and explanations that the rules had."""
    _, program = mined(capsys, "loans.csv", *SMALL, "--train", "gbm", "--triplets", "t.npz", "--seed", "4")
    triplets, rows = load_triplets(folder / "t.npz"), table()
    x = feature_matrix(rows, FEATURES, "loans.csv")
    held_out = {tuple(row) for row in triplets.x.tolist()}
    learned = np.array([tuple(row) not in held_out for row in x.tolist()])
    y = rows["default"].to_numpy()
    tree = StandardTree(max_depth=5, random_state=4).fit(x[learned], y[learned])
    found = program.metadata["figures"]["baselines"]
    assert len(found) == 3
    form = found["tree on the data, depth 5"]
    assert form["accuracy"] == float((tree.predict(x[~learned]) == y[~learned]).mean())
    assert form["c_tb"] == consistency_on(triplets, tree.predict).c_tb
    capsys.readouterr()
    assert main(["mine", "loans.csv", *SMALL, "--train", "gbm", "--no-baselines"]) == 0
    assert "beside" not in capsys.readouterr().out
    assert "baselines" not in load(Path("model.gbfl.json")).metadata["figures"]
