"""Other ONNX implementations answer as the program does: an older ONNX Runtime, and onnxruntime-web under node."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from tests.engines.onnx_cases import PROGRAMS, write_cases

HERE = Path(__file__).parent
MODELS = 4 * len(PROGRAMS)

OLD = {"1.20.*": ("logic",), "1.21.*": ("logic", "tree")}
"""A release of about two years ago and the first that has TreeEnsemble in double: the lowerings each must run."""


def answers(command, folder):
    run = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, (run.stdout + run.stderr)[-2000:]
    lines = [line.split("\t") for line in run.stdout.splitlines() if "\t" in line]
    return {name: found for name, found, _ in lines}


@pytest.mark.parametrize("version", OLD)
def test_an_older_onnxruntime_gives_the_same_answers(version, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"onnxruntime=={version}", "numpy"]
    made = subprocess.run(install, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"onnxruntime {version} cannot be installed here for Python {sys.version_info[:2]}")
    write_cases(tmp_path)
    found = answers([python, HERE / "run_onnx_cases.py", tmp_path], tmp_path)
    assert len(found) == MODELS
    for name, wrong in found.items():
        if any(f"_{lowering}_" in name for lowering in OLD[version]):
            assert wrong == "0", name
        else:
            assert wrong == "not loaded", f"{name}: {version} can run it after all, say so"


def test_onnxruntime_web_gives_the_same_answers(tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "onnxruntime-web"]
    made = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("onnxruntime-web cannot be installed here")
    write_cases(tmp_path)
    found = answers(["node", HERE / "run_onnx_cases.mjs", tmp_path], tmp_path)
    assert len(found) == MODELS
    assert {name: wrong for name, wrong in found.items() if wrong != "0"} == {}
