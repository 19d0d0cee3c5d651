"""Runs `gbfl mine` once in a separate process: prints the seconds of each phase and the peak memory as JSON.

`explaining` is the time the training rows took; the held-out rows are explained beside the fit, with two jobs.

python -m tests.bench.mine_once TABLE BLACK_BOX JOBS [--memory 2GB ..]     further arguments are those of gbfl mine
"""

import contextlib
import io
import itertools
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import gbfl_compile.mining as job
from gbfl_compile.cli import main


def peaks_of_children():
    """The most that each worker process has held, in megabytes. They stay until we end, so none is missed."""
    for pid in Path("/proc/self/task", str(os.getpid()), "children").read_text().split():
        lines = Path("/proc", pid, "status").read_text().splitlines()
        yield next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def run(table: str, black_box: str, jobs: str, *more: str) -> dict:
    marks = [(time.perf_counter(), "reading and splitting")]
    mine_sample = job.mine_sample

    def marked(sample, load, options, folder, progress):
        def mark(what, steps):
            if what.split(" ")[0] != marks[-1][1].split(" ")[0]:
                marks.append((time.perf_counter(), what))
            progress(what, steps)

        return mine_sample(sample, load, options, folder, mark)

    explain, explaining = job.explain_in_units, []

    def timed(*arguments, **settings):
        began = time.perf_counter()
        found = explain(*arguments, **settings)
        explaining.append(time.perf_counter() - began)
        return found

    job.mine_sample, job.explain_in_units = marked, timed
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        command = ["mine", table, "--target", "y", "--rows", "1000000000", "--black-box", black_box, "--jobs", jobs]
        code = main([*command, "--json", "-o", str(Path(folder) / "m.json"), *more])
    marks.append((time.perf_counter(), "end"))
    if code != 0:
        sys.exit(code)
    form = json.loads(printed.getvalue())
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds: dict[str, float] = {}
    for (began, what), (ended, _) in itertools.pairwise(marks):
        seconds[what] = seconds.get(what, 0.0) + ended - began
    return {
        "program": form["program"],
        "rows": sum(form["rows"].values()),
        "training_rows": form["rows"]["training"],
        "c_tb": form["test"]["consistency"]["c_tb"],
        "seconds": marks[-1][0] - marks[0][0],
        "phases": seconds,
        "explaining": explaining[0],
        "megabytes": own + sum(peaks_of_children()),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(*sys.argv[1:])))
