"""The readers of artifacts, fuzzed."""

import re

from tests.fuzz.mutations import broken_bytes, broken_tokens
from tests.fuzz.target import Finding, check_refusal


def read_artifact(target, files):
    """A reader that failed with an internal error did refuse, but by luck: that is a finding too."""
    from gbfl_compile.checking.artifact import read
    from gbfl_compile.checking.reading.nodes import Reading, Unread
    from gbfl_compile.errors import GbflError

    try:
        readings = read(target, files)
    except Unread as refusal:
        if refusal.__cause__ is not None:
            raise Finding(f"{target}: {refusal}") from refusal.__cause__
        return check_refusal(refusal)
    except GbflError as refusal:
        return check_refusal(refusal)
    if not readings or not all(isinstance(reading, Reading) for reading in readings):
        raise Finding(f"{target}: what was read is not a reading")
    return "read"


PART = re.compile(rb"^=== ([A-Za-z0-9_./-]{1,80}) ===\n", re.MULTILINE)


def pack(files):
    """The files of an artifact as one input, and `unpacked` again."""
    return b"".join(b"=== " + name.encode() + b" ===\n" + content for name, content in sorted(files.items()))


def unpack(data):
    parts = PART.split(data)
    return {name.decode(): content for name, content in zip(parts[1::2], parts[2::2], strict=True)}


def run_python(data):
    return read_artifact("python", {"model.py": data})


def run_js(data):
    return read_artifact("js", {"model.js": data})


def run_onnx(data):
    return read_artifact("onnx", {"model.onnx": data})


def run_c(data):
    return read_artifact("c", unpack(data))


DIALECT = re.compile(rb'\["target", "sql:([a-z]+)"\]')


def run_sql(data):
    from gbfl_compile.checking.general.sql.engines import ENGINES

    header = DIALECT.search(data)
    dialect = header[1].decode() if header else "duckdb"
    return read_artifact(f"sql:{dialect if dialect in ENGINES else 'duckdb'}", {"model.sql": data})


def fresh_artifact(target, name):
    def fresh(choose):
        from tests.checking.reader_artifacts import random_artifact

        files = random_artifact(choose, target)[1].files
        return pack(files) if name is None else files[name]

    return fresh


def fresh_sql(choose):
    from gbfl_compile.backends import emit
    from gbfl_compile.backends.sql.engines import DIALECTS
    from gbfl_compile.errors import BadInput
    from tests.checking.respelling import random_program

    while True:
        program = random_program(choose, choose.choice(("tree", "list", "scorecard")))
        form = choose.choice(("select", "select", "expression", "view", "table", "macro"))
        outputs = choose.choice(("label", "label,probabilities", "label,probabilities,reason"))
        try:
            artifact = emit(
                program,
                f"sql:{choose.choice(list(DIALECTS))}",
                options={"form": form, "table": "data", "outputs": outputs},
            )
        except BadInput:  # not every engine has every form
            continue
        return artifact.files["model.sql"]


def broken_text(choose, data, other):
    return broken_tokens(choose, data, other) if choose.random() < 0.7 else broken_bytes(choose, data)


def broken_graph(choose, data, _):
    """A graph with a slip in it, or its bytes broken."""
    import onnx

    from tests.checking.strict.onnx.edits import mutated, respelled

    if choose.random() < 0.6:
        return broken_bytes(choose, data)
    try:
        files = {"model.onnx": data}
        for _ in range(choose.choice((1, 2, 4))):
            files = mutated(choose, files)[0] if choose.random() < 0.7 else respelled(choose, files)
        model = onnx.load_from_string(files["model.onnx"])
        _spoil(choose, model)
        return model.SerializeToString()
    except Exception:  # an edit takes a sound graph; this one was broken before
        return broken_bytes(choose, data)


def _spoil(choose, model):
    """What an editor of graphs would not do: shapes and types that are not so, names that meet, data elsewhere."""
    graph = model.graph
    tensors = list(graph.initializer)
    match choose.choice(("nothing", "shape", "type", "name", "elsewhere", "opset", "cycle", "attribute")):
        case "shape" if tensors:
            tensor = choose.choice(tensors)
            del tensor.dims[:]
            tensor.dims.extend(choose.choice(([-1], [2**40], [2**31, 2**31], [0], [1, 1, 1], [])))
        case "type" if tensors:
            choose.choice(tensors).data_type = choose.randrange(25)
        case "name" if graph.node:
            node = choose.choice(graph.node)
            if node.output:
                node.output[0] = choose.choice(("input", "label", "", "x" * 2000, *(t.name for t in tensors)))
        case "elsewhere" if tensors:
            tensor = choose.choice(tensors)
            tensor.data_location = 1
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", "../../../../etc/passwd"
        case "opset":
            for opset in model.opset_import:
                opset.version = choose.choice((0, -1, 1, 5, 2**62))
        case "cycle" if graph.node:
            node = choose.choice(graph.node)
            if node.input and node.output:
                node.input[0] = node.output[0]
        case "attribute":
            attributes = [attribute for node in graph.node for attribute in node.attribute]
            if attributes:
                attribute = choose.choice(attributes)
                attribute.type = choose.randrange(12)
                attribute.ints.extend(choose.choice(([], [-1], [2**62], list(range(40)))))
