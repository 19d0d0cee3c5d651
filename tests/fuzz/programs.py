"""The program loader, fuzzed."""

from tests.fuzz.mutations import broken_json
from tests.fuzz.target import Finding, refused


def load_program(data):
    from gbfl_compile.errors import BadInput
    from gbfl_compile.ir.json_form import from_bytes, to_json
    from gbfl_compile.ir.readable import readable

    try:
        program = from_bytes(data)
    except BadInput as refusal:
        return refused(refusal)
    written = to_json(program)
    if to_json(from_bytes(written.encode())) != written:
        raise Finding("a program that was loaded is another one when it is written and loaded again")
    readable(program)
    return "read"


def fresh_program(choose):
    from gbfl_compile.ir.json_form import to_json
    from gbfl_compile.ir.nodes import Program
    from tests.check.respelling import random_program
    from tests.programs import LABELS, NAMES

    made = random_program(choose, choose.choice(("tree", "list", "scorecard")))
    labels = choose.choice([labels for labels in LABELS if len(labels) >= len(made.classes)])[: len(made.classes)]
    metadata = {"training": {"rows": 100, "seed": 7}, "figures": {"c_tb": 88.5}, "notes": ["a", None, True]}
    program = Program(tuple(choose.sample(NAMES, 3)), labels, made.clauses, made.decision, metadata)
    return to_json(program).encode()


def broken_program(choose, data, _):
    """Half of them are signed again: a file that was changed is refused by its digest before anything else is seen."""
    made = broken_json(choose, data)
    return _signed(made) if choose.random() < 0.5 else made


def _signed(data):
    import json

    from gbfl_compile.ir.digest import digest, metadata_digest
    from gbfl_compile.ir.json_form import _clause, _decision
    from gbfl_compile.ir.nodes import Program

    try:
        form = json.loads(data)
        clauses = tuple(_clause(clause, "") for clause in form["clauses"])
        made = Program(
            tuple(form["features"]), tuple(form["classes"]), clauses, _decision(form["decision"]), form["metadata"]
        )
        form |= {"digest": digest(made), "metadata_digest": metadata_digest(made)}
        return json.dumps(form).encode()
    except Exception:  # it is too broken to have a digest, and goes in as it is
        return data
