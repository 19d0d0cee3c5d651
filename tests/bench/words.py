"""`python -m tests.bench.words FOLDER [--seeds 0,1] [TABLE ..]`: how consistent rules on tables with words are.

FOLDER has telco, adult, german, compas and horse_colic as .csv.gz. At most 4,000 rows each, two black boxes, one line per
run. Beside the rules is the paper's tree on data, PPs and PNs with as many conditions, fitted to the same points. The
calibration error (ten bins of equally many rows, as `learning/reports.py` has it) is of new rows, beside what chance
makes of it on as many rows if every probability is right; then of the rows held out, each by rates of the others.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from gbfl_compile.ir.evaluate import evaluate
from gbfl_compile.learning.classifier import GBFLClassifier
from gbfl_compile.learning.explain import concatenate
from gbfl_compile.learning.explain.domain import table_domain
from gbfl_compile.learning.explain.table_values import breaks_pairs, differ
from gbfl_compile.learning.prepare import shared_classes
from gbfl_compile.learning.reports import calibration_by_chance, calibration_error, held_out_figures
from gbfl_compile.learning.tables import OnPreparedRows, preparation_of
from gbfl_compile.mining import mine
from gbfl_compile.tables.draw import Choice, drawn_rows
from gbfl_compile.tables.sample import read_sample
from gbfl_compile.tables.values import value_rows

ROWS = 4000
TARGETS = {
    "telco": "Churn",
    "adult": "income",
    "german": "risk",
    "compas": "two_year_recid",
    "horse_colic": "outcome",
}
HEADER = (
    "table        black box seed  C_TB all  tree of that size  fidelity  accuracy  black box  with PN  impossible"
    "  conditions  calibration error: of new rows, by chance, rows; held out, by chance  seconds\n"
)
HORSE_NUMBERS = (
    *("rectal_temp", "pulse", "respiratory_rate", "reflux_ph", "packed_cell_volume", "total_protein"),
    "abdomo_protein",
)
HORSE_KEYS = ("hospital_number", "lesion_2", "lesion_3", "cp_data")


def table(folder, name):
    """The table, and the kinds that are not inferred: horse-colic's numbers are codes."""
    rows = pd.read_csv(Path(folder) / f"{name}.csv.gz", dtype=str if name == "horse_colic" else None)
    if name != "horse_colic":
        return Path(folder) / f"{name}.csv.gz", {}
    rows = rows[rows.outcome != "?"].drop(columns=list(HORSE_KEYS))
    rows["outcome"] = np.where(rows.outcome == "1", "lived", "died")
    return rows, {column: "category" for column in rows.columns if column not in (*HORSE_NUMBERS, "outcome")}


def impossible(sample, e):
    """PPs and PNs with a value that the training rows do not show to be possible, or words that never meet."""
    domain = table_domain(sample.split.x, sample.columns)
    count = 0
    for points, there in ((e.pp, e.has_pp), (e.pn, e.has_pn)):
        wrong = breaks_pairs(domain.table, points) & ~breaks_pairs(domain.table, e.x)
        for j, kind in enumerate(sample.columns.kinds):
            value, seen = points[:, j], sample.split.x[:, j]
            here = differ(value, e.x[:, j])
            if not np.isnan(seen).any():
                wrong |= here & np.isnan(value)
            if kind in ("category", "boolean"):
                wrong |= here & ~np.isnan(value) & ~np.isin(value, seen)
            else:
                wrong |= here & ((value < np.nanmin(seen)) | (value > np.nanmax(seen)))
                if sample.columns.whole[j]:
                    wrong |= here & ~np.isnan(value) & (value != np.rint(value))
        count += int((wrong & there).sum())
    return count


def new_rows(source, name, seed):
    """Rows of the table that a run with this seed does not draw, at most 8,000; None where it draws all."""
    if not isinstance(source, Path):
        return None
    rows = pd.read_csv(source)
    if len(rows) <= ROWS:
        return None
    others = rows.drop(index=drawn_rows(source, TARGETS[name], ROWS, seed)[1].places)
    return others.sample(min(len(others), 2 * ROWS), random_state=seed)


def probabilities_of(program, rows, target):
    """Of each row with a class: its probabilities by the program's definition, and the number of its class."""
    rows = rows[rows[target].notna()]
    with TemporaryDirectory() as folder:
        rows.to_csv(Path(folder) / "rows.csv", index=False)
        values = value_rows(Path(folder) / "rows.csv", program)
    truth = np.array([program.classes.index(label) for label in rows[target].tolist()])
    return np.array([evaluate(program, row).probabilities for row in values]), truth


def new_probabilities(mined, source, name, kinds, kind, seed):
    """Probabilities and classes of rows that neither the black box nor the rules nor the rates were fitted to.

    They are rows of the table that were not drawn; of a table that is drawn whole, each quarter as new rows of what is
    mined from the other three.
    """
    rows, target = new_rows(source, name, seed), TARGETS[name]
    if rows is not None:
        return probabilities_of(mined.program, rows, target)
    whole = pd.read_csv(source) if isinstance(source, Path) else source
    parts = []
    for learned, new in StratifiedKFold(4, shuffle=True, random_state=seed).split(whole, whole[target]):
        options = {"train": kind, "kinds": kinds, "rows": ROWS, "seed": seed, "baselines": False, "note": str}
        program = mine(whole.iloc[learned], target, **options).program
        parts.append(probabilities_of(program, whole.iloc[new], target))
    answers, truths = zip(*parts, strict=True)
    return np.concatenate(answers), np.concatenate(truths)


def mine_and_keep(source, target, **options):
    """What is mined, and what it was fitted to: explanations of the training rows and of those between them."""
    kept, explain_more = {}, GBFLClassifier._extra_explanations

    def keep_extra(model, x, methods):
        kept["extra"] = explain_more(model, x, methods)
        return kept["extra"]

    def keep_explanations(black_box, by_method, y, triplets, y_test, **about):
        explanations = concatenate(list(by_method.values()))
        kept.update(classes=shared_classes(black_box, y), explanations=explanations, y_test=y_test, **about)
        return {}

    with (
        patch.object(GBFLClassifier, "_extra_explanations", keep_extra),
        patch("gbfl_compile.mining.baseline_figures", keep_explanations),
    ):
        return mine(source, target, note=str, **options), kept


def tree_of_size(conditions, triplets, kept, seed):
    """C_TB over all rows of a tree with as many conditions, on the same points with the black box's classes."""
    points, labels = [], []
    for e in (kept["explanations"], kept.get("extra")):
        if e is not None:
            points += [e.x, e.pp[e.has_pp], e.pn[e.has_pn]]
            labels += [e.label, e.label[e.has_pp], e.pn_label[e.has_pn]]
    preparation = preparation_of(kept["explanations"].x, kept["columns"])
    tree = DecisionTreeClassifier(max_leaf_nodes=conditions + 1, random_state=seed)
    tree.fit(preparation.rows(np.concatenate(points)), kept["classes"][np.concatenate(labels)])
    model = OnPreparedRows(tree, preparation)
    return held_out_figures(model, triplets, kept["y_test"], kept["columns"])[1].c_tb_all


def main(folder, names, seeds=(0, 1)):
    """Print a line per table, black box and seed."""
    sys.stdout.write(HEADER)
    sys.stdout.flush()
    for name in names or TARGETS:
        source, kinds = table(folder, name)
        for kind in ("gbm", "mlp"):
            for seed in seeds:
                start = time.perf_counter()
                options = {"train": kind, "kinds": kinds, "rows": ROWS, "seed": seed}
                mined, kept = mine_and_keep(source, TARGETS[name], **options)
                seconds = time.perf_counter() - start
                sample = read_sample(source, Choice(TARGETS[name], kinds=kinds), most=ROWS, seed=seed)
                shares, truth = new_probabilities(mined, source, name, kinds, kind, seed)
                c, test = mined.consistency, mined.figures["test"]
                atoms = sum(len(clause.atoms) for clause in mined.program.clauses)
                tree = tree_of_size(atoms, mined.triplets, kept, seed)
                sys.stdout.write(
                    f"{name:12} {kind:9} {seed:4}  {c.c_tb_all:8.1f}  {tree:17.1f}  {c.fidelity:8.1f}"
                    f"  {100 * mined.accuracy:8.1f}  {100 * mined.black_box_accuracy:9.1f}"
                    f"  {100 * c.with_pn / c.rows:7.1f}  {impossible(sample, mined.triplets):10}  {atoms:10}"
                    f"  {calibration_error(shares, truth):30.3f}  {calibration_by_chance(shares):9.3f}  {len(truth):4}"
                    f"  {test['calibration']:8.3f}  {test['calibration_by_chance']:9.3f}  {seconds:7.1f}\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    seeds = (0, 1)
    if rest[:1] == ["--seeds"]:
        seeds, rest = tuple(int(seed) for seed in rest[1].split(",")), rest[2:]
    main(folder, rest, seeds)
