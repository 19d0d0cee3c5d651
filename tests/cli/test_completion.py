"""A shell can complete `gbfl`: click answers it, and the exit code says so."""

import os
import subprocess
import sys


def completed(instruction, **words):
    environment = {**os.environ, "_GBFL_COMPLETE": instruction, **words}
    return subprocess.run(
        [sys.executable, "-m", "gbfl_compile"], env=environment, capture_output=True, text=True, timeout=60
    )


def test_a_shell_gets_a_completion_script():
    run = completed("bash_source")
    assert (run.returncode, run.stderr) == (0, "")
    assert "_GBFL_COMPLETE=bash_complete" in run.stdout


def test_commands_are_completed():
    run = completed("bash_complete", COMP_WORDS="gbfl mi", COMP_CWORD="1")
    assert (run.returncode, run.stdout, run.stderr) == (0, "plain,mine\n", "")
