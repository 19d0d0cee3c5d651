"""Reasons in the user's own words come out of every target as they went in, with any characters, and are proved."""

import ctypes
import json
import subprocess
import sys

import numpy as np
import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.view import audit_view
from gbfl_compile.backends import BACKENDS, emit
from gbfl_compile.backends.sql.run import read_script
from gbfl_compile.checking.artifact import prove_artifact, was_run
from gbfl_compile.databases import availability, scratch
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.ir.json import digest, metadata_digest
from gbfl_compile.ir.nodes import Program, Scorecard, Tree
from gbfl_compile.ir.text import reasons_of, with_reasons
from gbfl_compile.passes import optimise
from tests.backends.c.programs import STRICT, cc, needs_a_compiler, write
from tests.backends.sql.programs import (
    CARD,
    EACH,
    REASON_ROWS,
    REASONED,
    REASONS,
    TREE,
    reasons_answered,
    reasons_expected,
)
from tests.engines.sizes import rule_set, wide_tree

each_program = pytest.mark.parametrize("name", REASONED)


@pytest.fixture(scope="module", params=("sqlite", "duckdb", "postgres", "datafusion"))
def database(request):
    if reason := availability(request.param):
        pytest.skip(reason)
    opened = scratch(request.param)
    yield opened
    opened.close()


def held_texts(program):
    """The reasons of the clauses that hold on each of REASON_ROWS, by the definition of the language."""
    own = reasons_of(program)
    rows = ([None if np.isnan(value) else value for value in row] for row in REASON_ROWS.tolist())
    return [tuple(own[clause] for clause in evaluate(program, row).held) for row in rows]


@each_program
def test_a_python_module_gives_the_reasons(name):
    namespace = {}
    exec(emit(REASONED[name], "python").files["model.py"], namespace)
    reasons = [namespace["explain"](row)["reasons"] for row in REASON_ROWS.tolist()]
    assert reasons == held_texts(REASONED[name])
    assert namespace["REASONS"] == reasons_of(REASONED[name])


@needs_a_compiler
@each_program
def test_a_c_scorer_gives_the_reasons(name, tmp_path):
    path = write(emit(REASONED[name], "c"), tmp_path)
    cc(*STRICT, "-shared", "-fPIC", path.name, "-o", "model.so", folder=tmp_path)
    reason = ctypes.CDLL(str(tmp_path / "model.so")).model_reason
    reason.restype, reason.argtypes = ctypes.c_char_p, [ctypes.c_int]
    assert [reason(clause).decode("utf-8") for clause in range(2)] == list(reasons_of(REASONED[name]).values())
    assert [reason(-1), reason(2)] == [None, None]


@needs_a_compiler
def test_a_c_scorer_has_none_for_a_clause_without(tmp_path):
    path = write(emit(with_reasons(CARD, {1: "second"}), "c"), tmp_path)
    cc(*STRICT, "-shared", "-fPIC", path.name, "-o", "model.so", folder=tmp_path)
    reason = ctypes.CDLL(str(tmp_path / "model.so")).model_reason
    reason.restype, reason.argtypes = ctypes.c_char_p, [ctypes.c_int]
    assert [reason(0), reason(1)] == [None, b"second"]


@needs_a_compiler
def test_the_loaded_c_scorer_still_answers(tmp_path):
    program = REASONED["rules"]
    path = write(emit(program, "c"), tmp_path)
    found = BACKENDS["c"].load(path).answer(REASON_ROWS).labels.tolist()
    assert found == [evaluate(program, row).label for row in REASON_ROWS.tolist()]


@each_program
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_onnx_runtime_gives_the_reasons(name, dtype):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    program = REASONED[name]
    content = emit(program, "onnx", options={"reason": "yes", "dtype": dtype}).files["model.onnx"]
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (reasons,) = session.run(["reason_text"], {"input": REASON_ROWS.astype(dtype)})
    props = session.get_modelmeta().custom_metadata_map
    assert dict(json.loads(props["gbfl.reasons"])) == reasons_of(program)
    if isinstance(program.decision, Tree):
        assert reasons.tolist() == reasons_expected(program)
    else:
        assert [tuple(text for text in row if text) for row in reasons.tolist()] == held_texts(program)


@each_program
@pytest.mark.parametrize("form", ["select", "expression", "view", "table", "dbt", "macro"])
def test_an_engine_gives_the_reasons(name, form, database, tmp_path):
    if form == "macro" and database.dialect in ("sqlite", "datafusion"):
        with pytest.raises(BadInput, match="use form=expression"):
            reasons_answered(REASONED[name], database, tmp_path, form=form)
        return
    assert reasons_answered(REASONED[name], database, tmp_path, form=form) == reasons_expected(REASONED[name])


@pytest.mark.parametrize("large", [rule_set, wide_tree])
def test_an_engine_gives_many_reasons(large, database, tmp_path):
    program = large()
    own = {clause: f"reason {clause}" for clause in range(0, len(program.clauses), 2)}
    rows = np.random.default_rng(0).normal(size=(20, len(program.features)))
    reasons = reasons_answered(with_reasons(program, own), database, tmp_path, rows)
    for row, text in zip(rows.tolist(), reasons, strict=True):
        held = evaluate(program, row).held
        parts = text.split("; ")
        if isinstance(program.decision, Scorecard):
            assert parts == [own.get(clause, str(clause)) for clause in held] + [""]
        else:
            assert {part for part in parts if part.startswith("reason ")} == {own[c] for c in held if c in own}


TARGETS = [
    ("python", {}, "model.py"),
    ("c", {}, "model.c"),
    ("onnx", {"reason": "yes"}, "model.onnx"),
    ("onnx", {"reason": "no"}, "model.onnx"),
    *(
        (f"sql:{dialect}", {"outputs": "label,reason"}, "model.sql")
        for dialect in ("duckdb", "postgres", "sqlite", "spark")
    ),
]


@pytest.mark.parametrize(("target", "options", "file"), TARGETS)
@each_program
def test_a_reason_that_was_changed_is_found(target, options, file, name):
    program = with_reasons(EACH[name], {0: "Income is low", 1: "Age is low"})
    files = dict(emit(program, target, options=options).files)
    assert prove_artifact(program, target, files).answer == ("proved" if was_run(target) else "read as equal")
    for old, new in ((b"Income is low", b"Income is far"), (b"Age is low", b"Sex is low")):
        assert old in files[file]
        changed = {**files, file: files[file].replace(old, new)}
        assert prove_artifact(program, target, changed).answer == "other reasons"
    swapped = files[file].replace(b"Income is low", b"@@").replace(b"Age is low", b"Income is low")
    if target != "onnx":  # its texts have a length before them, which a swap would not keep
        assert prove_artifact(program, target, {**files, file: swapped.replace(b"@@", b"Age is low")}).different


@pytest.mark.parametrize(("target", "options", "file"), TARGETS)
@each_program
def test_reasons_that_were_left_out_or_put_in_are_found(target, options, file, name):
    reasoned, silent = with_reasons(EACH[name], {1: "Age is low"}), EACH[name]
    with_texts, without = (emit(program, target, options=options).files for program in (reasoned, silent))
    assert prove_artifact(reasoned, target, without).answer == "other reasons"
    assert prove_artifact(silent, target, with_texts).answer == "other reasons"


@pytest.mark.parametrize("target", ["sql:duckdb", "sql:sqlite"])
def test_a_trees_reason_in_sql_is_proved_without_reasons_of_ones_own(target):
    files = dict(emit(TREE, target, options={"outputs": "label,reason"}).files)
    assert prove_artifact(TREE, target, files).answer == "proved"
    (start, end) = files["model.sql"].split(b"NOT (18 <= age", 1)
    assert b"age" in end
    changed = {"model.sql": start + b"NOT (19 <= age" + end}
    assert prove_artifact(TREE, target, changed).answer == "other reasons"


@pytest.mark.parametrize(("target", "options", "file"), TARGETS)
def test_a_program_without_reasons_is_written_as_before(target, options, file):
    del file
    for program in EACH.values():
        none = emit(program, target, options=options).files
        assert none == emit(with_reasons(program, {}), target, options=options).files
        assert not any(
            word in content for content in none.values() for word in (b"REASONS", b"_reason(", b"reason_text")
        )


def test_reasons_change_the_texts_and_not_the_meaning():
    reasoned = with_reasons(TREE, {0: "x"})
    assert digest(reasoned) == digest(TREE)
    assert metadata_digest(reasoned) != metadata_digest(TREE)


def test_reasons_stay_with_their_clauses_through_the_passes():
    unused = Program(TREE.features, TREE.classes, (*TREE.clauses[::-1], TREE.clauses[0]), TREE.decision)
    explained = with_reasons(unused, {0: REASONS[0], 1: REASONS[1], 2: "of the same question as 1"})
    made = optimise(explained)
    texts = {made.clauses[clause]: text for clause, text in reasons_of(made).items()}
    assert texts == {unused.clauses[0]: REASONS[0], unused.clauses[1]: REASONS[1]}


def test_a_reason_of_a_clause_merged_away_is_kept():
    doubled = Program(TREE.features, TREE.classes, (*TREE.clauses, TREE.clauses[0]), TREE.decision)
    assert reasons_of(optimise(with_reasons(doubled, {2: "mine"}))) == {0: "mine"}


def test_an_emitted_module_with_reasons_runs_alone(tmp_path):
    """Standard library only, in a Python that has nothing of ours."""
    (tmp_path / "model.py").write_bytes(emit(REASONED["tree"], "python").files["model.py"])
    code = "import model, json; print(json.dumps(model.explain([30.0, 2e5])['reasons']))"
    run = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(run.stdout) == [reasons_of(REASONED["tree"])[0]]


@pytest.mark.parametrize("name", ["tree", "rules"])
def test_a_deployed_view_that_gives_another_reason_is_found(name, database, tmp_path):
    if database.dialect == "datafusion":
        pytest.skip("views of DataFusion are not read: they live in a session")
    reasoned, table = with_reasons(EACH[name], {0: "Income's low"}), f"people_{name}"
    database.insert(table, ["age", "income"], REASON_ROWS)
    path = tmp_path / "view.sql"
    options = {"form": "view", "table": table, "view": f"scores_{name}", "outputs": "label,reason"}
    path.write_bytes(emit(reasoned, f"sql:{database.dialect}", options=options).files["model.sql"])
    for statement in read_script(path).statements:
        database.execute(statement)
    for program, verdict in ((reasoned, "equal"), (with_reasons(reasoned, {0: "Income's high"}), "different")):
        found = audit_view(AuditInput(program, None, None, 10.0, {}), database, f"scores_{name}", "the view")
        assert found.verdict == verdict, found.reason
    database.execute(f"DROP VIEW scores_{name}")
