"""What a program is called: the SHA-256 of what it means, carried by every artifact made from it.

The digest covers meaning alone (features, classes, clauses, decision), so respelling a program does not
change it: atoms are sorted, and a bound that is not there has no open or closed end. A second hash covers
what is only recorded about the program: metadata and leaf row counts.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, assert_never

from gbfl_compile.ir.nodes import Atom, Leaf, OneOf, Program, Scorecard, Split, Tree

DIGEST_FORM = 1
"""The version of the form that is hashed for programs whose features are all numbers."""

DIGEST_FORM_KINDS = 2
"""The version for programs whose features have kinds."""


def digest(program: Program) -> str:
    """SHA-256 of what the program means."""
    kinds = {"form": DIGEST_FORM_KINDS, "kinds": program.kinds} if program.kinds else {"form": DIGEST_FORM}
    return _sha256(
        {
            **kinds,
            "features": program.features,
            "classes": [[type(label).__name__, label] for label in program.classes],
            "clauses": [sorted(_meaning(atom) for atom in clause.atoms) for clause in program.clauses],
            "decision": _decision_meaning(program),
        }
    )


def metadata_digest(program: Program) -> str:
    """SHA-256 of what is recorded about the program: metadata and leaf row counts."""
    nodes = program.decision.nodes if isinstance(program.decision, Tree) else ()
    rows = [node.rows for node in nodes if isinstance(node, Leaf)]
    return _sha256({"metadata": program.metadata, "rows": rows})


def _sha256(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _meaning(atom: Atom) -> list[Any]:
    if isinstance(atom, OneOf):
        return [atom.feature, "not in" if atom.negated else "in", atom.values, atom.if_missing]
    lo = None if atom.lo is None else [">=" if atom.lo_closed else ">", atom.lo.hex()]
    hi = None if atom.hi is None else ["<=" if atom.hi_closed else "<", atom.hi.hex()]
    return [atom.feature, lo, hi, atom.if_missing]


def _decision_meaning(program: Program) -> Any:
    match program.decision:
        case Tree(nodes):
            return [_node_meaning(node) for node in nodes]
        case Scorecard(bias, points, scale, bands):
            form: dict[str, Any] = {"bias": bias, "points": points, "scale": scale}
            rates = [[[band.least, *(p.hex() for p in band.probabilities)] for band in own] for own in bands]
            return {**form, "bands": rates} if bands else form
        case _:
            assert_never(program.decision)


def _node_meaning(node: Split | Leaf) -> list[Any]:
    if isinstance(node, Leaf):
        shares = [probability.hex() for probability in node.probabilities]
        return shares if node.answer is None else [{"answer": node.answer}, *shares]
    return [node.clause, node.then, node.otherwise]
