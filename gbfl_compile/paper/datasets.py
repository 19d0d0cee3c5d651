"""The paper's six data sets and what is done with each: its settings, which rows, how they are split, the network.

The user's folder comes first. WDBC is part of scikit-learn and waveform is generated from its published definition; the
others come from OpenML. If a set is not available, the reason is stated.
"""

from __future__ import annotations

import contextlib
import socket
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from gbfl_compile.errors import BadInput, CannotRun, GbflError

WAVEFORM_ROWS = 5_000
PATIENCE = 20.0
"""Seconds that OpenML may take to answer."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a set comes from and what the paper's appendix says about it."""

    title: str
    domain: str
    target: str
    """The class column of the file."""
    dropped: tuple[str, ...]
    """Row numbers and constants."""
    grid_points: int
    """The paper's N + 1."""
    skip: int
    """The paper's Delta."""
    widths: tuple[int, ...]
    """The widths of its network's hidden layers."""
    openml: int | None
    """Its number on OpenML, where there is a copy."""


SOURCES: Mapping[str, Source] = {
    "wdbc": Source("WDBC", "health", "diagnosis", (), 10, 4, (20, 10), None),
    "diabetes": Source("Diabetes", "health", "Outcome", (), 10, 2, (35, 10), 37),
    "waveform": Source("Waveform", "signals", "class", (), 20, 3, (15, 10), None),
    "magic": Source("Magic", "astronomy", "class", (), 30, 3, (40, 25, 10), 1120),
    "skyserver": Source(
        "Sky Survey", "astronomy", "class", ("objid", "specobjid", "rerun"), 30, 3, (128, 256, 256, 128, 64), None
    ),
    "credit_card": Source("Credit Card", "finance", "default.payment.next.month", ("ID",), 30, 3, (25, 10), 42477),
}
"""Name -> source, in the order of the table. By its percentages, the paper's `Diabetes` is the 768-row Pima set."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows and their classes, and the paper's settings for them."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[Any]
    """The original labels."""
    features: tuple[str, ...]
    grid_points: int
    skip: int
    widths: tuple[int, ...]
    origin: str
    """Where these rows came from, in words."""


def load_dataset(name: str, folder: Path | None = None, seed: int = 0) -> Dataset:
    """One of the six sets: from `folder` if it has it, else built in or from OpenML. `seed` is for a generated one."""
    if name not in SOURCES:
        raise BadInput(f"data set {name!r} is not one of {', '.join(SOURCES)}")
    if folder is not None:
        if not folder.is_dir():
            raise BadInput(f"{folder}: is not a folder of data sets")
        for path in (folder / f"{name}.csv.gz", folder / f"{name}.csv"):
            if path.exists():
                return from_file(name, path)
    if name == "wdbc":
        return _wdbc()
    if name == "waveform":
        return _generated_waveform(seed)
    try:
        return from_openml(name)
    except GbflError as error:
        missing = "no --data folder was given" if folder is None else f"{folder} has no {name}.csv.gz"
        raise CannotRun(f"{missing}, and {error}") from None


def from_file(name: str, path: Path) -> Dataset:
    """A set from a CSV file with a header, gzipped or not."""
    import pandas as pd

    source = SOURCES[name]
    try:
        table = pd.read_csv(path)
    except (OSError, EOFError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read as a table: {' '.join(str(error).split())}") from None
    if source.target not in table.columns:
        raise BadInput(f"{path}: has no column {source.target!r} for the class")
    return _dataset(name, table.drop(columns=source.target), table[source.target], f"file {path.name}")


def from_openml(name: str) -> Dataset:
    """A set from OpenML; CannotRun says why where it is not available."""
    from sklearn.datasets import fetch_openml

    number = SOURCES[name].openml
    if number is None:
        raise CannotRun("no copy of it is known on OpenML: put the file in a folder and name it with --data")
    try:
        with _patience(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a retry needs no warning; its failure is reported below
            table = fetch_openml(data_id=number, as_frame=True, parser="auto", n_retries=1, delay=1.0)
    except Exception as error:  # offline, refused, cut short, another format: reported as it is
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CannotRun(f"OpenML could not be queried for set {number}: {reason[:200]}") from None
    return _dataset(name, table.data, table.target, f"OpenML set {number}")


@contextlib.contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Connections opened in this context give up after `seconds`; scikit-learn's own would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _dataset(name: str, table: Any, target: Any, origin: str) -> Dataset:
    """The feature columns as numbers, and the labels unchanged."""
    source = SOURCES[name]
    features = table.drop(columns=[column for column in source.dropped if column in table.columns])
    try:
        x = features.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{origin}: a feature of {name} is not a number: {error}") from None
    if not np.isfinite(x).all():
        raise BadInput(f"{origin}: a value of {name} is missing or infinite")
    names = tuple(str(column) for column in features.columns)
    return _with_settings(name, x, np.array(target.tolist()), names, origin)


def _with_settings(
    name: str, x: NDArray[np.float64], y: NDArray[Any], features: tuple[str, ...], origin: str
) -> Dataset:
    source = SOURCES[name]
    return Dataset(name, x, y, features, source.grid_points, source.skip, source.widths, origin)


def _wdbc() -> Dataset:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    labels = np.array(["M", "B"])[data.target]
    names = tuple(str(name).replace(" ", "_") for name in data.feature_names)
    return _with_settings("wdbc", np.asarray(data.data, dtype=np.float64), labels, names, "scikit-learn's own copy")


def _generated_waveform(seed: int) -> Dataset:
    x, y = waveform(WAVEFORM_ROWS, seed)
    names = tuple(f"x{index}" for index in range(1, 22))
    origin = f"Breiman's definition, {WAVEFORM_ROWS} rows generated with seed {seed}"
    return _with_settings("waveform", x, y, names, origin)


def waveform(rows: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Breiman's waveforms: each row a random mixture of two of three triangular waves, plus unit noise.

    The waves are triangles of height 6 on 21 points, with their tops at points 11, 15 and 7. Classes are numbered
    as in UCI's file: 0 leaves the first wave out, 1 the second, 2 the third.
    """
    rng = np.random.default_rng(seed)
    points = np.arange(1, 22)
    waves = np.maximum(6.0 - np.abs(points - np.array([[11], [15], [7]])), 0.0)
    pairs = np.array([[1, 2], [0, 2], [0, 1]])
    label = rng.integers(0, 3, rows)
    share = rng.random((rows, 1))
    mixture = share * waves[pairs[label, 0]] + (1.0 - share) * waves[pairs[label, 1]]
    return mixture + rng.standard_normal((rows, 21)), label.astype(np.int64)


TEST_SHARE = 0.25
KAPPA = 0.5
FEWEST_ROWS = 40

BALANCED = ("credit_card",)
"""Sets drawn with equally many rows per class: the paper's accuracies on them lie below the majority's share."""
FRESH = 100
"""Seed 0 uses random seed 100, and so on: the settings of our models were chosen on splits 0 to 6, and a split that
helped to choose them does not test them. The rows are the same, so this reduces the optimism but does not remove it."""


@dataclass(frozen=True, slots=True)
class Training:
    """How a network is trained, beyond its widths, Adam and a learning rate of 0.001."""

    alpha: float = 1e-4
    epochs: int = 200
    patience: int = 8
    stops_early_above: float = 1_000
    """With more rows than this, training stops when a held-out tenth no longer improves."""


USUAL = Training()
TRAININGS: Mapping[str, Training] = {
    # The paper's network has dropout of one half in four places, and scikit-learn has none. Unregularised, five
    # layers on 3,000 rows are right on 95-97 % and far from smooth; with this penalty they are right on 98 %.
    "skyserver": Training(alpha=1.0, epochs=60, patience=10, stops_early_above=np.inf),
}


@dataclass(frozen=True, slots=True)
class Split:
    """Rows to learn from and rows to measure on."""

    x: NDArray[np.float64]
    y: NDArray[Any]
    x_test: NDArray[np.float64]
    y_test: NDArray[Any]


def split_of(dataset: Dataset, rows: int, seed: int) -> Split:
    """At most `rows` rows, 75 % of them for training, the classes in the same shares on both sides."""
    if rows < FEWEST_ROWS:
        raise BadInput(f"{rows} rows are too few to split and explain: at least {FEWEST_ROWS}")
    x, y = _draw(dataset, rows, seed)
    x_train, x_test, y_train, y_test = train_test_split(
        x, y, test_size=TEST_SHARE, random_state=FRESH + seed, stratify=y
    )
    return Split(x_train, y_train, x_test, y_test)


def _draw(dataset: Dataset, rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if dataset.name in BALANCED:
        classes, counts = np.unique(dataset.y, return_counts=True)
        each = min(rows // len(classes), int(counts.min()))
        rng = np.random.default_rng(FRESH + seed)
        own = [rng.choice(np.flatnonzero(dataset.y == label), each, replace=False) for label in classes]
        indices = np.concatenate(own)
        return dataset.x[indices], dataset.y[indices]
    if len(dataset.x) <= rows:
        return dataset.x, dataset.y
    x, _, y, _ = train_test_split(dataset.x, dataset.y, train_size=rows, random_state=FRESH + seed, stratify=dataset.y)
    return x, y


def network_of(dataset: Dataset, split: Split, seed: int) -> Pipeline:
    """The black box: a network of the appendix's widths on standardised features."""
    training = TRAININGS.get(dataset.name, USUAL)
    network = MLPClassifier(
        dataset.widths,
        alpha=training.alpha,
        learning_rate_init=1e-3,
        max_iter=training.epochs,
        n_iter_no_change=training.patience,
        early_stopping=len(split.x) > training.stops_early_above,
        random_state=FRESH + seed,
    )
    with warnings.catch_warnings():
        # stopping before convergence is not a defect in a model that is only to be explained
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), network).fit(split.x, split.y)
