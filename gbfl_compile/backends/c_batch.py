"""The batch part of an emitted scorer: what its template needs, for the kernel that was chosen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, assert_never

from gbfl_compile.backends.c_conditions import used_features
from gbfl_compile.backends.c_kernels import Kernel, kernel_costs, narrows, select_card, select_tree
from gbfl_compile.backends.c_numbers import Real, integer, literal
from gbfl_compile.backends.c_tables import Tables, tables
from gbfl_compile.backends.c_text import rows_of
from gbfl_compile.ir.nodes import Program, Scorecard, Tree

COUNTED_CUTS = 64
"""Up to so many cuts a value's bin is found by counting, past that by halving."""

CACHE_LINE = 64
MOST_FETCHED_LINES = 8
"""A row that is spread over more cache lines than this is not asked for ahead of its turn."""


def batch_values(program: Program, real: Real, kernel: Kernel) -> dict[str, Any]:
    """What `templates/c/batch.c.jinja` fills in."""
    costs = ", ".join(f"{other} {cost:.0f}" for other, cost in kernel_costs(program, real).items())
    ahead = _fetched_ahead(used_features(program), real)
    values: dict[str, Any] = {"kernel": kernel, "costs": costs, "fetched_ahead": ahead}
    match program.decision:
        case Tree():
            values["verbs"] = [("predict", "class"), ("leaf", "leaf")]
            if kernel == "select":
                bodies = {
                    "class": ("Classes", select_tree(program, program.decision, real, "class")),
                    "leaf": ("Leaves", select_tree(program, program.decision, real, "leaf")),
                }
                values["kernels"] = [
                    _kernel(program, f"{kind}_block", what, lines, "int32_t *out", narrows(real))
                    for kind, (what, lines) in bodies.items()
                ]
        case Scorecard():
            values["verbs"] = [("predict", "sums"), ("score", "sums")]
            if kernel == "select":
                lines = list(select_card(program, program.decision, real))
                values["kernels"] = [
                    _kernel(program, "sums_block", "Sums of points", lines, "int64_t (*sums)[GBFL_BLOCK]")
                ]
            elif kernel == "bits":
                values["bits"] = _bits_values(tables(program, program.decision, real), real)
        case _:
            assert_never(program.decision)
    return values


def _fetched_ahead(used: Sequence[int], real: Real) -> list[int]:
    """Where in a row the cache lines begin that a gather reads; none where a row is spread over many."""
    lines = sorted({feature * (8 if real == "double" else 4) // CACHE_LINE * CACHE_LINE for feature in used})
    return lines if len(lines) <= MOST_FETCHED_LINES else []


def _kernel(
    program: Program, function: str, what: str, lines: list[str], out: str, narrows: bool = False
) -> dict[str, Any]:
    slots = {feature: slot for slot, feature in enumerate(used_features(program))}
    asked = sorted({int(found) for line in lines for found in re.findall(r"\bx(\d+)\b", line)})
    return {
        "function": function,
        "what": what,
        "lines": lines,
        "out": out,
        "narrows": narrows,
        "variables": [(feature, slots[feature]) for feature in asked],
    }


def _bits_values(made: Tables, real: Real) -> dict[str, Any]:
    cuts = [_cut(value, real) for cuts in made.cuts for value in cuts] or ["0"]
    first_cuts = [sum(len(c) for c in made.cuts[:u]) for u in range(len(made.cuts))]
    features = zip(first_cuts, made.cuts, made.first_bin, strict=True)
    return {
        "cuts": cuts,
        "cut_rows": rows_of(cuts, 4),
        "features": [f"{first}u, {len(c)}u, {b}u" for first, c, b in features] or ["0u, 0u, 0u"],
        "bins": max(1, made.bins),
        "sums": [", ".join(integer(p) for p in row) for row in made.sums] or ["0"],
        "has_sums": [any(row[c] for row in made.sums) for c in range(len(made.bias))],
        "groups": [[", ".join(f"0x{word:016x}u" for word in row) for row in group] for group in made.masks],
        "points": [", ".join(integer(p) for p in row) for row in made.points],
        "bias": [integer(b) for b in made.bias],
        "lane": "int64_t" if real == "double" else "int32_t",
        "most_counted": COUNTED_CUTS,
    }


def _cut(value: float, real: Real) -> str:
    if abs(value) != float("inf"):
        return literal(value, real)
    return "GBFL_INFINITY" if value > 0 else "-GBFL_INFINITY"
