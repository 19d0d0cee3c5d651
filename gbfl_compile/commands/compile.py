"""`gbfl compile`: a program written down for one or more targets, once they are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gbfl_compile.commands.flags import DIFFERENT, EQUAL, FILE, as_json, silenced
from gbfl_compile.errors import BadInput


def _targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The targets that the last one typed may become, for a shell; what stands before the last comma stays."""
    del context, parameter
    from gbfl_compile.backends import BACKENDS

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{target}" for target in BACKENDS if target.startswith(last)]


@click.command("compile")
@click.argument("program", type=FILE)
@click.option("--to", "targets", required=True, shell_complete=_targets, help="Targets, separated by commas.")
@click.option("--out", "-o", type=FILE, required=True, help="The folder that gets a folder a target.")
@click.option("--name", default="model", show_default=True, help="What the artifacts are called.")
@click.option("--set", "settings", multiple=True, metavar="TARGET.OPTION=VALUE", help="An option of one target.")
@click.option("--no-check", "unchecked", is_flag=True, help="Write the artifacts without proving and running them.")
@as_json
@silenced
def compile_(
    program: Path, targets: str, out: Path, name: str, settings: tuple[str, ...], unchecked: bool, as_json: bool
) -> int:
    """Write a program down for one or more targets, as OUT/<target>/NAME.<ext>, once they are checked.

    Each artifact is read back, proved equal and run on witnesses first. If one is different none is written, and the
    exit code is 1.

    Example: gbfl compile demo-out/program.json --to python -o build
    """
    from gbfl_compile import screen
    from gbfl_compile.artifacts import write_artifacts
    from gbfl_compile.backends import emit
    from gbfl_compile.ir.json_form import load

    wanted = [target.strip() for target in targets.split(",")]
    options = _target_options(wanted, settings)
    loaded = load(program)
    artifacts = [emit(loaded, target, name, options[target]) for target in wanted]  # all of them, before any is written
    verdict = None if unchecked else _checked(loaded, artifacts, as_json)
    passed = verdict is None or verdict.verdict != "different"
    placed = write_artifacts(artifacts, out) if passed else []
    written = {
        artifact.target: [str(path) for path in paths] for artifact, paths in zip(artifacts, placed, strict=False)
    }
    if as_json:
        checked = "not run" if verdict is None else verdict.as_json()
        screen.print_json({"program": artifacts[0].digest, "targets": written, "check": checked})
        return EQUAL if passed else DIFFERENT
    screen.print_lines(*(f"{target}: {path}" for target, paths in written.items() for path in paths))
    if verdict is None:
        screen.print_lines("not checked: gbfl check does that")
    else:
        screen.print_verdict(verdict)
    if not passed:
        screen.print_lines("nothing was written")
    return EQUAL if passed else DIFFERENT


def _checked(program: Any, artifacts: Any, quiet: bool) -> Any:
    from gbfl_compile import screen
    from gbfl_compile.check.equivalence import expectation
    from gbfl_compile.check.folder import check_artifacts

    with screen.progress(1 + len(artifacts), quiet=quiet) as tell:
        tell("looking for witnesses")
        return check_artifacts(expectation(program), artifacts, tell=tell)


def _target_options(targets: list[str], settings: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """`c.dtype=float32` goes to target c, `sql.form=view` to every sql:… target, `sql:duckdb.form=view` to that one."""
    options: dict[str, dict[str, str]] = {target: {} for target in targets}
    for setting in settings:
        path, equals, value = setting.partition("=")
        family, dot, option = path.partition(".")
        matching = [target for target in targets if family in (target, target.partition(":")[0])]
        if not equals or not dot or not option:
            raise BadInput(f"--set {setting!r}: write it as TARGET.OPTION=VALUE")
        if not matching:
            raise BadInput(f"--set {setting!r}: {family!r} is not among the targets {', '.join(targets)}")
        for target in matching:
            options[target][option] = value
    return options
