"""A real Dask cluster on this machine explains the rows: several processes, one of them killed half way."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

from gbfl_compile import GBFLClassifier, lower
from gbfl_compile.ir.json import digest

distributed = pytest.importorskip("distributed")

X, Y = make_classification(9000, 8, random_state=2)


class Slow:
    """A black box that leaves time to kill a worker, and says which process was asked."""

    def __init__(self, folder):
        self.network = MLPClassifier((30, 20), max_iter=40, random_state=0).fit(X[:500], Y[:500])
        self.classes_ = self.network.classes_
        self.folder = folder

    def predict_proba(self, rows):
        (self.folder / str(os.getpid())).touch()
        time.sleep(0.005)
        return self.network.predict_proba(rows)


@pytest.fixture
def cluster(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.filterwarnings("default")  # a lost worker is told by Dask as a warning
def test_a_killed_worker_changes_the_time_and_not_the_program(cluster, tmp_path):
    question_log = tmp_path / "asked"
    question_log.mkdir()
    black_box = Slow(question_log)
    alone = GBFLClassifier(black_box, head="tree").fit(X, Y)
    (question_log / str(os.getpid())).unlink()
    killed, kept = [], tmp_path / "kept"

    def workers():
        return {int(file.name) for file in question_log.iterdir()} - {os.getpid()}

    def kill_one():
        """When two of the units are done and all are at work, one process is ended, without being asked."""
        while len(list(kept.glob("*/rows-*.npz"))) < 2 or len(workers()) < 3:
            time.sleep(0.01)
        killed.append(min(workers()))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        spread = GBFLClassifier(black_box, head="tree", checkpoint=kept).fit(X, Y)
    killer.join()
    assert killed[0] in workers()
    assert len(list(kept.glob("*/rows-*.npz"))) == 18, "nine units for each of two methods"
    assert digest(lower(spread)) == digest(lower(alone))
    assert spread.explanations_.queries == alone.explanations_.queries
    assert np.array_equal(spread.explanations_.pn, alone.explanations_.pn)
