"""The answer of an audit: a verdict on each deployed thing, the evidence for it, and what exactly is different.

`proved`, `checked on n rows` and `not run` are kept apart, as the check does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gbfl_compile.check.artifact_proof import ArtifactProof
from gbfl_compile.check.equivalence import ConsistencyPair, Execution

Kind: TypeAlias = Literal["file", "library", "view", "scored table", "callable"]
AuditVerdict: TypeAlias = Literal["equal", "different", "unread", "not run"]
FailOn: TypeAlias = Literal["different", "unread", "unproved"]

SCHEMA = 1
"""Of the JSON form: a number that changes only when a reader of it would break."""


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
class Moved:
    """Rows of given data that get another class, and from which to which."""

    rows: int
    of: int
    moves: tuple[tuple[Any, Any, int], ...]
    """(approved, deployed, how many rows), the most first."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What is known of one deployed thing."""

    what: str
    """As the user named it; never with a password."""
    kind: Kind
    verdict: AuditVerdict
    reason: str | None = None
    found_digest: str | None = None
    """The digest it carries: a trace, not evidence."""
    fingerprint: str | None = None
    """The SHA-256 of the artifact's bytes, or of a view's definition."""
    engine: str | None = None
    proof: ArtifactProof | None = None
    execution: Execution | None = None
    """Of running it on witnesses."""
    checked_rows: int | None = None
    """Rows of a scored table that were compared one by one."""
    different_rows: int | None = None
    consistency: ConsistencyPair | None = None
    changes: tuple[Change, ...] = ()
    region: Region | None = None
    moved: Moved | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """JSON that belongs to one kind: drift of a scored table, a rebuild of a library."""

    @property
    def proved(self) -> bool:
        """Whether a proof covers every input."""
        return self.proof is not None and self.proof.answer == "proved"

    def evidence(self) -> str:
        """One phrase: what the verdict rests on."""
        parts: list[str] = []
        if self.proof is not None:
            parts.append(self.proof.answer)
        if self.execution is not None:
            parts.append(f"{self.execution.different} different of {self.execution.rows} witnesses")
        if self.checked_rows is not None:
            parts.append(f"checked on {self.checked_rows:,} rows, {self.different_rows:,} different")
        return "; ".join(parts) or "not run"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """All that was audited against one source."""

    source: str
    """The approved program's digest."""
    audited: tuple[Audited, ...]

    @property
    def verdict(self) -> AuditVerdict:
        """The worst of them: different, then unread, then not run."""
        found = {each.verdict for each in self.audited}
        order: tuple[AuditVerdict, ...] = ("different", "unread", "not run", "equal")
        return next((verdict for verdict in order if verdict in found), "not run")

    def fails(self, on: FailOn) -> bool:
        """Whether a pipeline that fails on this much should: each level includes those before it."""
        if self.verdict == "different":
            return True
        if on == "different":
            return False
        if self.verdict in ("unread", "not run"):
            return True
        return on == "unproved" and not all(each.proved for each in self.audited)
