"""The fuzzer notices what it is for: an error of another kind, a hang, memory without end, a process that dies."""

import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gbfl_compile.errors import BadInput
from tests.fuzz import runner
from tests.fuzz.runner import alarm, fuzz, tried
from tests.fuzz.target import Finding, refused
from tests.fuzz.targets import TARGETS

LOADER = TARGETS["loader"]


def slow(_):
    time.sleep(5)


def catches_all(_):
    try:
        time.sleep(5)
    except Exception:
        return "refused"
    return "read"


def wrong(_):
    raise KeyError("x")


@pytest.mark.parametrize(("run", "told"), [(wrong, "KeyError"), (slow, "seconds"), (catches_all, "seconds")])
def test_what_none_may_do_is_a_finding(run, told):
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        outcome, where = tried(replace(LOADER, run=run, seconds=0.3), b"")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert outcome.startswith("finding")
    assert told in outcome
    assert where


def test_an_error_that_a_reader_swallowed_is_a_finding(monkeypatch):
    monkeypatch.setattr("gbfl_compile.check.readers.python._parsed", wrong)
    with pytest.raises(Finding, match="gave up on it: KeyError"):
        TARGETS["python"].run(b"")


def test_a_refusal_that_says_nothing_is_a_finding():
    with pytest.raises(Finding):
        refused(BadInput(" "))
    assert refused(BadInput("x" * 10_000_000)) == "refused", "a message is cut to what can be read"


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        ("os.abort()", "ended with -6"),
        ("signal.pthread_sigmask(0, {14}); time.sleep(60)", "stood still"),
        ("return 'read' if b'x' * (600 << 20) else 'refused'", "bytes of memory"),
    ],
)
def test_a_process_that_dies_stands_still_or_grows_is_a_finding(spoilt, told, monkeypatch, tmp_path):
    """A crash in a library leaves no exception: the input is found in the note made before it was tried."""
    monkeypatch.setattr(runner, "CORPUS", tmp_path)
    monkeypatch.setattr(runner, "STUCK", 3.0)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys, time\n"
        "sys.path.insert(0, os.getcwd())\n"
        "import tests.fuzz.programs as programs, tests.fuzz.target as target, pathlib\n"
        f"target.CORPUS = pathlib.Path({str(tmp_path)!r})\n"
        f"def spoilt(data):\n    {spoilt}\n"
        "programs.load_program = spoilt\n"
    )
    result = fuzz("loader", 3, 0)
    assert told in result["findings"][0]["what"], result
    assert Path(result["findings"][0]["kept"]).read_bytes()


def test_a_sound_run_counts_what_it_did():
    result = fuzz("loader", 200, 1)
    assert result["findings"] == []
    assert result["counts"]["executions"] == 200
    assert result["counts"]["read"] + result["counts"]["refused"] == 200
