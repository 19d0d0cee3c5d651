"""A scorer that never returns ends with the audit that called it, even if that audit is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from gbfl_compile.databases.guard import is_running

ENDLESS_PYTHON = """
import os
def score(rows):
    open("pid", "w").write(str(os.getpid()))
    while True:
        pass
"""
ENDLESS_C = """
#include <stdio.h>
#include <unistd.h>
int model_predict(const double *x) {
    FILE *file = fopen(PID_FILE, "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    for (volatile int i = 0;; ) { i = (int)x[0]; }
}
"""
AUDIT = """
import sys
from gbfl_compile.auditing.scorer.{module} import {verb}
from gbfl_compile.ir.nodes import Clause, Interval, Program, leaf, split
clause = Clause((Interval(0, 0.1, 50.0),))
program = Program(("age",), (0, 1), (clause,), split(0, leaf(0.25, 0.75), leaf(1.0, 0.0)))
{verb}(program, {call}, seconds=600)
"""


def scorer_of(kind, folder):
    if kind == "callable":
        (folder / "endless.py").write_text(ENDLESS_PYTHON)
        return AUDIT.format(module="callable", verb="audit_callable", call="'endless:score'")
    (folder / "endless.c").write_text(ENDLESS_C)
    define = f'-DPID_FILE="{folder / "pid"}"'
    command = ["cc", "-shared", "-fPIC", define, "-o", "endless.so", "endless.c"]
    subprocess.run(command, cwd=folder, check=True)
    call = "__import__('pathlib').Path('endless.so'), 'model'"
    return AUDIT.format(module="library", verb="audit_library", call=call)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("kind", ["callable", "library"])
def test_no_scorer_outlives_a_killed_audit(tmp_path, kind):
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    audit = subprocess.Popen([sys.executable, "-c", scorer_of(kind, tmp_path)], cwd=tmp_path, env=environment)
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text())
    worker = int(pid.read_text())
    assert is_running(worker)
    audit.send_signal(signal.SIGKILL)
    audit.wait()
    try:
        wait_for(lambda: not is_running(worker))
    finally:
        if is_running(worker):
            os.kill(worker, signal.SIGKILL)
