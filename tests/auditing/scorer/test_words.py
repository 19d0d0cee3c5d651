"""Scorers of words, booleans, dates and missing values: Python, HTTP and C, right ones equal, careless ones found."""

import contextlib
import datetime as dt
import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gbfl_compile import audit
from gbfl_compile.auditing.scorer import witness_input
from gbfl_compile.auditing.scorer.callable import audit_callable
from gbfl_compile.auditing.scorer.library import audit_library
from gbfl_compile.backends import emit
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, OneOf, Program, leaf, split
from gbfl_compile.tables.values import coded_rows
from tests.word_programs import CHURN, CHURN_ROWS, SLIPS, with_slip, with_swapped_sets

MODULE = """
import datetime, unicodedata

def churn(row, same=lambda text: text, none=None, late=datetime.date(2024, 3, 1)):
    contract = none if row["contract"] is None else same(row["contract"])
    first = row["income"] is not None and row["income"] >= 1000.0 and contract in ("Month-to-month", "two year")
    second = row["smoker"] is True and row["opened"] is not None and row["opened"] < late
    third = contract is not None and contract != "a" and row["smoker"] is not True
    return ("yes" if second else "no") if first else ("no" if third else "yes")

def right(rows):
    return [churn(row) for row in rows]

def from_frame(frame):
    return [churn({n: None if v != v else v for n, v in row.items()}) for row in frame.to_dict("records")]

def trims(rows):
    return [churn(row, str.strip) for row in rows]

def folds(rows):
    return [churn(row, lambda text: "Month-to-month" if text.lower() == "month-to-month" else text) for row in rows]

def lowers_a(rows):
    return [churn(row, lambda text: "a" if text == "A" else text) for row in rows]

def drops_accents(rows):
    plain = lambda text: unicodedata.normalize("NFD", text).replace("\\u0301", "")
    return [churn(row, plain) for row in rows]

def empty_is_missing(rows):
    return [churn(row, lambda text: text or None) for row in rows]

def missing_is_text(rows):
    return [churn(row, none="None") for row in rows]

def a_day_late(rows):
    return [churn(row, late=datetime.date(2024, 3, 2)) for row in rows]
"""

CARELESS = ("trims", "folds", "lowers_a", "drops_accents", "empty_is_missing", "missing_is_text", "a_day_late")


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "churn_scorer.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("churn_scorer", None)


@pytest.mark.parametrize(("what", "form"), [("right", "dicts"), ("from_frame", "frame")])
def test_a_python_scorer_that_answers_as_approved_is_equal(here, what, form):
    found = audit_callable(CHURN, f"churn_scorer:{what}", form=form)
    assert (found.verdict, found.execution.different) == ("equal", 0), found.reason
    texts = {row[1] for row in witness_input(CHURN).values()}
    assert {"a", "A", "a ", "á", "a\u0301", "", None, "two year "} <= texts


@pytest.mark.parametrize("what", CARELESS)
def test_a_careless_python_scorer_is_found_by_a_row_that_shows_it(here, what):
    found = audit_callable(CHURN, f"churn_scorer:{what}")
    assert found.verdict == "different"
    import churn_scorer

    row = dict(found.region.row)
    assert evaluate(CHURN, list(row.values())).label == found.region.approved
    assert getattr(churn_scorer, what)([row]) == [found.region.deployed]
    json.dumps(found.execution.first, allow_nan=False)


def test_the_slip_of_a_scorer_is_reported(here):
    text = audit_callable(CHURN, "churn_scorer:a_day_late").changes[0].text()
    assert "opened < 2024-03-01" in text
    assert "2024-03-02" in text or "<=" in text
    assert "smoker" not in text


def test_the_users_own_texts_are_tried_too(here):
    (here / "sly.py").write_text(
        "from churn_scorer import churn\ndef scorer(rows):\n    return ['yes' if row['contract'] == 'weekly' else churn(row) for row in rows]\n"
    )
    rows = [[5000.0, "weekly", False, dt.date(2024, 3, 5)], [5000.0, "two year", True, dt.date(2024, 3, 5)]]
    assert audit(CHURN, call="sly:scorer").verdict == "equal"
    report = audit(CHURN, call="sly:scorer", data=rows)
    assert report.verdict == "different"
    assert report.verdicts[0].region.row["contract"] == "weekly"
    assert (report.verdicts[0].moves.rows, report.verdicts[0].moves.of) == (1, 2)


def test_a_matrix_of_words_is_refused(here):
    with pytest.raises(BadInput, match="a matrix holds only numbers"):
        audit_callable(CHURN, "churn_scorer:right", form="matrix")


@contextlib.contextmanager
def serving(scorer):
    """A service that reads dates from text, as JSON has them."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            rows = [dict(zip(body["features"], row, strict=True)) for row in body["rows"]]
            for row in rows:
                row["income"] = None if row["income"] is None else float(row["income"])
                row["opened"] = None if row["opened"] is None else dt.date.fromisoformat(row["opened"])
            answer = json.dumps({"labels": scorer(rows)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/score"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("what", ["right", *CARELESS])
def test_a_service_is_called_with_texts_booleans_and_dates(here, what):
    import churn_scorer

    with serving(getattr(churn_scorer, what)) as url:
        found = audit_callable(CHURN, url)
    assert found.verdict == ("equal" if what == "right" else "different"), found.reason
    assert found.execution.rows == len(witness_input(CHURN).rows)


def built(folder, program, edit=lambda text: text):
    """A library of an emitted program, edited by hand before it is compiled."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    for file, content in emit(program, "c", "model").files.items():
        (folder / file).write_text(edit(content.decode("utf-8")), "utf-8")
    command = ["cc", "-O1", "-shared", "-fPIC", "model.c", "-o", "libmodel.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libmodel.so"


def test_an_emitted_library_is_equal(tmp_path):
    found = audit_library(CHURN, built(tmp_path, CHURN), "model", tmp_path / "model.c")
    assert (found.verdict, found.execution.different) == ("equal", 0), found.reason
    assert "model_code" in found.compared
    assert "model_kind" in found.compared


@pytest.mark.parametrize("slip", SLIPS)
def test_a_library_of_another_program_is_different(slip, tmp_path):
    wrong = with_slip(slip)
    found = audit_library(CHURN, built(tmp_path, wrong), "model")
    assert found.verdict == "different"
    if found.region is not None:  # where no witness has the added text, its code alone shows it
        row = list(found.region.row.values())
        assert evaluate(CHURN, row).label != evaluate(wrong, row).label
    assert found.region is not None or slip == "one year added"


def test_a_library_with_swapped_sets_is_different(tmp_path):
    assert audit(CHURN, library=built(tmp_path, with_swapped_sets()), name="model").verdict == "different"


EDITED = {
    "a text in other letters": ('"two year"', '"Two year"'),
    "a length too short": ('"two year", 8u', '"two year", 7u'),
    "a kind": ("'c'", "'n'"),
}


@pytest.mark.parametrize("edit", EDITED)
def test_a_library_with_another_table_of_texts_is_different(edit, tmp_path):
    before, after = EDITED[edit]
    changed = []

    def edited(text):
        changed.append(before in text)
        return text.replace(before, after)

    found = audit_library(CHURN, built(tmp_path, CHURN, edited), "model")
    assert any(changed)
    assert found.verdict == "different", found.compared


FOLDING = """
#include <strings.h>
#include <string.h>
double model_code(int feature, const char *text, unsigned long length) {
    if (length == 1 && LOOK(text, "a", 1) == 0) return 2.0;
    if (length == 14 && LOOK(text, "Month-to-month", 14) == 0) return 7.0;
    if (length == 8 && LOOK(text, "two year", 8) == 0) return 8.0;
    return 0.0;
}
int model_predict(const double *x) {
    int late = x[1] == 7.0 || x[1] == 8.0;
    if (x[0] >= 1000.0 && late) return x[2] == 1.0 && x[3] < 19783.0;
    return !(x[1] == x[1] && x[1] != 2.0 && x[2] != 1.0);
}
"""


@pytest.mark.parametrize(("look", "verdict"), [("strncmp", "equal"), ("strncasecmp", "different")])
def test_a_library_written_by_hand_is_called_by_its_own_codes(look, verdict, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "hand.c").write_text(FOLDING)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DLOOK={look}", "hand.c", "-o", "hand.so"], cwd=tmp_path, check=True)
    rows, book = coded_rows(CHURN_ROWS, CHURN)
    found = audit_library(CHURN, tmp_path / "hand.so", "model", data=rows, book=book)
    assert found.verdict == verdict, found.reason


def test_a_library_without_codes_is_not_run(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "bare.c").write_text("int model_predict(const double *x) { return x[0] > 1.0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "bare.c", "-o", "bare.so"], cwd=tmp_path, check=True)
    found = audit_library(CHURN, tmp_path / "bare.so", "model")
    assert (found.verdict, found.reason) == (
        "not run",
        "it has no function model_code, by which texts become numbers: nothing was run",
    )


def test_a_float32_library_has_no_timestamps(tmp_path):
    program = Program(
        ("seen", "job"),
        (0, 1),
        (Clause((Interval(0, 1.0), OneOf(1, ("a",)))),),
        split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)),
        kinds=("timestamp", "category"),
    )
    with pytest.raises(BadInput, match="no float32 holds microseconds"):
        audit_library(program, built(tmp_path, program), "model", real="float32")
    assert audit_library(program, tmp_path / "libmodel.so", "model").verdict == "equal"
