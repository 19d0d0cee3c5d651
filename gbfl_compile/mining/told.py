"""What is told of a mined program: to people in lines, to scripts in a stable form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gbfl_compile.ir.digest import digest
from gbfl_compile.ir.readable import printable, readable, unseen_text
from gbfl_compile.mining.job import Mined


def as_form(mined: Mined, out: Path, triplets: Path | None) -> dict[str, Any]:
    """The stable form scripts read."""
    mining = mined.program.metadata["mining"]
    return {
        "program": digest(mined.program),
        "out": str(out),
        "triplets": None if triplets is None else str(triplets),
        "features": list(mined.program.features),
        "classes": list(mined.program.classes),
        "clauses": len(mined.program.clauses),
        "data": mining["data"],
        "rows": mining["rows"],
        "black_box": mining["black_box"],
        "head": mining["head"],
        "seed": mining["seed"],
        "test": {
            "accuracy": mined.accuracy,
            "black_box_accuracy": mined.black_box_accuracy,
            "consistency": mined.consistency.as_dict(),
        },
        "classifier": {"rows": mined.compared_rows, "different": mined.compared_different},
    }


def summary(mined: Mined, name: str, seed: int, out: Path) -> list[str]:
    """The rules, how good they are on the rows held out, and what to do next."""
    found, mining = mined.consistency, mined.program.metadata["mining"]
    counts = mining["rows"]
    unseen = unseen_text(mined.program, mining["clause_support"])
    lines = [
        readable(mined.program),
        *([] if unseen is None else [unseen]),
        "",
        f"{printable(name)}: {counts['training']} rows to learn from, {counts['test']} held out, seed {seed}",
        "on the rows held out",
    ]
    for what, percent, of in (
        ("accuracy", 100 * mined.accuracy, f"black box {100 * mined.black_box_accuracy:.1f} %"),
        ("same class as the black box", found.fidelity, f"{found.fidelity_right} of {found.rows}"),
        ("C_TB, rows with a PN", found.c_tb, f"{found.c_tb_right} of {found.with_pn}"),
        ("C_PP", found.c_pp, f"{found.c_pp_right} of {found.with_pp}"),
        ("C_PN", found.c_pn, f"{found.c_pn_right} of {found.with_pn}"),
    ):
        lines.append(f"  {what:<28} {'-' if percent is None else f'{percent:.1f} %':>7}  {of}")
    lines += _beside(mined.program.metadata["figures"].get("baselines", {}))
    different = f"{mined.compared_different} different of {mined.compared_rows} rows"
    return [
        *lines,
        f"program against classifier: {different}",
        f"digest {digest(mined.program)}",
        f"{out}: next, gbfl compile {out} --to python -o build",
    ]


def _beside(baselines: dict[str, Any]) -> list[str]:
    """What plain trees reach on the same rows and explanations."""
    if not baselines:
        return []
    found = [(name, form["c_tb"], 100 * form["accuracy"]) for name, form in baselines.items()]
    width = max(len(name) for name, _, _ in found)
    told = [(name, "-" if c_tb is None else f"{c_tb:.1f} %", f"{right:.1f} %") for name, c_tb, right in found]
    return [
        f"beside{'':<{width - 4}} {'C_TB':>7}  {'accuracy':>8}",
        *(f"  {name:<{width}} {c_tb:>7}  {right:>8}" for name, c_tb, right in told),
    ]
