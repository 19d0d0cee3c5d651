"""Readers: what an artifact says, from its bytes alone. One row a target; each gives a reading a way of answering.

They share no code with the backends: a reader is the second opinion. They never run what they read, and they refuse
(Unread, with the place) whatever they do not understand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gbfl_compile.check.readers.c import read_c
from gbfl_compile.check.readers.limits import limited
from gbfl_compile.check.readers.onnx import read_onnx
from gbfl_compile.check.readers.python import read_python
from gbfl_compile.check.readers.sql import SQL_READERS
from gbfl_compile.check.reading import Reading, Unread
from gbfl_compile.errors import BadInput, GbflError

READERS: Mapping[str, Callable[[Mapping[str, bytes]], tuple[Reading, ...]]] = {
    "python": read_python,
    "c": read_c,
    "onnx": read_onnx,
    **SQL_READERS,
}

LARGEST = 64 * 2**20
"""Bytes of all files together."""


def read(target: str, files: Mapping[str, bytes]) -> tuple[Reading, ...]:
    """One reading for each way the artifact answers, or Unread, which names the place that is not understood."""
    if target not in READERS:
        raise BadInput(f"no reader for target {target!r}: there is one for {', '.join(READERS)}")
    size = sum(len(content) for content in files.values())
    if size > LARGEST:
        raise Unread(f"{size} bytes, at most {LARGEST} are read")
    try:
        with limited():
            return READERS[target](files)
    except RecursionError:  # parsers and readers follow nesting by recursion, and an artifact may nest without end
        raise Unread("nested too deeply") from None
    except (GbflError, Unread):
        raise
    except Exception as error:  # whatever a reader trips over, it did not read it: that is a refusal, never a pass
        raise Unread(f"the reader gave up on it: {type(error).__name__}") from error
