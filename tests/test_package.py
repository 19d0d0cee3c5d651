"""What is installed works from anywhere: the wheel, the public names, the examples."""

import importlib.util
import os
import runpy
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import gbfl_compile

ROOT = Path(__file__).parent.parent


def test_every_public_name_is_there():
    for name in gbfl_compile.__all__:
        assert getattr(gbfl_compile, name) is not None
    assert set(gbfl_compile.__all__) == set(dir(gbfl_compile))
    with pytest.raises(AttributeError, match="nonsense"):
        gbfl_compile.nonsense  # noqa: B018 - the access is the test


def test_no_public_name_is_hidden_by_a_module():
    for name in gbfl_compile.__all__:
        assert importlib.util.find_spec(f"gbfl_compile.{name}") is None


def test_the_version_is_said_once(capsys):
    from gbfl_compile.cli import main

    assert main(["--version"]) == 0
    assert gbfl_compile.__version__ in capsys.readouterr().out


def test_resources_are_found_in_the_checkout():
    from gbfl_compile.errors import CannotRun
    from gbfl_compile.resources import folder

    assert (folder("templates") / "python" / "module.py.jinja").is_file()
    assert folder("runtime_c").is_dir()
    with pytest.raises(CannotRun, match="install gbfl-compile again"):
        folder("nonsense")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


def test_the_wheel_carries_templates_and_no_tests(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "gbfl_compile/_resources/templates/python/module.py.jinja" in names
    assert any(name.startswith("gbfl_compile/_resources/runtime_c/") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "examples/", "templates/"))]


def test_the_wheel_runs_from_a_fresh_environment_in_another_folder(wheel, tmp_path):
    """The libraries come from this environment (a path file); the package itself only from the wheel."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    site = Path(importlib.util.find_spec("numpy").origin).parent.parent
    for entry in site.iterdir():
        if "gbfl" not in entry.name and entry.suffix != ".pth":
            (libraries / entry.name).symlink_to(entry)
    purelib = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    (purelib / "libraries.pth").write_text(f"{libraries}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    gbfl = tmp_path / "venv/bin/gbfl"
    run = subprocess.run(
        [gbfl, "demo", "--out", "d", "--json"], cwd=elsewhere, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert (elsewhere / "d/python/model.py").is_file()
    where = subprocess.run(
        [python, "-c", "import gbfl_compile; print(gbfl_compile.__file__)"],
        cwd=elsewhere,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert where.stdout.startswith(str(tmp_path / "venv"))


LARGE = {"spark_score.py", "duckdb_parquet.py"}
"""Millions of rows, and Spark: tests/engines runs them."""


@pytest.mark.parametrize(
    "path", sorted(p for p in (ROOT / "examples").glob("*.py") if p.name not in LARGE), ids=lambda path: path.name
)
def test_an_example_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
