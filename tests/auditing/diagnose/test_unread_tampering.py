"""Twenty tamperings of what cannot be read: libraries, Python and HTTP scorers, scored tables. All found, nearly all named."""

import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from gbfl_compile.auditing.answers import answers_of
from gbfl_compile.auditing.scored import audit_scored
from gbfl_compile.auditing.scored import compare as scored_explained
from gbfl_compile.auditing.scorer.callable import audit_callable
from gbfl_compile.auditing.scorer.library import audit_library
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability, scratch
from gbfl_compile.ir.batch import evaluate_many
from gbfl_compile.ir.validate import validate
from tests.auditing.diagnose.unread_cases import BY_EVERYTHING, BY_LABELS, assert_found_and_named, rows_with_boundaries
from tests.auditing.tampering import CARD, TREE


def all_of(cases):
    """Every program of the cases, the approved one first, and its place in the list."""
    approved, tampered = cases
    return [approved, *(program for _, program, _ in tampered)]


def place_of(cases, program):
    return next(place for place, each in enumerate(all_of(cases)) if each is program)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """One library per kind of program, with all versions in it; the approved one is t0."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    made = {}
    for kind, cases in BY_EVERYTHING.items():
        folder = tmp_path_factory.mktemp(kind.replace(" ", "_"))
        programs = all_of(cases)
        for number, program in enumerate(programs):
            for file, content in emit(validate(program), "c", f"t{number}").files.items():
                (folder / file).write_bytes(content)
        sources = [f"t{number}.c" for number in range(len(programs))]
        command = ["cc", "-O0", "-shared", "-fPIC", "-DGBFL_WITH_LIBM", *sources, "-o", "all.so", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        made[kind] = folder / "all.so"
    return made


@pytest.mark.parametrize("kind", BY_EVERYTHING)
def test_libraries(libraries, kind):
    approved, cases = BY_EVERYTHING[kind]
    same = audit_library(approved, libraries[kind], "t0")
    assert (same.verdict, same.reason, same.changes) == ("equal", None, ())
    assert "probabilities, none different" in same.compared
    assert "t0_predict_rows; t0_predict_columns" in same.compared
    assert ("scores, none different" in same.compared) == (kind == "rule set")

    def audit(tampered):
        return audit_library(approved, libraries[kind], f"t{place_of(BY_EVERYTHING[kind], tampered)}")

    assert_found_and_named(cases, approved, audit)


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The emitted Python of every version, as modules of a folder."""
    folder = tmp_path_factory.mktemp("modules")
    for kind, cases in BY_EVERYTHING.items():
        for number, program in enumerate(all_of(cases)):
            name = f"{kind.replace(' ', '_')}_{number}"
            (folder / f"{name}.py").write_bytes(emit(validate(program), "python", name).files[f"{name}.py"])
    (folder / "asked.py").write_text(
        "import importlib\n"
        "def __getattr__(name):\n"
        "    found = importlib.import_module(name)\n"
        "    return lambda rows: [found.explain(row) for row in rows]\n"
    )
    return folder


@pytest.mark.parametrize("kind", BY_EVERYTHING)
def test_python_scorers_that_return_probabilities(modules, kind, monkeypatch):
    monkeypatch.chdir(modules)
    approved, cases = BY_EVERYTHING[kind]

    def audit(program):
        return audit_callable(approved, f"asked:{kind.replace(' ', '_')}_{place_of(BY_EVERYTHING[kind], program)}")

    same = audit(approved)
    assert (same.verdict, same.reason, same.changes) == ("equal", None, ())
    assert "probabilities, none different" in same.compared
    assert_found_and_named(cases, approved, audit)


@pytest.mark.parametrize("kind", BY_LABELS)
def test_python_scorers_that_return_only_labels(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    approved, cases = BY_LABELS[kind]

    def audit(program):
        name = f"version_{place_of(BY_LABELS[kind], program)}"
        (tmp_path / f"{name}.py").write_bytes(emit(validate(program), "python", name).files[f"{name}.py"])
        return audit_callable(approved, f"{name}:predict_many")

    same = audit(approved)
    assert same.verdict == "equal"
    assert same.compared.startswith("labels, none different; called again ")
    assert_found_and_named(cases, approved, audit)


def number(value):
    return np.nan if value is None else float(value)


class Handler(BaseHTTPRequestHandler):
    """A scorer whose path says which version it is and what it tells: /tree/3/probabilities."""

    def do_POST(self):
        kind, place, tells = self.path.strip("/").split("/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        rows = np.array([[number(value) for value in row] for row in body["rows"]])
        every = BY_LABELS if tells == "labels" else BY_EVERYTHING
        program = all_of(every[kind.replace("-", " ")])[int(place)]
        answers = evaluate_many(program, rows)
        form = {"labels": answers.labels.tolist()}
        if tells != "labels":
            form["probabilities"] = answers.probabilities.tolist()
        if tells == "scores" and answers.scores is not None:
            form["scores"] = answers.scores.tolist()
        if tells == "probabilities":
            del form["labels"]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(form).encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.daemon_threads = True
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize("kind", BY_EVERYTHING)
@pytest.mark.parametrize("tells", ["labels", "probabilities", "scores"])
def test_http_scorers(server, kind, tells):
    every = BY_LABELS if tells == "labels" else BY_EVERYTHING
    approved, cases = every[kind]

    def audit(program):
        return audit_callable(approved, f"{server}/{kind.replace(' ', '-')}/{place_of(every[kind], program)}/{tells}")

    assert audit(approved).verdict == "equal"
    assert_found_and_named(cases, approved, audit)


def scored_frame(approved, program):
    rows = rows_with_boundaries(approved)
    frame = pd.DataFrame(rows, columns=list(approved.features))
    frame["label"] = np.array(approved.classes, dtype=object)[answers_of(program, rows).classes]
    return frame


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", BY_LABELS)
def test_scored_files(tmp_path, kind, ending):
    approved, cases = BY_LABELS[kind]
    path = tmp_path / f"scored.{ending}"

    def audit(program):
        frame = scored_frame(approved, program)
        frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
        return audit_scored(approved, path)

    assert audit(approved).verdict == "equal"
    assert_found_and_named(cases, approved, audit)


def assert_scored_tables_are_right(database, kind):
    """The same for a table in a database."""
    approved, cases = BY_LABELS[kind]
    features = list(approved.features)
    quoted = [database.quote(name) for name in features]

    def audit(program):
        database.execute("DROP TABLE IF EXISTS scored")
        frame = scored_frame(approved, program)
        codes = answers_of(program, frame[features].to_numpy(dtype=np.float64)).classes
        database.insert("numbers", [*features, "code"], np.column_stack([frame[features].to_numpy(), codes]))
        names = " ".join(f"WHEN code = {c} THEN '{label}'" for c, label in enumerate(approved.classes))
        engine = "ENGINE = Memory " if database.dialect == "clickhouse" else ""
        query = f"SELECT {', '.join(quoted)}, CASE {names} END AS label FROM numbers"
        database.execute(f"CREATE TABLE scored {engine}AS {query}")
        return audit_scored(approved, (database, "scored"))

    same = audit(approved)
    assert (same.verdict, same.different_rows) == ("equal", 0)
    assert_found_and_named(cases, approved, audit)


@pytest.mark.parametrize("kind", BY_LABELS)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
def test_scored_tables(dialect, kind):
    if reason := availability(dialect):
        pytest.skip(reason)
    database = scratch(dialect)
    try:
        assert_scored_tables_are_right(database, kind)
    finally:
        database.close()


def test_an_explanation_is_compared_with_every_row_of_the_table(tmp_path, monkeypatch):
    """The first rows would let another bound pass; one row far down the table rules it out."""
    monkeypatch.setattr(scored_explained, "ROWS_KEPT", 20)
    approved, cases = BY_LABELS["tree"]
    tampered, where = next((program, words) for name, program, words in cases if name == "another number")
    path = tmp_path / "scored.parquet"
    scored_frame(approved, tampered).to_parquet(path, index=False)
    (change,) = audit_scored(approved, path).changes
    assert where in change.text()
    assert "it fits all 4,000 rows" in change.text()
    assert "income >= 60000 " in change.text()


def test_a_slip_with_a_wrong_row_far_down_beside_it_is_reported_with_that_number(tmp_path, monkeypatch):
    monkeypatch.setattr(scored_explained, "ROWS_KEPT", 100)
    approved, cases = BY_LABELS["tree"]
    tampered = next(program for name, program, _ in cases if name == "another number")
    frame = scored_frame(approved, tampered)
    last = frame.index[-1]
    frame.loc[last, "label"] = "maybe" if frame.loc[last, "label"] != "maybe" else "no"
    frame = pd.concat([frame.iloc[:-1]] * 2 + [frame.iloc[-1:]])
    frame.to_parquet(tmp_path / "scored.parquet", index=False)
    (change,) = audit_scored(approved, tmp_path / "scored.parquet").changes
    assert "it fits all but 1 of the 7,999 rows" in change.text()


def test_a_single_wrong_row_is_not_explained_by_a_bound_that_happens_to_fit(tmp_path):
    rows = np.random.default_rng(3).uniform([0, 18, 0, 0], [120000, 70, 1, 20], size=(500, 4))
    frame = pd.DataFrame(rows, columns=list(TREE.features))
    frame["label"] = np.array(TREE.classes, dtype=object)[answers_of(TREE, rows).classes]
    frame.loc[7, "label"] = "maybe" if frame.loc[7, "label"] != "maybe" else "no"
    frame.to_csv(tmp_path / "scored.csv", index=False)
    found = audit_scored(TREE, tmp_path / "scored.csv")
    assert (found.different_rows, found.changes) == (1, ())


def test_probabilities_that_are_cut_short_are_different_though_all_labels_are_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_bytes(emit(CARD, "python", "model").files["model.py"])
    (tmp_path / "deployed.py").write_text(
        "import model\ndef predict_proba(rows):\n"
        "    return [[round(p, 4) for p in model.predict_proba(row)] for row in rows]\n"
    )
    found = audit_callable(CARD, "deployed:predict_proba")
    assert found.verdict == "different"
    assert found.compared.startswith("labels, none different; probabilities, ")
    assert "the probabilities [" in found.reason
    assert "deployed" not in sys.modules
