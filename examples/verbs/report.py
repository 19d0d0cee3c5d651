"""report: one HTML page on a program, with what a check of it showed.

It prints::

    True False
"""

import tempfile
from pathlib import Path

from gbfl_compile import check, emit, load_program, report

program = load_program(Path(__file__).parent.parent / "loans.gbfl.json")
verdict = check(program, emit(program, "python"))

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "report.html"
    size = report(program, page, verdict=verdict)
    print(size == page.stat().st_size, "<script" in page.read_text(encoding="utf-8"))
