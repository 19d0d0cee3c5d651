"""Builds the whole report: every section from the program and the other inputs, then one template, all text escaped.

The same input gives the same bytes: nothing here looks at a clock, a path or the machine. The page of an evidence pack
says who audited what and when, which evidence there is, and what was not examined.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from gbfl_compile.backends import BACKENDS
from gbfl_compile.backends.c.build import size_rows
from gbfl_compile.errors import BadInput
from gbfl_compile.files import resource_folder
from gbfl_compile.files.atomic import read_whole, write_whole
from gbfl_compile.ir.json import as_program, digest, metadata_digest
from gbfl_compile.ir.kinds import Value, encode_row
from gbfl_compile.ir.nodes import Program, Tree, is_rule_list
from gbfl_compile.ir.text import probability_lines, readable
from gbfl_compile.learning.consistency import Triplets, triplets_for
from gbfl_compile.reporting.audit import Audit
from gbfl_compile.reporting.audit import audit as audit_section
from gbfl_compile.reporting.evidence import Banner, TargetLine, banner, target_lines
from gbfl_compile.reporting.features import SHOWN_FIGURES, behaviour, feature_section
from gbfl_compile.reporting.figures import figures
from gbfl_compile.reporting.overview import overview
from gbfl_compile.reporting.panel import MOST_EXAMPLES, Example, Panel, panel, with_script
from gbfl_compile.reporting.row import points_of, row_reasons
from gbfl_compile.reporting.rules import SHOWN, rules
from gbfl_compile.reporting.text import class_names, one_line, shorten
from gbfl_compile.tables.frames import named_table
from gbfl_compile.tables.read import feature_row
from gbfl_compile.tables.values import encoded_rows, has_values, one_value_row, value_rows
from gbfl_compile.version import GENERATOR

LARGEST_JSON = 64 * 2**20

File: TypeAlias = "str | os.PathLike[str]"


class _HasJson(Protocol):
    def as_json(self) -> dict[str, Any]: ...


Form: TypeAlias = "_HasJson | Mapping[str, Any] | File"

MOST_LINES = 40
"""Parts of the metadata shown, and lines shown of each."""

WITH_SECTION = ("figures", "histograms", "reasons", "probabilities")
"""Metadata that has its own section on the page; the rest is shown as it is."""

FIRST_PARTS = ("probabilities", "black_box", "training", "versions")
"""Parts of the metadata that are shown first; all others are folded."""

LONG = ("groups", "histograms", "path", "probabilities", "scores", "clause_support", "whole_numbers")
"""Keys that are for machines, or drawn elsewhere on the page."""


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What a report is made from besides the program; any of it may be absent, and the page then says so."""

    verdict: Mapping[str, Any] | None = None
    audit: Mapping[str, Any] | None = None
    row: Sequence[Value] | None = None
    triplets: Triplets | None = None
    row_number: int = 0
    """Which of the triplets is explained, where no row is given."""
    sizes: Sequence[Mapping[str, Any]] = field(default=())
    """Bytes of C builds, as `gbfl sizes --json` gives them."""
    examples: Sequence[Example] = ()
    """Rows that can be tried out in the page."""
    interactive: bool = False
    """Whether the page has a script."""


def render_page(program: Program, inputs: ReportInputs | None = None) -> str:
    """The report as one HTML document; nothing is fetched from elsewhere, and no script but its own can run."""
    inputs = inputs or ReportInputs()
    source = digest(program)
    lines = None if inputs.verdict is None else target_lines(inputs.verdict, source)
    targets = BACKENDS if not lines else [line.target for line in lines]
    audited = audit_section(inputs.audit, source)
    points, note = points_of(inputs.row, inputs.triplets, inputs.row_number)
    script = panel(program, _examples(inputs)) if inputs.interactive else Panel()
    text: str = _template("page.html.jinja").render(
        panel=script,
        title=_title(program),
        generator=GENERATOR,
        facts=_facts(program),
        overview=overview(program),
        digest=source,
        metadata_digest=metadata_digest(program),
        banner=_banner(lines, audited),
        checked=lines is not None or audited is not None,
        lines=lines,
        audit=audited,
        rules=rules(program),
        shown=SHOWN,
        features=feature_section(program),
        shown_figures=SHOWN_FIGURES,
        row=row_reasons(program, points, note),
        figures=figures(program),
        behaviour=behaviour(program, targets),
        sizes=[_size_line(size) for size in inputs.sizes],
        origin=_origin(program),
        first_parts=FIRST_PARTS,
    )
    return with_script(text, script.script)


def _examples(inputs: ReportInputs) -> list[Example]:
    """The row that is explained, and the examples."""
    own = [] if inputs.row is None else [Example("the row of this report", inputs.row)]
    return [*own, *inputs.examples][:MOST_EXAMPLES]


def report(
    program: Program | File,
    out: File,
    *,
    artifacts: File | None = None,
    verdict: Form | None = None,
    audit: Form | None = None,
    row: Any = None,
    row_number: int = 1,
    triplets: Triplets | File | None = None,
    sizes: File | Sequence[Mapping[str, Any]] | None = None,
    examples: Any = None,
    static: bool = False,
) -> int:
    """Write the report on a program to `out`; its size in bytes.

    artifacts: a folder of artifacts that are checked for the report; or give their verdict.
    verdict, audit: what `check` and `audit` returned, or a file of their JSON.
    row, row_number: a row to explain, or a table and which of its rows; without one, which of the triplets.
    sizes: an emitted C file to build and measure, or the measurements.
    examples: a table (file, DataFrame or rows) whose first 200 rows can be tried out in the page, which then has them.
    static: leave the page's script out.
    """
    source = as_program(program)
    if artifacts is not None:
        if verdict is not None:
            raise BadInput("give artifacts, which are checked, or the verdict on them, not both")
        from gbfl_compile.checking.check import check

        verdict = check(source, artifacts)
    inputs = ReportInputs(
        verdict=_form(verdict),
        audit=_form(audit),
        row=None if row is None else _row(row, source, row_number),
        triplets=None if triplets is None else triplets_for(source, triplets),
        row_number=row_number - 1,
        sizes=_sizes(sizes),
        examples=() if examples is None else _example_rows(examples, source),
        interactive=not static,
    )
    html = render_page(source, inputs).encode("utf-8")
    write_whole(Path(out), html)
    return len(html)


def _row(row: Any, program: Program, number: int) -> Sequence[Value]:
    """One row of a table, or a row by itself, values by the kinds of the features."""
    if has_values(program, row := named_table(row)):
        values = one_value_row(row, program, number)[0]
        return values if program.kinds else encode_row(program, values)
    return feature_row(row, program.features, number)[0]


def _example_rows(table: Any, program: Program) -> list[Example]:
    """The first rows of a table, by their number."""
    rows: list[list[Value]]
    if program.kinds:
        rows = value_rows(table, program)[:MOST_EXAMPLES]
    else:
        rows = [list(row) for row in encoded_rows(table, program)[:MOST_EXAMPLES].tolist()]
    return [Example(f"row {number}", row) for number, row in enumerate(rows, 1)]


def _sizes(source: File | Sequence[Mapping[str, Any]] | None) -> Sequence[Mapping[str, Any]]:
    if isinstance(source, str | os.PathLike):
        return [each.as_json() for each in size_rows(Path(source))]
    return source or ()


def _form(source: Form | None) -> Mapping[str, Any] | None:
    """The JSON of a verdict: as it is, of the object that has it, or from a file."""
    if source is None or isinstance(source, Mapping):
        return source
    if isinstance(source, str | os.PathLike):
        return json_object(Path(source))
    if hasattr(source, "as_json"):
        return source.as_json()
    raise BadInput(f"a verdict is what check or audit returned, or a file of its JSON, not {type(source).__name__}")


def json_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file that may come from anyone."""
    content = read_whole(path, LARGEST_JSON)
    try:
        form = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(form, dict):
        raise BadInput(f"{path}: holds a {type(form).__name__}, a verdict is an object")
    return form


def _banner(lines: tuple[TargetLine, ...] | None, audited: Audit | None) -> Banner:
    """What was checked and what is deployed, in one banner: a difference in either is the headline."""
    checked = banner(lines)
    if audited is None or (checked.status == "different" and audited.status != "different"):
        return checked
    if lines is None:
        return Banner(audited.status, audited.headline, audited.detail or "Compiled artifacts: no verdict was given.")
    if audited.status == "different" and checked.status != "different":
        return Banner("different", audited.headline, f"Compiled artifacts: {checked.headline}. {checked.detail}")
    return replace(checked, detail=f"{checked.detail} {audited.headline}.")


def _title(program: Program) -> str:
    """The name of the data it was mined from, or else its classes."""
    mining = program.metadata.get("mining")
    data = mining.get("data") if isinstance(mining, Mapping) else None
    for home in (program.metadata, data if isinstance(data, Mapping) else {}):
        if isinstance(name := home.get("name"), str) and name.strip():
            return one_line(name, 80)
    return " / ".join(shorten(label, 24) for label in class_names(program.classes)[:4])


def _facts(program: Program) -> list[tuple[str, str]]:
    training = program.metadata.get("training")
    rows = training.get("rows") if isinstance(training, Mapping) else None
    facts = [
        ("form", _kind(program)),
        ("clauses", f"{len(program.clauses):,}"),
        ("features", f"{len(program.features):,}"),
        ("classes", f"{len(program.classes):,}"),
    ]
    return [*facts, ("training rows", f"{rows:,}")] if isinstance(rows, int) else facts


def _kind(program: Program) -> str:
    if not isinstance(program.decision, Tree):
        return "rule set"
    return "rule list" if is_rule_list(program.decision) else "tree"


def _size_line(size: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    parts = (size.get(part) for part in ("text", "data", "bss", "stack"))
    return one_line(size.get("built_with", "–"), 120), tuple(f"{n:,}" if isinstance(n, int) else "–" for n in parts)


def _origin(program: Program) -> list[tuple[str, list[tuple[str, str]]]]:
    """Where the program came from, part by part, as recorded in the metadata."""
    parts = []
    if texts := probability_lines(program):
        parts.append(("probabilities", [("", one_line(line.removeprefix("probabilities: "), 240)) for line in texts]))
    for key, value in sorted(program.metadata.items()):
        if key in WITH_SECTION:
            continue
        pairs = value.items() if isinstance(value, Mapping) else [("", value)]
        lines = [(one_line(name, 60), one_line(item, 240)) for name, item in pairs if name not in LONG]
        parts.append((one_line(key, 60), lines[:MOST_LINES]))
    return parts[:MOST_LINES]


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(resource_folder("templates") / "report", encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\n",
    )
    return environment.get_template(name)


def pack_page(program: Program, audit: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """One HTML document without scripts, from the JSON forms of an audit and of its run."""
    section = audit_section(audit, str(audit["source"]))
    text: str = _template("pack.html.jinja").render(
        audit=section,
        facts=list(_pack_facts(audit, run)),
        options=[(one_line(name, 60), one_line(value, 300)) for name, value in run["options"].items()],
        versions=[(one_line(name, 60), one_line(value, 120)) for name, value in run["packages"].items()],
        left_out=list(_left_out(audit)),
        rules=readable(program),
        generator=run["generator"],
    )
    return text


def _pack_facts(audit: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "audited by", one_line(run["auditor"], 120)
    yield "when", one_line(run["time"], 40)
    yield "verdict", one_line(audit["verdict"], 40)
    yield "approved program", one_line(audit["source"], 80)
    yield "with", f"{one_line(run['generator'], 60)}, Python {run['python']}, {one_line(run['system'], 120)}"
    for engine in run["engines"]:
        yield "engine", one_line(engine, 120)


def _left_out(audit: Mapping[str, Any]) -> Iterator[str]:
    """What the verdict does not rest on, in words; each line names the deployed item."""
    for each in audit["audited"]:
        what = one_line(each["what"], 120)
        if each["proof"] == "not run":
            yield f"{what}: was not proved; the verdict rests on the rows that were compared."
        if each["execution"] == "not run" and each["kind"] not in ("scored table", "callable"):
            yield f"{what}: was not run on witnesses{_because(each.get('not_executed'))}."
        if each.get("proof_assumes"):
            yield f"{what}: the proof assumes that {one_line(each['proof_assumes'], 300)}."
        if each.get("other_columns"):
            yield f"{what}: these columns were not compared: {one_line(', '.join(each['other_columns']), 300)}."
        if each["consistency"] == "not run":
            yield f"{what}: local consistency was not compared (no triplets were given)."
        if each["moved"] is None and each["rows"] == "not run":
            yield f"{what}: no table of real rows was counted (no --data was given)."


def _because(reason: Any) -> str:
    return f" ({one_line(reason, 300)})" if reason else ""
