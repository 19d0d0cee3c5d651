"""Group `explain`: rows explained per second and black-box queries per row, ours against per-row FISTA and DiCE.

All explain the same network (the paper's for Magic, 40-25-10) on the same data: Magic itself where
`../shared/data` lies beside the checkout, else synthetic rows of the same width. The per-row FISTA is written
here, for alibi's CEM does not start under a current TensorFlow (its Keras has no `get_session`). It has the
shape of that method's black-box mode, numerical gradients by central differences and 1,000 iterations per row
and side, but one weight c where alibi's default tries ten: the comparison errs on its side. So it does with
DiCE, which gives a counterfactual only, ours a PP and a PN.
"""

import contextlib
import io
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain import domain_of
from gbfl_compile.learning.explain.greedy import explain_greedily
from gbfl_compile.learning.explain.macem import explain_by_macem
from tests.bench.timing import Timing

MAGIC = Path(__file__).parents[3] / "shared" / "data" / "magic.csv.gz"


@dataclass(frozen=True, slots=True)
class ExplainRun:
    """One contender on some rows: CPU seconds, queries, rows with a PN (or counterfactual), peak megabytes."""

    who: str
    rows: int
    seconds: float
    queries: int
    found: int
    megabytes: float | None = None


def run() -> list[Timing]:
    """Print what each costs; return CPU nanoseconds per row."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name, x, model = _problem(10)
        peers, skipped = [_ours(explain_greedily, "greedy", model, x, 2000)], []
        peers += [_ours(explain_by_macem, "macem", model, x, 500), _fista_a_row(model, x, 3)]
        for method, rows in (("genetic", 20), ("random", 4)):
            try:
                peers.append(_dice(method, model, x, rows))
            except ImportError as reason:
                skipped.append(f"DiCE, {method}: not run: {reason} (pip install dice-ml)")
        many = x[np.random.default_rng(1).integers(len(x), size=30_000)]
        many = many + np.random.default_rng(2).normal(size=many.shape) * 1e-3 * x.std(axis=0)
        sizes = [_ours(explain_greedily, "greedy", model, many, n, memory=True) for n in (1000, 3000, 10_000, 30_000)]
        _, wide, wide_model = _problem(20)
        sizes_wide = [_ours(explain_greedily, "greedy", wide_model, wide, 10_000, memory=True)]
    _print(f"{name}, each contender once", peers, skipped)
    _print(f"{name}, cost per row against the number of rows", sizes, [])
    _print("synthetic, 20 features", sizes_wide, [])
    _print_ratios(peers, sizes)
    timed = [Timing("explain", name, e.who, 1e9 * e.seconds / e.rows) for e in peers]
    return timed + [Timing("explain", "greedy by rows", f"{e.rows:,} rows", 1e9 * e.seconds / e.rows) for e in sizes]


def _problem(features: int) -> tuple[str, np.ndarray, object]:
    if MAGIC.exists() and features == 10:
        import pandas as pd

        frame = pd.read_csv(MAGIC)
        y = (frame.pop("class") == "h").to_numpy().astype(int)
        name, x = "Magic", frame.to_numpy(dtype=np.float64)
    else:
        x, y = make_classification(19_020, features, n_informative=6, n_clusters_per_class=3, random_state=0)
        name = f"synthetic, {features} features"
    network = MLPClassifier((40, 25, 10), early_stopping=True, random_state=0)
    return name, x, make_pipeline(StandardScaler(), network).fit(x, y)


def _some(x: np.ndarray, n: int) -> np.ndarray:
    """The first n rows of one shuffle: a slow method explains some of the rows that the others explain."""
    return np.random.default_rng(0).permutation(len(x))[:n]


def _ours(explain: Callable, who: str, model: object, x: np.ndarray, n: int, *, memory: bool = False) -> ExplainRun:
    domain, rows = domain_of(x), x[_some(x, n)]
    box = as_black_box(model, x)
    began = time.process_time()
    found = explain(box, rows, domain)
    seconds = time.process_time() - began
    peak = None
    if memory:  # a second time, for watching slows it down
        tracemalloc.start()
        explain(box, rows, domain)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    return ExplainRun(f"our {who}", n, seconds, found.queries, int(found.has_pn.sum()), peak)


def _fista_a_row(model: object, x: np.ndarray, n: int, iterations: int = 1000) -> ExplainRun:
    """The contrastive explanation method one row at a time: elastic net, FISTA, numerical gradients."""
    domain = domain_of(x)
    width = domain.upper - domain.lower
    query_count, found = 0, 0

    def loss(points: np.ndarray, label: int, sign: int) -> np.ndarray:
        nonlocal query_count
        query_count += len(points)
        answer = model.predict_proba(points)
        own, other = answer[:, label], np.delete(answer, label, axis=1).max(axis=1)
        return np.maximum(-sign * (own - other), -0.5)

    began = time.process_time()
    for row in x[_some(x, n)]:
        label = int(model.predict_proba(row[None]).argmax())
        for sign, start in ((1, domain.base), (-1, row)):
            low = np.where(row > domain.base, domain.base if sign > 0 else row, domain.lower if sign < 0 else row)
            high = np.where(row < domain.base, domain.base if sign > 0 else row, domain.upper if sign < 0 else row)
            low, high = (low - start) / width, (high - start) / width
            best = _fista(lambda z, s=start, g=sign, c=label: loss(s + z * width, c, g), low, high, iterations)
            found += sign < 0 and best is not None
    return ExplainRun("FISTA, per row", n, time.process_time() - began, query_count, found)


def _fista(loss: Callable, low: np.ndarray, high: np.ndarray, iterations: int) -> np.ndarray | None:
    weight, beta, step, eps = 10.0, 0.1, 1e-2, 1e-3
    z = ahead = np.zeros_like(low)
    best, smallest = None, np.inf
    around = eps * np.concatenate((np.eye(len(z)), -np.eye(len(z))))
    for i in range(iterations):
        sides = loss(ahead + around).reshape(2, -1)
        slope = weight * (sides[0] - sides[1]) / (2 * eps) + 2 * ahead
        length = step * np.sqrt(1 - i / iterations)
        there = ahead - length * slope
        there = np.clip(np.sign(there) * np.maximum(np.abs(there) - length * beta, 0), low, high)
        ahead = np.clip(there + i / (i + 3) * (there - z), low, high)
        z = there
        size = beta * np.abs(z).sum() + z @ z
        if loss(z[None])[0] < 0 and size < smallest:
            best, smallest = z, size
    return best


def _dice(method: str, model: object, x: np.ndarray, n: int) -> ExplainRun:
    import dice_ml
    import pandas as pd

    class QueryCounter:
        classes_ = np.array([0, 1])
        query_count = 0

        def predict_proba(self, rows: object) -> np.ndarray:
            self.query_count += len(rows)
            return model.predict_proba(np.asarray(rows, dtype=np.float64))

        def predict(self, rows: object) -> np.ndarray:
            return self.predict_proba(rows).argmax(axis=1)

    names, counted = [f"x{j}" for j in range(x.shape[1])], QueryCounter()
    frame = pd.DataFrame(x, columns=names).assign(y=model.predict(x))
    rows = frame[names].iloc[_some(x, n)]
    known = dice_ml.Data(dataframe=frame, continuous_features=names, outcome_name="y")
    peer = dice_ml.Dice(known, dice_ml.Model(model=counted, backend="sklearn"), method=method)
    options = {"random_seed": 0} if method == "random" else {}
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        counted.query_count, began = 0, time.process_time()
        made = peer.generate_counterfactuals(rows, total_CFs=1, desired_class="opposite", **options)
        seconds = time.process_time() - began
    found = sum(one.final_cfs_df is not None and len(one.final_cfs_df) > 0 for one in made.cf_examples_list)
    return ExplainRun(f"DiCE, {method}", n, seconds, counted.query_count, found)


def _print(title: str, measured: list[ExplainRun], remarks: list[str]) -> None:
    table = Table("who", "rows", "rows per CPU second", "queries per row", "PN found", "peak memory", title=title)
    for e in measured:
        peak = "" if e.megabytes is None else f"{e.megabytes:,.0f} MB"
        share = f"{100 * e.found / e.rows:.0f} %"
        table.add_row(e.who, f"{e.rows:,}", f"{e.rows / e.seconds:,.2f}", f"{e.queries / e.rows:,.1f}", share, peak)
    console = Console(width=100)
    console.print(table)
    for remark in remarks:
        console.print(remark, markup=False)


def _print_ratios(peers: list[ExplainRun], sizes: list[ExplainRun]) -> None:
    console, ours = Console(width=100), peers[0]
    for peer in peers[1:]:
        fewer = (peer.queries / peer.rows) / (ours.queries / ours.rows)
        quicker = (ours.rows / ours.seconds) / (peer.rows / peer.seconds)
        console.print(f"greedy against {peer.who}: {fewer:,.0f} times fewer queries, {quicker:,.0f} times the rows")
    costs = [1e6 * e.seconds / e.rows for e in sizes]
    console.print(f"greedy, microseconds per row from 1,000 to 30,000 rows: {', '.join(f'{c:.0f}' for c in costs)}")


if __name__ == "__main__":
    run()
