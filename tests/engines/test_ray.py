"""Ray's joblib backend, where Ray is installed (`pip install ray`, 260 MB): it hands results over in groups."""

import joblib
import pytest
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

from gbfl_compile import GBFLClassifier, lower
from gbfl_compile.ir.json import digest

ray = pytest.importorskip("ray", reason="Ray is not installed")

X, Y = make_classification(6000, 8, random_state=2)


@pytest.mark.filterwarnings("default")
def test_a_ray_cluster_gives_the_same_program():
    from ray.util.joblib import register_ray

    network = MLPClassifier((30, 20), max_iter=40, random_state=0).fit(X[:500], Y[:500])
    alone = GBFLClassifier(network, head="tree").fit(X, Y)
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config(backend="ray"):
            spread = GBFLClassifier(network, head="tree").fit(X, Y)
    finally:
        ray.shutdown()
    assert digest(lower(spread)) == digest(lower(alone))
