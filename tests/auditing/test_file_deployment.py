"""What a file says is not always what runs: imports that bypass it, columns its header renames, SQL that no engine runs."""

import py_compile
import subprocess
import sys

import pytest

from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.auditing.verdict import verdict_lines
from gbfl_compile.backends import emit
from gbfl_compile.databases import availability
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
from tests.word_programs import CHURN

PROGRAM = Program(
    ("age", "income"), ("no", "yes"), (Clause((Interval(0, 1.5),)),), split(0, leaf(0.0, 1.0), leaf(1.0, 0.0))
)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_bytes(emit(PROGRAM, "python", "model").files["model.py"])
    return path


def compiled(path, source, mode):
    (path.parent / "tampered.py").write_bytes(source)
    cache = path.parent / "__pycache__"
    cache.mkdir()
    target = cache / f"model.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(path.parent / "tampered.py"), str(target), dfile="model.py", invalidation_mode=mode)
    (path.parent / "tampered.py").unlink()


def verdict_on(path):
    return audit_file(AuditInput(PROGRAM), path)


@pytest.mark.parametrize("mode", list(py_compile.PycInvalidationMode))
def test_compiled_code_of_the_file_itself_changes_nothing(model, mode):
    compiled(model, model.read_bytes(), mode)
    assert verdict_on(model).verdict == "equal"


def test_compiled_code_of_another_source_is_what_python_would_run(model):
    compiled(model, model.read_bytes().replace(b"return 0", b"return 1"), py_compile.PycInvalidationMode.UNCHECKED_HASH)
    found = verdict_on(model)
    assert (found.verdict, found.proof.answer) == ("unread", "proved")
    assert "is what Python runs" in found.reason


def test_compiled_code_that_python_sees_to_be_stale_changes_nothing(model):
    source = model.read_bytes() + b"\n# longer\n"
    compiled(model, source, py_compile.PycInvalidationMode.TIMESTAMP)
    assert verdict_on(model).verdict == "equal"


def test_a_package_of_the_same_name_is_imported_instead(model):
    (model.parent / "model").mkdir()
    assert verdict_on(model).verdict == "equal", "a folder without __init__ is not"
    (model.parent / "model" / "__init__.py").write_text("")
    assert "is a package, which Python imports instead" in verdict_on(model).reason


def test_a_compiled_module_of_the_same_name_is_imported_instead(model):
    (model.parent / "model.abi3.so").write_bytes(b"")
    assert (verdict_on(model).verdict, "model.abi3.so" in verdict_on(model).reason) == ("unread", True)


def test_an_init_file_beside_it_may_change_it(model):
    (model.parent / "__init__.py").write_text('"""Nothing."""\n')
    assert verdict_on(model).verdict == "equal"
    (model.parent / "__init__.py").write_text("from . import model\nmodel._leaf = lambda x: 1\n")
    assert (verdict_on(model).verdict, "__init__.py" in verdict_on(model).reason) == ("unread", True)


LIES = "from {own} import *\nfrom {own} import {name} as true_{name}\n"


@pytest.mark.parametrize("decoy", ["math.py", "math.cpython-311-x86_64-linux-gnu.so", "math/__init__.py", "math.pyc"])
def test_a_file_that_is_imported_in_place_of_pythons_own_is_not_overlooked(model, decoy):
    for harmless in ("mathematics.py", "math.txt", "rates.py"):
        (model.parent / harmless).write_text("")
    assert verdict_on(model).verdict == "equal"
    (model.parent / decoy).parent.mkdir(exist_ok=True)
    (model.parent / decoy).write_bytes(b"")
    found = verdict_on(model)
    assert (found.verdict, found.proof.answer) == ("unread", "proved")
    assert f"{decoy.partition('/')[0]} beside it may be what Python imports as math" in found.reason


@pytest.mark.parametrize("decoy", ["datetime.py", "_datetime.py", "operator.py", "math.py"])
def test_a_model_of_dates_imports_more(tmp_path, decoy):
    path = tmp_path / "model.py"
    path.write_bytes(emit(CHURN, "python", "model").files["model.py"])
    assert audit_file(AuditInput(CHURN), path).verdict == "equal"
    (tmp_path / decoy).write_text("")
    found = audit_file(AuditInput(CHURN), path)
    assert (found.verdict, decoy in found.reason) == ("unread", True)


@pytest.mark.parametrize("decoy", ["sitecustomize.py", "usercustomize.py", "encodings/__init__.py", "code.py"])
def test_what_python_imports_by_itself_is_not_overlooked(model, decoy):
    (model.parent / decoy).parent.mkdir(exist_ok=True)
    (model.parent / decoy).write_text("")
    found = verdict_on(model)
    assert (found.verdict, decoy.split("/")[0] in found.reason) == ("unread", True)


def test_such_a_file_really_changes_the_answers(model):
    """Python's own `math` would return `nan`, which is missing; this one returns a number that fits the rule."""
    (model.parent / "math.py").write_text("nan = 2.0\n")
    ask = "import sys; sys.path.insert(0, sys.argv[1]); sys.modules.pop('math', None); import model; print(model.predict((None, 0)))"
    if "math" in sys.builtin_module_names:
        pytest.skip("this Python's math is no file")
    ran = subprocess.run(
        [sys.executable, "-S", "-c", ask, str(model.parent)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "yes\n"
    assert verdict_on(model).verdict == "unread"


def sql(tmp_path, dialect):
    if reason := availability(dialect):
        pytest.skip(reason)
    path = tmp_path / "model.sql"
    path.write_bytes(emit(PROGRAM, f"sql:{dialect}", "model", {"outputs": "label"}).files["model.sql"])
    return path


def test_the_columns_that_a_header_renames_are_shown_and_can_be_contradicted(tmp_path):
    path = sql(tmp_path, "duckdb")
    text = (
        path.read_text()
        .replace('[0, "age"]', '[0, "income_2019"]')
        .replace('"age" AS DOUBLE', '"income_2019" AS DOUBLE')
    )
    path.write_text(text)
    found = audit_file(AuditInput(PROGRAM), path)
    assert found.feature_columns == {"age": "income_2019"}
    assert "  columns: age is read from income_2019" in list(verdict_lines(found, ""))
    assert audit_file(AuditInput(PROGRAM, columns={"age": "income_2019"}), path).verdict == "equal"
    contradicted = audit_file(AuditInput(PROGRAM, columns={"age": "age"}), path)
    assert contradicted.verdict == "different"
    assert "from the column 'income_2019', not from 'age' as --column says" in contradicted.reason


def test_sql_that_its_engine_does_not_run_is_not_equal(tmp_path):
    path = sql(tmp_path, "postgres")
    before, _, after = path.read_text().rpartition("\nFROM ")
    path.write_text(f"{before}\nINTO answers\nFROM {after}")
    found = audit_file(AuditInput(PROGRAM), path)
    assert found.verdict in ("not run", "unread", "different")
    assert found.execution is None
