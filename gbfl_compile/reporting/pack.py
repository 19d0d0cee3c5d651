"""The page of an evidence pack: who audited what and when, which evidence there is, and what was not looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gbfl_compile.files import resource_folder
from gbfl_compile.ir.nodes import Program
from gbfl_compile.ir.text import readable
from gbfl_compile.reporting.audit import audit as audit_section
from gbfl_compile.reporting.text import one_line


def pack_page(program: Program, audit: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """One HTML document without scripts, from the JSON forms of an audit and of its run."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(resource_folder("templates") / "report", encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    section = audit_section(audit, str(audit["source"]))
    text: str = environment.get_template("pack.html.jinja").render(
        audit=section,
        facts=list(_facts(audit, run)),
        options=[(one_line(name, 60), one_line(value, 300)) for name, value in run["options"].items()],
        versions=[(one_line(name, 60), one_line(value, 120)) for name, value in run["packages"].items()],
        left_out=list(_left_out(audit)),
        rules=readable(program),
        generator=run["generator"],
    )
    return text


def _facts(audit: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
