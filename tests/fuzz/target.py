"""What fuzzing needs of an entry point, and how that has to treat each input."""

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
"""One folder a target. A file there is an input worth keeping: every one that was ever a finding is."""


class Finding(AssertionError):
    """An input did what none may do."""


@dataclass(frozen=True)
class Target:
    """One way in."""

    name: str
    run: Callable[[bytes], str]
    fresh: Callable[[random.Random], bytes]
    """A sound input, another each time."""
    broken: Callable[[random.Random, bytes, bytes], bytes]
    """An input broken; the second one may lend a part."""
    offspring: int = 0
    """How many more inputs are made from each broken one by breaking its bytes: trying is faster than generating."""
    seconds: float = 20.0
    """How long one of these small inputs may take, on a machine that has other things to do."""

    def corpus(self):
        return sorted(path for path in (CORPUS / self.name).glob("*") if path.is_file())


def check_refusal(refusal):
    """A refusal says why, in a message of reasonable length."""
    message = str(refusal)
    if not message.strip() or len(message) > 2000:
        raise Finding(f"a refusal of {len(message)} characters: {message[:300]}")
    return "refused"


@cache
def folder():
    """A folder of this process, in memory where there is such a place."""
    there = Path("/dev/shm")
    temporary = tempfile.TemporaryDirectory(prefix="gbfl-fuzz-", dir=there if there.is_dir() else None)
    return temporary, Path(temporary.name)


def place_file(name, data):
    path = folder()[1] / name
    path.write_bytes(data)
    return path
