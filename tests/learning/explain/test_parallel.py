"""Many workers, few units at a time, a worker that dies: the same bits as one worker alone."""

import os
import threading
from concurrent.futures import CancelledError
from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

from gbfl_compile import GBFLClassifier, lower
from gbfl_compile.errors import BadInput, CannotRun
from gbfl_compile.ir.json import digest
from gbfl_compile.learning.black_box import as_black_box
from gbfl_compile.learning.explain import domain_of, parallel
from gbfl_compile.learning.explain.checkpoints import Unit, units_of
from gbfl_compile.learning.explain.greedy import Greedy, explain_greedily
from gbfl_compile.learning.explain.macem import Macem, explain_by_macem
from gbfl_compile.learning.explain.parallel import explain_in_units, next_units
from tests.learning.explain.explaining import assert_same

X, Y = make_classification(630, 6, random_state=1)
DOMAIN = domain_of(X)
NETWORK = MLPClassifier((30, 20), max_iter=60, random_state=0).fit(X, Y)  # its products round by block size
BUDGET = partial(explain_greedily, settings=Greedy(max_queries=15_000))
EXPLAINERS = {
    "greedy": explain_greedily,
    "greedy, budget": BUDGET,
    "macem": partial(explain_by_macem, settings=Macem(iterations=4, directions=3, searches=1)),
}


def explain(explainer=explain_greedily, model=NETWORK, **how):
    box = as_black_box(model, X)
    before = box.queries
    explanations = explain_in_units(explainer, box, X, DOMAIN, unit_rows=50, **how)
    return explanations, box.queries - before


@pytest.mark.parametrize("who", EXPLAINERS)
def test_neither_workers_nor_units_at_once_change_a_bit(who):
    alone, queries = explain(EXPLAINERS[who])
    assert (alone.not_reached > 0) == ("budget" in who)
    assert queries == alone.queries
    for n_jobs, at_once in ((2, None), (2, 1), (3, 7)):
        explanations, queries = explain(EXPLAINERS[who], n_jobs=n_jobs, at_once=at_once)
        assert_same(explanations, alone)
        assert queries == alone.queries


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # newer Pythons warn of what multiprocessing does
@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_other_backends_of_joblib_work_unchanged(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        explanations, _ = explain()
    assert_same(explanations, explain()[0])


def test_a_budget_is_never_exceeded_however_many_work():
    units = units_of(200, 50)
    most = Greedy().dearest(DOMAIN)
    explainer = partial(explain_greedily, settings=Greedy(max_queries=200 + 120 * most))
    first, together = next_units(explainer, units, {}, DOMAIN)
    assert together == units[:2]  # 100 rows are sure to fit whole, 150 are not
    assert first.keywords["settings"].max_queries is None
    spent = {units[0]: 50 + 50 * 10, units[1]: 50 + 50 * 10}  # they were cheap
    assert next_units(explainer, units, spent, DOMAIN)[1] == units[2:]
    spent = dict.fromkeys(units[:2], 50 + 50 * most)  # they cost as much as they can
    last, alone = next_units(explainer, units, spent, DOMAIN)
    assert alone == (Unit(100, 150),)
    assert last.keywords["settings"].max_queries == 50 + 20 * most


def test_what_some_workers_saved_others_continue_from(tmp_path):
    alone, _ = explain()
    explain(n_jobs=2, folder=tmp_path)
    files = sorted(tmp_path.glob("rows-*.npz"))
    assert [file.name for file in files][:2] == ["rows-000000000-000000050.npz", "rows-000000050-000000100.npz"]
    assert len(files) == 13
    for file in files[1::3]:
        file.unlink()
    explanations, queries = explain(n_jobs=3, folder=tmp_path)
    assert_same(explanations, alone)
    assert queries < alone.queries / 2
    assert_same(explain(folder=tmp_path)[0], alone)


def dies_once(rows, flag, answer):
    """Kills its process, once."""
    if len(rows) > 8 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), 9)
    return answer(rows)


def test_when_a_worker_is_killed_the_others_finish_its_work(tmp_path):
    model = partial(dies_once, flag=tmp_path / "died", answer=NETWORK.predict_proba)
    explanations, _ = explain(model=model, n_jobs=2)
    assert (tmp_path / "died").exists()
    assert_same(explanations, explain()[0])


def test_units_that_a_backend_cancels_are_distributed_again(monkeypatch):
    """Dask cancels every unit whose rows were held by a worker that died."""
    distribute, rounds = parallel._distribute, []

    def cancel_at_first(work, parcel, x, units, n_jobs, at_once):
        rounds.append(len(units))
        some = units[:3] if len(rounds) == 1 else units
        yield from distribute(work, parcel, x, some, n_jobs, at_once)
        if len(rounds) == 1:
            raise CancelledError

    monkeypatch.setattr(parallel, "_distribute", cancel_at_first)
    assert_same(explain(n_jobs=2)[0], explain()[0])
    assert rounds == [13, 10]


def always_dies(rows, parent):
    if os.getpid() != parent:
        os.kill(os.getpid(), 9)
    return NETWORK.predict_proba(rows)


def test_workers_that_always_die_end_in_an_error_that_says_so():
    with pytest.raises(CannotRun, match=r"worker processes die .* fewer jobs"):
        explain(model=partial(always_dies, parent=os.getpid()), n_jobs=2)


def fails_there(rows, parent):
    if os.getpid() != parent:
        raise ConnectionError("line went dead")
    return NETWORK.predict_proba(rows)


def test_an_error_in_a_worker_is_the_error_here(tmp_path):
    model = partial(fails_there, parent=os.getpid())
    with pytest.raises(
        BadInput, match=r"black box failed .* ConnectionError: line went dead \(0 of 630 rows are kept in"
    ):
        explain(model=model, n_jobs=2, folder=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["about.json"]


def test_a_black_box_that_cannot_be_sent_is_queried_here_or_refused():
    lock = threading.Lock()

    def locked(rows):
        with lock:
            return NETWORK.predict_proba(rows)

    with pytest.raises(CannotRun, match="cannot be sent to other processes, use one job: TypeError"):
        explain(model=locked, n_jobs=2)
    with joblib.parallel_config(backend="threading"):
        assert_same(explain(model=locked, n_jobs=2)[0], explain()[0])


def test_the_classifier_is_the_same_with_any_number_of_jobs(tmp_path):
    models = [
        GBFLClassifier(NETWORK, head="tree", n_jobs=n_jobs, checkpoint=folder).fit(
            np.repeat(X, 4, axis=0), np.repeat(Y, 4)
        )
        for n_jobs, folder in ((None, None), (2, tmp_path / "kept"))
    ]
    one, two = (lower(model) for model in models)
    assert digest(one) == digest(two)
    assert one.metadata == two.metadata
    with pytest.raises(BadInput, match="n_jobs=0"):
        GBFLClassifier(NETWORK, head="tree", n_jobs=0).fit(X, Y)
