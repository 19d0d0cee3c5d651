"""Fuzz targets: the inputs of a report, certificates and audit logs."""

from functools import cache

from tests.fuzz.mutations import broken_json
from tests.fuzz.target import Finding, check_refusal, folder, place_file


@cache
def reported_program():
    from tests.reporting.samples import small_tree

    return small_tree()


def run_report(data):
    """What a verdict or an audit file says, on the page."""
    from gbfl_compile.errors import BadInput
    from gbfl_compile.reporting.page import ReportInputs, json_object, render_page

    try:
        form = json_object(place_file("input.json", data))
        inputs = {"audit": form} if "audited" in form or "source" in form else {"verdict": form}
        page = render_page(reported_program(), ReportInputs(**inputs, row=[1.0, 2.0]))
    except BadInput as refusal:
        return check_refusal(refusal)
    page.encode("utf-8")
    if "<script" in page.lower():
        raise Finding("the page contains a script")
    return "read"


def fresh_told(choose):
    import json

    from tests.reporting.samples import PROVED, RAN, audit_of, different, target, verdict_of

    program = reported_program()
    forms = (
        verdict_of(program, c=different(program)),
        verdict_of(program, c=target(program, proof=PROVED, execution=RAN)),
        audit_of(program, 3),
    )
    return json.dumps(choose.choice(forms)).encode()


def broken_told(choose, data, _):
    return broken_json(choose, data)


@cache
def with_certificate():
    import json

    from gbfl_compile.checking.prove.certificate import certificate
    from gbfl_compile.checking.reading.from_program import as_reading
    from gbfl_compile.ir.json import to_json

    program = reported_program()
    return json.loads(to_json(program)), certificate(program, as_reading(program), {}).encode()


def run_certificate(data):
    """A ValueError says what is wrong. One that passes claims no more than the sound one does."""
    from gbfl_compile.checking.prove.certificate_verifier import parse, verify

    try:
        boxes = verify(with_certificate()[0], parse(data))
    except ValueError as refusal:
        return check_refusal(refusal)
    if boxes < 1:
        raise Finding("a certificate without a box passes")
    return "read"


def fresh_certificate(_):
    return with_certificate()[1]


def run_log(data):
    from gbfl_compile.auditing.log import end_content, examine, verify

    log = place_file("audit.log", data)
    state = examine(log)
    log.with_name("audit.log.end").write_bytes(end_content(state.lines, state.last))
    return "read" if verify(log) is None else "refused"


def fresh_log(choose):
    from gbfl_compile.auditing.log import append
    from gbfl_compile.auditing.verdict import AuditReport, DeployedVerdict

    path = folder()[1] / "fresh.log"
    for old in (path, path.with_name("fresh.log.end")):
        old.unlink(missing_ok=True)
    for number in range(choose.randrange(1, 4)):
        append(path, AuditReport("0" * 64, (DeployedVerdict(f"model{number}.py", "file", "equal"),)))
    return path.read_bytes()
