"""`gbfl demo`: everything once, on breast cancer data: a neural network, its rules, every target, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gbfl_compile.backends import BACKENDS, emit
from gbfl_compile.backends.artifacts import write_artifact
from gbfl_compile.cli.flags import DIFFERENT, EQUAL, FILE, as_json, quiet_option, seed
from gbfl_compile.files.atomic import make_folder

if TYPE_CHECKING:
    from gbfl_compile.checking.run import Expectation, Verdict
    from gbfl_compile.ir.nodes import Program
    from gbfl_compile.learning.classifier import GBFLClassifier
    from gbfl_compile.learning.consistency import Consistency
    from gbfl_compile.learning.explain.triplets import Triplets

ARTIFACT_NAME = "model"

TARGETS = ("python", "c", "onnx", "sql:sqlite", "sql:duckdb")
"""Targets that need no server."""

STEPS = (
    "training the black box",
    "explaining, mining clauses, fitting the tree",
    "explaining the test rows",
    "lowering and simplifying",
    "emitting every target",
    "checking every target",
)


@dataclass(frozen=True, slots=True)
class Demo:
    """The program that was fitted, and how it did."""

    program: Program
    consistency: Consistency
    accuracy: float
    black_box_accuracy: float
    lowered_rows: int
    lowered_different: int
    """On how many of `lowered_rows` the program and the fitted classifier differ."""
    verdict: Verdict
    not_emitted: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        return {
            **self.verdict.as_json(),
            "classifier": {"rows": self.lowered_rows, "different": self.lowered_different},
            "test": {
                "accuracy": self.accuracy,
                "black_box_accuracy": self.black_box_accuracy,
                "consistency": self.consistency.as_dict(),
            },
            "not_emitted": self.not_emitted,
        }


def run_demo(out: Path, *, seed: int = 0, step: Callable[[str], None] = lambda _: None) -> Demo:
    """Run every step; program.json, triplets.npz and every target's artifact are left in `out`."""
    import numpy as np
    import pandas as pd
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from gbfl_compile.checking.folder import check_folder
    from gbfl_compile.checking.run import expectation
    from gbfl_compile.learning.classifier import GBFLClassifier
    from gbfl_compile.learning.consistency import consistency_on
    from gbfl_compile.learning.explain.explanations import triplets_of
    from gbfl_compile.lowering import lower
    from gbfl_compile.passes import optimise

    make_folder(out)
    steps = iter(STEPS)
    step(next(steps))
    x, x_test, y, y_test = breast_cancer(seed)
    network = MLPClassifier((20, 10), max_iter=500, random_state=seed)
    black_box = make_pipeline(StandardScaler(), network).fit(x, y)
    step(next(steps))
    model = GBFLClassifier(black_box, head="tree", random_state=seed).fit(x, y)
    step(next(steps))
    triplets = triplets_of(model.explain_points(x_test), model.classes_)
    measured = consistency_on(triplets, lambda rows: model.predict(pd.DataFrame(rows, columns=x.columns)))
    accuracy = float(model.score(x_test, y_test))
    step(next(steps))
    figures = {"test": {"accuracy": accuracy, **measured.as_dict()}}
    program = optimise(lower(model, figures), np.asarray(x, dtype=np.float64))
    expected = expectation(program, np.asarray(x_test, dtype=np.float64), triplets)
    step(next(steps))
    emitted, not_emitted = write_everything(program, triplets, out)
    step(next(steps))
    return Demo(
        program=program,
        consistency=measured,
        accuracy=accuracy,
        black_box_accuracy=float(black_box.score(x_test, y_test)),
        lowered_rows=len(expected.rows),
        lowered_different=lowering_differences(model, expected),
        verdict=check_folder(expected, out, ARTIFACT_NAME, emitted),
        not_emitted=not_emitted,
    )


def breast_cancer(seed: int) -> tuple[Any, Any, Any, Any]:
    """scikit-learn's own copy of the WDBC data, 75 % for training, names and labels as text."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer(as_frame=True)
    x = data.data.rename(columns=lambda name: name.replace(" ", "_"))
    y = np.asarray(data.target_names, dtype=str)[data.target]
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)
    return x_train, x_test, y_train, y_test


def lowering_differences(model: GBFLClassifier, expected: Expectation) -> int:
    """On how many rows the program and the fitted classifier differ, in the label or the probabilities."""
    import pandas as pd

    frame = pd.DataFrame(expected.rows, columns=list(expected.program.features))
    labels, probabilities = model.predict(frame), model.predict_proba(frame)
    differs = (labels != expected.answers.labels) | (probabilities != expected.answers.probabilities).any(axis=1)
    return int(differs.sum())


def _missing(target: str) -> str | None:
    """Why a target is left out: a library it cannot be emitted without, or a database that is not installed."""
    availability = BACKENDS[target].available()
    return availability.cannot_emit or (availability.cannot_run if target.startswith("sql:") else None)


def write_everything(program: Program, triplets: Triplets, out: Path) -> tuple[list[str], dict[str, str]]:
    """program.json, triplets.npz and one artifact per target; the targets emitted, and why each other one was not."""
    from gbfl_compile.ir.json import save
    from gbfl_compile.learning.explain.triplets import save_triplets

    artifacts, not_emitted = [], {}
    for target in TARGETS:
        if (reason := _missing(target)) is not None:
            not_emitted[target] = reason
        else:
            artifacts.append(emit(program, target, ARTIFACT_NAME))
    save(program, out / "program.json")
    save_triplets(out / "triplets.npz", triplets)
    for artifact in artifacts:
        write_artifact(artifact, out)
    return [artifact.target for artifact in artifacts], not_emitted


@click.command()
@click.option("--out", "-o", type=FILE, default=Path("demo-out"), show_default=True, help="Output folder.")
@seed
@as_json
@quiet_option
def demo(out: Path, seed: int, as_json: bool) -> int:
    """Run every step once on breast cancer data: explain a neural network, fit rules, compile to every target, check.

    A target that cannot be run here is reported as not run; only a difference is a failure.

    Example: gbfl demo --out demo-out
    """
    from gbfl_compile.cli import screen

    with screen.progress(quiet=as_json) as step:
        demo_result = run_demo(out, seed=seed, step=lambda name: step(name, len(STEPS)))
    if as_json:
        screen.print_json(demo_result.as_json())
    else:
        screen.print_demo(demo_result, out)
    return DIFFERENT if demo_result.lowered_different or demo_result.verdict.verdict == "different" else EQUAL
