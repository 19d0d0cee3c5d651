"""Labels that are deployed as something else than the names of the classes: --class says which is which."""

import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from gbfl_compile import audit
from gbfl_compile.auditing.answers import read_labels, with_labels
from gbfl_compile.backends import emit
from gbfl_compile.cli import main
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from gbfl_compile.learning.consistency import Triplets

APPROVED = Program(
    ("age",), ("deny", "approve"), (Clause((Interval(0, 18.0),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0))
)
WORDS = {"approve": "APPROVE", "deny": "DENY"}
NUMBERS = {"approve": 1, "deny": 0}
DIGITS = {"approve": "1", "deny": "0"}
TRUTHS = {"approve": True, "deny": False}


def literal(label):
    if isinstance(label, bool):
        return str(label).upper()
    return f"'{label}'" if isinstance(label, str) else str(label)


@pytest.fixture(params=("sqlite", "duckdb", "postgres"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    made = scratch(request.param)
    double = {"sqlite": "REAL", "postgres": "DOUBLE PRECISION"}.get(made.dialect, "DOUBLE")
    made.execute(f"CREATE TABLE people (age {double})")
    made.execute("INSERT INTO people VALUES (3), (40), (NULL)")
    yield made
    made.close()


def hand_written(database, labels):
    """A view as an analyst writes it, in the labels that a bank's systems use."""
    nan = {"sqlite": "", "duckdb": " AND NOT isnan(age)"}.get(database.dialect, " AND age <> 'NaN'::float8")
    yes, no = (literal(labels[name]) for name in ("approve", "deny"))
    database.execute(
        f"CREATE VIEW scores AS SELECT CASE WHEN age >= 18.0{nan} THEN {yes} ELSE {no} END AS label FROM people"
    )


def emitted(database, labels):
    """Our own view of the program, its labels replaced by hand."""
    options = {"form": "view", "table": "people", "view": "scores"}
    text = emit(APPROVED, f"sql:{database.dialect}", "m", options).files["m.sql"].decode()
    body = "\n".join(line for line in text.split("\n") if not line.startswith("--"))
    for name, label in labels.items():
        assert f"'{name}'" in body
        body = body.replace(f"'{name}'", literal(label))
    database.execute(body.strip().rstrip(";"))


@pytest.mark.parametrize("labels", [WORDS, NUMBERS, DIGITS, TRUTHS])
def test_a_view_in_other_labels_is_equal_with_its_mapping_and_with_no_other(database, labels):
    hand_written(database, labels)
    (found,) = audit(APPROVED, database=database, view="scores", classes=labels).verdicts
    answer = "proved" if database.dialect == "postgres" else "read as equal"  # its catalog prints it in the strict form
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", answer, 0), found
    assert found.class_labels == {"deny": labels["deny"], "approve": labels["approve"]}
    swapped = {"approve": labels["deny"], "deny": labels["approve"]}
    (found,) = audit(APPROVED, database=database, view="scores", classes=swapped).verdicts
    assert found.verdict == "different"
    assert found.execution.different > 0
    assert audit(APPROVED, database=database, view="scores").verdict == "different"


@pytest.mark.parametrize("labels", [WORDS, NUMBERS, DIGITS, TRUTHS])
def test_another_threshold_shows_whatever_the_labels(database, labels):
    hand_written(database, labels)
    other = Program(APPROVED.features, APPROVED.classes, (Clause((Interval(0, 18.5),)),), APPROVED.decision)
    (found,) = audit(other, database=database, view="scores", classes=labels).verdicts
    assert found.verdict == "different"
    assert (found.region.approved, found.region.deployed) == (labels["deny"], labels["approve"])


@pytest.mark.parametrize(
    ("deployed", "stated"),
    [(DIGITS, NUMBERS), (NUMBERS, DIGITS), (NUMBERS, TRUTHS), (TRUTHS, NUMBERS), (DIGITS, TRUTHS), (TRUTHS, DIGITS)],
)
def test_text_numbers_and_truth_values_are_distinguished_where_the_engine_does(database, deployed, stated):
    hand_written(database, deployed)
    (found,) = audit(APPROVED, database=database, view="scores", classes=stated).verdicts
    if database.dialect == "sqlite" and DIGITS not in (deployed, stated):  # its TRUE is 1, which the reader leaves open
        assert (found.verdict, found.execution.different) == ("equal" if deployed is NUMBERS else "unread", 0)
    else:
        assert found.verdict == "different"
        assert found.execution.different > 0


@pytest.mark.parametrize("labels", [WORDS, DIGITS])
def test_our_own_view_with_other_texts_is_proved(database, labels):
    """The strict reader is told which labels to expect; the columns of probabilities keep the names of the classes."""
    emitted(database, labels)
    (found,) = audit(APPROVED, database=database, view="scores", classes=labels).verdicts
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found
    assert found.compared_columns == ("label", "p_deny", "p_approve")
    swapped = {"approve": labels["deny"], "deny": labels["approve"]}
    assert audit(APPROVED, database=database, view="scores", classes=swapped).verdict == "different"
    wrong = audit(APPROVED, database=database, view="scores", classes={**labels, "deny": "REFUSE"})
    assert wrong.verdict == "different"


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize("labels", [WORDS, DIGITS])
def test_a_sql_file_with_other_texts_is_proved_and_run(tmp_path, dialect, labels):
    if reason := availability(dialect):
        pytest.skip(reason)
    header, *rest = emit(APPROVED, f"sql:{dialect}", "m").files["m.sql"].decode().split("\nWITH", 1)
    body = "\nWITH" + rest[0]
    for name, label in labels.items():
        body = body.replace(f"'{name}'", f"'{label}'")
    file = tmp_path / "m.sql"
    file.write_text(header + body)
    (found,) = audit(APPROVED, file=file, classes=labels).verdicts
    assert (found.verdict, found.proof.answer, found.execution.different) == ("equal", "proved", 0), found
    edited = re.sub(r"WHEN (.*) THEN", r"WHEN NOT (NOT (\1)) THEN", body, count=1)
    file.write_text(header + edited)
    (found,) = audit(APPROVED, file=file, classes=labels).verdicts
    assert (found.verdict, found.proof.answer) == ("equal", "read as equal"), found
    swapped = {"approve": labels["deny"], "deny": labels["approve"]}
    assert audit(APPROVED, file=file, classes=swapped).verdict == "different"
    assert audit(APPROVED, file=file).verdict != "equal"
    outputs = [f'["probabilities", "p_{name}"]' for name in APPROVED.classes]
    for listed in (['"deny"', '"approve"'], outputs):
        assert ", ".join(listed) in header
        header = header.replace(", ".join(listed), ", ".join(reversed(listed)))
    file.write_text(header + edited)
    (found,) = audit(APPROVED, file=file, classes=labels).verdicts
    assert (found.verdict, "its header lists the classes" in found.reason) == ("unread", True)


@pytest.mark.parametrize("target", ["python", "onnx"])
def test_other_files_name_their_labels_themselves(tmp_path, target):
    file = tmp_path / {"python": "m.py", "onnx": "m.onnx"}[target]
    file.write_bytes(emit(with_labels(APPROVED, WORDS), target, "m").files[file.name])
    assert audit(APPROVED, file=file, classes=WORDS).verdicts[0].proof.answer == "proved"
    assert audit(APPROVED, file=file, classes={"approve": "DENY", "deny": "APPROVE"}).verdict == "different"
    assert audit(APPROVED, file=file).verdict == "different"


ROWS = pd.DataFrame({"age": [3.0, 17.0, 18.0, 40.0, np.nan]})


@pytest.mark.parametrize("labels", [WORDS, NUMBERS, DIGITS, TRUTHS])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_scored_table_in_other_labels(tmp_path, labels, ending):
    answers = evaluate_many(APPROVED, ROWS.to_numpy())
    table = ROWS.assign(label=[labels[label] for label in answers.labels])
    table["p_deny"], table["p_approve"] = answers.probabilities.T
    path = tmp_path / f"scored.{ending}"
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    (found,) = audit(APPROVED, scored=path, classes=labels, probabilities=True).verdicts
    assert (found.verdict, found.checked_rows, found.different_rows) == ("equal", 5, 0)
    swapped = {"approve": labels["deny"], "deny": labels["approve"]}
    (found,) = audit(APPROVED, scored=path, classes=swapped).verdicts
    assert (found.verdict, found.different_rows) == ("different", 5)
    assert audit(APPROVED, scored=path).verdict == "different"


@pytest.mark.parametrize("labels", [WORDS, NUMBERS, DIGITS, TRUTHS])
def test_a_callable_in_other_labels(tmp_path, monkeypatch, labels):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yes, no = labels["approve"], labels["deny"]
    (tmp_path / "bank_scorer.py").write_text(
        f"def score(rows):\n    return [{yes!r} if (row['age'] or 0) >= 18 else {no!r} for row in rows]\n"
    )
    (found,) = audit(APPROVED, call="bank_scorer:score", classes=labels).verdicts
    assert (found.verdict, found.execution.different) == ("equal", 0)
    swapped = {"approve": no, "deny": yes}
    assert audit(APPROVED, call="bank_scorer:score", classes=swapped).verdict == "different"
    for other in (WORDS, NUMBERS, DIGITS, TRUTHS):
        if other is not labels:
            assert audit(APPROVED, call="bank_scorer:score", classes=other).verdict == "different"


def test_the_mapping_is_printed_logged_and_in_the_json(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(APPROVED, tmp_path / "approved.json")
    ROWS.assign(label=[0, 0, 1, 1, 0]).to_csv("scored.csv", index=False)
    command = ["audit", "approved.json", "--scored", "scored.csv", "--class", "approve=1", "--class", "deny=0"]
    assert main([*command, "--log", "audits.jsonl", "--html", "audit.html"]) == 0
    printed = capsys.readouterr().out
    assert "  class deny is deployed as 0\n  class approve is deployed as 1\n" in printed
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["audited"][0]["class_labels"] == NUMBERS
    assert json.loads((tmp_path / "audits.jsonl").read_text())["audited"][0]["class_labels"] == NUMBERS
    assert "class labels" in (tmp_path / "audit.html").read_text()
    assert main([*command[:4], "--class", "approve=0", "--class", "deny=1"]) == 1


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        (["approve=1"], "name its deployed label too"),
        (["approve=1", "deny=1"], "is used for another class too"),
        (["approve=1", "deny=no"], "classes mix"),
        (["approve=1", "deny=0", "maybe=2"], "where NAME is one of deny, approve"),
        (["approve=1", "approve=2", "deny=0"], "named twice"),
        (["approve=", "deny=0"], "unclear"),
        (["approve='1", "deny=0"], "unclear"),
        (["approve=NULL", "deny=0"], "unclear"),
        (["approve", "deny=0"], "write it as NAME=LABEL"),
        (["approve=1e400", "deny=0.5"], "not a number of 64 bits"),
    ],
)
def test_a_mapping_that_is_not_clear_is_refused(tmp_path, capsys, monkeypatch, pairs, reason):
    monkeypatch.chdir(tmp_path)
    save(APPROVED, tmp_path / "approved.json")
    ROWS.assign(label=1).to_csv("scored.csv", index=False)
    options = [word for pair in pairs for word in ("--class", pair)]
    assert main(["audit", "approved.json", "--scored", "scored.csv", *options]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())


def test_labels_are_read_with_their_types():
    assert read_labels(["a=1", "b='1'", "c=true", "d=1.5", "e=APPROVE"], "abcde") == dict(
        zip("abcde", (1, "1", True, 1.5, "APPROVE"), strict=True)
    )
    assert read_labels(["true=yes", "False=no"], (False, True)) == {True: "yes", False: "no"}
    assert read_labels(["0=no"], (0, 1)) == {0: "no"}
    with pytest.raises(BadInput):
        with_labels(APPROVED, {"approve": 1, "deny": float("nan")})
    with pytest.raises(BadInput):
        with_labels(APPROVED, {"approve": 1, "deny": None})


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_library_in_other_labels(tmp_path):
    for name, content in emit(with_labels(APPROVED, WORDS), "c", "model").files.items():
        (tmp_path / name).write_bytes(content)
    library = tmp_path / "libmodel.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "model.c"), "-o", str(library)], check=True)
    (found,) = audit(APPROVED, library=library, classes=WORDS).verdicts
    assert (found.verdict, found.execution.different) == ("equal", 0), found
    assert audit(APPROVED, library=library, classes={"approve": "DENY", "deny": "APPROVE"}).verdict == "different"
    assert audit(APPROVED, library=library, classes=NUMBERS).verdict == "different"
    assert audit(APPROVED, library=library).verdict == "different"


def test_local_consistency_is_counted_by_class_whatever_the_labels(tmp_path):
    other = with_labels(
        Program(APPROVED.features, APPROVED.classes, (Clause((Interval(0, 30.0),)),), APPROVED.decision), WORDS
    )
    (tmp_path / "m.py").write_bytes(emit(other, "python", "m").files["m.py"])
    x = np.array([[3.0], [20.0], [40.0]])
    flags = np.ones(3, dtype=bool)
    label = np.array(["deny", "approve", "approve"], dtype=object)
    triplets = Triplets(x, x, np.array([[40.0], [3.0], [3.0]]), flags, flags, label, APPROVED.features)
    (found,) = audit(APPROVED, file=tmp_path / "m.py", classes=WORDS, triplets=triplets).verdicts
    assert (found.consistency.source.c_tb_right, found.consistency.target.c_tb_right) == (3, 2)
