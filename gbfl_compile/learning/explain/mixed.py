"""The greedy explainer on tables with words, dates and missing values: every PP and PN is a row that could exist.

A PP starts at the base row and restores values of x, and with them the words that go together. A PN starts at x and
changes at most k features to values that the training rows have. Then each change is taken back, whole or, for numbers
and dates, as far as the margin allows. There is no randomness, and no row depends on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from gbfl_compile.errors import BadInput
from gbfl_compile.learning.black_box import BlackBox, Bools, Ints, Matrix, rows_per_block
from gbfl_compile.learning.explain.domain import Domain
from gbfl_compile.learning.explain.search import (
    WINS,
    ExplainerSettings,
    Side,
    ask,
    bisect_back,
    changes_allowed,
    finish,
)
from gbfl_compile.learning.explain.table_values import (
    TableValues,
    breaks_pairs,
    differ,
    is_possible,
    repair,
    unknown_words,
)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search for every row: where it starts, the values it may try, which class should win or lose."""

    black_box: BlackBox
    domain: Domain
    table: TableValues
    x: Matrix
    start: Matrix
    feature: Ints
    """The feature of each option."""
    value: Matrix | None
    """The value of each option; None restores that of x."""
    is_open: Bools
    """[rows, options]: which options each row has."""
    label: Ints
    sign: int
    """+1: the label should win (PP). -1: it should lose (PN)."""
    limit: int
    enough: Matrix
    goal: Matrix
    all_or_nothing: tuple[int, ...]
    shortlist: int
    bisections: int


def dearest(domain: Domain, table: TableValues, settings: ExplainerSettings, shortlist: int, bisections: int) -> int:
    """The most queries to the black box to explain one row, not counting the row itself."""
    total, width = 0, len(domain.features)
    options = sorted((len(v) + m for v, m in zip(table.values, table.missing, strict=True)), reverse=True)
    for most, by_feature in ((settings.max_restored, [1] * width), (settings.max_moved, options)):
        limit = changes_allowed(most, width)
        candidates = sum(by_feature) + (limit - 1) * sum(by_feature[:shortlist])
        total += 2 + candidates + width * (1 + bisections)
    return total


def find_sides(
    black_box: BlackBox,
    x: Matrix,
    domain: Domain,
    table: TableValues,
    settings: ExplainerSettings,
    label: Ints,
    margin_x: Matrix,
    shortlist: int,
    bisections: int,
) -> tuple[Side, Side]:
    """The PP and the PN of each row."""
    if (unknown := unknown_words(table, x)) is not None:
        raise BadInput(
            f"row {unknown[0]}, feature {domain.features[unknown[1]]}: holds a text that the training rows do not "
            "have, and the black box cannot be queried with it here"
        )
    enough = np.minimum(WINS, margin_x)  # x itself may hold its class by less than WINS, and is its own PP
    start = np.tile(domain.base, (len(x), 1))
    positive = _Search(
        black_box,
        domain,
        table,
        x,
        start,
        np.arange(x.shape[1]),
        None,
        differ(x, start),
        label,
        1,
        changes_allowed(settings.max_restored, x.shape[1]),
        enough,
        np.maximum(settings.kappa, enough),
        domain.immutable,
        shortlist,
        bisections,
    )
    feature, value, is_open = _pn_options(x, domain, table)
    negative = _Search(
        black_box,
        domain,
        table,
        x,
        x,
        feature,
        value,
        is_open,
        label,
        -1,
        changes_allowed(settings.max_moved, x.shape[1]),
        np.full(len(x), WINS),
        np.full(len(x), max(settings.kappa, WINS)),
        (),
        shortlist,
        bisections,
    )
    return _find(positive), _find(negative)


def _pn_options(x: Matrix, domain: Domain, table: TableValues) -> tuple[Ints, Matrix, Bools]:
    """The feature and the value of each option of a PN, and which rows have it."""
    feature, value, columns = [], [], []
    for j, values in enumerate(table.values):
        way = domain.directions[j] if domain.directions else "both"
        if j in domain.immutable:
            continue
        here = x[:, j]
        for option in (*values.tolist(), *([np.nan] if table.missing[j] else [])):
            allowed = differ(here, np.full(len(x), option))
            if way != "both" and not np.isnan(option):
                allowed &= option > here if way == "up" else option < here
            feature.append(j)
            value.append(option)
            columns.append(allowed)
    is_open = np.column_stack(columns) if columns else np.zeros((len(x), 0), dtype=bool)
    return np.array(feature, dtype=np.int64), np.array(value, dtype=np.float64), is_open


def _find(search: _Search) -> Side:
    point, margin, order = _grow(search)
    return finish(search, point, margin, partial(_take_back, search, point, order))


def _grow(search: _Search) -> tuple[Matrix, Matrix, Ints]:
    """Change the best feature repeatedly, until kappa is reached or nothing helps; the order of changes, then -1."""
    point = search.start.copy()
    rows, width = point.shape
    order = np.full((rows, search.limit), -1, dtype=np.int64)
    margin, _, _ = ask(search, point, search.label)
    known = np.full((rows, width), np.inf)
    active = margin < search.goal
    if len(search.feature) == 0:
        return point, margin, order
    for step in range(search.limit):
        waiting = np.flatnonzero(active)
        options = len(search.feature) if step == 0 else max(1, len(search.feature) * search.shortlist // width)
        block = max(1, rows_per_block(search.black_box) // options)
        for begin in range(0, len(waiting), block):
            here = waiting[begin : begin + block]
            option, new, new_margin = _best_change(search, here, point, margin, known, first=step == 0)
            # once the class holds only a better margin is worth another feature
            useful = (option >= 0) & ((margin[here] < search.enough[here]) | (new_margin > margin[here]))
            active[here[~useful]] = False
            here, option = here[useful], option[useful]
            point[here], margin[here] = new[useful], new_margin[useful]
            order[here, step] = search.feature[option]
            known[here, search.feature[option]] = -np.inf
            if search.value is None:  # words restored together are restored
                known[here[:, None], np.arange(width)] = np.where(
                    differ(point[here], search.x[here]), known[here], -np.inf
                )
        active &= margin < search.goal
    return point, margin, order


def _best_change(
    search: _Search, rows: Ints, point: Matrix, margin: Matrix, known: Matrix, *, first: bool
) -> tuple[Ints, Matrix, Matrix]:
    """For each row the option to take (-1: none left), the point it leads to and the margin there.

    Among options that reach kappa the shortest move wins; otherwise the best score, or the best margin once the class
    holds. `known` has each feature's best score, for the next shortlist.
    """
    listed = known[rows] > -np.inf
    if not first and listed.shape[1] > search.shortlist:
        best = np.argsort(-known[rows], axis=1, kind="stable")[:, : search.shortlist]
        short = np.zeros_like(listed)
        np.put_along_axis(short, best, values=True, axis=1)
        listed &= short
    at, option = np.nonzero(search.is_open[rows] & listed[:, search.feature])
    candidates = point[rows[at]]
    feature = search.feature[option]
    each = np.arange(len(at))
    if search.value is None:
        candidates[each, feature] = search.x[rows[at], feature]
        repair(search.table, candidates, search.x[rows[at]])
    else:
        candidates[each, feature] = search.value[option]
        # a row that breaks a pair itself may go on doing so
        fine = ~breaks_pairs(search.table, candidates) | breaks_pairs(search.table, search.x[rows])[at]
        at, option, feature, candidates = at[fine], option[fine], feature[fine], candidates[fine]
    shape = (len(rows), len(search.feature))
    reached, scores = np.full(shape, -np.inf), np.full(shape, -np.inf)
    place = np.full(shape, -1, dtype=np.int64)
    place[at, option] = np.arange(len(at))
    if len(at):
        reached[at, option], scores[at, option], _ = ask(search, candidates, search.label[rows[at]])
    for j in np.unique(search.feature):
        top = scores[:, search.feature == j].max(axis=1)
        known[rows, j] = np.where(listed[:, j], top, known[rows, j])
    holds = (margin[rows] >= search.enough[rows])[:, None]
    reaches = reached >= search.goal[rows][:, None]
    key = np.where(holds, reached, scores)
    key = np.where(reaches.any(axis=1, keepdims=True), np.where(reaches, -_lengths(search, rows), -np.inf), key)
    best = key.argmax(axis=1)
    chosen = place[np.arange(len(rows)), best]
    new = candidates[chosen] if len(at) else point[rows]
    return np.where(chosen >= 0, best, -1), new, reached[np.arange(len(rows)), best]


def _lengths(search: _Search, rows: Ints) -> Matrix:
    """How far each option moves its feature: a share of the range for numbers, 1 for words and missing values."""
    start = search.start[rows][:, search.feature]
    value = search.x[rows][:, search.feature] if search.value is None else search.value[None, :]
    apart = np.abs(value - start) / search.table.widths[search.feature]
    is_word = np.isinf(search.table.steps)[search.feature]
    return np.where(np.isnan(apart) | is_word, 1.0, apart)


def _take_back(search: _Search, point: Matrix, order: Ints, goal: Matrix, explained: Ints) -> None:
    """Move each changed feature back towards the start, completely or by bisection, keeping the margin `goal`."""
    tried = np.zeros(point.shape, dtype=bool)
    for step in range(order.shape[1]):
        rows = explained[order[explained, step] >= 0]
        if len(rows):
            _move_back(search, point, rows, order[rows, step], goal)
            tried[rows, order[rows, step]] = True
    if search.value is None:  # and the words that were restored with others
        for j in range(point.shape[1]):
            rows = explained[~tried[explained, j] & differ(point[explained, j], search.start[explained, j])]
            if len(rows):
                _move_back(search, point, rows, np.full(len(rows), j), goal)


def _move_back(search: _Search, point: Matrix, rows: Ints, feature: Ints, goal: Matrix) -> None:
    def keeps(trial: Matrix, rows: Ints) -> Bools:
        margin, _, _ = ask(search, trial, search.label[rows])
        return np.asarray((margin >= goal[rows]) & is_possible(search.table, trial, search.x[rows]))

    trial = point[rows]
    trial[np.arange(len(rows)), feature] = search.start[rows, feature]
    back = keeps(trial, rows)
    point[rows[back]] = trial[back]
    partly = ~back & ~np.isin(feature, search.all_or_nothing)
    bisect_back(point, rows[partly], feature[partly], search.start, search.domain, search.bisections, keeps)
