"""`gbfl sizes`: how many bytes a C scorer takes."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.commands.flags import EQUAL, FILE, as_json, printed


@click.command()
@click.argument("source", type=FILE)
@as_json
@printed
def sizes(source: Path, as_json: bool) -> int:
    """Say how many bytes a C scorer takes, as the compiler reports them: here, and on a Cortex-M4 where gcc can.

    Example: gbfl sizes build/c/model.c
    """
    from gbfl_compile import screen
    from gbfl_compile.backends.c_size import size_rows

    found = size_rows(source)
    if as_json:
        screen.print_json([row.as_json() for row in found])
    else:
        screen.print_sizes([row.as_json() for row in found])
    return EQUAL
