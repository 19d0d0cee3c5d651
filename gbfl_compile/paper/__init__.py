"""The paper's experiment: every data set with every seed, run side by side and kept when finished, one JSON result.

Beside it are the figures printed in the paper, and paired t-tests over seeds that say which of ours are best.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.files.atomic import write_whole
from gbfl_compile.lowering import data_fingerprint
from gbfl_compile.paper.datasets import BALANCED, KAPPA, SOURCES, TEST_SHARE, TRAININGS, USUAL, Dataset, load_dataset
from gbfl_compile.paper.models import BESIDE, BUDGETS, MODELS, measure_models
from gbfl_compile.version import GENERATOR

LEVEL = 0.05
ROUNDING = 1e-12
"""Percentages whose relative difference is this small are the same."""


def paired_p(first: Sequence[float | None], second: Sequence[float | None]) -> float | None:
    """The two-sided p of a paired t-test; None where fewer than two pairs can be compared.

    >>> paired_p([90.0, 91.0, 92.0], [90.0, 91.0, 92.0])
    1.0
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if len(pairs) < 2:
        return None
    apart = np.array([a - b for a, b in pairs])
    if not apart.any():
        return 1.0
    if np.ptp(apart) <= ROUNDING * np.abs(apart).max():  # the same difference every time: no spread to divide by
        return 0.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(apart, 0.0).pvalue)


def mean(figures: Sequence[float | None]) -> float | None:
    """The mean of the figures that are not None."""
    known = [figure for figure in figures if figure is not None]
    return float(np.mean(known)) if known else None


def best_of(figures: Mapping[str, Sequence[float | None]]) -> frozenset[str]:
    """The model with the highest mean, and those a paired t-test cannot distinguish from it."""
    means = {model: value for model, series in figures.items() if (value := mean(series)) is not None}
    if not means:
        return frozenset()
    top = max(means, key=lambda model: means[model])
    undecided = {model: paired_p(figures[top], figures[model]) for model in means}
    return frozenset(model for model, p in undecided.items() if model == top or (p is not None and p >= LEVEL))


Figures: TypeAlias = Mapping[str, Mapping[str, Mapping[str, float | None]]]

SETS = ("skyserver", "credit_card", "magic", "diabetes", "waveform", "wdbc")
"""The order of the paper's columns."""


def _rows(table: Mapping[str, tuple[float | None, ...]]) -> dict[str, dict[str, float | None]]:
    return {model: dict(zip(SETS, figures, strict=True)) for model, figures in table.items()}


PUBLISHED: Figures = {
    "c_tb": _rows(
        {
            "standard": (31.08, 3.51, 54.04, 61.97, 12.52, 18.79),
            "distillation": (33.59, 4.52, 56.04, 64.58, 5.48, 22.47),
            "augmentation": (3.86, 2.01, 57.24, 58.85, 7.03, 5.92),
            "gbfl": (48.84, 7.03, 56.76, 68.75, 19.55, 50.12),
        }
    ),
    "c_pn": _rows(
        {
            "standard": (44.01, 49.74, None, None, 59.69, 29.01),
            "distillation": (38.22, 23.11, None, None, 29.15, 33.03),
            "augmentation": (12.16, 51.75, None, None, 62.77, 19.02),
            "gbfl": (58.88, 74.87, None, None, 65.18, 61.01),
        }
    ),
    "c_pp": _rows(
        {
            "standard": (75.67, 61.80, 59.36, 68.23, 82.33, 88.78),
            "distillation": (78.57, 66.43, 59.32, 68.22, 72.72, 79.99),
            "augmentation": (75.17, 57.28, 61.96, 66.67, 80.39, 91.99),
            "gbfl": (79.44, 56.23, 61.68, 68.75, 84.66, 89.67),
        }
    ),
    "accuracy": _rows(
        {
            "standard": (99.2, 60.7, 79.24, 75.10, 75.92, 93.0),
            "distillation": (92.88, 48.6, 79.96, 77.08, 61.2, 92.01),
            "augmentation": (96.21, 58.4, 77.8, 71.87, 74.72, 95.07),
            "gbfl": (97.68, 59.9, 77.30, 75.0, 75.48, 93.0),
            "black-box": (99.68, 69.4, 88.98, 83.0, 85.8, 96.1),
        }
    ),
}
"""Metric -> model -> set -> per cent: the results table of Pedapati, Balakrishnan, Shanmugam and Dhurandhar, 2020.

None is its NA: on Magic and Diabetes its explainer found no PN, and its C_TB there leaves the PN condition out."""


METRICS = ("c_tb", "c_pp", "c_pn", "accuracy", "clauses")
"""What `sets` has for every model, one value per seed."""
DETAILS = ("c_tb_of", "c_tb_all", "c_tb_all_of", "fidelity", "seconds")
PER_SEED = ("explanations", "mining", "foreign", "ranking", "regression")
HEAVIEST_FIRST = ("waveform", "skyserver", "credit_card", "magic", "wdbc", "diabetes")
"""Long runs begin first, so that no core is left with one at the end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    sets: tuple[str, ...] = tuple(SOURCES)
    seeds: int = 5
    rows: int = 4_000
    data: Path | None = None
    workers: int = 2
    work: Path | None = None
    """Where finished runs are kept, to continue from after an interruption."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One set with one seed."""

    dataset: Dataset
    seed: int
    rows: int
    file: Path | None
    """Where its result is kept."""


def check_plan(plan: Plan) -> Plan:
    """The plan itself, or a BadInput that says what is wrong with it."""
    for name in plan.sets:
        if name not in SOURCES:
            raise BadInput(f"--sets: {name!r} is not one of {', '.join(SOURCES)}")
    if not plan.sets or len(set(plan.sets)) < len(plan.sets):
        raise BadInput("--sets: name at least one set, and each once")
    if plan.seeds < 1 or plan.workers < 1:
        raise BadInput("--seeds and --jobs: at least 1")
    if plan.data is not None and not plan.data.is_dir():
        raise BadInput(f"{plan.data}: is not a folder of data sets")
    return plan


def run_experiment(plan: Plan, step: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Run every set and seed of the plan, calling `step` after each. Results do not depend on `workers`."""
    check_plan(plan)
    begun = time.perf_counter()
    datasets, absent = find_sets(plan)
    names = [name for name in HEAVIEST_FIRST if name in datasets]
    runs = [_run_of(plan, datasets[name], seed) for name in names for seed in range(plan.seeds)]
    done = {}
    for result in _results(runs, plan.workers):
        done[result["set"], result["seed"]] = result
        step(f"{result['set']}, seed {result['seed']}")
    ordered = {name: [done[name, seed] for seed in range(plan.seeds)] for name in plan.sets if name in datasets}
    return {**_collate(plan, datasets, absent, ordered), "seconds": _seconds(ordered, time.perf_counter() - begun)}


def find_sets(plan: Plan) -> tuple[dict[str, Dataset], dict[str, str]]:
    """The sets that are available, and for each other one the reason."""
    datasets, absent = {}, {}
    for name in plan.sets:
        try:
            datasets[name] = load_dataset(name, plan.data)
        except GbflError as error:
            absent[name] = str(error)
    return datasets, absent


def _run_of(plan: Plan, dataset: Dataset, seed: int) -> _Run:
    if plan.work is None:
        return _Run(dataset, seed, plan.rows, None)
    fingerprint = _fingerprint(dataset, seed, plan.rows)
    return _Run(dataset, seed, plan.rows, plan.work / f"{dataset.name}-{seed}-{fingerprint[:16]}.json")


def _fingerprint(dataset: Dataset, seed: int, rows: int) -> str:
    """A hash of everything a run's figures depend on: data, settings, versions, and the code itself."""
    data = data_fingerprint(dataset.x, dataset.features)
    inputs = (data, dataset.y.tolist(), seed, rows, versions(), code_fingerprint())
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()


def code_fingerprint() -> str:
    """A hash of this package's source: a result of other code is not continued from."""
    package = Path(__file__).parent.parent
    files = sorted((*package.glob("learning/**/*.py"), *package.glob("paper/*.py"), *package.glob("ir/*.py")))
    content = hashlib.sha256()
    for path in files:
        content.update(path.name.encode() + b"\0" + path.read_bytes())
    return content.hexdigest()


def _results(runs: Sequence[_Run], workers: int) -> Iterator[dict[str, Any]]:
    """The results as they come; those kept from an earlier call come first."""
    waiting = []
    for run in runs:
        if run.file is not None and run.file.exists():
            yield json.loads(run.file.read_bytes())
        else:
            waiting.append(run)
    if workers == 1 or len(waiting) < 2:
        yield from map(_run_and_keep, waiting)
        return
    from joblib import Parallel, delayed

    calls = (delayed(_run_and_keep)(run) for run in waiting)
    yield from Parallel(n_jobs=workers, return_as="generator_unordered")(calls)


def _run_and_keep(run: _Run) -> dict[str, Any]:
    result = measure_models(run.dataset, run.seed, run.rows)
    if run.file is not None:
        write_whole(run.file, json.dumps(result).encode("ascii"))
    return result


def _collate(
    plan: Plan, datasets: dict[str, Dataset], absent: dict[str, str], results: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    def series(name: str, model: str, what: str) -> list[Any]:
        return [result["models"][model].get(what) for result in results[name]]

    beside = {
        name: {m: {what: series(name, m, what) for what in METRICS} for m in BESIDE}
        for name in results
        if all(model in result["models"] for result in results[name] for model in BESIDE)
    }
    sets = {name: {m: {what: series(name, m, what) for what in METRICS} for m in MODELS} for name in results}
    return {
        "generator": GENERATOR,
        "command": command_of(plan),
        "versions": versions(),
        "settings": settings_of(plan),
        "sets": sets,
        "details": {name: {m: {what: series(name, m, what) for what in DETAILS} for m in MODELS} for name in results},
        "beside": beside,
        "not_available": absent,
        "data": {name: _characteristics(datasets[name]) for name in results},
        **{what: {name: [r[what] for r in results[name]] for name in results} for what in PER_SEED},
        "listings": {name: results[name][0]["listings"] for name in results},
        "p_values": {name: {m: _p_values(sets[name], m) for m in ("tree", "ours-32", "ours-100")} for name in results},
        "published": PUBLISHED,
    }


def _p_values(models: dict[str, dict[str, list[Any]]], against: str) -> dict[str, dict[str, float | None]]:
    """Two-sided p of paired t-tests of one model against each other transparent one."""
    others = [model for model in MODELS if model not in (against, "black-box")]
    metrics = ("c_tb", "accuracy")
    return {m: {what: paired_p(models[against][what], models[m][what]) for what in metrics} for m in others}


def _characteristics(dataset: Dataset) -> dict[str, Any]:
    return {
        "rows": len(dataset.x),
        "features": dataset.x.shape[1],
        "classes": len(np.unique(dataset.y)),
        "grid_points": dataset.grid_points,
        "skip": dataset.skip,
        "widths": list(dataset.widths),
        "origin": dataset.origin,
    }


def _seconds(results: dict[str, list[dict[str, Any]]], whole: float) -> dict[str, Any]:
    """The time of each set and seed when it was run, and of this call (which may have continued an earlier one)."""
    return {"whole": whole, "units": {name: [r["seconds"]["whole"] for r in results[name]] for name in results}}


def command_of(plan: Plan) -> str:
    """The command that gives this result again; a folder is named DIR, because it differs by machine."""
    parts = ["gbfl paper", f"--sets {','.join(plan.sets)}", f"--seeds {plan.seeds}", f"--rows {plan.rows}"]
    if plan.data is not None:
        parts.insert(1, "--data DIR")
    return " ".join(parts)


def settings_of(plan: Plan) -> dict[str, Any]:
    """The protocol in numbers."""
    trainings = {name: TRAININGS.get(name, USUAL) for name in plan.sets}
    return {
        "seeds": plan.seeds,
        "rows": plan.rows,
        "test_share": TEST_SHARE,
        "kappa": KAPPA,
        "balanced": list(BALANCED),
        "budgets": dict(BUDGETS),
        "networks": {name: _finite(asdict(training)) for name, training in trainings.items()},
    }


def _finite(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value == np.inf else value for name, value in numbers.items()}


def versions() -> dict[str, str]:
    """The versions that the figures may depend on."""
    import scipy
    import sklearn

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
