"""Items worked on by several threads, and what came of them in the items' own order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(items: Iterator[Item], work: Callable[[Item], Result], jobs: int, threads: int) -> Iterator[Result]:
    """`map` with `jobs` at hand: the next item is fetched ahead, and up to `threads` are worked on at once (0: here).

    No more than `threads` + 2 items are held. The first error, in the order of the items, is the one that is raised.
    """
    if jobs <= 1:
        yield from map(work, items)
        return
    end = object()
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(1) as fetching, ThreadPoolExecutor(max(1, threads)) as working:
        ahead: Future[Any] = fetching.submit(next, items, end)
        try:
            while not _is_failed(ahead) and (item := ahead.result()) is not end:
                ahead = fetching.submit(next, items, end)
                if not threads:
                    yield work(item)
                    continue
                waiting.append(working.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:  # before an error in fetching: what is wrong further up is said first
                yield waiting.popleft().result()
            ahead.result()
        finally:
            for future in (ahead, *waiting):
                future.cancel()


def _is_failed(fetched: Future[Any]) -> bool:
    return fetched.exception() is not None
