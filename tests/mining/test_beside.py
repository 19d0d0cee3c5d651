"""With several jobs the head is fitted beside other work: its errors are told, and nobody who stops waits for it."""

import signal
import sys
import time
from pathlib import Path

import pytest

from gbfl_compile.cli import main
from gbfl_compile.errors import BadInput
from gbfl_compile.learn.classifier import GBFLClassifier
from tests.faults import mining as faults


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    faults.prepare(tmp_path)
    yield tmp_path
    sys.modules.pop("a_black_box", None)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_fit_that_fails_is_told_and_keeps_the_explained_rows(folder, monkeypatch, capsys, jobs):
    def fails(*_, **__):
        raise BadInput("these rows cannot be fitted")

    monkeypatch.setattr(GBFLClassifier, "fit", fails)
    # trained here: workers that other tests have left behind know no module of this folder
    assert main([*faults.COMMAND[:-2], "--train", "gbm", "--jobs", jobs]) == 2
    assert "these rows cannot be fitted" in capsys.readouterr().err
    assert not Path("model.gbfl.json").exists()
    assert len(list(faults.PARTS.glob("training/rows-*.npz"))) == 3


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals are those of Linux")
def test_ctrl_c_does_not_wait_for_the_fit(folder):
    """A rule set of a thousand clauses takes minutes to fit."""
    command = [*faults.COMMAND[:4], *faults.COMMAND[8:], "--clauses", "1000", "--jobs", "2", "--no-baselines"]
    process = faults.gbfl(*command)
    faults.wait_for(lambda: list(faults.PARTS.glob("test/rows-*.npz")))
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    code, told = faults.ended(process)
    assert code == 130, told
    assert time.monotonic() - began < 30
    assert "the same command goes on from there" in told
    assert "Traceback" not in told
