"""`gbfl demo`: the whole story on invented loans: a black box, its rules, every target proved, a forgery caught."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from gbfl_compile.cli.flags import DIFFERENT, EQUAL, FILE, as_json, quiet_option, seed
from gbfl_compile.files.atomic import make_folder, write_whole
from gbfl_compile.files.formats import shell_command

if TYPE_CHECKING:
    from gbfl_compile.checking.run import TargetVerdict, Verdict
    from gbfl_compile.ir.nodes import Program
    from gbfl_compile.mining.summary import MiningResult

TARGETS = ("python", "c", "onnx", "js", "sql:sqlite", "sql:duckdb")
"""Targets that need no server."""

TABLE, PROGRAM, DATABASE, REPORT = "loans.csv", "loans.gbfl.json", "loans.db", "report.html"
COLUMN_TYPES = {
    **dict.fromkeys(("loan_id", "purpose", "employment", "housing", "default", "applied_on", "employed_since"), "TEXT"),
    "existing_customer": "BOOLEAN",
}
"""The types of the database's columns that are not numbers."""
BUILD, VIEW = "build", "loan_decisions"
VIEW_OPTIONS = {"form": "view", "table": "loans", "view": VIEW, "key": "loan_id", "outputs": "label"}
LOANS, TABLE_SEED = 3000, 1

COMPARISON = re.compile(r"`([^`]+)` (<|>=) ([^ )\n]+)")
EDITS = {"<": "<=", ">=": ">"}
"""Slips of one character, each of which leaves a view that runs and looks right."""

COUNTS = "SELECT label, count(*) FROM loan_decisions GROUP BY label"

Tell: TypeAlias = Callable[..., None]
"""Called with the lines of each chapter when it is done."""


@dataclass(frozen=True, slots=True)
class Forgery:
    """A view with one character changed, and what comparing it with the approved rules showed."""

    line: str
    """The comparison as it was approved, and as it was changed."""
    changed: str
    verdict: str
    """Of the audit: `different` where it was caught."""
    change: str
    """Which rule the audit found changed, and how."""
    moved: tuple[tuple[str, str, str], ...]
    """Loans that get another class, each with the class it had and the class it gets."""

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        audit = {"verdict": self.verdict, "change": self.change}
        return {"approved": self.line, "deployed": self.changed, **audit, "moved": len(self.moved)}


@dataclass(frozen=True, slots=True)
class Demo:
    """The program that was mined, how it did, and what each later chapter showed."""

    mined: MiningResult
    verdict: Verdict
    not_emitted: dict[str, str]
    view_different: int
    """Loans on which the view in the database and the rules differ: none."""
    forgery: Forgery
    report: Path

    @property
    def has_succeeded(self) -> bool:
        """Whether nothing differs, except the forged view."""
        clean = self.verdict.verdict != "different" and not self.mined.compared_different and not self.view_different
        return clean and self.forgery.verdict == "different"

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        mined = self.mined.as_json()
        return {
            **self.verdict.as_json(),
            "classifier": mined["classifier"],
            "test": mined["test"],
            "not_emitted": self.not_emitted,
            "view": {"rows": LOANS, "different": self.view_different},
            "forgery": self.forgery.as_json(),
            "report": str(self.report),
        }


def run_demo(out: Path, *, seed: int = 0, tell: Tell = lambda *_: None, quiet: bool = True) -> Demo:
    """Tell every chapter as it happens; the table, the program, the artifacts and the report are left in `out`."""
    from gbfl_compile.cli import loans, screen
    from gbfl_compile.mining import mine
    from gbfl_compile.reporting.page import report

    make_folder(out)
    write_whole(out / TABLE, loans.loans(LOANS, TABLE_SEED).encode("ascii"))
    tell(*_table_chapter(out))
    with screen.progress(quiet=quiet) as progress:
        mined = mine(
            out / TABLE,
            loans.TARGET,
            train="gbm",
            head="tree",
            depth=5,
            explainer="greedy",
            seed=seed,
            baselines=False,
            out=out / PROGRAM,
            note=lambda _: None,
            progress=progress,
        )
    tell(*_black_box_chapter(mined), *_rules_chapter(mined, out))
    verdict, not_emitted = compile_everything(mined.program, out / BUILD)
    tell(*_targets_chapter(verdict, not_emitted, out))
    with contextlib.closing(_fill_database(out)) as database:
        view = (out / BUILD / "sql-sqlite/model.sql").read_text()
        database.executescript(view)
        decisions = _decisions(database)
        different = _count_different(mined.program, out / TABLE, decisions)
        tell(*_database_chapter(decisions, different, out))
        forged = _forge(database, view, decisions)
    forgery = _audit_view(mined.program, out, *forged)
    tell(*_forgery_chapter(forgery, out))
    report(out / PROGRAM, out / REPORT, verdict=verdict, examples=out / TABLE)
    tell(*_report_chapter(out))
    return Demo(mined, verdict, not_emitted, different, forgery, out / REPORT)


def compile_everything(program: Program, out: Path) -> tuple[Verdict, dict[str, str]]:
    """Every target that can be emitted and run here, written and checked; and why each other one is left out."""
    from gbfl_compile.backends import BACKENDS
    from gbfl_compile.checking.check import compile_program

    missing = {}
    for target in TARGETS:
        state = BACKENDS[target].available()
        if (
            reason := state.cannot_emit or (state.cannot_run if target.startswith(("sql:", "js")) else None)
        ) is not None:
            missing[target] = reason
    wanted = [target for target in TARGETS if target not in missing]
    options = {target: VIEW_OPTIONS for target in wanted if target.startswith("sql:")}
    verdict = compile_program(program, wanted, out, options=options).verdict
    assert verdict is not None  # noqa: S101 - they were checked
    return verdict, missing


def _fill_database(out: Path) -> sqlite3.Connection:
    """A new database that has the table as a lender would have it, in place of the one of an earlier run."""
    import csv

    (out / DATABASE).unlink(missing_ok=True)
    database = sqlite3.connect(out / DATABASE)
    with (out / TABLE).open(encoding="ascii", newline="") as file:
        names, *rows = csv.reader(file)
    fields = ", ".join(f"`{name}` {COLUMN_TYPES.get(name, 'REAL')}" for name in names)
    database.execute(f"CREATE TABLE loans ({fields}, PRIMARY KEY (loan_id))")
    known = {"": None, "true": 1, "false": 0}
    insert = f"INSERT INTO loans VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - question marks
    database.executemany(insert, ([known.get(cell, cell) for cell in row] for row in rows))
    database.commit()
    return database


def _decisions(database: sqlite3.Connection) -> dict[str, str]:
    """What the view says of every loan."""
    return dict(database.execute(f"SELECT loan_id, label FROM {VIEW} ORDER BY loan_id"))  # noqa: S608 - a name of ours


def _count_different(program: Program, table: Path, decisions: dict[str, str]) -> int:
    """The number of loans on which the view and the definition of the rules differ."""
    from gbfl_compile.ir.evaluate import evaluate
    from gbfl_compile.tables.values import value_rows

    answers = (evaluate(program, row).label for row in value_rows(table, program))
    return sum(answer != label for answer, label in zip(answers, decisions.values(), strict=True))


def _forge(
    database: sqlite3.Connection, view: str, approved: dict[str, str]
) -> tuple[str, str, tuple[tuple[str, str, str], ...]]:
    """Of all views that one changed sign makes, the one that moves most loans is left in the database."""
    edits = list(_edits(view))
    moved = []
    for _, _, text in edits:
        _replace_view(database, text)
        moved.append(tuple((k, approved[k], v) for k, v in _decisions(database).items() if v != approved[k]))
    most = max(range(len(edits)), key=lambda place: len(moved[place]))
    line, changed, text = edits[most]
    _replace_view(database, text)
    database.commit()
    return line, changed, moved[most]


def _audit_view(
    program: Program, out: Path, line: str, changed: str, moved: tuple[tuple[str, str, str], ...]
) -> Forgery:
    """What an audit says of the view that is now deployed."""
    from gbfl_compile.auditing.audit import audit

    report = audit(program, database=f"sqlite:///{out / DATABASE}", view=VIEW, data=out / TABLE)
    changes = report.verdicts[0].changes
    return Forgery(line, changed, report.verdict, changes[0].text() if changes else "", moved)


def _edits(view: str) -> Iterator[tuple[str, str, str]]:
    """Each comparison of a view, as it is and with one sign changed, and the view that this makes."""
    for found in COMPARISON.finditer(view, view.index("CREATE VIEW")):
        name, sign, bound = found.groups()
        text = f"{view[: found.start(2)]}{EDITS[sign]}{view[found.end(2) :]}"
        yield f"{name} {sign} {_number(bound)}", f"{name} {EDITS[sign]} {_number(bound)}", text


def _number(text: str) -> str:
    with contextlib.suppress(ValueError):
        return f"{float(text):g}"
    return text


def _replace_view(database: sqlite3.Connection, text: str) -> None:
    database.execute(f"DROP VIEW {VIEW}")
    database.executescript(text)


def _table_chapter(out: Path) -> Sequence[str]:
    from gbfl_compile.cli.loans import FEATURES

    return (
        "1  A TABLE",
        f"   {LOANS:,} loans of an invented lender, and whether each was paid back.",
        f"   {len(FEATURES)} columns: numbers, words, dates, and gaps where nobody answered.",
        f"   {out / TABLE}",
    )


def _black_box_chapter(mined: MiningResult) -> Sequence[str]:
    rows = mined.program.metadata["mining"]["rows"]
    counts = mined.program.metadata["mining"]["class_counts"]["test"]
    return (
        "",
        "2  A BLACK BOX",
        f"   A model that nobody can read (gradient boosting) learned from {rows['training']:,} loans.",
        f"   On the other {rows['test']}, which it never saw,"
        f" it is right {_percent(mined.black_box_accuracy)} of the time.",
        f'   Always saying "paid back" would be right {_percent(max(counts) / sum(counts))} of the time.',
    )


def _rules_chapter(mined: MiningResult, out: Path) -> Sequence[str]:
    from gbfl_compile.ir.nodes import Leaf, Tree
    from gbfl_compile.ir.text import leaf_text, readable

    share, tree, classes = mined.consistency.fidelity, mined.program.decision, mined.program.classes
    assert isinstance(tree, Tree)  # noqa: S101 - the settings say tree
    leaf = next(node for node in tree.nodes if isinstance(node, Leaf))
    return (
        "",
        "3  RULES THAT EXPLAIN IT",
        "   For each loan the black box was asked what it would say if a little of it",
        f"   were different: {mined.queries:,} questions, {mined.seconds:.0f} s. Its answers became these rules.",
        '   "yes" is a loan that will not be paid back. What is between IF and THEN is a',
        "   clause; clauses are numbered from 0. How to read the end of a line:",
        f'   "{leaf_text(leaf, classes)}": of the loans it learned from, {leaf.rows} end here;',
        f'   the answer "{classes[leaf.winner]}" is right with probability {leaf.probabilities[leaf.winner]:.2f}.',
        "",
        *(f"   {line}" for line in readable(mined.program).split("\n")),
        "",
        f"   On the loans that neither has seen they are right {_percent(mined.accuracy)} of the time, and",
        f"   give the black box's answer {'-' if share is None else _percent(share / 100)} of the time.",
        f"   {out / PROGRAM}",
    )


def _targets_chapter(verdict: Verdict, not_emitted: dict[str, str], out: Path) -> Sequence[str]:
    return (
        "",
        "4  THE SAME RULES WHERE DECISIONS ARE MADE",
        "   The rules were written as programs for each place where they may have to run.",
        "   Each file was read back and compared with the rules, for every possible input",
        "   and not for a sample. Then it was run on rows that would expose a mistake.",
        "",
        *(f"   {_target_line(target)}" for target in verdict.targets),
        *(f"   {target:<11} left out: {reason}" for target, reason in not_emitted.items()),
        f"   {out / BUILD}",
    )


def _target_line(target: TargetVerdict) -> str:
    proof = "not read" if target.proof is None else target.proof.answer
    if target.execution is None:
        return f"{target.target:<11} {proof:<7}  not run: {target.reason}"
    run, engine = target.execution, re.sub(r" \(.*?\)", "", target.execution.engine)
    return f"{target.target:<11} {proof:<7}  {run.different} different of {run.rows:,} rows, {engine}"


def _database_chapter(decisions: dict[str, str], different: int, out: Path) -> Sequence[str]:
    counts = {label: list(decisions.values()).count(label) for label in sorted(set(decisions.values()))}
    return (
        "",
        "5  IN THE DATABASE THAT HAS THE TABLE",
        f"   SQLite ran the SQL on the table as it is, and {VIEW} is a view there:",
        "",
        f"   {COUNTS}",
        *(f"   {label:<5} {count:>5,}" for label, count in counts.items()),
        "",
        f"   {different} of {len(decisions):,} loans are decided differently from the rules.",
        f"   {out / DATABASE}",
    )


def _forgery_chapter(forgery: Forgery, out: Path) -> Sequence[str]:
    lines = [
        "",
        "6  SOMEBODY EDITS THE VIEW",
        "   One sign is changed. The view still runs, and looks right:",
        "",
        f"   approved   {forgery.line}",
        f"   deployed   {forgery.changed}",
        "",
        "   An audit compares the view with the approved rules:",
        "",
        f"   {shell_command('gbfl', 'audit', str(out / PROGRAM))} \\",
        f"     {shell_command('--database', f'sqlite:///{out / DATABASE}')} \\",
        f"     {shell_command('--view', VIEW, '--data', str(out / TABLE))}",
        "",
    ]
    if forgery.verdict != "different":
        return (*lines, f"   The audit says {forgery.verdict}: this edit was not caught, which is a defect.")
    lines.append("   CAUGHT: the view is not the approved program.")
    lines += [f"   {forgery.change}."] if forgery.change else []
    lines.append(f"   {len(forgery.moved):,} of {LOANS:,} loans would be decided differently.")
    if forgery.moved:
        name, before, after = forgery.moved[0]
        lines.append(f"   {name}, for example: {before} was approved, {after} is deployed.")
    return lines


def _report_chapter(out: Path) -> Sequence[str]:
    return (
        "",
        "7  ALL OF IT ON ONE PAGE",
        f"   {out / REPORT}  (open it in a browser; it needs no network)",
        "",
        "Next, your own table:  gbfl mine TABLE.csv --target COLUMN --train gbm",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


@click.command()
@click.option("--out", "-o", type=FILE, default=Path("demo-out"), show_default=True, help="Output folder.")
@seed
@as_json
@quiet_option
def demo(out: Path, seed: int, as_json: bool) -> int:
    """Show everything once, on invented loans: a black box, its rules, every target proved, a forged view caught.

    A target that cannot be run here is left out, with the reason; only a difference is a failure.

    Example: gbfl demo --out demo-out
    """
    from gbfl_compile.cli import screen

    tell = (lambda *_: None) if as_json else screen.print_story
    result = run_demo(out, seed=seed, tell=tell, quiet=as_json)
    if as_json:
        screen.print_json(result.as_json())
    return EQUAL if result.has_succeeded else DIFFERENT
