"""`gbfl init`: a folder to start from."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.commands.flags import EQUAL, FILE, as_json, quiet


@click.command()
@click.argument("folder", type=FILE, default=Path("gbfl-start"))
@as_json
@quiet
def init(folder: Path, as_json: bool, quiet: bool) -> int:
    """Make a small example to start from: invented loans, new ones to score, and a README with the commands.

    Nothing is overwritten. FOLDER is gbfl-start where it is left out.

    Example: gbfl init my-loans
    """
    from gbfl_compile import screen
    from gbfl_compile.starter import write_starter

    written = write_starter(folder)
    if as_json:
        screen.print_json({"folder": str(folder), "files": [str(path) for path in written]})
    elif not quiet:
        screen.print_lines(*(str(path) for path in written), f"next: cd {folder}, and what README.md says")
    return EQUAL
