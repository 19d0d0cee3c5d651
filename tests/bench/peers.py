"""Peers of the C target in an environment of their own, `.bench/`: what installs is raced, what does not is named.

python -m tests.bench.peers        makes .bench/ (needs a package index; takes minutes)
"""

import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).parent.parent.parent / ".bench"
PYTHON = HOME / "bin" / "python"

SHARED = ("numpy", "scikit-learn", "lightgbm")
PEERS = {
    "m2cgen": ("m2cgen",),
    "tl2cgen": ("treelite", "tl2cgen"),
    "lleaves": ("llvmlite==0.44.*", "lleaves"),
    "ONNX Runtime": ("skl2onnx", "onnxruntime"),
    "emlearn": ("emlearn",),
}


def install() -> dict[str, str]:
    """Peer -> why it is not there, for those that could not be installed."""
    if not PYTHON.exists():
        venv.create(HOME, with_pip=True)
    failed = {}
    for peer, packages in {"the shared libraries": SHARED, **PEERS}.items():
        command = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            failed[peer] = (run.stderr.strip().splitlines() or ["no reason given"])[-1]
    return failed


if __name__ == "__main__":
    for peer, reason in install().items():
        sys.stdout.write(f"{peer}: not installed: {reason}\n")
