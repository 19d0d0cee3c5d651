"""The program loader, fuzzed."""

from tests.fuzz.mutations import broken_json
from tests.fuzz.target import Finding, check_refusal


def load_program(data):
    from gbfl_compile.errors import BadInput
    from gbfl_compile.ir.json import from_bytes, to_json
    from gbfl_compile.ir.text import readable

    try:
        program = from_bytes(data)
    except BadInput as refusal:
        return check_refusal(refusal)
    written = to_json(program)
    if to_json(from_bytes(written.encode())) != written:
        raise Finding("a program that was loaded is another one when it is written and loaded again")
    readable(program)
    return "read"


def fresh_program(choose):
    from gbfl_compile.ir.json import to_json
    from gbfl_compile.ir.nodes import Program
    from tests.checking.respelling import random_program
    from tests.programs import LABELS, NAMES

    plain = random_program(choose, choose.choice(("tree", "list", "scorecard")))
    labels = choose.choice([labels for labels in LABELS if len(labels) >= len(plain.classes)])[: len(plain.classes)]
    metadata = {"training": {"rows": 100, "seed": 7}, "figures": {"c_tb": 88.5}, "notes": ["a", None, True]}
    program = Program(tuple(choose.sample(NAMES, 3)), labels, plain.clauses, plain.decision, metadata)
    return to_json(program).encode()


def broken_program(choose, data, _):
    """Half of them are signed again: a file that was changed is refused by its digest before anything else is seen."""
    broken = broken_json(choose, data)
    return _with_digests(broken) if choose.random() < 0.5 else broken


def _with_digests(data):
    import json

    from gbfl_compile.ir.json import _clause, _decision, digest, metadata_digest
    from gbfl_compile.ir.nodes import Program

    try:
        form = json.loads(data)
        clauses = tuple(_clause(clause, "") for clause in form["clauses"])
        program = Program(
            tuple(form["features"]), tuple(form["classes"]), clauses, _decision(form["decision"]), form["metadata"]
        )
        form |= {"digest": digest(program), "metadata_digest": metadata_digest(program)}
        return json.dumps(form).encode()
    except Exception:  # it is too broken to have a digest, and goes in as it is
        return data
