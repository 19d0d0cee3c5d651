"""Runs a target on broken inputs: each within its time, all within their memory; what happened is counted.

The inputs run in a separate process, which records each one before it is tried: the parent process thus knows which input
crashed it (in a library) or made it hang.
"""

import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.fuzz.mutations import broken_bytes
from tests.fuzz.target import CORPUS
from tests.fuzz.targets import TARGETS

MOST_MEMORY = 6 * 2**30
"""Bytes of address space of the process that tries the inputs."""

MOST_GROWTH = 512 * 2**20
"""Bytes that one small input may make the process larger by."""

ROUND = 200
"""Inputs that come from one handful of sound ones."""

STARTING = 120.0
"""Seconds until the first input is recorded: imports take long on a busy machine."""
STUCK = 120.0
"""Seconds without a sign of life, after which the process is ended: an alarm does not reach into a library."""


class Hang(BaseException):
    """No Exception: what is tried may catch all of those."""


def alarm(number, frame):
    raise Hang


def largest():
    """The most memory this process ever had, in bytes. What the system tells of children begins at their parent's."""
    try:
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - asked before and after every input
            return int(status.read().partition(b"VmHWM:")[2].split(maxsplit=1)[0]) * 1024
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def try_input(target, data):
    """What one input did: `read`, `refused`, or a finding as `finding: what`, with where."""
    before = largest()
    signal.setitimer(signal.ITIMER_REAL, target.seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, where = target.run(data), ""
    except Hang:
        outcome, where = f"finding: more than {target.seconds:g} seconds", traceback.format_exc(limit=-6)
    except Exception as error:
        cause = error.__cause__ or error
        outcome, where = (
            f"finding: {type(error).__name__}: {str(error)[:300]}",
            "".join(traceback.format_exception(cause))[-2000:],
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    grown = largest() - before
    return (f"finding: {grown} bytes of memory", "") if grown > MOST_GROWTH else (outcome, where)


def inputs(target, choose, count):
    """Broken inputs, from the corpus and from newly generated sound ones, some broken several times."""
    saved = [path.read_bytes() for path in target.corpus()]
    number = 0
    while number < count:
        sound = [target.fresh(choose) for _ in range(4)] + choose.sample(saved, min(2, len(saved)))
        pool = list(sound)
        for _ in range(ROUND):
            data = target.broken(choose, choose.choice(pool), choose.choice(sound))
            pool[choose.randrange(len(sound)) if choose.random() < 0.3 else -1] = data
            if choose.random() < 0.3:
                pool[choose.randrange(len(pool))] = choose.choice(sound)
            for each in (data, *(broken_bytes(choose, data) for _ in range(target.offspring))):
                if number == count:
                    return
                number += 1
                yield each


def work(name, count, seed, note, until):
    """Try `count` inputs and note each down first; then print what happened. The process ends itself after `until`."""
    target = TARGETS[name]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGALRM, alarm)
    counts, findings = Counter(), {}
    deadline = time.monotonic() + until
    with open(note, "wb", buffering=0) as noted:  # noqa: PTH123 - without a buffer: it must be there after a crash
        for data in inputs(target, random.Random(seed), count):
            noted.seek(0)
            noted.write(len(data).to_bytes(8, "little") + data)
            outcome, where = try_input(target, data)
            counts["executions"] += 1
            counts[outcome.partition(":")[0]] += 1
            key = short(outcome, where)
            if outcome.startswith("finding") and key not in findings:
                findings[key] = {"what": outcome, "where": where, "kept": str(save_input(name, data))}
            if time.monotonic() > deadline:
                break
    sys.stdout.write(json.dumps({"counts": counts, "findings": list(findings.values())}) + "\n")


def short(outcome, where):
    """Findings from the same place are one."""
    lines = [line for line in where.splitlines() if line.startswith("  File")]
    return lines[-1] if lines else outcome[:60]


def save_input(name, data):
    """A finding's input, put into the corpus."""
    path = CORPUS / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def fuzz(name, count, seed, until=float("inf")):
    """What `count` inputs did, tried in a separate process: {"counts": …, "findings": […]}."""
    with tempfile.TemporaryDirectory(prefix="gbfl-fuzz-") as place:
        note, out, errors = (Path(place) / part for part in ("input", "out", "errors"))
        note.touch()
        command = [sys.executable, "-m", "tests.fuzz", "--work", name, str(count), str(seed), str(note), str(until)]
        with out.open("wb") as stdout, errors.open("wb") as stderr:
            running = subprocess.Popen(command, stdout=stdout, stderr=stderr, env={**os.environ, "PYTHONHASHSEED": "0"})
            stuck = _watch(running, note)
        if running.returncode == 0:
            return json.loads(out.read_text().splitlines()[-1])
        data = note.read_bytes()
        data = data[8 : 8 + int.from_bytes(data[:8], "little")]
        what = "finding: the process hung" if stuck else f"finding: the process ended with {running.returncode}"
        message = errors.read_text(errors="replace")[-3000:]
        return {"counts": {}, "findings": [{"what": what, "where": message, "kept": str(save_input(name, data))}]}


def _watch(running, note):
    """Wait for the process; True if it hung and was killed."""
    changed, since = None, time.monotonic()
    while running.poll() is None:
        time.sleep(0.2)
        now = note.stat().st_mtime_ns
        if now != changed:
            changed, since = now, time.monotonic()
        elif time.monotonic() - since > (STUCK if note.stat().st_size else STARTING):
            running.kill()
            running.wait()
            return True
    return False
