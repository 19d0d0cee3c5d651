"""`gbfl demo`: the whole walk on an embedded default."""

from __future__ import annotations

from pathlib import Path

import click

from gbfl_compile.cli.flags import DIFFERENT, EQUAL, FILE, as_json, quiet_option, seed


@click.command()
@click.option("--out", "-o", type=FILE, default=Path("demo-out"), show_default=True, help="Where the results go.")
@seed
@as_json
@quiet_option
def demo(out: Path, seed: int, as_json: bool) -> int:
    """Walk the whole way on breast cancer data: mine, fit, compile to every target, check.

    A target that cannot be run here is named as not run; only a difference is a failure.

    Example: gbfl demo --out demo-out
    """
    from gbfl_compile.cli import screen
    from gbfl_compile.cli.story import STEPS, run_demo

    with screen.progress(quiet=as_json) as step:
        demo_result = run_demo(out, seed=seed, step=lambda name: step(name, len(STEPS)))
    if as_json:
        screen.print_json(demo_result.as_json())
    else:
        screen.print_demo(demo_result, out)
    return DIFFERENT if demo_result.lowered_different or demo_result.verdict.verdict == "different" else EQUAL
