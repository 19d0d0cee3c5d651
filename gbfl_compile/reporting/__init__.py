"""The report: one HTML file that says what a program is, what is known about it and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gbfl_compile.ir.nodes import Program


def audit_page(program: Program, audit: Mapping[str, Any]) -> str:
    """The report on a program with what an audit found deployed, as `gbfl audit --html` writes it."""
    from gbfl_compile.reporting.page import ReportInputs, render_page

    return render_page(program, ReportInputs(audit=audit))
