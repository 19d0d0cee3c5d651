"""Reasons in the user's own words, one per clause, such as adverse-action texts. They never change an answer.

They are kept in a program's metadata, `{"reasons": {"3": "Income too low for the amount"}}`, by the clause's number as
`gbfl reasons PROGRAM` lists them. A pass that numbers clauses anew takes their reasons along. Every target carries
them and the proof compares them; the digest, which is of answers alone, does not change with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gbfl_compile.errors import BadInput
from gbfl_compile.ir.nodes import Leaf, Program, Tree
from gbfl_compile.ir.text import clause_text
from gbfl_compile.ir.trees import leaf_numbers, paths

LONGEST = 500
"""Characters of a reason: it must fit into a C string, a SQL literal and a letter."""


def reason_of(program: Program, clause: int) -> str | None:
    """The user's reason for a clause, or None where none was given. A program from anyone is read with care."""
    stored = program.metadata.get("reasons")
    text = stored.get(str(clause)) if isinstance(stored, dict) else None
    return text if isinstance(text, str) and is_reason(text) else None


def reasons_of(program: Program) -> dict[int, str]:
    """Clause number -> the user's reason, for the clauses that have one, ascending."""
    texts = ((clause, reason_of(program, clause)) for clause in range(len(program.clauses)))
    return {clause: text for clause, text in texts if text is not None}


def moved_reasons(program: Program, new_numbers: Mapping[int, int]) -> Mapping[str, Any]:
    """The metadata once clauses have new numbers. Of two that become one, the first one's reason stays."""
    if "reasons" not in program.metadata:
        return program.metadata
    texts: dict[str, str] = {}
    for clause, text in reasons_of(program).items():
        if clause in new_numbers:
            texts.setdefault(str(new_numbers[clause]), text)
    return {**program.metadata, "reasons": texts}


def leaf_reasons(program: Program, tree: Tree) -> list[str]:
    """For each leaf of a tree the way to it in words, as targets that answer in text give it.

    `age >= 30 AND NOT (income < 2)`; with reasons in place of the clauses that held, `Too young; NOT (income < 2)`.
    """
    own = reasons_of(program)
    ways = paths(tree)
    texts = []
    for index in leaf_numbers(tree):
        steps = []
        for split, held in ways[index]:
            node = tree.nodes[split]
            assert not isinstance(node, Leaf)  # noqa: S101 - a path goes through splits
            text = clause_text(program.clauses[node.clause], program.features, program.kinds)
            steps.append(own.get(node.clause, text) if held else f"NOT ({text})")
        texts.append(("; " if own else " AND ").join(steps) or "always")
    return texts


def rule_reasons(program: Program) -> list[str]:
    """For each rule of a rule set the text to print where it holds: `3 `, or with reasons `Too young; ` and `3; `."""
    own = reasons_of(program)
    if not own:
        return [f"{clause} " for clause in range(len(program.clauses))]
    return [f"{own.get(clause, clause)}; " for clause in range(len(program.clauses))]


def is_reason(text: str) -> bool:
    """Whether every target can print a text: one line of printable characters, not too long."""
    return 0 < len(text) <= LONGEST and text.isprintable() and text == text.strip()


def with_reasons(program: Program, reasons: Mapping[int, str]) -> Program:
    """The program with these reasons in place of those it had."""
    for clause, text in reasons.items():
        if not 0 <= clause < len(program.clauses):
            raise BadInput(f"there is no clause {clause}: the program has 0 to {len(program.clauses) - 1}")
        if not is_reason(text):
            raise BadInput(f"clause {clause}: a reason is one line of 1 to {LONGEST} printable characters")
    texts = {str(clause): text for clause, text in sorted(reasons.items())}
    return replace(program, metadata={**program.metadata, "reasons": texts})


def reasons_in(table: Any, where: str) -> dict[int, str]:
    """Clause number -> reason, from a table with the columns `clause` and `text`."""
    for name in ("clause", "text"):
        if name not in table.columns:
            raise BadInput(f"{where}: has no column {name!r}, it needs clause and text")
    texts: dict[int, str] = {}
    for place, (number, text) in enumerate(zip(table["clause"].tolist(), table["text"].tolist(), strict=True), 1):
        written = str(number).strip()
        if not written.isascii() or not written.isdigit():
            raise BadInput(f"{where}: row {place}: {written!r} is not the number of a clause")
        if int(written) in texts:
            raise BadInput(f"{where}: row {place}: clause {written} is listed twice")
        if str(text).strip():
            texts[int(written)] = str(text).strip()
    return texts
