"""Random black boxes, random domains, and what equations 1 and 2 ask of every explanation."""

import numpy as np
from hypothesis import strategies as st

from gbfl_compile.learning.black_box import as_black_box, classes_of
from gbfl_compile.learning.explain import domain_of


def random_network(rng, features, classes):
    first, second = rng.normal(size=(features, 8)), 3 * rng.normal(size=(8, classes))
    shift = rng.normal(size=8)

    def answer(rows):
        # einsum, not @: BLAS rounds a row differently in blocks of different sizes
        hidden = np.tanh(np.einsum("nd,dh->nh", rows, first) + shift)
        logits = np.einsum("nh,hk->nk", hidden, second)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    return answer


def random_steps(rng, features, classes):
    """A black box of plateaus and exact ties, as forests are."""
    cuts, feature = rng.normal(size=12), rng.integers(features, size=12)
    votes = rng.integers(classes, size=(12, 2))

    def answer(rows):
        counts = np.zeros((len(rows), classes))
        for cut, j, (low, high) in zip(cuts, feature, votes, strict=True):
            counts[np.arange(len(rows)), np.where(rows[:, j] < cut, low, high)] += 1
        return counts / 12

    return answer


@st.composite
def problems(draw):
    """Training rows, a domain with rules for some features, rows to explain and a black box."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    features, classes = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    x = rng.normal(size=(draw(st.integers(1, 25)), features))
    if draw(st.booleans()):
        x = x.round(0)  # many values equal to the base
    answer = draw(st.sampled_from([random_network, random_steps]))(rng, features, classes)
    rules = {}
    if draw(st.booleans()):
        kinds = draw(st.lists(st.sampled_from(["float", "integer", "codes"]), min_size=features, max_size=features))
        for j, kind in enumerate(kinds):
            if kind != "float":
                x[:, j] = np.rint(2 * x[:, j])
            if kind == "codes":
                x[:, j] = np.array([-7.0, -2.0, -1.0, 0.5, 3.0, 20.0])[np.clip(x[:, j], -3, 2).astype(int) + 3] / 4
                kinds[j] = tuple(np.unique(x[:, j]).tolist())
        rules["kinds"] = kinds
    if draw(st.booleans()):
        rules["immutable"] = [j for j in range(features) if rng.random() < 0.3]
        rules["directions"] = {j: str(rng.choice(["up", "down", "both"])) for j in range(features)}
    beyond = np.concatenate((x, 3 * x[:2]))  # and rows outside the training range, some off their kind
    return x, domain_of(x, **rules), beyond, answer


def margins(answer, points, label):
    table = answer(points)
    own = table[np.arange(len(points)), label].copy()
    table[np.arange(len(points)), label] = -1
    return own - table.max(axis=1)


def assert_on_its_kind(values, kind):
    if kind == "integer":
        assert (values == np.rint(values)).all()
    elif kind != "float":
        assert np.isin(values, kind).all()


def assert_keeps_the_equations(e, answer, train, domain, how):
    """Bounds, sparsity, direction rules, kinds, immutability, and the black box's class at x, PP and PN."""
    x, box = e.x, as_black_box(answer, train)
    base, lower, upper = domain.base, domain.lower, domain.upper
    fixed = list(domain.immutable)
    assert np.array_equal(e.label, classes_of(box, x))

    pp, xp = e.pp[e.has_pp], x[e.has_pp]
    assert ((pp >= lower) & (pp <= upper)).all()
    assert ((pp >= np.minimum(base, xp)) & (pp <= np.maximum(base, xp))).all()
    assert (classes_of(box, pp) == e.label[e.has_pp]).all()
    assert np.array_equal(e.pp_margin[e.has_pp], margins(answer, pp, e.label[e.has_pp]))
    assert np.array_equal(e.pp_is_base[e.has_pp], (pp == base).all(axis=1))
    if how.max_restored is not None:
        assert ((pp != base).sum(axis=1) <= how.max_restored).all()
    ordinary = (xp >= lower) & (xp <= upper)
    for j in fixed if not domain.kinds else [j for j in fixed if domain.kinds[j] == "float"]:
        assert ((pp[:, j] == base[j]) | (pp[:, j] == xp[:, j]))[ordinary[:, j]].all()

    pn, xn = e.pn[e.has_pn], x[e.has_pn]
    changed = pn != xn
    assert (((pn >= lower) & (pn <= upper)) | ~changed).all()
    assert (pn >= xn)[changed & (xn > base)].all()
    assert (pn <= xn)[changed & (xn < base)].all()
    assert not changed[:, fixed].any()
    for j, direction in enumerate(domain.directions):
        assert direction != "up" or (pn[:, j] >= xn[:, j]).all()
        assert direction != "down" or (pn[:, j] <= xn[:, j]).all()
    for j, kind in enumerate(domain.kinds):
        assert_on_its_kind(pp[:, j], kind)
        assert_on_its_kind(pn[changed[:, j], j], kind)
    assert (classes_of(box, pn) != e.label[e.has_pn]).all()
    assert np.array_equal(classes_of(box, pn), e.pn_label[e.has_pn])
    assert np.array_equal(e.pn_margin[e.has_pn], -margins(answer, pn, e.label[e.has_pn]))
    if how.max_moved is not None:
        assert (changed.sum(axis=1) <= how.max_moved).all()

    assert np.array_equal(e.pp[~e.has_pp], x[~e.has_pp])
    assert np.array_equal(e.pn[~e.has_pn], x[~e.has_pn])


def assert_same(one, other):
    for name in one.__slots__:
        left, right = getattr(one, name), getattr(other, name)
        assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right, name
        assert not isinstance(left, np.ndarray) or left.dtype == right.dtype
