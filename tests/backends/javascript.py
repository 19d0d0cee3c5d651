"""Many JavaScript modules and rows in one engine, Node.js or a browser: the same script for both, and no bit is lost."""

import base64
import json
import shutil
import struct
import subprocess

import pytest

from gbfl_compile.ir.evaluate import evaluate

ANSWERS = """
const double = (hex) => new DataView(Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16)).buffer).getFloat64(0);
const plain = (value) => (Array.isArray(value) ? double(value[0]) : value);
const hex = (number) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return [...new Uint8Array(view.buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};
const form = (answer) => ({ ...answer, probabilities: answer.probabilities.map(hex) });
async function answersOf(cases) {
  const all = [];
  for (const { module, rows } of cases) {
    try {
      const { FEATURES, score, scoreColumns } = await import("data:text/javascript;base64," + module);
      const table = rows.map((row) => row.map(plain));
      const named = table.map((row) => Object.fromEntries(row.map((value, i) => [FEATURES[i].name, value])));
      const columns = Object.fromEntries(FEATURES.map(({ name }, i) => [name, table.map((row) => row[i])]));
      all.push([named.map((row) => form(score(row))), scoreColumns(columns).map(form)]);
    } catch (error) {
      all.push(String(error));
    }
  }
  return JSON.stringify(all);
}
"""


def encoded(value):
    """A value as JSON carries it to the script: a number as the bytes of its double, a date as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return [struct.pack(">d", value).hex()]
    return value.isoformat()


def cases(pairs):
    """(module, rows of Python values) as the script takes them."""
    return [
        {"module": base64.b64encode(module).decode(), "rows": [[encoded(value) for value in row] for row in rows]}
        for module, rows in pairs
    ]


def expected(program, rows):
    """What both functions have to answer, by the definition; probabilities that go through exp are left out."""
    answers = []
    for row in rows:
        answer = evaluate(program, row)
        answers.append(
            {
                "label": answer.label,
                "index": [(type(label), label) for label in program.classes].index((type(answer.label), answer.label)),
                "leaf": answer.leaf,
                "scores": None if answer.scores is None else list(answer.scores),
                "held": list(answer.held),
                "probabilities": answer.probabilities,
            }
        )
    return answers


def same(program, theirs, rows):
    """Whether a module answered every row as the definition does, both by rows and by columns."""
    if isinstance(theirs, str):
        return False
    ours = expected(program, rows)
    bound = 0.0 if program.has_exact_probabilities else 1e-12
    for way in theirs:
        if len(way) != len(ours):
            return False
        for one, other in zip(way, ours, strict=True):
            shares = [struct.unpack(">d", bytes.fromhex(share))[0] for share in one["probabilities"]]
            close = all(abs(a - b) <= bound for a, b in zip(shares, other["probabilities"], strict=True))
            if not close or {**one, "probabilities": 0} != {**other, "probabilities": 0}:
                return False
    return True


def node():
    """The command, or a skip."""
    command = shutil.which("node")
    if command is None:
        pytest.skip("Node.js is not installed: apt-get install nodejs")
    return command


def answers_in_node(pairs):
    """What each module answers, or the error that it ends in."""
    script = f"""{ANSWERS}
    import {{ readFileSync }} from "node:fs";
    process.stdout.write(await answersOf(JSON.parse(readFileSync(0, "utf8"))));"""
    ran = subprocess.run(
        [node(), "--input-type=module", "-e", script],
        input=json.dumps(cases(pairs)).encode(),
        capture_output=True,
        timeout=600,
        check=True,
    )
    return json.loads(ran.stdout)
