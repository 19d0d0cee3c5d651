"""Arrays made and let go thousands of times are made of memory that is there already."""

from __future__ import annotations

import functools

import numpy as np

LARGEST = 32 * 2**20 - 2**16
"""Just below the largest block that glibc may learn to keep (on 64 bits)."""


@functools.cache  # once a process
def keep_freed_blocks() -> None:
    """Have the allocator keep what is freed, for the next array of that size.

    glibc gives a large block back to the system as it is freed, and is handed every page of the next one anew. How
    large is large it learns from the largest block freed so far: so one is freed. It is never written to and takes no
    memory. Without this the first ten thousand rows that a process explains cost more each than those after them; with
    it they cost about the same (`python -m tests.bench mine_scale`). Other allocators are left as they were.
    """
    np.empty(LARGEST, dtype=np.uint8)
