"""audit: is what is deployed what was approved? Here a view's script, before and after someone edits a bound.

It prints::

    equal
    different clause 2 tightened
"""

import tempfile
from pathlib import Path

from gbfl_compile import audit, emit, load_program

APPROVED = Path(__file__).parent.parent / "loans.gbfl.json"

with tempfile.TemporaryDirectory() as folder:
    deployed = Path(folder) / "scores.sql"
    script = emit(load_program(APPROVED), "sql:postgres", form="view", table="loans").files["model.sql"].decode()
    for text in (script, script.replace(">= CAST(3.0", "> CAST(3.0")):
        deployed.write_text(text, encoding="utf-8")
        report = audit(APPROVED, file=deployed)
        print(report.verdict, *(f"{change.where} {change.kind}" for change in report.verdicts[0].changes))
