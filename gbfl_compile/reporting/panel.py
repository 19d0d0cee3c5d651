"""The interactive part of a report: one script, built from the proved JavaScript scorer and the data of this page.

The page runs no other script: its policy has the hash of this one. Without it the report is the static page.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gbfl_compile.backends import emit
from gbfl_compile.checking.artifact import prove_artifact
from gbfl_compile.errors import BadInput
from gbfl_compile.files import resource_folder
from gbfl_compile.ir.json import to_json
from gbfl_compile.ir.kinds import Value, codebook, is_missing, other_text
from gbfl_compile.ir.nodes import Interval, Kind, Program
from gbfl_compile.ir.text import clause_text
from gbfl_compile.reporting.text import one_line

MOST_EXAMPLES = 200
LONGEST_SCRIPT = 600_000
"""Bytes: a page stays below a megabyte."""

ENDS_SCRIPT = re.compile(r"</script|<script|<!--", re.IGNORECASE)
"""What a browser reads as markup even inside a script."""


@dataclass(frozen=True, slots=True)
class Example:
    """A row to start from, and what it is called."""

    name: str
    row: Sequence[Value]


@dataclass(frozen=True, slots=True)
class Panel:
    """The script and the hash by which the page allows it; or why there is none."""

    script: str = ""
    hash: str = ""
    reason: str = ""


def panel(program: Program, examples: Sequence[Example] = ()) -> Panel:
    """The script of a page, where its scorer is proved and small enough."""
    try:
        artifact = emit(program, "js")
    except BadInput as error:
        return Panel(reason=f"This page cannot be tried out: {error}.")
    scorer = artifact.files["model.js"].decode("ascii")
    if prove_artifact(program, "js", artifact.files).answer != "proved":
        return Panel(reason="This page cannot be tried out: its scorer was not proved equal to the program.")
    data = json.dumps(page_data(program, examples), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    own = (resource_folder("templates") / "report" / "page.js").read_text(encoding="utf-8")
    script = f"{scorer}\nconst PAGE = {data};\n{own}"
    if ENDS_SCRIPT.search(script) or len(script) > LONGEST_SCRIPT:
        return Panel(reason="The program is too large for a page that can be tried out.")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return Panel(script, f"sha256-{digest}")


def with_script(page: str, script: str) -> str:
    """The page with its script last in the body; `panel` made sure that nothing in it ends the element."""
    body, end, rest = page.rpartition("</body>")
    return f'{body}<script type="module">{script}</script>\n{end}{rest}' if script else page


def page_data(program: Program, examples: Sequence[Example]) -> dict[str, Any]:
    """What the page's script is given: the program, its features with their ranges, its rules in words, and rows."""
    form = json.loads(to_json(program))
    form["metadata"] = {}
    return {
        "program": form,
        "features": [_feature(program, feature) for feature in range(len(program.features))],
        "clauses": [{"text": clause_text(clause, program.features, program.kinds)} for clause in program.clauses],
        "examples": [
            {
                "name": example.name,
                "row": {name: _plain(value) for name, value in zip(program.features, example.row, strict=True)},
            }
            for example in examples[:MOST_EXAMPLES]
        ],
        "file": _file_name(program),
        "target": _target(program),
    }


def _target(program: Program) -> str | None:
    """The column that the program decides, as far as its file says."""
    data = _mining(program).get("data")
    target = data.get("target") if isinstance(data, Mapping) else None
    return one_line(target, 60) if isinstance(target, str) and target.strip() else None


def _file_name(program: Program) -> str:
    """What the program's file is probably called: after its data, as the README names files."""
    data = _mining(program).get("data")
    name = data.get("name") if isinstance(data, Mapping) else None
    found = re.match(r"[A-Za-z0-9_-]{1,40}(?=\.|$)", name) if isinstance(name, str) else None
    return f"{found[0]}.gbfl.json" if found else "program.gbfl.json"


def _plain(value: Value) -> float | str | bool | None:
    if is_missing(value):
        return None
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="seconds" if not value.microsecond else "microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and not -1e308 <= value <= 1e308:
        return None
    return value


def _feature(program: Program, feature: int) -> dict[str, Any]:
    kind = program.kind(feature)
    atoms = [atom for clause in program.clauses for atom in clause.atoms if atom.feature == feature]
    bounds = [
        bound for atom in atoms if isinstance(atom, Interval) for bound in (atom.lo, atom.hi) if bound is not None
    ]
    low, high = _range(program, feature, bounds)
    return {
        "index": feature,
        "name": program.features[feature],
        "kind": kind,
        "used": bool(atoms),
        "min": low,
        "max": high,
        "whole": program.features[feature] in _mining(program).get("whole_numbers", ()),
        "texts": _texts(program, feature, kind),
    }


def _mining(program: Program) -> Mapping[str, Any]:
    mining = program.metadata.get("mining")
    return mining if isinstance(mining, Mapping) else {}


def _range(program: Program, feature: int, bounds: Sequence[float]) -> tuple[float, float]:
    """The range of the training rows where it is known, and of the bounds with some room otherwise."""
    training = program.metadata.get("training")
    histograms = training.get("histograms") if isinstance(training, Mapping) else None
    edges: Sequence[Any] = ()
    if isinstance(histograms, list) and len(histograms) == len(program.features):
        edges = histograms[feature].get("edges") or () if isinstance(histograms[feature], Mapping) else ()
    known = [float(edge) for edge in edges if isinstance(edge, int | float) and abs(edge) < 1e300]
    known += [bound for bound in bounds if abs(bound) < 1e300]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    room = 0.0 if edges else max((high - low) / 2, abs(low) / 2, 1.0)
    return low - room, high + room


def _texts(program: Program, feature: int, kind: Kind) -> list[str]:
    """The texts of a menu: those of the training table, those in a rule, and one that no rule mentions."""
    if kind != "category":
        return []
    data = _mining(program).get("data")
    columns = data.get("columns", ()) if isinstance(data, Mapping) else ()
    known: list[str] = []
    for column in columns:
        if isinstance(column, Mapping) and column.get("name") == program.features[feature]:
            known = [str(value[0]) for value in column.get("values", ()) if isinstance(value, list) and value]
    texts = [*known, *(text for text in codebook(program).texts[feature] if text not in known)]
    return [*texts, other_text(texts)]
