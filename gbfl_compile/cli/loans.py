"""An invented table of loans as a lender has it, with words, dates and missing values; `demo` uses it.

Nobody in it exists. Only `random()` and whole-number arithmetic decide what a row says, so that the same seed gives the
same bytes on every machine.
"""

from __future__ import annotations

import math
import random
from datetime import date, timedelta
from typing import Any, Final, TypeAlias, TypeVar

Value: TypeAlias = float | str | bool | date | None
Choice = TypeVar("Choice", int, str)

KEY: Final = "loan_id"
TARGET: Final = "default"
FEATURES: Final = (
    "applied_on",
    "purpose",
    "amount",
    "term_months",
    "age",
    "income",
    "employment",
    "employed_since",
    "housing",
    "debt_share",
    "late_payments",
    "existing_customer",
)

PURPOSES: Final = {
    "car": 30,
    "debt consolidation": 24,
    "home improvement": 18,
    "medical": 10,
    "education": 10,
    "holiday": 8,
}
"""What the money is for, and how many applications of a hundred are for it."""
EMPLOYMENT: Final = {"salaried": 62, "self-employed": 16, "retired": 10, "student": 6, "unemployed": 6}
HOUSING: Final = {"rents": 44, "mortgage": 34, "owns": 14, "with parents": 8}
TERMS: Final = {12: 10, 24: 22, 36: 32, 48: 18, 60: 18}

FIRST_DAY: Final = date(2023, 1, 2)
DAYS: Final = 1095
"""The number of days on which applications arrive."""
RATE_RISE: Final = date(2024, 7, 1)
"""From this day on interest is higher, and long loans are harder to pay back."""


def loans(rows: int, seed: int) -> str:
    """Decided loans as CSV: a key, the features, and in the last column whether the loan was not paid back."""
    draw = random.Random(seed)  # noqa: S311 - an example, not a secret; its stream is the same in every Python
    lines = [",".join((KEY, *FEATURES, TARGET))]
    for number in range(1, rows + 1):
        loan = _loan(draw)
        lines.append(",".join((f"L{number:05d}", *_texts(loan), "yes" if draw.random() < _risk(loan) else "no")))
    return "\n".join(lines) + "\n"


def new_loans(rows: int, seed: int) -> str:
    """Applications that nobody has decided on: a key and the features."""
    draw = random.Random(seed)  # noqa: S311
    lines = [",".join((KEY, *FEATURES))]
    lines += [",".join((f"N{number:05d}", *_texts(_loan(draw)))) for number in range(1, rows + 1)]
    return "\n".join(lines) + "\n"


def _loan(draw: random.Random) -> dict[str, Value]:
    """One application; None where the applicant left the field empty or nothing is known."""
    applied = FIRST_DAY + timedelta(days=int(draw.random() * DAYS))
    employment = _pick(draw, EMPLOYMENT)
    age = _age(draw, employment)
    works = employment in ("salaried", "self-employed")
    years = int(draw.random() * min(25, age - 17)) if works else 0
    income = _income(draw, employment, years)
    history = draw.random() >= (0.35 if age < 25 else 0.06)  # nobody reports on people who never borrowed
    return {
        "applied_on": applied,
        "purpose": _pick(draw, PURPOSES),
        "amount": 1_000 + 500 * int((draw.random() + draw.random()) * 29),
        "term_months": _pick(draw, TERMS),
        "age": age,
        "income": None if draw.random() < (0.22 if employment == "self-employed" else 0.03) else income,
        "employment": employment,
        "employed_since": applied - timedelta(days=365 * years + int(draw.random() * 365)) if works else None,
        "housing": "with parents" if employment == "student" and draw.random() < 0.5 else _pick(draw, HOUSING),
        "debt_share": int((draw.random() + draw.random()) * 32) / 100,
        "late_payments": int(draw.random() * draw.random() * draw.random() * 9) if history else None,
        "existing_customer": draw.random() < 0.4,
    }


def _pick(draw: random.Random, shares: dict[Choice, int]) -> Choice:
    """A key, drawn with the probability that its percentage states."""
    place = draw.random() * 100
    for value, share in shares.items():
        place -= share
        if place < 0:
            return value
    raise AssertionError("the shares add up to a hundred")


def _age(draw: random.Random, employment: str) -> int:
    low, high = {"retired": (60, 82), "student": (18, 29)}.get(employment, (20, 64))
    return low + int(draw.random() * (high - low))


def _income(draw: random.Random, employment: str, years: int) -> int:
    """What somebody earns in a year, to the hundred."""
    base = {"salaried": 240, "self-employed": 200, "retired": 170, "student": 70, "unemployed": 90}[employment]
    return 100 * (base + int(draw.random() * draw.random() * base * 3) + 5 * years)


def _texts(loan: dict[str, Value]) -> list[str]:
    """The fields of a line, in the order of `FEATURES`."""
    return [_text(loan[name]) for name in FEATURES]


def _text(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case date():
            return value.isoformat()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _risk(loan: dict[str, Any]) -> float:
    """The chance that a loan is not paid back: steep, so that there is something to find."""
    income, late = loan["income"], loan["late_payments"]
    burden = loan["amount"] / (income or 20_000)
    logit = -3.9 + 2.0 * burden + 3.2 * loan["debt_share"]
    logit += 0.3 if late is None else 1.5 * min(late, 3)
    logit += {"unemployed": 2.2, "student": 0.8, "retired": -0.4}.get(loan["employment"], 0.0)
    logit += {"owns": -0.9, "mortgage": -0.4, "rents": 0.3}.get(loan["housing"], 0.0)
    logit += {"holiday": 0.8, "medical": 0.5, "car": -0.4}.get(loan["purpose"], 0.0)
    logit += 0.7 if loan["applied_on"] >= RATE_RISE and loan["term_months"] >= 48 else 0.0
    since = loan["employed_since"]
    logit += 0.6 if since is not None and (loan["applied_on"] - since).days < 365 else 0.0
    logit += -0.7 if loan["existing_customer"] else 0.0
    return 1.0 / (1.0 + math.exp(-3.0 * logit))
