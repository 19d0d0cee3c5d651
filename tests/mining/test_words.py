"""Tables with words, booleans, dates and gaps are mined into programs whose explanations are rows that could exist."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gbfl_compile import GBFLClassifier, audit, check, report
from gbfl_compile.backends import emit, write_artifact
from gbfl_compile.backends.score import score
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.kinds import Codebook, decode_rows, used_features
from gbfl_compile.ir.nodes import Clause
from gbfl_compile.learning.consistency import consistency_on, load_triplets, triplets_for
from gbfl_compile.lowering import lower
from gbfl_compile.mining import mine
from gbfl_compile.tables.draw import Choice
from gbfl_compile.tables.kinds import encode_table
from gbfl_compile.tables.sample import read_sample
from gbfl_compile.why import explain_row
from tests.bench.words import impossible

TELCO = Path(__file__).parents[3] / "shared" / "data" / "telco.csv.gz"


def loans(rows=600, seed=0):
    """Every kind, gaps, `?`, and two columns whose words do not go together."""
    draw = np.random.default_rng(seed)
    house = draw.choice(["own", "rent", "none"], rows, p=[0.4, 0.4, 0.2])
    table = pd.DataFrame(
        {
            "income": np.where(draw.random(rows) < 0.1, np.nan, np.round(draw.gamma(4, 8000, rows), 2)),
            "job": draw.choice(["clerk", "cook", "driver", "?"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "house": house,
            "garden": np.where(house == "none", "no house", draw.choice(["yes", "no"], rows)),
            "smoker": draw.random(rows) < 0.3,
            "opened": [
                datetime.date(2015, 1, 1) + datetime.timedelta(int(days)) for days in draw.integers(0, 3000, rows)
            ],
            "late": draw.integers(0, 6, rows),
        }
    )
    rich, owner = table.income.fillna(20000) > 30000, table.house == "own"
    points = 1 * rich + 1 * owner - 1 * (table.late > 3) - 1 * (table.job == "cook")
    table["default"] = np.where(points + draw.normal(0, 0.4, rows) > 0.5, "no", "yes")
    return table


TOWNS = [f"t{n // 2}" for n in range(2400)]


def quiet(note):
    """Nobody reads the notes here."""


@pytest.mark.parametrize("head", ["rules", "tree", "list"])
def test_every_kind_goes_from_the_table_to_a_program_that_agrees(head):
    table = loans()
    mined = mine(table, "default", train="gbm", head=head, note=quiet)
    assert mined.compared_different == 0
    assert mined.program.kinds == ("number", "category", "category", "category", "boolean", "date", "number")
    scored = score(mined.program, table).table
    features = list(mined.program.features)
    for row, label in list(zip(table[features].itertuples(index=False, name=None), scored.label, strict=True))[:100]:
        assert evaluate(mined.program, row).label == label


def test_a_mark_and_a_gap_get_the_same_answer():
    table = loans()
    program = mine(table, "default", train="gbm", note=quiet).program
    gaps = table.assign(job=table.job.where(table.job != "?"))
    assert (score(program, table).table.label == score(program, gaps).table.label).all()


@pytest.mark.parametrize("kind", ["gbm", "mlp"])
def test_every_pp_and_pn_is_a_row_that_could_exist(kind):
    table = loans()
    sample = read_sample(table, Choice("default"), most=20_000)
    assert impossible(sample, mine(table, "default", train=kind, clauses=2, note=quiet).triplets) == 0


@pytest.mark.skipif(not TELCO.exists(), reason="the Telco table is not here")
def test_every_pp_and_pn_of_telco_is_a_row_that_could_exist():
    sample = read_sample(TELCO, Choice("Churn"), most=1000)
    mined = mine(TELCO, "Churn", train="gbm", rows=1000, clauses=2, baselines=False, note=quiet)
    assert impossible(sample, mined.triplets) == 0


def test_a_file_of_triplets_keeps_words_dates_and_gaps_and_every_command_takes_it(tmp_path):
    path = tmp_path / "t.npz"
    mined = mine(loans(), "default", train="gbm", clauses=6, triplets=path, note=quiet)
    program, stored = mined.program, load_triplets(path)
    own = Codebook(mined.triplets.texts)
    assert np.isnan(stored.x).any()
    rows = decode_rows(program, triplets_for(program, path).x.tolist(), Codebook(triplets_for(program, path).texts))
    right = sum(evaluate(program, row).label == label for row, label in zip(rows, stored.label.tolist(), strict=True))
    assert (
        right
        == consistency_on(mined.triplets, lambda points: evaluate_many(program, points, own).labels).fidelity_right
    )
    for target in ("python", "sql:sqlite"):
        artifact = emit(program, target)
        verdict = check(program, artifact, triplets=path)
        assert verdict.verdict == "equal"
        assert verdict.targets[0].consistency.source == verdict.targets[0].consistency.target
        assert verdict.targets[0].consistency.source.fidelity_right == right
    explanation = explain_row(program, rows[0], triplets=path)
    assert explanation.black_box.label == stored.label[0].item()
    assert (
        json.loads(json.dumps(explanation.as_json(), allow_nan=False))["black_box"]["label"] == stored.label[0].item()
    )
    assert "The black box says" in str(explanation)
    assert report(program, tmp_path / "report.html", triplets=path) > 1000
    assert "The black box says" in (tmp_path / "report.html").read_text("utf-8")
    wrong = replace(program, clauses=(*program.clauses[:-1], Clause(())))
    (tmp_path / "model.py").write_bytes(emit(wrong, "python").files["model.py"])
    (found,) = audit(program, file=tmp_path / "model.py", triplets=path).verdicts
    assert found.verdict == "different"
    assert found.consistency.source.fidelity_right == right
    wrong_right = sum(
        evaluate(wrong, row).label == label for row, label in zip(rows, stored.label.tolist(), strict=True)
    )
    assert found.consistency.target.fidelity_right == wrong_right


def test_triplets_of_other_kinds_are_refused(tmp_path):
    mined = mine(loans(), "default", train="gbm", clauses=2, note=quiet)
    kinds = ("number",) * len(mined.program.features)
    with pytest.raises(BadInput, match="its features are not the program's"):
        triplets_for(mined.program, replace(mined.triplets, kinds=kinds))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("{", "cannot be read"),
        ('[["number"]]', "cannot be read"),
        ('[["number"], [[]]]', "does not fit"),
        ('[["word", "word"], [[], []]]', "does not fit"),
        ('[["category", "number"], [["a"], []]]', "no category"),
        ('[["category", "number"], [[1, 2, 3], []]]', "does not fit"),
        ('[["boolean", "number"], [["true"], []]]', "no boolean"),
        ('[["date", "number"], [[], []]]', "no date"),
    ],
)
def test_a_file_whose_columns_make_no_sense_is_refused(columns, says, tmp_path):
    x, has = np.array([[2.5, 0.5]]), np.array([True])
    arrays = {"x": x, "pp": x, "pn": x, "has_pp": has, "has_pn": has, "label": np.array(["a"])}
    np.savez(tmp_path / "t.npz", **arrays, features=np.array(["a", "b"]), columns=np.array(columns))
    with pytest.raises(BadInput, match=says):
        load_triplets(tmp_path / "t.npz")


def test_the_same_table_gives_the_same_program_from_every_kind_of_file(tmp_path):
    table = loans(200)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    programs = [mine(tmp_path / name, "default", train="gbm", clauses=4, note=quiet).program for name in
                ("t.csv", "t.parquet")]  # fmt: skip
    assert programs[0] == programs[1]


@pytest.mark.parametrize("target", ["python", "c", "onnx", "sql:duckdb"])
def test_an_artifact_knows_the_marks_and_the_needed_columns_of_its_program(tmp_path, target):
    table = loans(300)
    table["income"] = table.income.astype(object).where(table.income.notna(), "unknown")
    table.to_csv(tmp_path / "all.csv", index=False)
    program = mine(
        tmp_path / "all.csv",
        "default",
        train="gbm",
        na=["unknown", "?"],
        clauses=2,
        out=tmp_path / "m.json",
        note=quiet,
    ).program
    used = [name for name, is_used in zip(program.features, used_features(program), strict=True) if is_used]
    assert len(used) < len(program.features)
    assert "income" in used
    table[[*used, "default"]].to_csv(tmp_path / "some.csv", index=False)
    write_artifact(emit(program, target), tmp_path / "build")
    folder = tmp_path / "build" / target.replace(":", "-")
    labels = []
    for source, data in ((program, "all.csv"), (program, "some.csv"), (folder, "all.csv"), (folder, "some.csv")):
        score(source, tmp_path / data, tmp_path / "scored.csv")
        labels.append(pd.read_csv(tmp_path / "scored.csv").label.tolist())
    assert labels[0] == labels[1] == labels[2] == labels[3]
    assert explain_row(program, tmp_path / "some.csv", row_number=2).account.answer.label == labels[0][1]


def test_kinds_are_inferred_with_a_reason_and_can_be_set():
    table = pd.DataFrame(
        {"zip": [1, 2, 2], "when": ["2024-01-01 10:00:00", "?", "2024-01-02 11:30:00"], "n": ["1", " ", "2.5"]}
    )
    _, columns, facts = encode_table(table, tuple(table), "t", kinds={"zip": "category"})
    assert columns.kinds == ("category", "timestamp", "number")
    assert columns.book.texts[0] == ("2", "1")
    assert [fact.why for fact in facts] == ["asked for", "its texts are timestamps", "its texts are numbers"]
    assert [fact.marks for fact in facts] == [(), ("?",), (" ",)]


def test_keys_are_left_out_and_named_unless_features_names_them():
    table = loans(200).assign(person=[f"p{n}" for n in range(200)], number=range(200))
    sample = read_sample(table, Choice("default"), most=1000)
    assert not {"person", "number"} & set(sample.features)
    assert sum("is a key and left out" in note for note in sample.notes) == 2
    assert "number" in read_sample(table, Choice("default", kinds={"number": "number"}), most=1000).features


@pytest.mark.parametrize("name", ["loan_id", "customerID", "Policy No", "rownames", "ID"])
def test_numbers_that_are_all_different_are_a_key_where_they_are_called_so(name):
    numbers = np.random.default_rng(0).choice(10**7, 200, replace=False)
    features = read_sample(
        loans(200).assign(**{name: numbers, "saved": numbers}), Choice("default"), most=1000
    ).features
    assert name not in features
    assert "saved" in features, "an amount may well be another in every row"


def test_whole_numbers_that_ascend_from_row_to_row_are_a_key():
    ascending = np.cumsum(np.random.default_rng(0).integers(1, 1000, 200))
    assert "entry" not in read_sample(loans(200).assign(entry=ascending), Choice("default"), most=1000).features
    assert "entry" in read_sample(loans(200).assign(entry=ascending[::-1]), Choice("default"), most=1000).features


def test_a_key_is_seen_in_a_part_of_the_rows(tmp_path):
    loans(600).assign(number=range(1, 1201, 2)).to_csv(tmp_path / "t.csv", index=False)
    sample = read_sample(tmp_path / "t.csv", Choice("default"), most=150)
    assert "number" not in sample.features


def test_a_column_of_too_many_texts_is_named_and_left_out():
    sample = read_sample(loans(2400).assign(town=TOWNS), Choice("default"), most=200)
    assert "town" not in sample.features
    assert any("column 'town' has 1,200 different texts, 1,000 at most, and is left out" in n for n in sample.notes)


def test_rows_without_a_class_are_counted_and_left_out(tmp_path):
    table = loans(200).assign(default=["?"] * 3 + [""] * 2 + ["1", "2"] * 97 + ["1"])
    table.to_csv(tmp_path / "t.csv", index=False)
    sample = read_sample(tmp_path / "t.csv", Choice("default"), most=1000)
    assert "5 of 200 rows have no class in 'default' and are left out" in sample.notes
    assert set(sample.split.y.tolist()) == {1, 2}, "without the mark they are numbers"
    assert sample.facts["left_out"] == 5
    with pytest.raises(BadInput, match="the target 'default' is missing in 5 of 200 rows, the first is row 1"):
        read_sample(tmp_path / "t.csv", Choice("default", missing="refuse"), most=1000)


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        ({"town": TOWNS}, {"kinds": {"town": "category"}}, "1,200 different texts, 1,000 at most"),
        ({}, {"explainer": "macem"}, "'job' is a category, and macem needs numbers"),
        ({}, {"kinds": {"jobb": "category"}}, "--kind jobb=category: there is no feature"),
        ({}, {"kinds": {"house": "date"}}, "is not a date"),
        ({}, {"features": ["house", "hous"]}, "has no column 'hous'"),
    ],
)
def test_what_is_not_possible_is_refused_by_name(change, options, says):
    table = loans(2400 if change else 200).assign(**change)
    with pytest.raises(BadInput, match=says):
        mine(table, "default", train="gbm", note=quiet, **options)


def test_a_file_without_a_header_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("39,State-gov,77516,<=50K\n" + "50,Private,83311,>50K\n" * 50)
    with pytest.raises(BadInput, match="the file has no header"):
        mine(tmp_path / "t.csv", "<=50K", train="gbm", note=quiet)


def test_a_pipeline_is_called_with_the_table_it_was_trained_on():
    table = loans(300)[["job", "house", "late", "default"]]
    words = ColumnTransformer([("words", OneHotEncoder(), ["job", "house"])], remainder="passthrough")
    pipeline = make_pipeline(words, LogisticRegression()).fit(table[["job", "house", "late"]], table.default == "yes")
    labels = table.assign(default=np.where(table.default == "yes", "True", "False"))
    mined = mine(labels, "default", black_box=pipeline, na=["-"], clauses=4, note=quiet)
    assert mined.program.classes == ("False", "True")
    assert mined.consistency.fidelity > 80


def test_the_classifier_takes_a_table_with_words():
    table = loans(300)
    model = GBFLClassifier(max_clauses=4, extra_rows=0, random_state=0).fit(
        table.drop(columns="default"), table.default
    )
    program = lower(model)
    assert program.kinds == model.columns_.kinds
    assert (score(program, table).table.label.to_numpy() == model.predict(table)).all()
    assert set(model.explain(table.head(3)).columns) >= {"label", "because", "pp", "pn"}


def test_a_table_needs_only_the_columns_that_rules_ask_about():
    table = loans(300)
    program = mine(table, "default", train="gbm", clauses=1, note=quiet).program
    used = {program.features[atom.feature] for clause in program.clauses for atom in clause.atoms}
    assert (score(program, table[sorted(used)]).table.label == score(program, table).table.label).all()
    with pytest.raises(BadInput, match="has no column"):
        score(program, table[["default"]])
