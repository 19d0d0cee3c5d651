"""Where a text stops being understood, and which command would give evidence nevertheless."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gbfl_compile.auditing.mend import line_at
from gbfl_compile.auditing.verdict import DeployedVerdict
from gbfl_compile.ir.nodes import Program

WORD = re.compile(r"\w+(?:\.\d+)?")
FILLED = re.compile(
    r"\b(?:insert\s+(?:overwrite\s+)?into|update|create\s+(?:or\s+replace\s+)?(?:materialized\s+)?(?:table|view)"
    r"(?:\s+if\s+not\s+exists)?)\s+([\w.\"`]+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AuditCommand:
    """How the audit was called, for a command to paste."""

    program: str
    database: str | None
    label: str | None
    columns: Mapping[str, str]

    def compare_rows(self, table: str) -> str:
        """The command that compares stored rows."""
        words = ["gbfl", "audit", self.program]
        if self.database is None:
            words += ["--database", "URL"]
        elif os.environ.get("GBFL_DATABASE") != self.database:
            from gbfl_compile.databases import without_password

            words += ["--database", without_password(self.database)]
        words += ["--scored", table]
        words += [] if self.label is None else ["--label", self.label]
        words += [word for name, column in self.columns.items() for word in ("--column", f"{name}={column}")]
        return " ".join(map(shlex.quote, words))


def with_other_command(
    verdict: DeployedVerdict, program: Program, command: AuditCommand, view: str | None
) -> DeployedVerdict:
    """A verdict `unread` with the line that was not understood, and the command that compares rows instead."""
    if verdict.verdict != "unread":
        return verdict
    text = next((each.decode("utf-8", errors="replace") for each in verdict.material.values()), "")
    place = _place(text, verdict.reason or "")
    reason = (verdict.reason or "").partition("; not in the strict form")[0]
    if place is not None:
        line = line_at("", text, place)
        reason = f"line {line.number} is not understood ({line.text}): {reason}"
    filled = FILLED.search(text)
    table = view or (filled[1] if filled is not None else "TABLE")
    wanted = ", ".join(command.columns.get(name, name) for name in program.features)
    note = f"{command.compare_rows(table)} (it must have the columns {wanted}: join them in where it does not)"
    return replace(verdict, reason=reason, other_command=note)


def _place(text: str, reason: str) -> int | None:
    """Where the text has the words that a reason quotes after its colon."""
    _, colon, quoted = reason.partition(": ")
    words = [word.casefold() for word in WORD.findall(quoted.partition(";")[0])][:MOST_WORDS]
    if not colon or not words:
        return None
    listed = [(match[0].casefold(), match.start()) for match in WORD.finditer(text)]
    for count in range(len(words), 0, -1):
        for at in range(len(listed) - count + 1):
            if [word for word, _ in listed[at : at + count]] == words[:count]:
                return listed[at][1]
    return None


MOST_WORDS = 4
