"""Rule models that decide the same everywhere: mined from a black box, readable, compiled, checked.

    from gbfl_compile import GBFLClassifier, lower, optimise, emit

Each name is loaded when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gbfl_compile.version import VERSION as __version__

if TYPE_CHECKING:
    from gbfl_compile.artifacts import load_artifact as load_artifact
    from gbfl_compile.artifacts import write_artifact as write_artifact
    from gbfl_compile.backends import emit as emit
    from gbfl_compile.check.equivalence import compare as compare
    from gbfl_compile.check.equivalence import expectation as expectation
    from gbfl_compile.check.folder import check_artifacts as check_artifacts
    from gbfl_compile.check.folder import check_folder as check_folder
    from gbfl_compile.check.witnesses import witnesses as witnesses
    from gbfl_compile.databases import connect as connect
    from gbfl_compile.databases import from_connection as from_connection
    from gbfl_compile.errors import BadInput as BadInput
    from gbfl_compile.errors import CannotRun as CannotRun
    from gbfl_compile.errors import GbflError as GbflError
    from gbfl_compile.ir.batch import evaluate_many as evaluate_many
    from gbfl_compile.ir.digest import digest as digest
    from gbfl_compile.ir.evaluate import evaluate as evaluate
    from gbfl_compile.ir.json_form import load as load_program
    from gbfl_compile.ir.json_form import save as save_program
    from gbfl_compile.ir.nodes import Clause as Clause
    from gbfl_compile.ir.nodes import Interval as Interval
    from gbfl_compile.ir.nodes import Program as Program
    from gbfl_compile.ir.nodes import Scorecard as Scorecard
    from gbfl_compile.ir.nodes import Tree as Tree
    from gbfl_compile.ir.readable import readable as readable
    from gbfl_compile.learn.baselines import AugmentedTree as AugmentedTree
    from gbfl_compile.learn.baselines import DistilledTree as DistilledTree
    from gbfl_compile.learn.baselines import StandardTree as StandardTree
    from gbfl_compile.learn.classifier import GBFLClassifier as GBFLClassifier
    from gbfl_compile.lowering import lower as lower
    from gbfl_compile.passes import optimise as optimise
    from gbfl_compile.scoring_database import score_in_database as score_in_database
    from gbfl_compile.spark import spark_column as spark_column

_HOMES = {
    "AugmentedTree": "learn.baselines:AugmentedTree",
    "BadInput": "errors:BadInput",
    "CannotRun": "errors:CannotRun",
    "Clause": "ir.nodes:Clause",
    "DistilledTree": "learn.baselines:DistilledTree",
    "GBFLClassifier": "learn.classifier:GBFLClassifier",
    "GbflError": "errors:GbflError",
    "Interval": "ir.nodes:Interval",
    "Program": "ir.nodes:Program",
    "Scorecard": "ir.nodes:Scorecard",
    "StandardTree": "learn.baselines:StandardTree",
    "Tree": "ir.nodes:Tree",
    "check_artifacts": "check.folder:check_artifacts",
    "check_folder": "check.folder:check_folder",
    "compare": "check.equivalence:compare",
    "connect": "databases:connect",
    "digest": "ir.digest:digest",
    "emit": "backends:emit",
    "evaluate": "ir.evaluate:evaluate",
    "evaluate_many": "ir.batch:evaluate_many",
    "expectation": "check.equivalence:expectation",
    "from_connection": "databases:from_connection",
    "load_artifact": "artifacts:load_artifact",
    "load_program": "ir.json_form:load",
    "lower": "lowering:lower",
    "optimise": "passes:optimise",
    "readable": "ir.readable:readable",
    "save_program": "ir.json_form:save",
    "score_in_database": "scoring_database:score_in_database",
    "spark_column": "spark:spark_column",
    "witnesses": "check.witnesses:witnesses",
    "write_artifact": "artifacts:write_artifact",
}
"""Public name -> where it lives."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gbfl_compile' has no attribute {name!r}")
    module, attribute = _HOMES[name].split(":")
    return getattr(importlib.import_module(f"gbfl_compile.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
