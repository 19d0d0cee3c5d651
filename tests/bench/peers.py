"""Peers in their own environment, `.bench/`: what installs is raced, what does not is named.

`make bench` makes it (it needs a package index and takes minutes the first time).
"""

import json
import subprocess
import sys
import venv
from pathlib import Path

from tests.bench.timing import Timing

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / ".bench"
PYTHON = HOME / "bin" / "python"
STAMP = HOME / "installed.json"

PEERS = {
    "gbfl-compile itself": ("-e", str(ROOT)),
    "LightGBM": ("lightgbm",),
    "m2cgen": ("m2cgen",),
    "tl2cgen": ("treelite", "tl2cgen"),
    "lleaves": ("llvmlite==0.44.*", "lleaves"),
    "ONNX Runtime": ("skl2onnx", "onnx", "onnxruntime"),
    "emlearn": ("emlearn",),
    "orbital": ("orbital",),
}


def install() -> dict[str, str]:
    """Peer -> why it is not there, for those that could not be installed. Done once."""
    if STAMP.is_file() and json.loads(STAMP.read_text())["peers"] == list(PEERS):
        found: dict[str, str] = json.loads(STAMP.read_text())["failed"]
        return found
    if not PYTHON.exists():
        venv.create(HOME, with_pip=True)
    failed = {}
    for peer, packages in PEERS.items():
        command = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            failed[peer] = (run.stderr.strip().splitlines() or ["no reason given"])[-1]
    STAMP.write_text(json.dumps({"peers": list(PEERS), "failed": failed}))
    return failed


def race_peers(module: str, group: str) -> list[Timing]:
    """What `tests.bench.MODULE` timed, run in the peers' environment; what it says on the way is passed on."""
    for peer, reason in install().items():
        sys.stderr.write(f"{peer}: not installed: {reason}\n")
    command = [PYTHON, "-m", f"tests.bench.{module}"]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0:
        sys.stderr.write(f"tests.bench.{module} ended with {run.returncode}\n")
    return [Timing(group, **line) for line in lines]
