"""`gbfl sizes`: how many bytes a C scorer takes."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import EQUAL, FILE, as_json, output_options


@click.command()
@click.argument("source", type=FILE)
@as_json
@output_options
def sizes(source: Path, as_json: bool) -> int:
    """Say how many bytes a C scorer takes, as the compiler reports them: here, and on a Cortex-M4 where gcc can.

    Example: gbfl sizes build/c/model.c
    """
    from gbfl_compile.backends.c.size import size_rows
    from gbfl_compile.cli import screen

    rows = size_rows(source)
    if as_json:
        screen.print_json([row.as_json() for row in rows])
    else:
        screen.print_sizes([row.as_json() for row in rows])
    return EQUAL
