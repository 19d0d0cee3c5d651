"""A table and a black box become a program: read, train or load, explain, fit, lower, measure on rows held out.

Explained rows are kept in a folder, one chunk at a time: after an interruption of any kind the same call resumes from
there and ends in the same program.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast, get_args

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from gbfl_compile.errors import BadInput, did_you_mean
from gbfl_compile.files.atomic import make_folder, temporary_folder
from gbfl_compile.ir.batch import Matrix, evaluate_many
from gbfl_compile.ir.json import save
from gbfl_compile.ir.nodes import Kind as ColumnKind
from gbfl_compile.ir.nodes import Program
from gbfl_compile.learning.black_box import BackgroundCall, OriginalTable, as_black_box
from gbfl_compile.learning.black_box.load import KINDS, Kind, LoadedBlackBox, obtain_black_box
from gbfl_compile.learning.calibration import Probabilities
from gbfl_compile.learning.classifier import FEW_ROWS, GBFLClassifier
from gbfl_compile.learning.consistency import Triplets, save_triplets
from gbfl_compile.learning.explain import (
    triplets_of,
)
from gbfl_compile.learning.explain.checkpoints import checkpoint_folder, default_checkpoint, rows_per_unit, units_of
from gbfl_compile.learning.explain.nearest import with_examples
from gbfl_compile.learning.explain.parallel import explain_by_methods
from gbfl_compile.learning.fit import HeadKind
from gbfl_compile.learning.prepare import (
    USUAL_METHODS,
    check_parameters,
    explainers_of,
    methods_of,
    shared_classes,
)
from gbfl_compile.learning.reports import (
    as_input,
    baseline_figures,
    consistency_by_method,
    held_out_figures,
    outcome_figures,
)
from gbfl_compile.learning.tables import domain_for
from gbfl_compile.lowering import lower
from gbfl_compile.mining.summary import MiningResult, compare_groups, distributions
from gbfl_compile.passes import optimise
from gbfl_compile.tables.batches import bytes_of, jobs_within
from gbfl_compile.tables.draw import Choice, Missing
from gbfl_compile.tables.kinds import KINDS as COLUMN_KINDS
from gbfl_compile.tables.sample import Sample, read_sample

BLOCK_ROWS = 65_536

HEADS: dict[str, HeadKind] = {"rules": "rules", "tree": "tree", "list": "rule_list", "rule_list": "rule_list"}
"""Name of a head for users -> for the classifier."""


class Progress(Protocol):
    """Called at the start of each step, with a description and the number of steps in all."""

    def __call__(self, step: str, /, steps: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    """How a sample is mined."""

    head: HeadKind = "rules"
    clauses: int = 32
    depth: int = 5
    explainer: str = USUAL_METHODS
    seed: int = 0
    jobs: int = 1
    memory: int | None = None
    black_box_timeout: float | None = None
    codes: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()
    baselines: bool = True
    probabilities: Probabilities = "observed"


def _warn(note: str) -> None:
    warnings.warn(note, stacklevel=3)


def _no_progress(step: str, /, steps: int) -> None:
    pass


def mine(
    table: str | os.PathLike[str] | pd.DataFrame,
    target: str,
    *,
    train: Kind | None = None,
    black_box: Any = None,
    trust_pickle: bool = False,
    trust_types: Sequence[str] = (),
    database: str | None = None,
    drop: Sequence[str] = (),
    codes: Sequence[str] = (),
    immutable: Sequence[str] = (),
    features: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    na: Sequence[str] | None = None,
    missing: Missing = "keep",
    head: str = "rules",
    clauses: int | None = None,
    depth: int | None = None,
    explainer: str = USUAL_METHODS,
    rows: int = 20_000,
    seed: int = 0,
    jobs: int = 1,
    memory: str | int | None = None,
    black_box_timeout: float | None = None,
    baselines: bool = True,
    probabilities: Probabilities = "observed",
    out: str | os.PathLike[str] | None = None,
    triplets: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    note: Callable[[str], None] = _warn,
    progress: Progress = _no_progress,
) -> MiningResult:
    """Mine a program from a table and a black box, and measure it on a quarter of the rows, which are held out.

    table: a CSV, Parquet or Arrow file, a DataFrame, or with `database` (a URL) the name of a table there.
    train, black_box: train this kind on the table, or take a fitted model, a callable, a file or "module:callable".
    trust_pickle, trust_types: open a pickle, which runs its author's code; types to allow in a skops file.
    drop, codes, immutable: columns that are not features; features whose values are codes; that no PN changes.
    features, kinds: columns that are features, where not all others are; name -> kind, where another was inferred.
    na: texts that mean a missing value, in place of "?", "NA" and the like; empty and blank ones always do.
    missing: rows with a missing feature are learned from ("keep"), left out ("drop"), or refused ("refuse").
    head, clauses, depth: "rules", "tree" or "list", and the size allowed (32 clauses, or a depth of 5).
    explainer: "greedy", "nearest", "macem" or "spheres", or several joined by "+"; the rules are fitted to all of them.
    rows: at most this many are used, drawn with `seed`.
    jobs, memory: processes that explain rows; a limit for all together, such as "2GB". Neither changes the program.
    black_box_timeout: seconds the black box may take to answer a block of rows.
    baselines: whether three plain trees are fitted for comparison.
    probabilities: "observed", rates of the true classes on the rows held out (the score's where these are fewer than
        40); or "score", made of the black box's answers. Labels are the same.
    out, triplets: files for the program and for the held-out rows with their PPs and PNs (NPZ).
    checkpoint: a folder that keeps explained rows; by default OUT.parts until the program is written.
    note, progress: called with a line that the user should see (by default a warning), and at each step.
    """
    if (train is None) == (black_box is None):
        both = ", not both" if train else ""
        raise BadInput(f"give --train mlp|gbm|forest, to train a black box, or --black-box MODEL, to take one{both}")
    _refuse_unknown("train", train, (None, *KINDS))
    _refuse_unknown("missing", missing, ("keep", "drop", "refuse"))
    for kind in (kinds or {}).values():
        _refuse_unknown("kind", kind, COLUMN_KINDS)
    _refuse_unknown("head", head, tuple(HEADS))
    _refuse_unknown("probabilities", probabilities, get_args(Probabilities))
    for name, number in (("rows", rows), ("jobs", jobs)):
        if not isinstance(number, int) or number < 1:
            raise BadInput(f"{name}={number!r}: a whole number, at least 1")
    options = Options(
        *_checked_head(head, clauses, depth),
        explainer=explainer,
        seed=seed,
        jobs=jobs,
        memory=bytes_of(memory) if isinstance(memory, str) else memory,
        black_box_timeout=black_box_timeout,
        codes=tuple(codes),
        immutable=tuple(immutable),
        baselines=baselines,
        probabilities=probabilities,
    )
    program_file = _writable(out)
    marks = None if na is None else tuple(na)
    wanted = cast("Mapping[str, ColumnKind]", dict(kinds or {}))
    choice = Choice(target, tuple(drop), tuple(features), wanted, marks, missing)
    sample = read_sample(table, choice, database=database, most=rows, seed=seed, memory=options.memory)
    if sample.columns is not None:
        _refuse_for_words(explainer, sample)
    for line in sample.notes:
        note(line)
    _refuse_absent_features(options, sample.features)
    obtain = partial(
        obtain_black_box, black_box, train, seed=seed, trust_pickle=trust_pickle, trusted_types=tuple(trust_types)
    )
    with _checkpoint(program_file, checkpoint) as folder:
        begin = time.perf_counter()
        mined = replace(mine_sample(sample, obtain, options, folder, progress), seconds=time.perf_counter() - begin)
        if sample.columns is not None:
            kept = replace(mined.triplets, kinds=sample.columns.kinds, texts=sample.columns.book.texts)
            mined = replace(mined, triplets=kept)
        if program_file is not None:
            save(mined.program, program_file)
        if triplets is not None:
            save_triplets(Path(triplets), mined.triplets)
    return mined


def _refuse_for_words(explainer: str, sample: Sample) -> None:
    """Refuse what does not exist for tables with words or gaps, before the long work."""
    columns = sample.columns
    assert columns is not None  # noqa: S101 - it is called for such tables alone
    words = [name for name, kind in zip(columns.features, columns.kinds, strict=True) if kind != "number"]
    what = f"{words[0]!r} is a {columns.kinds[columns.features.index(words[0])]}" if words else "it has missing values"
    if "macem" in methods_of(explainer):
        raise BadInput(f"--explainer macem: {sample.name}: {what}, and macem needs numbers: use greedy")


def _refuse_unknown(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        names = [each for each in known if each is not None]
        suggestion = did_you_mean(value or "", names)
        raise BadInput(f"{name}={value!r} is not one of {', '.join(names)}{suggestion}")


def _checked_head(head: str, clauses: int | None, depth: int | None) -> tuple[HeadKind, int, int]:
    if head == "tree" and clauses is not None:
        raise BadInput("--clauses is for rules and lists: a tree is limited by --depth")
    if head != "tree" and depth is not None:
        raise BadInput(f"--depth is for trees: {head} is limited by --clauses")
    return HEADS[head], 32 if clauses is None else clauses, 5 if depth is None else depth


def _writable(out: str | os.PathLike[str] | None) -> Path | None:
    """The program's file. Its folder is created first: finding out at the end that it cannot be would waste hours."""
    if out is None:
        return None
    if (path := Path(out)).is_dir():
        raise BadInput(f"{path}: is a folder, name a file")
    make_folder(path.parent)
    return path


@contextmanager
def _checkpoint(out: Path | None, checkpoint: str | os.PathLike[str] | None) -> Iterator[Path]:
    """The folder for explained rows: the user's own, one beside the program, or a temporary one."""
    if out is None and checkpoint is None:
        with temporary_folder("mine") as folder:
            yield folder
        return
    folder = default_checkpoint(out) if out is not None and checkpoint is None else Path(checkpoint or "")
    with checkpoint_folder(folder, keep=checkpoint is not None):
        yield folder


def _refuse_absent_features(options: Options, features: tuple[str, ...]) -> None:
    for flag, names in (("--codes", options.codes), ("--immutable", options.immutable)):
        if unknown := [name for name in names if name not in features]:
            raise BadInput(f"{flag} {unknown[0]}: there is no feature of that name")


def mine_sample(
    sample: Sample,
    obtain: Callable[..., LoadedBlackBox],
    options: Options,
    folder: Path,
    progress: Progress = _no_progress,
) -> MiningResult:
    """The program mined from a sample with the black box that `obtain` gives, explanations kept below `folder`."""
    split, features, columns = sample.split, sample.features, sample.columns
    methods = methods_of(options.explainer)
    units = sum(len(units_of(len(x), rows_per_unit(len(x)))) for x in (split.x, split.x_test))
    step = partial(progress, steps=len(methods) * units + 4)
    with threadpool_limits(1):  # of each process: several threads would change last bits
        step("the black box")
        source = obtain(split.x, split.y, features, columns=columns, palettes=sample.palettes)
        origin = source.as_json()
        jobs = (
            options.jobs if options.memory is None else jobs_within(options.memory, split, options.jobs, len(methods))
        )
        original = None if columns is None or source.takes_codes else OriginalTable(columns, sample.palettes)
        black_box = as_black_box(
            source.model, split.x, features=features, time_limit=options.black_box_timeout, table=original
        )
        classes = shared_classes(black_box, split.y)  # labels that do not match are refused before the long work
        model = GBFLClassifier(
            black_box,
            head=options.head,
            explainer=options.explainer,
            max_clauses=options.clauses,
            max_depth=options.depth,
            immutable=options.immutable,
            kinds={name: tuple(np.unique(split.x[:, features.index(name)]).tolist()) for name in options.codes},
            random_state=options.seed,
        )
        check_parameters(model)
        domain = with_examples(domain_for(model, split.x, features, columns), black_box, split.x)
        explainers = explainers_of(model, model.kappa)
        explain = partial(explain_by_methods, explainers, black_box, domain=domain, n_jobs=jobs)
        explaining = partial(step, f"explaining {len(split.x)} training rows")
        explanations = explain(split.x, folder=folder / "training", tell=explaining)
        step(f"fitting {options.head}")
        fit = partial(model.fit, as_input(split.x, features, columns), split.y, explanations=explanations)
        # with few rows the fit itself queries the black box, which may not allow concurrent calls
        fitting = BackgroundCall(fit, "fitting") if jobs > 1 and len(split.x) >= FEW_ROWS else None
        if fitting is None:
            fit()
        at_once = None if fitting is None else jobs - 1
        explaining = partial(step, f"explaining {len(split.x_test)} test rows")
        held_out = explain(split.x_test, folder=folder / "test", at_once=at_once, tell=explaining)
        by_method = {name: triplets_of(each, classes) for name, each in held_out.items()}
        triplets = by_method[methods[0]]
        figures: dict[str, Any] = {}
        if options.baselines:
            step("fitting the baselines")
            fixed: dict[str, Any] = {"seed": options.seed, "jobs": jobs, "columns": columns}
            figures["baselines"] = baseline_figures(black_box, explanations, split.y, triplets, split.y_test, **fixed)
        if fitting is not None:
            fitting.answer()
        step("lowering, simplifying, measuring")
        return _measure(model, sample, by_method, options, origin, figures)


def _measure(
    model: GBFLClassifier,
    sample: Sample,
    by_method: Mapping[str, Triplets],
    options: Options,
    origin: dict[str, Any],
    figures: dict[str, Any],
) -> MiningResult:
    """The fitted model as a program, and how both do on the held-out rows."""
    split, columns = sample.split, sample.columns
    rows = as_input(split.x_test, sample.features, columns)
    model.probabilities_ = {"emitted": "score", "why": "--probabilities observed makes them rates"}
    if options.probabilities == "observed":
        model.calibrate(rows, split.y_test)
    if model.probabilities_["emitted"] == "observed":
        model.probabilities_ = {**model.probabilities_, "unseen": origin["kind"] in KINDS}
    book = None if columns is None else columns.book
    triplets = next(iter(by_method.values()))
    accuracy, consistency = held_out_figures(model, triplets, split.y_test, columns)
    outcome = outcome_figures(model, rows, split.y_test, getattr(model, "out_of_fold_", None))
    methods = consistency_by_method(model, by_method, columns)
    own_accuracy = outcome["black_box_accuracy"]
    test = {**outcome, **consistency.as_dict(), "methods": methods}
    program = optimise(lower(model, {"test": test, **figures}), split.x, book)
    compared = (split.x, triplets.x, triplets.pp, triplets.pn)
    different = sum(_count_different(program, model, rows) for rows in compared)
    mining = {
        "data": sample.facts,
        "seed": options.seed,
        "black_box": origin,
        "head": options.head,
        "explainer": options.explainer,
        "rows": {"training": len(split.x), "test": len(split.x_test)},
        "path": model.path_.to_dict("records"),
        **distributions(program, split.x, split.y, split.y_test, book),
        "groups": compare_groups(program, split.x_test, split.y_test, book),
    }
    program = replace(program, metadata={**program.metadata, "mining": mining})
    rows_compared, queries = sum(map(len, compared)), model.black_box_.queries
    return MiningResult(program, triplets, consistency, accuracy, own_accuracy, rows_compared, different, queries)


def _count_different(program: Program, model: GBFLClassifier, rows: Matrix) -> int:
    """On how many rows the program answers differently from the classifier, one block at a time."""
    count = 0
    for begin in range(0, len(rows), BLOCK_ROWS):
        block = rows[begin : begin + BLOCK_ROWS]
        answers = evaluate_many(program, block, None if model.columns_ is None else model.columns_.book)
        own = model.answers(block)
        labels = model.classes_[own.labels.astype(np.int64)]
        count += int(((labels != answers.labels) | (own.probabilities != answers.probabilities).any(axis=1)).sum())
    return count
