"""Audits of files with words, booleans, dates and missing values: every slip is found, named, and shown by a row."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gbfl_compile import audit
from gbfl_compile.backends import emit
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.validate import validate
from tests.word_programs import CHURN, CHURN_ROWS, SLIPS, with_one_edit, with_slip, with_swapped_sets, word_programs

TARGETS = ("python", "c", "onnx", "sql:sqlite", "sql:duckdb")
NEEDS = {"onnx": "onnxruntime", "sql:duckdb": "duckdb"}


def deployed(program, target, folder):
    """The main file of an artifact."""
    if target in NEEDS:
        pytest.importorskip(NEEDS[target])
    folder.mkdir(exist_ok=True)
    for name, content in emit(program, target).files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    ending = {"python": ".py", "c": ".c", "onnx": ".onnx"}.get(target, ".sql")
    return next(iter(sorted(folder.glob(f"*{ending}"))))


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_emitted_is_equal_and_proved(target, tmp_path):
    report = audit(CHURN, file=deployed(CHURN, target, tmp_path), data=CHURN_ROWS)
    assert (report.verdict, report.verdicts[0].is_proved) == ("equal", True), report.lines()


@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_slip_is_different_and_named(target, slip, tmp_path):
    wrong = with_slip(slip)
    report = audit(CHURN, file=deployed(wrong, target, tmp_path), data=CHURN_ROWS)
    (found,) = report.verdicts
    assert found.verdict == "different"
    row = [found.region.row[name] for name in CHURN.features]
    assert (evaluate(CHURN, row).label, evaluate(wrong, row).label) == (found.region.approved, found.region.deployed)
    moved = sum(evaluate(CHURN, row).label != evaluate(wrong, row).label for row in CHURN_ROWS)
    assert (found.moves.rows, found.moves.of) == (moved, len(CHURN_ROWS))
    if target != "onnx":  # a graph asks about one text at a time, and no longer says which belong together
        assert any(slip in (change.slip or "") for change in found.changes), report.lines()
    json.dumps(report.as_json(), allow_nan=False)


@pytest.mark.parametrize("target", TARGETS)
def test_swapped_sets_are_different(target, tmp_path):
    report = audit(CHURN, file=deployed(with_swapped_sets(), target, tmp_path))
    assert report.verdict == "different"
    if target != "onnx":
        assert {change.slip for change in report.verdicts[0].changes} == {
            "swapped with clause 0",
            "swapped with clause 2",
        }


EDITS = (
    ("'two year'", "'Two year'"),
    ("'two year'", "'two year '"),
    ("'two year'", "'two yeaR'"),
    ("'a'", "'A'"),
    ("2024-03-01", "2024-03-02"),
)


@pytest.mark.parametrize(("text", "other"), EDITS)
@pytest.mark.parametrize("target", ["python", "sql:sqlite", "sql:duckdb"])
def test_a_text_edited_by_hand_is_never_called_equal(target, text, other, tmp_path):
    path = deployed(CHURN, target, tmp_path)
    content = path.read_text("utf-8")
    if text not in content:
        pytest.skip("it is not written so there")
    path.write_text(content.replace(text, other), "utf-8")
    assert audit(CHURN, file=path).verdict in ("different", "unread")


@settings(max_examples=40, deadline=None)
@given(data=st.data(), target=st.sampled_from(("python", "c", "sql:sqlite")))
def test_an_edit_is_equal_only_where_the_definition_is(data, target, tmp_path_factory):
    approved = data.draw(word_programs())
    wrong = validate(data.draw(with_one_edit(approved)))
    try:
        path = deployed(wrong, target, tmp_path_factory.mktemp("file"))
    except BadInput:
        return
    (found,) = audit(approved, file=path).verdicts
    assert found.verdict in ("equal", "different"), found.reason
    if found.verdict == "different" and found.region is not None and found.region.beside is None:
        row = [found.region.row[name] for name in approved.features]
        assert evaluate(approved, row).label != evaluate(wrong, row).label
