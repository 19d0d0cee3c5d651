"""What is fuzzed: each place where a file from anyone comes in, with inputs to begin from.

`run` returns a word for what happened to an input. Whatever it raises is a finding: refusals of the documented kinds are
caught where they belong, one by one.
"""

from tests.fuzz.artifacts import (
    broken_graph,
    broken_text,
    fresh_artifact,
    fresh_sql,
    run_c,
    run_js,
    run_onnx,
    run_python,
    run_sql,
)
from tests.fuzz.documents import (
    broken_told,
    fresh_certificate,
    fresh_log,
    fresh_told,
    run_certificate,
    run_log,
    run_report,
)
from tests.fuzz.programs import broken_program, fresh_program, load_program
from tests.fuzz.tables import broken_archive, broken_table, fresh_table, fresh_triplets, run_table, run_triplets
from tests.fuzz.target import Target

TARGETS = {
    target.name: target
    for target in (
        Target("loader", load_program, fresh_program, broken_program, offspring=2),
        Target("python", run_python, fresh_artifact("python", "model.py"), broken_text),
        Target("js", run_js, fresh_artifact("js", "model.js"), broken_text),
        Target("c", run_c, fresh_artifact("c", None), broken_text),
        Target("onnx", run_onnx, fresh_artifact("onnx", "model.onnx"), broken_graph, offspring=1),
        Target("sql", run_sql, fresh_sql, broken_text),
        Target("table", run_table, fresh_table, broken_table),
        Target("triplets", run_triplets, fresh_triplets, broken_archive),
        Target("report", run_report, fresh_told, broken_told),
        Target("certificate", run_certificate, fresh_certificate, broken_told),
        Target("log", run_log, fresh_log, broken_told),
    )
}
