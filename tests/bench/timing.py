"""Times things side by side in one run: what counts is the ratio, these machines are noisy."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """One contender: nanoseconds an item, the median of several rounds (of CPU time, unless its name says threads)."""

    group: str
    shape: str
    who: str
    nanoseconds: float


def race(
    group: str,
    shape: str,
    contenders: dict[str, tuple[Callable[[], object], int]],
    rounds: int = 5,
    clock: Callable[[], int] = time.process_time_ns,
) -> list[Timing]:
    """Time each contender (a call and how many items it handles), rounds interleaved so that noise falls on all."""
    taken: dict[str, list[float]] = {}
    for who, (call, _) in contenders.items():
        call()  # warm up: caches and lazy imports
        taken[who] = []
    for _ in range(rounds):
        for who, (call, items) in contenders.items():
            began = clock()
            call()
            taken[who].append((clock() - began) / items)
    return [Timing(group, shape, who, statistics.median(times)) for who, times in taken.items()]
