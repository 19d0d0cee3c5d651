"""The fuzzer notices an undocumented error, a hang, unbounded memory and a process that dies."""

import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gbfl_compile.errors import BadInput
from tests.fuzz import runner
from tests.fuzz.runner import alarm, fuzz, try_input
from tests.fuzz.target import Finding, check_refusal
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


@pytest.mark.parametrize(("run", "message"), [(wrong, "KeyError"), (slow, "seconds"), (catches_all, "seconds")])
def test_an_undocumented_error_or_a_hang_is_a_finding(run, message):
    before = signal.signal(signal.SIGALRM, alarm)
    try:
        outcome, where = try_input(replace(LOADER, run=run, seconds=0.3), b"")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert outcome.startswith("finding")
    assert message in outcome
    assert where


def test_an_error_that_a_reader_swallowed_is_a_finding(monkeypatch):
    monkeypatch.setattr("gbfl_compile.checking.strict.python._parse", wrong)
    with pytest.raises(Finding, match="gave up on it: KeyError"):
        TARGETS["python"].run(b"")


def test_a_refusal_that_says_nothing_is_a_finding():
    with pytest.raises(Finding):
        check_refusal(BadInput(" "))
    assert check_refusal(BadInput("x" * 10_000_000)) == "refused", "a message is cut to what can be read"


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        ("os.abort()", "ended with -6"),
        ("signal.pthread_sigmask(0, {14}); time.sleep(60)", "hung"),
        ("return 'read' if b'x' * (600 << 20) else 'refused'", "bytes of memory"),
    ],
)
def test_a_process_that_dies_hangs_or_grows_is_a_finding(spoilt, message, monkeypatch, tmp_path):
    """A crash in a library leaves no exception: the input is found in the note made before it was tried."""
    monkeypatch.setattr(runner, "CORPUS", tmp_path)
    monkeypatch.setattr(runner, "STUCK", 3.0 if "sleep" in spoilt else 60.0)  # a busy machine is not a hung process
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
    assert message in result["findings"][0]["what"], result
    assert Path(result["findings"][0]["kept"]).read_bytes()


def test_a_sound_run_counts_what_it_did():
    result = fuzz("loader", 200, 1)
    assert result["findings"] == []
    assert result["counts"]["executions"] == 200
    assert result["counts"]["read"] + result["counts"]["refused"] == 200
