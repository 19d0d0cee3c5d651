"""report: one HTML page on a program, with what a check of it showed.

The page answers questions about rows with the program's own JavaScript, which is proved before it is put in. With
`static=True` it has no script at all. It prints::

    True True False
"""

import tempfile
from pathlib import Path

from gbfl_compile import check, emit, load_program, report

program = load_program(Path(__file__).parent.parent / "loans.gbfl.json")
verdict = check(program, emit(program, "python"))

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "report.html"
    size = report(program, page, verdict=verdict)
    answers_back = "<script" in page.read_text(encoding="utf-8")
    report(program, page, verdict=verdict, static=True)
    print(size > page.stat().st_size, answers_back, "<script" in page.read_text(encoding="utf-8"))
