"""What was read of a deployed thing, against the approved program: proved, or where and how it differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gbfl_compile.audit.answer import Audited, AuditVerdict
from gbfl_compile.audit.changes import changes
from gbfl_compile.audit.region import region_of
from gbfl_compile.audit.rows import consistency_pair, moved_rows
from gbfl_compile.check.artifact_proof import ArtifactProof, prove_readings
from gbfl_compile.check.proof import Counterexample
from gbfl_compile.check.prove import BUDGET_SECONDS
from gbfl_compile.check.reading import Reading
from gbfl_compile.check.wide import aligned
from gbfl_compile.errors import BadInput
from gbfl_compile.ir.batch import Matrix
from gbfl_compile.ir.nodes import Program
from gbfl_compile.triplets import Triplets


def compared(
    deployed: Audited,
    program: Program,
    readings: Sequence[Reading],
    data: Matrix | None = None,
    triplets: Triplets | None = None,
    budget_seconds: float = BUDGET_SECONDS,
) -> Audited:
    """The deployed thing with its proof; where it is different, with what changed and what that touches."""
    try:
        matched = tuple(aligned(reading, program.features, program.classes) for reading in readings)
    except BadInput as error:
        proof = ArtifactProof("other names", str(error))
        return replace(deployed, verdict="different", reason=str(error), proof=proof)
    proof = prove_readings(program, matched, budget_seconds)
    digest = next((reading.digest for reading in readings if reading.digest is not None), None)
    found = replace(deployed, proof=proof, found_digest=digest, verdict=_verdict(proof), reason=proof.reason)
    pair = _first_counterexample(matched, proof)
    if pair is None:
        return found
    reading, shown = pair
    return replace(
        found,
        changes=changes(program, reading, shown),
        region=region_of(program, reading, shown),
        moved=None if data is None else moved_rows(program, reading, data),
        consistency=None if triplets is None else consistency_pair(program, reading, triplets),
    )


def _verdict(proof: ArtifactProof) -> AuditVerdict:
    if proof.different:
        return "different"
    return {"proved": "equal", "unread": "unread"}.get(proof.answer, "not run")  # type: ignore[return-value]


def _first_counterexample(readings: Sequence[Reading], proof: ArtifactProof) -> tuple[Reading, Counterexample] | None:
    """Labels before anything else: another class is what people ask about."""
    for wanted in ("labels", None):
        for reading, (_, found) in zip(readings, proof.places, strict=False):
            for aspect, finding in found.findings.items():
                if isinstance(finding, Counterexample) and wanted in (aspect, None):
                    return reading, finding
    return None
