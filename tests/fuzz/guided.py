"""The same targets led by coverage: atheris keeps an input that reached new code, and breaks it further with our own ways."""

import importlib.util
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.runner import alarm, save_input, short, try_input
from tests.fuzz.targets import TARGETS

FRESH = 40
"""Sound inputs to begin with, besides the corpus."""

LONGEST = 200_000
"""Bytes of an input."""


def fuzz_guided(name, count, seed, until):
    """What about `count` inputs did, chosen by the coverage they bring: {"counts": …, "findings": […]}."""
    if importlib.util.find_spec("atheris") is None:
        return {"counts": {"skipped": "atheris is not installed: pip install 'gbfl-compile[fuzz]'"}, "findings": []}
    target = TARGETS[name]
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="gbfl-fuzz-") as folder:
        begun, lines = Path(folder) / "begun", Path(folder) / "findings"
        begun.mkdir()
        sound = [target.fresh(choose) for _ in range(FRESH)] + [path.read_bytes() for path in target.corpus()]
        for number, data in enumerate(sound):
            (begun / str(number)).write_bytes(data)
        limits = [f"-runs={count}", f"-max_len={LONGEST}", "-rss_limit_mb=4096", "-handle_alrm=0", f"-seed={seed + 1}"]
        limits += [] if until == float("inf") else [f"-max_total_time={int(until)}"]
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.guided",
            name,
            str(lines),
            *limits,
            "-print_final_stats=1",
            str(begun),
        ]
        run = subprocess.run(command, cwd=made_here(), capture_output=True, text=True, errors="replace")
        findings = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
        ran = re.search(r"stat::number_of_executed_units:\s*(\d+)", run.stderr)
        reached = re.findall(r"ft: (\d+)", run.stderr)
        if run.returncode or ran is None:
            findings.append(
                {"what": f"finding: the process ended with {run.returncode}", "where": run.stderr[-2000:], "kept": "-"}
            )
        counts = {"executions": int(ran[1]) if ran else 0, "features reached": int(reached[-1]) if reached else 0}
        return {"counts": counts, "findings": findings}


def made_here():
    """The folder that holds `tests`."""
    return Path(__file__).parent.parent.parent


def main():
    import atheris

    name, findings, *limits = sys.argv[1:]
    with atheris.instrument_imports(include=["gbfl_compile"]):
        for module in MODULES:
            importlib.import_module(module)
    target, seen = TARGETS[name], set()
    signal.signal(signal.SIGALRM, alarm)

    def one(data):
        outcome, where = try_input(target, data)
        key = short(outcome, where)
        if outcome.startswith("finding") and key not in seen:
            seen.add(key)
            finding = {"what": outcome, "where": where, "kept": str(save_input(name, data))}
            with Path(findings).open("a") as file:
                file.write(json.dumps(finding) + "\n")

    def break_input(data, most, seed):
        choose = random.Random(seed)
        return (target.broken(choose, data, data) if choose.random() < 0.6 else atheris.Mutate(data, most))[:most]

    atheris.Setup([sys.argv[0], *limits], one, custom_mutator=break_input)
    atheris.Fuzz()


MODULES = (
    "gbfl_compile.ir.json",
    "gbfl_compile.ir.text",
    "gbfl_compile.checking.artifact",
    "gbfl_compile.tables.read",
    "gbfl_compile.learning.consistency",
    "gbfl_compile.reporting.page",
    "gbfl_compile.checking.prove.certificate",
    "gbfl_compile.checking.prove.certificate_verifier",
    "gbfl_compile.auditing.log",
)

if __name__ == "__main__":
    main()
