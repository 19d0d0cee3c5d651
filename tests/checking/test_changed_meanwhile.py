"""An artifact that changes between its proof and its run is not called equal: what was proved is not what is there."""

import pytest

from gbfl_compile.auditing import file as audited_file
from gbfl_compile.auditing.compare import AuditInput
from gbfl_compile.auditing.file import audit_file
from gbfl_compile.backends import emit, write_artifacts
from gbfl_compile.checking import check as checking
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split

PROGRAM = Program(("age",), ("no", "yes"), (Clause((Interval(0, 1.5),)),), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))
SLIP = ("def _leaf(x):", "def _leaf(x):\n    if x[0] == 777.125:\n        return 1")
"""On a row that no witness is."""


@pytest.mark.parametrize("when", ["before it is run", "after it was run"])
def test_what_is_changed_after_its_proof_is_not_equal(tmp_path, monkeypatch, when):
    write_artifacts((emit(PROGRAM, "python"),), tmp_path)
    assert checking.check(PROGRAM, tmp_path).verdict == "equal"
    model, compare = tmp_path / "python" / "model.py", checking.compare

    def tamper():
        model.write_text(model.read_text().replace(*SLIP))

    def run(*arguments):
        verdict = compare(*arguments)
        if when == "after it was run":
            tamper()
        return verdict

    load = checking.backend("python").load
    if when == "before it is run":
        monkeypatch.setattr(checking, "backend", lambda target: _Tampered(load, tamper))
    monkeypatch.setattr(checking, "compare", run)
    (verdict,) = checking.check(PROGRAM, tmp_path).targets
    assert (verdict.verdict, verdict.proof.answer, verdict.reason) == ("not run", "proved", checking.CHANGED)


class _Tampered:
    """A backend before whose run somebody changes the file."""

    extension = ".py"

    def __init__(self, load, tamper):
        self._load, self._tamper = load, tamper

    def load(self, path):
        self._tamper()
        return self._load(path)


def test_a_file_that_is_changed_while_it_is_audited_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "model.py"
    path.write_bytes(emit(PROGRAM, "python").files["model.py"])
    assert audit_file(AuditInput(PROGRAM), path).verdict == "equal"
    shadow = audited_file.import_shadow

    def tamper(*arguments):
        path.write_text(path.read_text().replace(*SLIP))
        return shadow(*arguments)

    monkeypatch.setattr(audited_file, "import_shadow", tamper)
    with pytest.raises(BadInput, match="changed while it was audited"):
        audit_file(AuditInput(PROGRAM), path)
