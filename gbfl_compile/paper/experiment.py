"""The whole experiment: sets found, units run side by side and kept when finished, one JSON result."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gbfl_compile.datasets import SOURCES, Dataset, load_dataset
from gbfl_compile.errors import BadInput, GbflError
from gbfl_compile.files import write_whole
from gbfl_compile.paper.models import BESIDE, BUDGETS, MODELS, run_unit
from gbfl_compile.paper.protocol import BALANCED, KAPPA, TEST_SHARE, TRAININGS, USUAL
from gbfl_compile.paper.published import PUBLISHED
from gbfl_compile.paper.significance import paired_p
from gbfl_compile.provenance import data_fingerprint
from gbfl_compile.version import GENERATOR

METRICS = ("c_tb", "c_pp", "c_pn", "accuracy", "clauses")
"""What `sets` has for every model, one value a seed."""
DETAILS = ("c_tb_of", "c_tb_all", "c_tb_all_of", "fidelity", "seconds")
HEAVIEST_FIRST = ("waveform", "skyserver", "credit_card", "magic", "wdbc", "diabetes")
"""Long units begin first, so that no core is left with one at the end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run."""

    sets: tuple[str, ...] = tuple(SOURCES)
    seeds: int = 5
    rows: int = 4_000
    data: Path | None = None
    workers: int = 2
    work: Path | None = None
    """Where finished units are kept, to go on from after an interruption."""


@dataclass(frozen=True, slots=True)
class _Unit:
    dataset: Dataset
    seed: int
    rows: int
    kept_at: Path | None


def check_plan(plan: Plan) -> Plan:
    """The plan itself, or a BadInput that says what is wrong with it."""
    for name in plan.sets:
        if name not in SOURCES:
            raise BadInput(f"--sets: {name!r} is none of {', '.join(SOURCES)}")
    if not plan.sets or len(set(plan.sets)) < len(plan.sets):
        raise BadInput("--sets: name each set once, one at least")
    if plan.seeds < 1 or plan.workers < 1:
        raise BadInput("--seeds and --workers: 1 at least")
    if plan.data is not None and not plan.data.is_dir():
        raise BadInput(f"{plan.data}: is no folder of data sets")
    return plan


def run_experiment(plan: Plan, step: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Run every unit of the plan; `step` is told of each one that is done. Results do not depend on `workers`."""
    check_plan(plan)
    begun = time.perf_counter()
    found, absent = find_sets(plan)
    units = [_unit(plan, found[name], seed) for name in HEAVIEST_FIRST if name in found for seed in range(plan.seeds)]
    done = {}
    for result in _finished(units, plan.workers):
        done[result["set"], result["seed"]] = result
        step(f"{result['set']}, seed {result['seed']}")
    ordered = {name: [done[name, seed] for seed in range(plan.seeds)] for name in plan.sets if name in found}
    return {**_collated(plan, found, absent, ordered), "seconds": _seconds(ordered, time.perf_counter() - begun)}


def find_sets(plan: Plan) -> tuple[dict[str, Dataset], dict[str, str]]:
    """The sets that can be had, and for each other one the reason."""
    found, absent = {}, {}
    for name in plan.sets:
        try:
            found[name] = load_dataset(name, plan.data)
        except GbflError as trouble:
            absent[name] = str(trouble)
    return found, absent


def _unit(plan: Plan, dataset: Dataset, seed: int) -> _Unit:
    if plan.work is None:
        return _Unit(dataset, seed, plan.rows, None)
    print_ = _fingerprint(dataset, seed, plan.rows)
    return _Unit(dataset, seed, plan.rows, plan.work / f"{dataset.name}-{seed}-{print_[:16]}.json")


def _fingerprint(dataset: Dataset, seed: int, rows: int) -> str:
    """Of everything a unit's figures depend on: data, settings, versions, and the code itself."""
    told = (data_fingerprint(dataset.x, dataset.features), dataset.y.tolist(), seed, rows, versions(), code_print())
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def code_print() -> str:
    """A hash of this package's source: a unit measured by other code is not gone on from."""
    package = Path(__file__).parent.parent
    files = sorted((*package.glob("learn/**/*.py"), *package.glob("paper/*.py"), *package.glob("ir/*.py")))
    known = hashlib.sha256()
    for path in (*files, package / "consistency.py"):
        known.update(path.name.encode() + b"\0" + path.read_bytes())
    return known.hexdigest()


def _finished(units: Sequence[_Unit], workers: int) -> Iterator[dict[str, Any]]:
    """The units' results as they come; those kept from before come at once."""
    waiting = []
    for unit in units:
        if (kept := _kept(unit)) is not None:
            yield kept
        else:
            waiting.append(unit)
    if workers == 1 or len(waiting) < 2:
        yield from map(_run_and_keep, waiting)
        return
    from joblib import Parallel, delayed

    calls = (delayed(_run_and_keep)(unit) for unit in waiting)
    yield from Parallel(n_jobs=workers, return_as="generator_unordered")(calls)


def _kept(unit: _Unit) -> dict[str, Any] | None:
    if unit.kept_at is None or not unit.kept_at.exists():
        return None
    kept: dict[str, Any] = json.loads(unit.kept_at.read_bytes())
    return kept


def _run_and_keep(unit: _Unit) -> dict[str, Any]:
    result = run_unit(unit.dataset, unit.seed, unit.rows)
    if unit.kept_at is not None:
        write_whole(unit.kept_at, json.dumps(result).encode("ascii"))
    return result


def _collated(
    plan: Plan, found: dict[str, Dataset], absent: dict[str, str], units: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    def series(name: str, model: str, what: str) -> list[Any]:
        return [unit["models"][model].get(what) for unit in units[name]]

    beside = {
        name: {m: {what: series(name, m, what) for what in METRICS} for m in BESIDE}
        for name in units
        if all(model in unit["models"] for unit in units[name] for model in BESIDE)
    }
    sets = {name: {m: {what: series(name, m, what) for what in METRICS} for m in MODELS} for name in units}
    return {
        "generator": GENERATOR,
        "command": command_of(plan),
        "versions": versions(),
        "settings": settings_of(plan),
        "sets": sets,
        "details": {name: {m: {what: series(name, m, what) for what in DETAILS} for m in MODELS} for name in units},
        "beside": beside,
        "not_available": absent,
        "data": {name: _characteristics(found[name]) for name in units},
        "explanations": {name: [unit["explanations"] for unit in units[name]] for name in units},
        "mining": {name: [unit["mining"] for unit in units[name]] for name in units},
        "chosen": {name: [unit["chosen"] for unit in units[name]] for name in units},
        "listings": {name: units[name][0]["listings"] for name in units},
        "p_values": {name: {m: _p_values(sets[name], m) for m in ("ours-32", "ours-100", "ours")} for name in units},
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


def _seconds(units: dict[str, list[dict[str, Any]]], whole: float) -> dict[str, Any]:
    """What it took: each unit when it was run, and this run altogether (which may have gone on from an earlier one)."""
    return {"whole": whole, "units": {name: [u["seconds"]["whole"] for u in units[name]] for name in units}}


def command_of(plan: Plan) -> str:
    """The command that gives this result again; a folder is named DIR, for it is another one elsewhere."""
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
    """Of what the figures may depend on."""
    import scipy
    import sklearn

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
