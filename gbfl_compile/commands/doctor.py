"""`gbfl doctor`: what is installed and what can be run."""

from __future__ import annotations

import click

from gbfl_compile.commands.flags import EQUAL, as_json, printed


@click.command()
@as_json
@printed
def doctor(as_json: bool) -> int:
    """Say what is installed, which targets can be emitted and which can be run.

    Example: gbfl doctor
    """
    from gbfl_compile import screen
    from gbfl_compile.doctor import examine

    found = examine()
    if as_json:
        screen.print_json(found)
    else:
        screen.print_doctor(found)
    return EQUAL
