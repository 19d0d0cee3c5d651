"""Parts of a kernel that are there once for each class."""

from __future__ import annotations

from gbfl_compile.checking.reading.nodes import Unread
from gbfl_compile.checking.strict.c.template import Contents


def starts(contents: Contents, key: str) -> tuple[int, ...]:
    """The points that each class begins with, class after class."""
    check_each_class(contents, key)
    return tuple(each["start"] for each in contents[key])


def check_each_class(contents: Contents, key: str) -> None:
    """Refuse a part that is not there once for each class, in order."""
    if [each["class"] for each in contents[key]] != list(range(contents["classes"])):
        raise Unread(f"not every class is dealt with once and in order ({key})")
