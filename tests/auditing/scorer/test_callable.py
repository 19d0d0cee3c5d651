"""Scorers that can be called: Python functions and HTTP services, right and wrong, polite and rude."""

import base64
import contextlib
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from gbfl_compile.auditing.scorer import witness_input
from gbfl_compile.auditing.scorer.callable import audit_callable
from gbfl_compile.auditing.scorer.http import scorer_at
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(
    ("age", "log"), (0, 1), (Clause((Interval(0, 0.1, 50.0),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0))
)

MODULE = """
import os, sys, time
import log  # the user's own, whatever the auditor has beside its worker
print("loaded"); sys.stderr.write("!")

def right(rows):
    print("called")
    return [int(row["age"] is not None and 0.1 <= row["age"] < 50.0) for row in rows]

def wrong(rows):
    return [int(row["age"] is not None and 0.1 < row["age"] < 50.0) for row in rows]

def text(rows):
    return [str(label) for label in right(rows)]

def truth(rows):
    return [bool(label) for label in right(rows)]

def matrix(x):
    return (x[:, 0] >= 0.1) & (x[:, 0] < 50.0)

def matrix_of_ints(x):
    return matrix(x).astype("int64")

def raises_on_infinity(rows):
    if any(row["age"] in (float("inf"), float("-inf")) for row in rows):
        raise ValueError("age must be finite\\nsecond line")
    return right(rows)

def too_few(rows):
    return right(rows)[1:]

def crashes(rows):
    os.kill(os.getpid(), 11)

def leaves(rows):
    os._exit(0)

def quits(rows):
    sys.exit("no")

def hangs(rows):
    time.sleep(60)

class Model:
    @staticmethod
    def predict(rows):
        return right(rows)

nothing = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "deployed.py").write_text(MODULE)
    (tmp_path / "log.py").write_text("")
    (tmp_path / "broken.py").write_text("import a_module_that_is_not_there")
    (tmp_path / "sleepy.py").write_text("import time; time.sleep(60)")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("what", "form"), [("right", "dicts"), ("Model.predict", "dicts"), ("matrix_of_ints", "matrix")]
)
def test_a_python_scorer_that_answers_as_approved_is_equal(here, capfd, what, form):
    found = audit_callable(PROGRAM, f"deployed:{what}", form=form)
    assert (found.verdict, found.reason) == ("equal", None)
    assert found.execution.different == 0
    assert found.execution.rows > 50
    assert found.engine.startswith("Python 3")
    assert capfd.readouterr() == ("", "")
    assert "deployed" not in sys.modules


def test_a_wrong_python_scorer_is_found_with_its_witness(here):
    found = audit_callable(PROGRAM, "deployed:wrong")
    assert found.verdict == "different"
    assert found.region.row["age"] == 0.1
    assert (found.region.approved, found.region.deployed) == (1, 0)


@pytest.mark.parametrize(("what", "form"), [("text", "dicts"), ("truth", "dicts"), ("matrix", "matrix")])
def test_labels_of_another_kind_are_different(here, what, form):
    found = audit_callable(PROGRAM, f"deployed:{what}", form=form)
    assert found.verdict == "different"
    assert found.execution.different == found.execution.rows


def test_a_row_that_raises_counts_and_the_others_are_still_scored(here):
    found = audit_callable(PROGRAM, "deployed:raises_on_infinity")
    assert found.verdict == "different"
    assert 0 < found.execution.different < found.execution.rows
    assert "no label: ValueError: age must be finite'" in found.reason


BAD = {
    "deployed:too_few": ("different", "ValueError: 0 labels for 1 rows"),
    "deployed:crashes": ("different", "it crashed (SIGSEGV) on witness 1"),
    "deployed:leaves": ("different", "it ended the process (code 0) on witness 1"),
    "deployed:quits": ("different", "it ended the process (code 1) on witness 1"),
    "deployed:hangs": ("not run", "it hung: not done within 2 s on witness 1"),
    "sleepy:right": ("not run", "it hung: not done within 2 s while it was imported"),
    "broken:right": ("not run", "cannot be imported: ModuleNotFoundError"),
    "deployed:absent": ("not run", "cannot be imported: AttributeError"),
    "deployed:nothing": ("not run", "is not callable"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_scorer_that_misbehaves_is_an_answer(here, what):
    slow = BAD[what][1].startswith("it hung")
    found = audit_callable(PROGRAM, what, seconds=2 if slow else 60)
    assert found.verdict == BAD[what][0]
    assert BAD[what][1] in found.reason


@pytest.mark.parametrize(
    "what",
    [
        "deployed",
        "deployed:",
        "a b:c",
        "../x:y",
        "x:y;z",
        "ftp://host/",
        "http://",
        "http://h/a b",
        "http://h/é",
        "-c:x",
        "http://h:x/",
    ],
)
def test_what_names_no_scorer_is_refused(what):
    with pytest.raises(BadInput, match="scorer"):
        audit_callable(PROGRAM, what)


def our_rows(body):
    assert body["features"] == ["age", "log"]
    return body["rows"]


def of_records(records):
    return [[record["age"], record["log"]] for record in records]


OWN_FORMS = {
    "records": of_records,
    "instances": lambda body: of_records(body["instances"]),
    "dataframe_split": lambda body: body["dataframe_split"]["data"],
}


def number(value):
    return None if value is None else float(value)


FIRST = [number(value) if value == value else None for value in witness_input(PROGRAM).values()[0]]
"""The first witness."""


class Handler(BaseHTTPRequestHandler):
    """A scorer whose path says how it behaves."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        how = self.path.partition("?")[0].strip("/").replace("-", " ")
        rows = [[number(value) for value in row] for row in OWN_FORMS.get(how, our_rows)(body)]
        labels = [evaluate(PROGRAM, row).label for row in rows]
        if how in OWN_FORMS:
            self.send_response(200)
            self.end_headers()
            return self.wfile.write(json.dumps({"predictions": [{"class": label} for label in labels]}).encode())
        if how == "bearer" and self.headers["Authorization"] != "Bearer s3cret":
            return self.send_error(401)
        if how == "backwards" and rows[-1] == FIRST:
            labels[0] = 1 - labels[0]
        if how == "hangs later" and len(rows) == 1:
            time.sleep(3)
        if how == "small" and len(rows) == 7:
            labels[3] = 1 - labels[3]
        if how == "wrong":
            labels = [1 if row[0] == 50.0 else label for row, label in zip(rows, labels, strict=True)]
        if how == "floats":
            labels = [float(label) for label in labels]
        if how == "text":
            labels = [str(label) for label in labels]
        if how == "finite" and any(row[0] is not None and abs(row[0]) == float("inf") for row in rows):
            return self.send_error(400)
        if how == "secret" and self.headers["Authorization"] != f"Basic {base64.b64encode(b'me:p@ss').decode()}":
            return self.send_error(401)
        if how == "redirects":
            self.send_response(302)
            self.send_header("Location", "/right")
            return self.end_headers()
        if how == "hangs":
            time.sleep(3)
        answer = {"nothing": b"", "list": b"[]", "few": b'{"labels": []}'}.get(
            how, json.dumps({"labels": labels}).encode()
        )
        self.send_response(200)
        if how == "drips headers":
            for count in range(15):
                self.send_header(f"X-{count}", "1")
                self.flush_headers()
                time.sleep(0.2)
        self.end_headers()
        if how == "drips":
            for _ in range(30):
                self.wfile.write(b" ")
                time.sleep(0.2)
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

    def handle(self):
        with contextlib.suppress(OSError):  # the auditor has hung up
            super().handle()


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    served = QuietServer(("127.0.0.1", 0), Handler)
    served.daemon_threads = True
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize("how", ["right", "floats"])
def test_an_http_scorer_that_answers_as_approved_is_equal(server, how):
    found = audit_callable(PROGRAM, f"http://{server}/{how}")
    assert (found.verdict, found.reason, found.engine) == ("equal", None, "HTTP")
    assert found.execution.rows > 50


HTTP_BAD = {
    "wrong": ("different", "0 is answered 1"),
    "text": ("different", "is answered '"),
    "finite": ("different", "no label: it answered HTTP 400"),
    "secret": ("different", "it answered HTTP 401"),
    "redirects": ("different", "it answered HTTP 302"),
    "nothing": ("different", "its answer is not JSON"),
    "list": ("different", 'its answer has no list "labels"'),
    "few": ("different", "it gave 0 labels for 1 rows"),
    "hangs": ("not run", "it hung: the time was over at witness 1"),
    "drips-headers": ("not run", "it hung: the time was over at witness 1"),
    "drips": ("not run", "it hung: the time was over at witness 1"),
}


@pytest.mark.parametrize("how", HTTP_BAD)
def test_an_http_scorer_that_misbehaves_is_an_answer(server, how):
    found = audit_callable(PROGRAM, f"http://{server}/{how}", seconds=1 if how.startswith(("hangs", "drips")) else 60)
    assert found.verdict == HTTP_BAD[how][0]
    assert HTTP_BAD[how][1] in found.reason


def test_one_refused_row_does_not_spoil_the_others(server):
    found = audit_callable(PROGRAM, f"http://{server}/finite")
    assert 0 < found.execution.different < found.execution.rows


def test_a_server_that_is_not_there_is_not_run():
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        found = audit_callable(PROGRAM, f"http://127.0.0.1:{taken.getsockname()[1]}/score")
    assert found.verdict == "not run"
    assert "cannot be reached" in found.reason


def test_credentials_are_used_and_never_shown(server):
    found = audit_callable(PROGRAM, f"http://me:p%40ss@{server}/secret?token=hidden")
    assert found.verdict == "equal"
    assert found.what == f"http://{server}/…"
    assert "hidden" not in repr(found)
    assert "ss@" not in repr(found)
    scorer = scorer_at(f"http://me:p%40ss@{server}/secret?token=hidden")
    assert "hidden" not in repr(scorer)
    assert "Basic" not in repr(scorer)
    wrong = audit_callable(PROGRAM, f"http://me:mistaken@{server}/secret?token=hidden")
    assert wrong.verdict == "different"
    assert "mistaken" not in repr(wrong)


@pytest.mark.parametrize("form", OWN_FORMS)
def test_a_service_with_a_form_of_its_own_is_called_in_it(server, form):
    answered = audit_callable(PROGRAM, f"http://{server}/{form}", request=form, answer="predictions[].class")
    assert (answered.verdict, answered.reason) == ("equal", None)
    elsewhere = audit_callable(PROGRAM, f"http://{server}/{form}", request=form, answer="predictions[].label")
    assert elsewhere.verdict == "different"
    assert "there is no 'label'" in elsewhere.reason


def test_a_bearer_token_is_sent_and_never_printed(server, monkeypatch):
    monkeypatch.setenv("GBFL_TOKEN", "s3cret")
    answered = audit_callable(PROGRAM, f"http://{server}/bearer")
    assert answered.verdict == "equal"
    assert "s3cret" not in repr(answered)
    assert "s3cret" not in repr(scorer_at(f"http://{server}/bearer"))
    monkeypatch.setenv("GBFL_TOKEN", "wrong")
    assert "HTTP 401" in audit_callable(PROGRAM, f"http://{server}/bearer").reason


def test_a_service_whose_answers_depend_on_the_size_of_a_batch_is_different(server):
    answered = audit_callable(PROGRAM, f"http://{server}/small")
    assert answered.verdict == "different"
    assert "in a batch of 7" in answered.reason


@pytest.mark.parametrize("how", ["backwards", "hangs later"])
def test_a_service_that_answers_by_the_order_of_rows_or_hangs_later_is_not_equal(server, how):
    answered = audit_callable(PROGRAM, f"http://{server}/{how.replace(' ', '-')}", seconds=2.0)
    assert answered.verdict == ("different" if how == "backwards" else "not run")
    assert "again" in answered.reason


@pytest.mark.parametrize(("request_form", "path"), [("soap", None), ("rows", "a..b"), ("rows", "")])
def test_a_form_or_path_that_does_not_exist_is_refused(request_form, path):
    with pytest.raises(BadInput, match=r"request format|not a path"):
        scorer_at("http://127.0.0.1/", request_form, path)


LYING = "def score(rows):\n    return ['no' if row['age'] == LIE else RIGHT(row) for row in rows]\n"
ONE = Program(("age",), ("no", "yes"), (Clause((Interval(0, 1.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0)))


def lying_scorer(folder, monkeypatch, lie, name):
    right = "(lambda row: 'yes' if row['age'] is not None and row['age'] >= 1.5 else 'no')"
    (folder / f"{name}.py").write_text(LYING.replace("RIGHT", right).replace("LIE", lie))
    monkeypatch.chdir(folder)
    return f"{name}:score"


def test_a_scorer_that_lies_on_the_rows_of_the_data_alone_is_found(tmp_path, monkeypatch):
    what = lying_scorer(tmp_path, monkeypatch, "float('123.' + '25')", "lying_scorer")
    assert audit_callable(ONE, what).verdict == "equal"
    found = audit_callable(ONE, what, data=np.array([[1.0], [123.25], [123.25]]))
    assert (found.verdict, found.execution.different) == ("different", 2)
    assert (found.moves.rows, found.moves.of, found.moves.moves) == (2, 3, (("yes", "no", 2),))


@pytest.mark.parametrize("name", ["one_lie", "folder.one_lie"])
def test_a_scorer_that_lies_on_a_constant_of_its_source_is_found(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__init__.py").write_text("raise SystemExit" if "." not in name else "")
    what = lying_scorer(tmp_path, monkeypatch, "123.25", name.replace(".", "/"))
    found = audit_callable(ONE, what.replace("/", "."))
    assert (found.verdict, found.region.row) == ("different", {"age": 123.25})
