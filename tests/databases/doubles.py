"""Doubles of every kind, and what a table must still hold of them."""

import numpy as np

from tests.counts import count as cases

SPECIAL = (0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, np.inf, -np.inf, np.nan)
COUNT = cases("GBFL_DOUBLES", 20_000)
"""GBFL_DOUBLES=1000000 runs the whole claim."""


def doubles(count=COUNT, seed=0):
    """Half of them any 64 bits at all, the rest what tables hold: measurements, short decimals, whole numbers."""
    choose = np.random.default_rng(seed)
    values = choose.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    for start, kind in enumerate(
        (
            lambda n: choose.normal(size=n),
            lambda n: choose.integers(-100_000, 100_000, n) / 100,
            lambda n: choose.integers(-(2**53), 2**53, n).astype(np.float64),
        )
    ):
        part = values[start::6]
        part[:] = kind(len(part))
    values[: len(SPECIAL)] = SPECIAL
    return values


def held_by(database, values):
    """The values without those the engine cannot hold at all."""
    return values if database.holds_infinity else np.where(np.isinf(values), 1.0, values)
