"""What happens at a cut and where a value is missing: the program's answer, and how each target computes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gbfl_compile.backends.sql.dialect import Dialect
from gbfl_compile.backends.sql.engines import DIALECTS
from gbfl_compile.ir.evaluate import atom_holds, evaluate
from gbfl_compile.ir.intervals import above, below
from gbfl_compile.ir.nodes import Interval, Kind, Program
from gbfl_compile.ir.text import atom_text, bound_text, label_text
from gbfl_compile.reporting.text import count, distinct

ENDS = {
    "left": "lo ≤ x < hi",
    "right": "lo < x ≤ hi",
    "both": "lo ≤ x ≤ hi",
    "neither": "lo < x < hi",
}

TEXTS_ARE_EXACT = (
    "Texts are equal only when they are the same, character by character: capitals, accents and blanks count, "
    "and an empty text is not a missing one."
)

_COMPARISONS = "NaN fails every comparison, so only an interval that a missing value satisfies tests for it"

PLAIN_TARGETS = {
    "python": ("None and NaN", _COMPARISONS),
    "c": ("NaN", _COMPARISONS),
    "js": ("null, undefined and NaN", _COMPARISONS),
    "onnx": ("NaN", "tested with IsNaN, or the tree's node says which way a missing value goes"),
}

NAN_IN_SQL = {
    "null": ("NULL", "it has no NaN; a comparison with NULL is unknown, and WHEN takes unknown for false"),
    "greatest": (
        "NULL and NaN",
        "it sorts NaN above every number, so an interval without an upper end excludes NaN explicitly",
    ),
    "total": (
        "NULL and NaN",
        "it sorts NaN above or below every number, by its sign, so an interval without an end excludes NaN explicitly",
    ),
    "ieee": (
        "NULL and NaN",
        "NaN fails every comparison; where a missing value satisfies an interval, both are tested for",
    ),
}


@dataclass(frozen=True, slots=True)
class TargetBehaviour:
    """What counts as missing in one target, and how it is recognised."""

    target: str
    missing: str
    how: str
    never_run: bool = False
    """Whether no engine of this kind has ever run the emitted code."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The section on cuts and missing values."""

    ends: tuple[tuple[str, str], ...]
    missing: str
    all_missing: str
    example: str
    example_lines: tuple[tuple[str, str, str], ...]
    """(what, the double, whether the interval holds there)."""
    targets: tuple[TargetBehaviour, ...]
    never_run: tuple[TargetBehaviour, ...]


def behaviour(program: Program, targets: Iterable[str]) -> Behaviour:
    """The facts, computed from the program itself; `targets` are those of the verdict, or all known ones."""
    atoms = [atom for clause in program.clauses for atom in clause.atoms]
    intervals = [atom for atom in atoms if isinstance(atom, Interval)]
    closed = Counter(atom.closed for atom in intervals if atom.lo is not None or atom.hi is not None)
    holding = sum(atom.if_missing for atom in atoms)
    noun = "interval" if len(intervals) == len(atoms) else "condition"
    missing = f"A missing value fails every one of the {count(len(atoms), noun)}."
    if holding:
        missing = f"A missing value satisfies {holding:,} of {count(len(atoms), noun)} and fails the others."
    if "category" in program.kinds:
        missing += f" {TEXTS_ARE_EXACT}"
    nothing = evaluate(program, [None] * len(program.features))
    example = _example(intervals)
    known = [each for name in targets if (each := target_behaviour(name)) is not None]
    return Behaviour(
        ends=tuple((ENDS[end], f"{number:,}") for end, number in sorted(closed.items())),
        missing=missing if atoms else "The program tests no feature.",
        all_missing=f"A row with every value missing gets the class {label_text(nothing.label)}.",
        example="" if example is None else atom_text(example, distinct(program.features), program.kinds),
        example_lines=() if example is None else _example_lines(example, program.kind(example.feature)),
        targets=tuple(each for each in known if not each.never_run),
        never_run=tuple(each for each in known if each.never_run),
    )


def _example(atoms: list[Interval]) -> Interval | None:
    """The interval that occurs in most clauses: its cut is the one to look at."""
    bounded = Counter(atom for atom in atoms if atom.lo is not None or atom.hi is not None)
    return bounded.most_common(1)[0][0] if bounded else None


def _example_lines(atom: Interval, kind: Kind) -> tuple[tuple[str, str, str], ...]:
    cut = atom.lo if atom.lo is not None else atom.hi
    assert cut is not None  # noqa: S101 - an example has a bound
    match kind:
        case "date" | "timestamp":
            unit = "day" if kind == "date" else "microsecond"
            values = ((f"the {unit} before", cut - 1), ("the cut itself", cut), (f"the {unit} after", cut + 1))
        case _:
            values = (
                ("the next double below", below(cut)),
                ("the cut itself", cut),
                ("the next double above", above(cut)),
            )
    lines = [
        (what, _exact_text(value, kind), "holds" if atom_holds(atom, value) else "does not hold")
        for what, value in values
    ]
    return (*lines, ("missing", "", "holds" if atom.if_missing else "does not hold"))


def _exact_text(value: float, kind: Kind) -> str:
    return repr(value) if kind == "number" else bound_text(value, kind)


def target_behaviour(target: str) -> TargetBehaviour | None:
    """What counts as missing in a target, by its name or its folder's (`sql-duckdb`); None for an unknown target."""
    if target in PLAIN_TARGETS:
        return TargetBehaviour(target, *PLAIN_TARGETS[target])
    dialect: Dialect | None = DIALECTS.get(target.removeprefix("sql:").removeprefix("sql-"))
    if dialect is None or not target.startswith("sql"):
        return None
    missing, how = NAN_IN_SQL[dialect.missing]
    never = "" if dialect.not_run is None else f". {dialect.not_run}"
    return TargetBehaviour(target, missing, f"{dialect.engine}: {how}{never}", dialect.not_run is not None)
