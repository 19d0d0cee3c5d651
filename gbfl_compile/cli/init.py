"""`gbfl init`: a small example to start from."""

from __future__ import annotations

import math
import random
from pathlib import Path

import click

from gbfl_compile.cli.flags import EQUAL, FILE, as_json, quiet_option
from gbfl_compile.errors import BadInput
from gbfl_compile.files import resource_folder
from gbfl_compile.files.atomic import make_folder, write_whole

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


def _risk(loan: dict[str, float]) -> float:
    """The chance that an invented loan is not paid back: steep, so that there is something to find."""
    burden = loan["amount"] / loan["income"]
    logit = -4.2 + 4.0 * burden + 5.0 * loan["debt_share"] + 1.1 * loan["late_payments"]
    logit += 0.12 * (loan["rate"] - 10) - 0.06 * loan["years_employed"] + (0.8 if loan["age"] < 25 else 0.0)
    return 1.0 / (1.0 + math.exp(-2.0 * logit))


@click.command()
@click.argument("folder", type=FILE, default=Path("gbfl-start"))
@as_json
@quiet_option
def init(folder: Path, as_json: bool) -> int:
    """Create a small example to start from: invented loans, new ones to score, and a README with the commands.

    Nothing is overwritten. FOLDER defaults to gbfl-start.

    Example: gbfl init my-loans
    """
    from gbfl_compile.cli import screen

    written = write_starter(folder)
    if as_json:
        screen.print_json({"folder": str(folder), "files": [str(path) for path in written]})
    else:
        screen.print_lines(*(str(path) for path in written), f"next: cd {folder}, then follow README.md")
    return EQUAL
