"""Renders a template. Names and labels are passed only as values, so none of them can become template code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from gbfl_compile.files import resource_folder


def render(name: str, values: Mapping[str, Any]) -> bytes:
    """The template `name` filled in, as UTF-8 with line feeds."""
    text: str = _environment().get_template(name).render(**values)
    return text.encode("utf-8")


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(resource_folder("templates"), encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is code; each backend quotes per target
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )
