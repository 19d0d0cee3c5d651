"""The installed package works from anywhere: the wheel, the public names."""

import importlib.util
import zipfile
from pathlib import Path

import pytest

import gbfl_compile


def test_every_public_name_exists():
    for name in gbfl_compile.__all__:
        assert getattr(gbfl_compile, name) is not None
    assert set(gbfl_compile.__all__) == set(dir(gbfl_compile))
    with pytest.raises(AttributeError, match="nonsense"):
        gbfl_compile.nonsense  # noqa: B018 - the access is the test


def test_no_public_name_is_hidden_by_a_module():
    for name in gbfl_compile.__all__:
        assert importlib.util.find_spec(f"gbfl_compile.{name}") is None


def test_the_version_is_printed(capsys):
    from gbfl_compile.cli import main

    assert main(["--version"]) == 0
    assert gbfl_compile.__version__ in capsys.readouterr().out


def test_resources_are_found_in_the_checkout():
    from gbfl_compile.errors import CannotRun
    from gbfl_compile.files import resource_folder

    assert (resource_folder("templates") / "python" / "module.py.jinja").is_file()
    assert resource_folder("runtime_c").is_dir()
    with pytest.raises(CannotRun, match="install gbfl-compile again"):
        resource_folder("nonsense")


def test_the_wheel_carries_templates_and_no_tests(installed):
    names = zipfile.ZipFile(installed.wheel).namelist()
    assert "gbfl_compile/_resources/templates/python/module.py.jinja" in names
    assert any(name.startswith("gbfl_compile/_resources/runtime_c/") for name in names)
    assert "gbfl_compile/schema/program.schema.json" in names
    assert not [name for name in names if name.startswith(("tests/", "examples/", "templates/"))]


def test_what_runs_is_the_wheel_with_its_own_templates(installed, tmp_path):
    code = "import gbfl_compile as g, gbfl_compile.files as r; print(g.__file__, r.resource_folder('templates'), r.resource_folder('runtime_c'))"
    run = installed.run(["python", "-c", code], tmp_path)
    assert run.returncode == 0, run.stderr
    for path in run.stdout.split():
        assert Path(path).is_relative_to(installed.environment)


def test_the_wheel_runs_the_demo_in_another_folder(installed, tmp_path):
    run = installed.run(["gbfl", "demo", "--out", "d", "--json"], tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "d/build/python/model.py").is_file()
