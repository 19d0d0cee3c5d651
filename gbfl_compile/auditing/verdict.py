"""The answer of an audit: a verdict on each deployed thing, the evidence for it, and what exactly is different.

`proved`, `checked on n rows` and `not run` are kept apart, as the check does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gbfl_compile.checking.artifact import ArtifactProof
from gbfl_compile.checking.run import ConsistencyPair, Execution

Kind: TypeAlias = Literal["file", "library", "view", "scored table", "callable"]
AuditVerdict: TypeAlias = Literal["equal", "different", "unread", "not run"]

SCHEMA = 1
"""The version of the JSON form: it changes only when a reader of the form would break."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was approved in one form and is deployed in another."""

    where: str
    """`clause 7`, `leaf 3`, `points of clause 2`, `to start with`."""
    approved: str
    deployed: str
    kind: str = "changed"
    """changed, loosened (it lets more rows through), tightened (fewer), added, removed or rebuilt."""

    def text(self) -> str:
        """One line: `clause 7: income >= 50000 is deployed as income > 50000`."""
        return f"{self.where}: {self.approved} is deployed as {self.deployed}"


@dataclass(frozen=True, slots=True)
class Region:
    """Where approved and deployed answer differently: a box, described as a rule, with a row in it."""

    rule: str
    row: Mapping[str, float | None]
    approved: Any
    deployed: Any
    beside: tuple[str, Any, Any] | None = None
    """Where both give the same class: what else differs (scores, leaf, probabilities), approved and deployed."""


@dataclass(frozen=True, slots=True)
class RowMoves:
    """How many of the user's rows get another class, and between which classes."""

    rows: int
    of: int
    moves: tuple[tuple[Any, Any, int], ...]
    """(approved, deployed, number of rows), the most frequent first."""


@dataclass(frozen=True, slots=True)
class DeployedVerdict:
    """What is known about one deployed thing."""

    what: str
    """As the user named it; never with a password."""
    kind: Kind
    verdict: AuditVerdict
    reason: str | None = None
    carried_digest: str | None = None
    """The digest it carries: a trace, not evidence."""
    fingerprint: str | None = None
    """The SHA-256 of the artifact's bytes, or of a view's definition."""
    engine: str | None = None
    proof: ArtifactProof | None = None
    proof_assumes: str | None = None
    """What the proof takes for granted and nobody has shown, such as that a FLOAT column compares as a double does."""
    execution: Execution | None = None
    """The result of running it on witnesses."""
    checked_rows: int | None = None
    """Rows of a scored table that were compared one by one."""
    different_rows: int | None = None
    consistency: ConsistencyPair | None = None
    changes: tuple[Change, ...] = ()
    region: Region | None = None
    moves: RowMoves | None = None
    compared: str | None = None
    """What a library, a scorer or a scored table was compared on, with the number of differences."""
    compared_columns: tuple[str, ...] = ()
    """The columns of a view that the verdict is about."""
    other_columns: tuple[str, ...] = ()
    """Columns that a view computes and that were not compared with anything."""
    column_types: Mapping[str, str] = field(default_factory=dict)
    """Columns of a view's table that are not doubles, with their types."""
    feature_columns: Mapping[str, str] = field(default_factory=dict)
    """Features that are read from a column of another name, with that column."""
    executed: str | None = None
    """What exactly was run."""
    not_executed: str | None = None
    """Why it was not run, or not completely."""
    arithmetic: str | None = None
    """What a library does to the floating-point arithmetic of its process."""
    source_proof: str | None = None
    """The proof of the .c file that a library is said to be built from, in words."""
    rebuild: str | None = None
    """Whether a build of that file has the library's bytes, in words."""
    built_from: Mapping[str, Any] | None = None
    """Both, as JSON."""
    first_different_rows: tuple[Mapping[str, Any], ...] | None = None
    """Of a scored table."""
    drift: Mapping[str, Any] | None = None

    @property
    def is_proved(self) -> bool:
        """Whether a proof covers every input."""
        return self.proof is not None and self.proof.answer == "proved" and self.proof_assumes is None

    def evidence(self) -> str:
        """One phrase: what the verdict rests on."""
        parts: list[str] = []
        if self.proof is not None:
            assumed = self.proof.answer == "proved" and self.proof_assumes is not None
            parts.append("proved for doubles only" if assumed else self.proof.answer)
        if self.execution is not None:
            parts.append(f"{self.execution.different} different of {self.execution.rows} witnesses")
        if self.checked_rows is not None:
            parts.append(f"checked on {self.checked_rows:,} rows, {self.different_rows:,} different")
        return "; ".join(parts) or "not run"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdicts on everything that was audited against one source."""

    source: str
    """The approved program's digest."""
    verdicts: tuple[DeployedVerdict, ...]

    @property
    def verdict(self) -> AuditVerdict:
        """The worst of them: different, then unread, then not run."""
        words = {each.verdict for each in self.verdicts}
        order: tuple[AuditVerdict, ...] = ("different", "unread", "not run", "equal")
        return next((word for word in order if word in words), "not run")

    def is_accepted(self, only_proved: bool = False) -> bool:
        """Whether everything is equal; with `only_proved`, whether everything is proved to be."""
        return self.verdict == "equal" and (not only_proved or all(each.is_proved for each in self.verdicts))

    def as_json(self) -> dict[str, Any]:
        """The stable form scripts read."""
        from gbfl_compile.auditing.text import report_form

        return report_form(self)

    def lines(self) -> list[str]:
        """As text for people, the verdict last."""
        from gbfl_compile.auditing.text import verdict_lines

        each = [line for verdict in self.verdicts for line in verdict_lines(verdict, self.source)]
        return [*each, f"verdict: {self.verdict}"]
