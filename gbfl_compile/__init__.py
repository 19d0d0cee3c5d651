"""Rule models that decide the same everywhere: mined from a black box, readable, compiled, checked.

    from gbfl_compile import mine, compile_program, check, score, audit

    program = mine("loans.csv", target="default", train="gbm").program
    compile_program(program, ["c", "sql:postgres"], "build")

Whatever a command does, one of these calls does. Each name is loaded when it is first used, so that importing the
package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gbfl_compile.errors import BadInput, CannotRun, GbflError
from gbfl_compile.version import VERSION as __version__

if TYPE_CHECKING:
    from gbfl_compile.auditing.audit import audit as audit
    from gbfl_compile.auditing.diff import diff as diff
    from gbfl_compile.auditing.verdict import AuditReport as AuditReport
    from gbfl_compile.backends import emit as emit
    from gbfl_compile.backends import load_artifact as load_artifact
    from gbfl_compile.backends import write_artifact as write_artifact
    from gbfl_compile.backends.score import score as score
    from gbfl_compile.backends.sql.score import score_in_database as score_in_database
    from gbfl_compile.backends.sql.score import spark_column as spark_column
    from gbfl_compile.checking.check import certify as certify
    from gbfl_compile.checking.check import check as check
    from gbfl_compile.checking.check import check_artifacts as check_artifacts
    from gbfl_compile.checking.check import check_folder as check_folder
    from gbfl_compile.checking.check import compile_program as compile_program
    from gbfl_compile.checking.check import prove as prove
    from gbfl_compile.checking.lint import lint as lint
    from gbfl_compile.checking.run import Verdict as Verdict
    from gbfl_compile.checking.run import compare as compare
    from gbfl_compile.checking.run import expectation as expectation
    from gbfl_compile.checking.witnesses import witnesses as witnesses
    from gbfl_compile.databases import connect as connect
    from gbfl_compile.databases import from_connection as from_connection
    from gbfl_compile.ir.batch import evaluate_many as evaluate_many
    from gbfl_compile.ir.evaluate import evaluate as evaluate
    from gbfl_compile.ir.json import digest as digest
    from gbfl_compile.ir.json import load as load_program
    from gbfl_compile.ir.json import save as save_program
    from gbfl_compile.ir.nodes import Clause as Clause
    from gbfl_compile.ir.nodes import Interval as Interval
    from gbfl_compile.ir.nodes import Program as Program
    from gbfl_compile.ir.nodes import Scorecard as Scorecard
    from gbfl_compile.ir.nodes import Tree as Tree
    from gbfl_compile.ir.text import readable as readable
    from gbfl_compile.learning.baselines import AugmentedTree as AugmentedTree
    from gbfl_compile.learning.baselines import DistilledTree as DistilledTree
    from gbfl_compile.learning.baselines import StandardTree as StandardTree
    from gbfl_compile.learning.classifier import GBFLClassifier as GBFLClassifier
    from gbfl_compile.lowering import lower as lower
    from gbfl_compile.mining import mine as mine
    from gbfl_compile.mining.summary import MiningResult as MiningResult
    from gbfl_compile.passes import optimise as optimise
    from gbfl_compile.reporting.page import report as report
    from gbfl_compile.why import explain_row as explain_row

_HOMES = {
    "AuditReport": "auditing.verdict:AuditReport",
    "AugmentedTree": "learning.baselines:AugmentedTree",
    "Clause": "ir.nodes:Clause",
    "DistilledTree": "learning.baselines:DistilledTree",
    "GBFLClassifier": "learning.classifier:GBFLClassifier",
    "Interval": "ir.nodes:Interval",
    "MiningResult": "mining.summary:MiningResult",
    "Program": "ir.nodes:Program",
    "Scorecard": "ir.nodes:Scorecard",
    "StandardTree": "learning.baselines:StandardTree",
    "Tree": "ir.nodes:Tree",
    "Verdict": "checking.run:Verdict",
    "audit": "auditing.audit:audit",
    "certify": "checking.check:certify",
    "check": "checking.check:check",
    "check_artifacts": "checking.check:check_artifacts",
    "check_folder": "checking.check:check_folder",
    "compare": "checking.run:compare",
    "compile_program": "checking.check:compile_program",
    "connect": "databases:connect",
    "diff": "auditing.diff:diff",
    "digest": "ir.json:digest",
    "emit": "backends:emit",
    "evaluate": "ir.evaluate:evaluate",
    "evaluate_many": "ir.batch:evaluate_many",
    "expectation": "checking.run:expectation",
    "explain_row": "why:explain_row",
    "from_connection": "databases:from_connection",
    "lint": "checking.lint:lint",
    "load_artifact": "backends:load_artifact",
    "load_program": "ir.json:load",
    "lower": "lowering:lower",
    "mine": "mining:mine",
    "optimise": "passes:optimise",
    "prove": "checking.check:prove",
    "readable": "ir.text:readable",
    "report": "reporting.page:report",
    "save_program": "ir.json:save",
    "score": "backends.score:score",
    "score_in_database": "backends.sql.score:score_in_database",
    "spark_column": "backends.sql.score:spark_column",
    "witnesses": "checking.witnesses:witnesses",
    "write_artifact": "backends:write_artifact",
}
"""Public name -> where it lives."""

__all__ = ["BadInput", "CannotRun", "GbflError", "__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gbfl_compile' has no attribute {name!r}")
    module, attribute = _HOMES[name].split(":")
    return getattr(importlib.import_module(f"gbfl_compile.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
