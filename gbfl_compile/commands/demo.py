"""`gbfl demo`: the whole walk on an embedded default."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.commands.flags import DIFFERENT, EQUAL, FILE, as_json, seed, silenced


@click.command()
@click.option("--out", "-o", type=FILE, default=Path("demo-out"), show_default=True, help="Where the results go.")
@seed
@as_json
@silenced
def demo(out: Path, seed: int, as_json: bool) -> int:
    """Walk the whole way on breast cancer data: mine, fit, compile to every target, check.

    A target that cannot be run here is named as not run; only a difference is a failure.

    Example: gbfl demo --out demo-out
    """
    from gbfl_compile import screen
    from gbfl_compile.demo import STEPS, run_demo

    with screen.progress(len(STEPS), quiet=as_json) as step:
        found = run_demo(out, seed=seed, step=step)
    if as_json:
        screen.print_json(found.as_json())
    else:
        screen.print_demo(found, out)
    return DIFFERENT if found.lowered_different or found.verdict.verdict == "different" else EQUAL
