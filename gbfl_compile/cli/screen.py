"""What the command line shows: plain text, tables with colour on a terminal only, and JSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gbfl_compile.ir.text import printable
from gbfl_compile.version import install_command

if TYPE_CHECKING:
    from gbfl_compile.checking.check import Progress
    from gbfl_compile.checking.run import TargetVerdict, Verdict


HANGING = " " * 8

BREAKS = re.compile(r"(?= AND | OR | THEN )|(?<=[,;:])(?= )(?![^()]*\))")
"""Where a line is best broken; not within brackets."""

HELD = "\0"
"""Replaces a space at which a line must not be broken; it never occurs in a printable line."""


def break_line(line: str, width: int) -> list[str]:
    """The parts of a printable line, none wider than `width` unless a word is.

    >>> break_line("IF 18 <= age < 30 AND income >= 52000 THEN no (1.00, 2 rows)", 36)
    ['IF 18 <= age < 30', '        AND income >= 52000', '        THEN no (1.00, 2 rows)']
    """
    start = HANGING + " " * (len(line) - len(line.lstrip()))
    parts = textwrap.wrap(
        _held_together(line, 2 * width // 3),
        width,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(HELD, " ") for part in parts]


def _held_together(line: str, longest: int) -> str:
    """The line, its short parts made unbreakable."""
    body = line.lstrip()
    held = (part[:1] + part[1:].replace(" ", HELD) if len(part) <= longest else part for part in BREAKS.split(body))
    return line[: len(line) - len(body)] + "".join(held)


WIDEST = 1000
"""Letters of a table that goes into a file or a pipe."""

COLOURS = {"equal": "green", "different": "bold red"}
"""Every other word is less than equal, and yellow."""
PROOF_COLOURS = {
    "proved": "green",
    "read as equal": "yellow",
    "counterexample": "bold red",
    "other names": "bold red",
    "other reasons": "bold red",
    "unread": "yellow",
    "undecided": "yellow",
}


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, emoji=False)


def _print_table(table: Table) -> None:
    """A table as wide as it needs; only a terminal's width can make its cells wrap. No line ends in spaces."""
    console = Console(highlight=False, emoji=False)
    if console.is_terminal:
        console.print(table)
        return
    console = Console(highlight=False, emoji=False, width=WIDEST)
    with console.capture() as drawn:
        console.print(table)
    print_lines(*(line.rstrip() for line in drawn.get().splitlines()))


def print_lines(*lines: str) -> None:
    """Plain text: names in it are never interpreted as markup or as terminal escapes."""
    for line in lines:
        _console().print("\n".join(printable(part) for part in line.split("\n")), markup=False)


def print_wrapped(*lines: str) -> None:
    """Lines as they are; on a terminal those too long for it go on below, indented further than they began."""
    console = _console()
    for line in map(printable, lines):
        if not console.is_terminal or len(line) <= console.width:
            console.print(line, markup=False)
            continue
        for part in break_line(line, console.width):
            console.print(part, markup=False)


def print_note(line: str) -> None:
    """A note on stderr: on a terminal no wider than that, elsewhere on one line."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else 0
    click.echo("\n".join(break_line(line, width) if 0 < width < len(line) else [line]), err=True)


@contextlib.contextmanager
def output_to(path: Path | None, *, quiet: bool) -> Iterator[None]:
    """Send printed text to a file, written whole at the end; with `quiet` and no file, nowhere."""
    if path is None and not quiet:
        yield
        return
    from gbfl_compile.files.atomic import write_whole

    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            yield
    finally:  # results are kept even after an error
        if path is not None and text.getvalue():
            write_whole(path, text.getvalue().encode("utf-8", "backslashreplace"))


def print_json(form: Any) -> None:
    """JSON on standard output, and nothing else."""
    print(json.dumps(form, indent=1, allow_nan=False))  # noqa: T201 - this is the printing module


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """A progress bar on standard error, on a terminal only.

    Call what it yields at the start of each step, with its description and the number of steps in all.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, emoji=False)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    if quiet or not console.is_terminal:  # rich before 14.1 ends a bar that is not shown with an empty line
        yield lambda step, /, steps: None
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        started = 0

        def show(step: str, /, steps: int) -> None:
            nonlocal started
            bar.update(task, description=f"{started}/{steps} {step}", completed=started, total=steps)
            started += 1

        yield show


def print_verdict(verdict: Verdict) -> None:
    """One line per target with each kind of evidence; then, for each that differs, the first row that shows it.

    Where a terminal is too narrow for the engines' names, they follow below.
    """
    table, console = _verdict_table(verdict, engines=True), Console()
    if console.is_terminal and Console(width=WIDEST).measure(table).maximum > console.width:
        _print_table(_verdict_table(verdict, engines=False))
        run = ((each.target, each.execution.engine) for each in verdict.targets if each.execution is not None)
        if engines_used := "; ".join(f"{printable(name)} by {printable(engine)}" for name, engine in run):
            print_wrapped(f"run: {engines_used}")
    else:
        _print_table(table)
    remarks: dict[str, list[str]] = {}
    for target in verdict.targets:
        for remark in _remarks(target, verdict.program):
            remarks.setdefault(remark, []).append(printable(target.target))
    print_wrapped(*(f"{', '.join(names)}: {remark}" for remark, names in remarks.items()))
    if verdict.unwitnessed:
        print_lines(f"witnesses: the search was given up for {len(verdict.unwitnessed):,} places (the JSON names them)")
    _console().print(Text.assemble("verdict: ", (verdict.verdict, COLOURS.get(verdict.verdict, "yellow"))))


def _verdict_table(verdict: Verdict, *, engines: bool) -> Table:
    counted = any(target.consistency is not None for target in verdict.targets)  # only with --triplets
    last = ("local consistency",) if counted else ()
    table = Table("target", "verdict", "proof", "execution", *last, box=None, pad_edge=False)
    for target in verdict.targets:
        table.add_row(
            Text(printable(target.target)),
            Text(target.verdict, style=COLOURS.get(target.verdict, "yellow")),
            Text(_proof_text(target), style=PROOF_COLOURS.get(_proof_text(target), "")),
            Text(_execution_text(target, with_engine=engines)),
            *((Text(_consistency_text(target)),) if counted else ()),
        )
    return table


def _proof_text(target: TargetVerdict) -> str:
    return "not run" if target.proof is None else target.proof.answer


def _execution_text(target: TargetVerdict, *, with_engine: bool) -> str:
    if target.execution is None:
        return "not run"
    run = target.execution
    return f"{run.different} different of {run.rows} rows" + (f", {run.engine}" if with_engine else "")


def _consistency_text(target: TargetVerdict) -> str:
    if target.consistency is None:
        return "not run"
    pair = target.consistency
    return "same counts" if pair.source == pair.target else "other counts"


def _remarks(target: TargetVerdict, program: str) -> Iterator[str]:
    """Remarks on a target; one that several share is printed once."""
    if target.reason is not None:
        yield f"{target.reason}"
    if target.digest is not None and target.digest != program:
        yield f"carries the digest {printable(str(target.digest))}, the source has {program}"
    if target.proof is not None and target.proof.reason not in (None, target.reason):
        yield f"proof: {target.proof.answer}: {printable(str(target.proof.reason))}"
    if target.proof is not None and target.proof.different and (shown := target.proof.counterexample) is not None:
        values = dict(zip(target.proof.features, shown.row, strict=True))
        yield f"proof: another answer on {json.dumps({f: str(v) for f, v in values.items()})}"
        yield f"proof: source {shown.source.label!r}, target {shown.target.label!r}"
    if target.execution is not None and target.execution.first is not None:
        first = target.execution.first
        yield f"first difference on {json.dumps(first['row'])}"
        yield f"source {json.dumps(first['source'])}"
        yield f"target {json.dumps(first['target'], default=repr)}"


STORY_WIDTH = 80
"""Columns that a story takes at most, also in a pipe: it is read by people, and pasted."""


def print_story(*lines: str) -> None:
    """Lines of at most 80 columns; a longer one goes on below, indented further."""
    console = _console()
    for line in map(printable, lines):
        for part in break_line(line, min(STORY_WIDTH, console.width)) or [""]:
            console.print(part, markup=False)


def print_paper(result: dict[str, Any]) -> None:
    """C_TB and accuracy of every model on every set, best in bold; then what could not be had."""
    from gbfl_compile.paper import best_of, mean
    from gbfl_compile.paper.document import BASELINES, TITLES, TRANSPARENT, figures_of, number
    from gbfl_compile.paper.models import MODELS

    names = list(result["sets"])
    for metric, title in (("c_tb", "C_TB (%)"), ("accuracy", "accuracy (%)")) if names else ():
        table = Table(title, *names, box=None, pad_edge=False)
        best = {n: best_of({m: figures_of(result, n, m, metric) for m in TRANSPARENT}) for n in names}
        for model in MODELS if metric == "accuracy" else TRANSPARENT:
            cells = [(number(mean(figures_of(result, n, model, metric))), model in best[n]) for n in names]
            table.add_row(TITLES[model], *(Text(text, style="bold" if wins else "") for text, wins in cells))
        for model in (*BASELINES, "gbfl"):
            figures = result["published"][metric][model]
            table.add_row(f"paper: {TITLES[model]}", *(Text(number(figures[n]), style="dim") for n in names))
        _print_table(table)
        print_lines("")
    print_lines(*(f"{name}: not run: {reason}" for name, reason in result["not_available"].items()))
    print_lines(f"{result['seconds']['whole'] / 60:.1f} minutes")


def print_sizes(rows: list[dict[str, Any]]) -> None:
    """Bytes of each build of a C scorer."""
    table = Table("built with", *("text", "data", "bss", "stack"), box=None, pad_edge=False)
    for row in rows:
        table.add_row(row["built_with"], *(f"{row[part]:,}" for part in ("text", "data", "bss", "stack")))
    _print_table(table)
    print_lines("bytes; stack is the deepest chain of calls within the scorer")


def print_doctor(state: dict[str, Any]) -> None:
    """What is here, what is not and how to get it: one line per target, each reason once."""
    print_lines(f"{state['generator']}, {state['python']}, {state['platform']}")
    print_lines(f"C compiler: {state['compiler'] or 'none found (install gcc or clang for the C target)'}", "")
    console = Console(highlight=False)
    libraries = state["libraries"].items()
    have = ", ".join(f"{name} {row['version']}" for name, row in libraries if row["version"])
    print_wrapped(f"libraries: {have}")
    lacking: dict[str, list[str]] = {}
    for name, row in libraries:
        if not row["version"]:
            lacking.setdefault("" if row["extra"] == "core" else row["extra"], []).append(name)
    for extra, names in lacking.items():
        console.print(Text(f"not installed: {', '.join(names)}: {install_command(extra)}", style="yellow"))
    targets = Table("target", "emit", "run", "engine", box=None, pad_edge=False)
    reasons: dict[str, list[str]] = {}
    for name, row in state["targets"].items():
        cells = [Text("yes", "green") if row[what] == "yes" else Text("no", "yellow") for what in ("emit", "run")]
        targets.add_row(name, *cells, Text(row["engine"]))
        for why in {row["emit"], row["run"]} - {"yes"}:
            own = why.removeprefix(f"{row['engine']}: ").replace(row["engine"], "the engine")
            reasons.setdefault(own, []).append(name)
    print_lines("")
    _print_table(targets)
    print_lines("")
    print_wrapped(*(f"{', '.join(names)}: {why}" for why, names in reasons.items()))
    run = [name for name, row in state["targets"].items() if row["run"] == "yes"]
    console.print(Text(f"{len(run)} of {len(state['targets'])} targets can be proved and run here"))
