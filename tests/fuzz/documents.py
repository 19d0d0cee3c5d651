"""What a report is told, certificates and audit logs, fuzzed."""

from functools import cache

from tests.fuzz.mutations import broken_json
from tests.fuzz.target import Finding, folder, placed, refused


@cache
def reported_program():
    from tests.report.samples import small_tree

    return small_tree()


def run_report(data):
    """What a verdict or an audit file says, on the page."""
    from gbfl_compile.commands.report import json_object
    from gbfl_compile.errors import BadInput
    from gbfl_compile.report.page import Given, report

    try:
        form = json_object(placed("told.json", data))
        told = {"audit": form} if "audited" in form or "source" in form else {"verdict": form}
        page = report(reported_program(), Given(**told, row=[1.0, 2.0]))
    except BadInput as refusal:
        return refused(refusal)
    page.encode("utf-8")
    if "<script" in page.lower():
        raise Finding("a script stands in the page")
    return "read"


def fresh_told(choose):
    import json

    from tests.report.samples import PROVED, RAN, audit_of, different, target, verdict_of

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
def certified():
    import json

    from gbfl_compile.check.certificate import certificate
    from gbfl_compile.check.wide import as_reading
    from gbfl_compile.ir.json_form import to_json

    program = reported_program()
    return json.loads(to_json(program)), certificate(program, as_reading(program)).encode()


def run_certificate(data):
    """A ValueError says what is wrong. One that passes claims no more than the sound one does."""
    from gbfl_compile.check.certificate_verifier import parsed, verify

    try:
        boxes = verify(certified()[0], parsed(data))
    except ValueError as refusal:
        return refused(refusal)
    if boxes < 1:
        raise Finding("a certificate without a box passes")
    return "read"


def fresh_certificate(_):
    return certified()[1]


def run_log(data):
    from gbfl_compile.audit.log import verify

    return "read" if verify(placed("audit.log", data)) is None else "refused"


def fresh_log(choose):
    from gbfl_compile.audit.answer import Audited, AuditReport
    from gbfl_compile.audit.log import append

    path = folder()[1] / "fresh.log"
    path.unlink(missing_ok=True)
    for number in range(choose.randrange(1, 4)):
        append(path, AuditReport("0" * 64, (Audited(f"model{number}.py", "file", "equal"),)))
    return path.read_bytes()
